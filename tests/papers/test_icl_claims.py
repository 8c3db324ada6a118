"""The rules of the icl paper's claims: each passes sound results and fails on a suitable broken model."""

from __future__ import annotations

import numpy as np
import pytest

from iclab import train_many
from iclab.papers.icl import (
    alpha,
    attention,
    baselines,
    context,
    iterations,
    neurons,
    norms,
    ood,
    pruning,
    tasks,
    unseen,
)
from iclab.papers.icl.mechanism import PLACES, along, inside
from iclab.papers.icl.settings import LARGEST_SUM, in_domain, new_patterns, one_layer_run, out_of_domain
from iclab.papers.mamba.trained import untrained
from iclab.probes import model_errors
from iclab.probes.by_length import context_errors

SEEDS = [0, 1, 2, 3]


def verdicts(judged):
    return [check.verdict for check in judged]


@pytest.fixture(scope="module")
def models():
    """Four seeds of the one-layer Transformer, trained briefly."""
    return train_many([one_layer_run(0.6, 300).seeded(seed) for seed in SEEDS], probe=inside)


def test_new_patterns_have_unit_length_and_their_sum():
    for total in (-1.0, 0.0, 0.8, 1.0, LARGEST_SUM):
        rows = np.array(new_patterns(total))
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)
        np.testing.assert_allclose(rows.sum(axis=1), [total, np.sqrt(2), np.sqrt(2)], atol=1e-6)
        np.testing.assert_allclose(rows @ rows.T, np.eye(3), atol=1e-6)


def test_unseen_tasks(models):
    def judged(some):
        return verdicts(unseen.checks(model_errors(some, [in_domain(0.8)], count=1000, seeds=SEEDS)[:, 0]))

    assert judged(models) == ["holds"]
    assert judged([untrained(model) for model in models]) == ["fails"]


def test_the_coefficient_sum(models):
    def judged(some, model="softmax"):
        return verdicts(ood.checks([ood.Errors(model, 5.0, some)]))

    tests = ood.tests_of("softmax", 5.0)
    assert judged(model_errors(models, tests, count=1000, seeds=SEEDS))[0] == "holds"
    for model, sums in ood.SUMS.items():
        cliff = np.where(np.array(sums) < 1, 0.3, 0.0) + np.zeros((4, 1))
        assert judged(cliff, model) == ["holds", "holds"]
    assert judged(model_errors([untrained(model) for model in models], tests, count=1000, seeds=SEEDS))[0] == "fails"


def test_fewer_decisive_examples_require_more_examples(models):
    def errors_of(some):
        tests = [context.test_of("softmax", where, fraction, 5.0) for where in context.WHERE
                 for fraction in context.FRACTIONS["softmax"]]
        errors = context_errors(some, tests, context.LENGTHS["softmax"], count=500, seeds=SEEDS)
        return dict(zip(context.WHERE, np.split(errors, 2, axis=1), strict=True))

    gpt2 = {where: np.linspace(0.5, 0.0, 4)[None, :, None] + np.zeros((4, 4, 4)) for where in context.WHERE}
    assert set(verdicts(context.checks(errors_of(models), gpt2))) == {"holds"}
    flat = {where: np.full((4, 4, 4), 0.3) for where in context.WHERE}
    assert set(verdicts(context.checks(errors_of([untrained(m) for m in models]), flat))) == {"fails", "inconclusive"}


def test_powers_of_alpha():
    steps, lengths = 100 * np.array(alpha.FRACTIONS["full"]) ** (-2 / 3), alpha.LENGTHS["full"]
    # A loss that is 0.1 at 4 / alpha examples.
    losses = np.stack([0.4 / fraction / np.array(lengths) for fraction in alpha.SHORT["full"]])

    def judged(T, loss):
        results = alpha.Found({(alpha.JUDGED, alpha.TARGET): np.tile(T, (4, 1))}, np.tile(loss, (4, 1, 1)),
                              np.zeros((4, *loss.shape)), lengths, [])
        return verdicts(alpha.checks(results, "full"))

    assert set(judged(steps, losses)) == {"holds"}
    assert judged(np.full_like(steps, 100.0), np.tile(0.4 / np.array(lengths), (4, 1)))[2::2] == ["fails", "fails"]
    assert judged(np.full_like(steps, np.nan), np.ones_like(losses))[0] == "fails"
    assert alpha.a_run(0.6, 8, 10, (0.2, 1.0)).model.init_scale == 0.2


def test_powers_of_the_other_settings(models):
    axes = iterations.AXES["full"]
    counts = {axis: np.tile(np.array(values) ** iterations.THEORY[axis], (4, 1)) for axis, values in axes.items()}
    assert set(verdicts(iterations.checks(counts, "full"))) == {"holds"}
    flat = {axis: np.ones_like(values) for axis, values in counts.items()}
    assert verdicts(iterations.checks(flat, "full")).count("fails") == 3
    never = {axis: np.full_like(values, np.nan) for axis, values in counts.items()}
    assert verdicts(iterations.checks(never, "full"))[0] == "fails"
    assert 50 < iterations.iterations(models[0]) < 300
    assert iterations.a_run("M1", 8).prompts.irrelevant_patterns == 22


def test_pruning_small_neurons_is_free(models):
    judged = verdicts(pruning.checks(pruning.pruned_errors(models, SEEDS, 500)))
    assert judged[:2] == ["holds", "holds"]
    # In an untrained model all neurons are alike: those with large rows cost nothing either.
    assert verdicts(pruning.checks(pruning.pruned_errors([untrained(m) for m in models], SEEDS, 500)))[1] == "fails"


def test_classical_learners(models):
    errors = baselines.fit(models, SEEDS, (20,), (60, 5), 1000)
    assert "fails" not in verdicts(baselines.checks(errors))
    beginners = [untrained(model) for model in models]
    hard = errors["out of domain", 0.6, 20]
    hard["softmax"] = model_errors(beginners, [out_of_domain(0.6)], count=1000, seeds=SEEDS)[:, 0]
    assert "holds" not in verdicts(baselines.checks(errors))


def test_attention_gathers(models):
    shares = {name: along(models, f"attention/{name}") for name in PLACES}
    assert verdicts(attention.checks({name: values[:, -1] for name, values in shares.items()})) == ["holds", "holds"]
    assert verdicts(attention.checks({name: values[:, 0] for name, values in shares.items()})) == ["fails", "fails"]


def test_norms_grow(models):
    whole, part = along(models, "query norm/in domain"), along(models, "query along its pattern/in domain")
    assert (part <= whole).all()
    assert norms.checks({("query", "in domain"): (whole, part)})[0].verdict == "holds"
    before = (whole[:, :1], part[:, :1])
    assert verdicts(norms.checks({("query", "in domain"): before})) == ["fails", "fails"]
    only_relevant = norms.checks({("query", "in domain"): (part, part)})
    assert verdicts(only_relevant) == ["holds", "holds"]


def test_large_neurons_turn(models):
    history = {name: along(models, name) for name in ("norm x", "norm y", "cosine x", "cosine y")}
    after, before = ({name: values[:, i] for name, values in history.items()} for i in (-1, 0))
    assert "fails" not in verdicts(neurons.checks(after))
    assert verdicts(neurons.checks(before)) == ["fails", "fails"]


def test_coverage_is_what_counts():
    sets = tasks.task_sets((6, 8))
    for (M1, name), chosen in sets.items():
        assert len(set(chosen)) == int(name.split()[0].rstrip(","))
        assert tasks.covers(chosen, M1) == (name in (f"{M1} cyclic", f"{M1 + 2} cyclic"))
        assert not set(tasks.test_of(M1, chosen).tasks) & set(chosen)
    errors = {key: np.full(4, 0.0 if tasks.covers(chosen, key[0]) else 0.2) for key, chosen in sets.items()}
    assert set(verdicts(tasks.checks(errors))) == {"holds"}
    nothing_learnt = {key: np.full(4, 0.5) for key in sets}
    assert "fails" in verdicts(tasks.checks(nothing_learnt))
    assert tasks.a_run(8, sets[8, "8 cyclic"], 10).prompts.irrelevant_patterns == 22
