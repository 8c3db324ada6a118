"""The rules of `icl.lucky`: each passes sound results and fails on what is broken in its way."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from every_entry import verdicts

from iclab import train_many
from iclab.core.spec import replace
from iclab.models import forward_batch
from iclab.papers.beyond import lucky, lucky_steps
from iclab.papers.beyond.lucky import Measured
from iclab.papers.beyond.lucky_steps import BATCHES, STAGES
from iclab.probes.watched import watched_prompts
from iclab.training import begin

PATTERNS, SEEDS, SQUARE, PROMPTS = (4, 6, 8, 10), 6, 9.0, 512
M1, T = np.array(PATTERNS, float)[:, None], np.array(STAGES)[None]
NOISE = (1 + 1e-3 * np.random.default_rng(0).normal(size=SEEDS))[:, None, None]
BATCH = np.array(BATCHES, float)[None]
SHARES = {"share of W": 0.125, "share of U": 0.125, "least share of W": 0.1, "least share of U": 0.1,
          "always active": 0.99, "active at the end": 0.99, "lucky among large": 0.9}


def measured(**changes):
    """What the lemmas say, at every M1 and time, but for the changes."""
    values = {"pull": T**1.5 / M1, "mean pull": T**1.5 / M1, "mass": 0.5 + 0 * T * M1, "lucky value": 1 + 0 * T * M1,
              "opposite value": -0.5 + 0 * T * M1, "value": 1 + 0 * T * M1, "irrelevant value": 1 / M1 + 0 * T,
              "row": T / M1, "row bound": T / M1, "irrelevant row": T / M1**2, "one step": 1 / M1 + 0 * T,
              "one step bound": 2 / M1 + 0 * T, "idle row": 0.1 * T / M1, "idle bound": T / M1,
              "row norm": 2 + 0 * T * M1, "norm bound": T + 0 * M1,
              "idle value": np.sqrt(np.log(BATCH) / BATCH) + 0 * M1}
    for W in lucky.WEIGHTS:
        values |= {f"{W} own": T**1.5 / M1, f"{W} partner": 0.3 * T**1.5 * np.exp(-4 * T) / M1,
                   f"{W} other": 0.3 * T**1.5 / M1**2, f"{W} irrelevant": 0.1 * T**1.5 / M1**2}
    values |= {name: np.full(len(PATTERNS), share) for name, share in SHARES.items()} | changes
    return Measured(PATTERNS, SQUARE, [34, 100, 206, 358], {
        name: (NOISE if np.ndim(of) == 2 else NOISE[..., 0]) * of for name, of in values.items()})


SOUND = measured()


@pytest.mark.parametrize("part", lucky.ENTRY.parts, ids=lambda part: part.place)
def test_sound_results_hold(part):
    assert set(verdicts(part.checks(SOUND))) == {"holds"}


@pytest.mark.parametrize(("place", "changes"), [
    ("B.5 (27), (31)", {"W_Q own": 0 * T * M1}),
    ("B.5 (27), (31)", {"W_K own": -(T**1.5) / M1}),
    ("B.5 (27), (31)", {"W_K own": T**1.5 / M1**2}),
    ("B.5 (27), (31)", {"W_Q own": T**0.5 / M1}),
    ("B.5 (28), (32)", {"W_Q partner": 0.5 * T**1.5 / M1}),
    ("B.5 (29), (30), (33), (34)", {"W_K other": T**1.5 / M1}),
    ("B.5 (29), (30), (33), (34)", {"W_Q irrelevant": T**1.5 / M1}),
    ("B.6 (36), (39)", {"lucky value": 1 / M1 + 0 * T}),
    ("B.6 (36), (39)", {"lucky value": 0 * T * M1}),
    ("B.6 (37), (40)", {"opposite value": 0.5 + 0 * T * M1}),
    ("B.6 (37), (40)", {"opposite value": -0.05 + 0 * T * M1}),
    ("B.6 (38), (41)", {"idle value": 1 + 0 * BATCH * M1}),
    ("B.6 (43)", {"irrelevant value": 1 + 0 * T * M1}),
    ("B.7 (44), (46)", {"one step": T / M1}),
    ("B.7 (44), (46)", {"one step": 1 / M1**2 + 0 * T}),
    ("B.7 (45), (47)", {"row": T / M1**2}),
    ("B.7 (45), (47)", {"row": 0 * T * M1}),
    ("B.7 (48)", {"row norm": 1 / M1 + 0 * T}),
    ("B.7 (49)", {"irrelevant row": T / M1}),
    ("B.7 (50)", {"idle row": T**2 / M1}),
    ("B.7 (50)", {"idle row": T + 0 * M1}),
    ("B.9 (57), (58)", {"share of U": 1 / M1[:, 0] ** 2}),
    ("B.9 (57), (58)", {"least share of W": np.full(4, 0.01)}),
    ("B.10 (59), (60)", {"always active": np.full(4, 0.5)}),
    ("B.10 (61), (62)", {"active at the end": np.full(4, 0.5)}),
    ("chance", {"share of W": np.full(4, 0.25)}),
    ("luck decides", {"lucky among large": np.full(4, 0.5)}),
])
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_broken_results_fail(place, changes):
    part = next(part for part in lucky.ENTRY.parts if part.place.removeprefix("lemma ") == place)
    assert "fails" in verdicts(part.checks(measured(**changes)))


@pytest.fixture(scope="module")
def models():
    """Four patterns, six seeds."""
    return train_many([lucky_steps.a_run(4, 1_000).seeded(seed) for seed in range(6)], probe=lucky_steps.weights_probe)


def judged(models, name):
    """The verdicts of a share's rule, for these models as the largest."""
    values = {name: np.array([[lucky_steps.follow(model, PROMPTS)[name]] for model in models])}
    return verdicts(lucky.stays(name, name, 0.7)(Measured((4,), SQUARE, [34], values)))


def test_other_neurons_than_the_lucky_ones_do_not_stay_active(models):
    """W_O's rows exchanged once training begins: who was lucky says little about who is active."""
    def exchanged(model):
        order = np.random.default_rng(0).permutation(model.run.model.neurons)
        return replace(model, probes=model.probes | {"W_O": model.probes["W_O"][:, order]})

    for name in ("always active", "active at the end"):
        assert judged(models, name) == ["holds"]
        assert judged([exchanged(model) for model in models], name) == ["fails"]


def test_coefficients_make_the_gradients(models):
    """dW_V is the sum over neurons, and one step of W_O is what JAX differentiates."""
    run = models[0].run
    history, drawn = lucky_steps.History(models[0]), lucky_steps.draw(run, PROMPTS)
    weights, batch = history.at(0.75 * history.T), watched_prompts(run.prompts, PROMPTS)
    assert np.bincount(drawn.first(64).pattern).tolist() == [16] * 4
    params = begin(run).params
    d, m = run.prompts.dimension, run.model.neurons
    params = type(params)(*(jnp.asarray(value if value.shape == full.shape else np.pad(
        value, ((0, 0), (0, full.shape[1] - value.shape[1])))) for value, full in zip(weights, params, strict=True)))

    def loss(params):
        return jnp.maximum(0, 1 - batch.label * forward_batch(run.model, params, batch)[0]).mean()

    gradient = jax.jit(jax.grad(loss))(params)
    seen = lucky_steps.read(weights, drawn)
    each = lucky_steps.taught(seen, drawn.z) / (m * len(drawn.z))
    assert np.allclose(-gradient.W_V[:, :d + 1], weights.W_O.T @ (each.T @ seen.attended), atol=1e-5)
    assert np.allclose(-gradient.W_O, each.T @ (seen.attended @ weights.W_V.T), atol=1e-5)


def test_who_is_lucky_by_brute_force(models):
    run = models[0].run
    drawn, weights = lucky_steps.draw(run, PROMPTS).first(64), lucky_steps.History(models[0]).at(0)
    of, d, m = lucky_steps.lucky(weights, drawn, 4), run.prompts.dimension, run.model.neurons
    start = lucky_steps.read(weights, drawn).attended
    for n in range(64):
        for i in range(m):
            sign, row = (1 if i < m // 2 else -1), weights.W_O[i]
            reads = row[:d] @ start[n, :d] > 0
            assert of.written[n, i] == (reads and row[d] * start[n, d] > 0)
            assert of.pairs[n, i] == (reads and row[d] * drawn.z[n] > 0 and sign == drawn.z[n])
