"""The rules of `mamba.adversarial`: each passes sound results and fails on models that are broken in its way."""

from __future__ import annotations

import numpy as np
import pytest
from every_entry import verdicts

from iclab import Classification
from iclab.core.spec import replace
from iclab.papers.beyond import adversarial
from iclab.papers.beyond.adversarial import MIRRORED, PLAIN, Rounds, Seen, gate_ratio
from iclab.papers.mamba.trained import ungated, untrained

SEEDS = 4
NOISE = 0.001 * np.arange(SEEDS)


def seen(clean=0.0, standard=0.0, beyond_half=0.0, fresh=0.99, steps=100.0, **known):
    errors = {"clean": clean + NOISE, "standard": standard + NOISE, "beyond half": beyond_half + NOISE}
    return Seen(errors, fresh + NOISE, steps + NOISE, **{name: value + NOISE for name, value in known.items()})


SOUND = Rounds({PLAIN: seen(), "round 1": seen(standard=0.01, known=0.001, gate=0.1, reverse=3.0),
                "round 3": seen(clean=0.02, fresh=0.8), MIRRORED: seen(beyond_half=0.8, fresh=0.3)}, 4000, 1000)


def broken(name, **changes):
    """The sound results with some numbers of one kind of model replaced."""
    return Rounds(SOUND.seen | {name: replace(SOUND.seen[name], **{
        field: value if isinstance(value, dict) else value + NOISE for field, value in changes.items()})}, 4000, 1000)


def errors_with(name, test, error):
    return {"errors": SOUND.seen[name].errors | {test: error + NOISE}}


@pytest.mark.parametrize("part", adversarial.ENTRY.parts, ids=lambda part: part.place)
def test_sound_results_hold(part):
    assert set(verdicts(part.checks(SOUND))) == {"holds"}
    assert all(set(verdicts(rule.checks(SOUND))) == {"holds"} for rule in part.earlier)


@pytest.mark.parametrize(("rule", "rounds"), [
    (adversarial.on_the_attack, broken("round 1", gate=0.9)),
    (adversarial.on_the_attack, broken("round 1", known=0.9)),
    (adversarial.on_clean, broken("round 1", **errors_with("round 1", "clean", 0.3))),
    (adversarial.in_steps, broken("round 1", steps=300.0)),
    (adversarial.in_steps, broken("round 1", steps=np.nan)),
    (adversarial.on_standard, broken("round 1", **errors_with("round 1", "standard", 0.3))),
    (adversarial.on_the_reverse, broken("round 1", reverse=0.5)),
    (adversarial.on_fresh, broken("round 3", fresh=0.1)),
    (adversarial.on_mirrored, broken(MIRRORED, fresh=0.9)),
    (adversarial.on_mirrored, broken(MIRRORED, **errors_with(MIRRORED, "beyond half", 0.1))),
])
def test_broken_results_fail(rule, rounds):
    assert "fails" in verdicts(rule(rounds))


def test_gates_of_broken_models_fail(trained_mamba):
    """Mamba has learnt to shut its gate on the sum of the training outliers, and does not on the reverse."""
    u = 2.0 * Classification().outliers().sum(axis=0)

    def on(models):
        gate, reverse = (np.array(gate_ratio(models, [sign * u] * len(models), 500)) for sign in (1, -1))
        return broken("round 1", gate=gate - NOISE, reverse=reverse - NOISE)

    assert verdicts(adversarial.on_the_attack(on(trained_mamba)))[0] == "holds"
    assert verdicts(adversarial.on_the_reverse(on(trained_mamba))) == ["holds"]
    for breaking in (ungated, untrained):
        models = [breaking(model) for model in trained_mamba]
        assert verdicts(adversarial.on_the_attack(on(models)))[0] != "holds"
        assert verdicts(adversarial.on_the_reverse(on(models))) != ["holds"]
    reversed_ = Rounds(SOUND.seen | {"round 1": replace(
        SOUND.seen["round 1"], gate=on(trained_mamba).seen["round 1"].reverse)}, 4000, 1000)
    assert verdicts(adversarial.on_the_attack(reversed_))[0] == "fails"
