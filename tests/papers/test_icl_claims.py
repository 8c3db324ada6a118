"""The rules of the icl paper's claims: each passes sound results and fails on a suitable broken model."""

from __future__ import annotations

import numpy as np
import pytest
from every_entry import verdicts

from iclab import train_many
from iclab.lab.powers import Scaling
from iclab.papers.icl import (
    alpha,
    iterations,
    norms,
    ood,
)
from iclab.papers.icl.mechanism import PLACES, along, inside
from iclab.papers.icl.settings import LARGEST_SUM, in_domain, new_patterns, one_layer_run, out_of_domain
from iclab.papers.mamba.trained import untrained
from iclab.probes import model_errors

SEEDS = list(range(8))


def of_parts(entry, measured):
    """The verdicts of every part's checks, in one list."""
    return [verdict for part in entry.parts for verdict in verdicts(part.checks(measured))]


@pytest.fixture(scope="module")
def models():
    """Eight seeds of the one-layer Transformer, trained briefly."""
    return train_many([one_layer_run(0.6, 600).seeded(seed) for seed in SEEDS], probe=inside)


def test_new_patterns_have_unit_length_and_their_sum():
    for total in (-1.0, 0.0, 0.8, 1.0, LARGEST_SUM):
        rows = np.array(new_patterns(total))
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)
        np.testing.assert_allclose(rows.sum(axis=1), [total, np.sqrt(2), np.sqrt(2)], atol=1e-6)
        np.testing.assert_allclose(rows @ rows.T, np.eye(3), atol=1e-6)


def test_in_domain_prompts_are_those_of_training():
    assert in_domain(0.8).irrelevant_scale == one_layer_run(0.8, 1).prompts.irrelevant_scale == 0.5
    assert out_of_domain(0.8).irrelevant_scale == 5.0


def test_the_coefficient_sum(models):
    def errors_of(some):
        tests = [out_of_domain(0.6, total) for total in ood.ALL["softmax"]]
        return ood.Errors(ood.ALL["softmax"], model_errors(some, tests, count=1000, seeds=SEEDS), 1000, tests)

    assert verdicts(ood.small_beyond(errors_of(models))) == ["holds"]
    for sums in ood.ALL.values():
        cliff = ood.Errors(sums, np.where(np.array(sums) < 1, 0.3, 0.0) + np.zeros((4, 1)), 1000, [])
        assert of_parts(ood.ENTRY, {"softmax": cliff, "gpt2": cliff}) == ["holds"] * 4
        smooth = cliff._replace(values=np.zeros((4, len(sums))))
        assert of_parts(ood.ENTRY, {"softmax": smooth, "gpt2": smooth}) == ["holds", "holds", "fails", "fails"]
    assert verdicts(ood.small_beyond(errors_of([untrained(model) for model in models]))) == ["fails"]


def test_powers_of_alpha():
    size = alpha.SIZES["full"]
    steps, lengths = 100 * np.array(size.fractions) ** (-2 / 3), np.array(size.lengths)
    # A loss that is 0.1 at 4 / alpha examples.
    losses = np.stack([0.4 / fraction / lengths for fraction in size.short])

    def judged(T, loss):
        results = alpha.Measured(size, {(alpha.JUDGED, alpha.TARGET): np.tile(T, (8, 1))}, np.tile(loss, (8, 1, 1)),
                                 np.zeros((8, *loss.shape)))
        return [verdicts(part.checks(results)) for part in alpha.ENTRY.parts]

    assert {verdict for part in judged(steps, losses) for verdict in part} == {"holds"}
    flat = judged(np.full_like(steps, 100.0), np.tile(0.4 / lengths, (5, 1)))
    assert flat == [["holds", "holds", "fails"], ["holds", "holds", "fails"], ["holds", "holds", "fails"] * 2]
    for part in judged(np.full_like(steps, np.nan), np.ones_like(losses)):
        assert part[0] == "fails"
    assert alpha.a_run(0.6, 8, 10, (0.2, 1.0)).model.init_scale == 0.2


def test_powers_of_the_other_settings(models):
    axes, usual, theory = iterations.SIZES["full"].axes, iterations.USUAL, iterations.THEORY

    def judged(change):
        counts = {axis: np.tile(change((np.array(values) / usual[axis]) ** theory[axis]), (8, 1))
                  for axis, values in axes.items()}
        return of_parts(iterations.ENTRY, Scaling(axes, counts, usual))

    assert set(judged(lambda counts: counts)) == {"holds"}
    assert judged(np.ones_like).count("fails") == 5
    assert judged(lambda counts: counts * np.nan)[0] == "fails"
    assert 50 < iterations.iterations(models[0]) < 600
    wider = iterations.a_run("M1", 12)
    assert (wider.prompts.irrelevant_patterns, wider.model.neurons) == (18, 400)
    assert iterations.a_run(iterations.FIXED, 12).model.neurons == 100


def test_norms_grow(models):
    whole, part = along(models, "query norm/in domain"), along(models, "query along its pattern/in domain")
    assert (part <= whole).all()

    def judged(whole, part, exponent):
        patterns = norms.SIZES["full"].patterns
        falling = np.tile(np.array(patterns, float) ** exponent, (8, 1))
        parts = {(vector, other): falling for vector in norms.VECTORS for other in norms.OTHERS}
        measured = norms.Measured({("query", place): norms.estimates(whole, part) for place in PLACES}, patterns, parts)
        return [verdicts(part.checks(measured)) for part in norms.ENTRY.parts]

    assert judged(whole, part, -1.0)[0] == ["holds", "holds"]
    assert judged(part, part, -1.0) == [["holds"] * 2] * 5
    untrained_norms = judged(whole[:, :1], part[:, :1], 0.0)
    assert untrained_norms[:4] == [["fails"] * 2] * 4
    assert untrained_norms[4][0] == "fails"


def test_parts_along_other_patterns(models):
    ((query, key),) = norms.relative_parts([untrained(train_many([norms.a_run(4, 1)])[0])])
    # At the start W_Q and W_K are multiples of the identity.
    assert query[0] == key[0] == 0
    assert 0.1 < query[1] < 0.5
    assert query[2] < 0.2
