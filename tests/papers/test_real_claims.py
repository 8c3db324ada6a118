"""The rules on the released blocks: each passes a sound model and fails on a suitable broken one."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from every_entry import verdicts

from iclab import Mamba2Block, Trained, replace
from iclab.papers.beyond import real
from iclab.probes.influence import LabelWeights
from iclab.training.sgd import begin

SEEDS, EXAMPLES = 8, 20
SPREAD = 1 + 0.01 * np.arange(SEEDS)


def sound(**changes):
    """A block as one would wish it; poison next to the query costs it a tenth of its answers."""
    tests = len(real.TESTS)
    clean = 0.8 ** np.arange(EXAMPLES) * SPREAD[:, None, None] * np.ones((tests, 1))
    errors = 0.002 * SPREAD[:, None] * np.ones(tests)
    errors[:, real.PLACED + 2] += 0.1
    pair = np.stack([np.ones((SEEDS, tests)), 0.1 * SPREAD[:, None] * np.ones(tests)], axis=-1)
    fields = {"errors": errors, "weights": LabelWeights(clean, 0.1 * clean), "steps": pair, "matches": pair,
              "prompts": 2_000}
    return real.Inside(**fields | changes)


def failing(of, name="block"):
    """Places of the parts about a block that fail."""
    return [part.place.split(", ")[1] for part in real.parts_of(name) if "fails" in verdicts(part.checks({name: of}))]


def test_a_sound_block_passes_and_each_rule_fails_on_its_own():
    good = sound()
    assert [verdicts(part.checks({"block": good})) for part in real.parts_of("block")] == [["holds"]] * 5
    flat = np.ones_like(good.weights.clean) * SPREAD[:, None, None]
    even = np.ones_like(good.steps) * SPREAD[:, None, None]
    assert failing(sound(errors=good.errors + 0.3)) == ["errors"]
    assert failing(sound(weights=good.weights._replace(poisoned=0.5 * good.weights.clean))) == ["label weights"]
    assert failing(sound(weights=LabelWeights(flat, 0.1 * flat))) == ["recency"]
    assert failing(sound(steps=even)) == ["steps"]
    swapped = good.errors.copy()
    swapped[:, [real.PLACED, real.PLACED + 2]] = good.errors[:, [real.PLACED + 2, real.PLACED]]
    assert failing(sound(errors=swapped)) == ["placement"]


@pytest.fixture(scope="module")
def fresh():
    """Blocks before their first step."""
    run = replace(real.a_run("block2", 1), model=Mamba2Block(size=8, state=4))
    models = [Trained(one, jax.tree.map(np.asarray, begin(one).params), None, np.zeros(0), np.zeros(0))
              for one in map(run.seeded, range(4))]
    return real.inside(real.measure(models, 500), 500)


def test_an_untrained_block_neither_answers_nor_filters(fresh):
    assert set(failing(fresh)) >= {"errors", "label weights", "steps"}
    other = {"attention": fresh, "linear": sound()}
    assert [verdicts(part.checks(other)) for part in real.ENTRY.parts[-3:]] == [["fails"]] * 3
