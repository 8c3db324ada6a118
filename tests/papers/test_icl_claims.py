"""The rules of the icl paper's claims: each passes sound results and fails on a suitable broken model."""

from __future__ import annotations

import numpy as np
import pytest
from every_entry import verdicts

from iclab import train_many
from iclab.lab.estimates import Mean, Rate
from iclab.papers.icl import (
    attention,
    baselines,
    context,
    neurons,
    pruning,
    tasks,
    unseen,
)
from iclab.papers.icl.mechanism import PLACES, along, inside
from iclab.papers.icl.settings import LARGEST_SUM, NEW_SCALE, in_domain, new_patterns, one_layer_run, out_of_domain
from iclab.papers.mamba.trained import untrained
from iclab.probes import UNIT, model_errors
from iclab.probes.by_length import context_errors

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


def test_unseen_tasks(models):
    def judged(some):
        tests = [in_domain(0.8), in_domain(0.8, irrelevant_scale=NEW_SCALE)]
        inside, large = (Rate(rates, 1000) for rates in model_errors(some, tests, count=1000, seeds=SEEDS).T)
        hinge = Mean(model_errors(some, tests[:1], count=1000, seeds=SEEDS, measure="hinge")[:, 0])
        measured = unseen.Measured(hinge, inside, large)
        return [*of_parts(unseen.ENTRY, measured), *verdicts(unseen.FIRST_RULE.checks(measured))]

    assert judged(models) == ["holds"] * 3
    assert judged([untrained(model) for model in models]) == ["fails"] * 3


def test_in_domain_prompts_are_those_of_training():
    assert in_domain(0.8).irrelevant_scale == one_layer_run(0.8, 1).prompts.irrelevant_scale == 0.5
    assert out_of_domain(0.8).irrelevant_scale == 5.0


def test_fewer_decisive_examples_require_more_examples(models):
    grids = context.GRIDS["full"]

    def errors_of(some):
        fractions, lengths, _ = grids["softmax"]
        tests = [context.test_of("softmax", where, fraction, 5.0, max(lengths)) for where in context.WHERE
                 for fraction in fractions]
        errors = context_errors(some, tests, lengths, count=500, seeds=SEEDS)
        return dict(zip(context.WHERE, np.split(errors, 2, axis=1), strict=True))

    def judged(some, values):
        gpt2 = {where: values + np.zeros((4, 4, 4)) for where in context.WHERE}
        return set(of_parts(context.ENTRY, context.estimates(grids, errors_of(some), gpt2, gpt2)))

    assert "fails" not in judged(models, np.linspace(0.5, 0.0, 4)[None, :, None])
    assert judged([untrained(model) for model in models], 0.3) == {"fails", "inconclusive"}


def test_pruning_small_neurons_is_free(models):
    def judged(some, prompts=500):
        return verdicts(pruning.hinge_loss(pruning.Pruned(*map(pruning.Values, pruning.pruned_values(some, SEEDS,
                                                                                                      prompts)))))

    assert judged(models) == ["holds", "holds"]
    # In an untrained model all neurons are alike: those with large rows cost nothing either.
    assert judged([untrained(model) for model in models])[1] == "fails"


def test_classical_learners(models):
    errors = baselines.fit(models, SEEDS, (20,), 30, 3, 1000)
    assert "fails" not in verdicts(baselines.checks((errors, 30)))
    errors[baselines.HARD][baselines.PAIRED] = model_errors([untrained(model) for model in models],
                                                            [out_of_domain(0.6)], count=1000, seeds=SEEDS)[:, 0]
    assert "holds" not in verdicts(baselines.checks((errors, 30)))


def test_attention_gathers(models):
    shares = {name: along(models, f"attention/{name}") for name in PLACES}
    for record, verdict in ((-1, "holds"), (0, "fails")):
        measured = {name: Mean(values[:, record], UNIT) for name, values in shares.items()}
        assert of_parts(attention.ENTRY, measured) == [verdict] * 3


def test_large_neurons_turn(models):
    history = {name: along(models, name) for name in ("norm x", "norm y", "cosine x", "cosine y")}
    after, before = ({name: values[:, i] for name, values in history.items()} for i in (-1, 0))
    assert "fails" not in of_parts(neurons.ENTRY, after)
    assert of_parts(neurons.ENTRY, before) == ["fails"] * 4


def test_coverage_is_what_counts():
    sets = tasks.task_sets((6, 8))
    for (M1, name), chosen in sets.items():
        assert len(set(chosen)) == int(name.split()[0].rstrip(","))
        assert tasks.covers(chosen, M1) == (name in (f"{M1} cyclic", f"{M1 + 2} cyclic"))
        assert not set(tasks.test_of(M1, chosen).tasks) & set(chosen)

    def judged(error_of):
        errors = {key: error_of(tasks.covers(chosen, key[0])) for key, chosen in sets.items()}
        measured = tasks.Measured({key: Rate(np.full(4, error), 1000) for key, error in errors.items()},
                                  {key: Mean(np.full(4, 2 * error)) for key, error in errors.items()})
        return [set(verdicts(part.checks(dict.fromkeys(tasks.NORMS, measured)))) for part in tasks.ENTRY.parts]

    assert judged(lambda covered: 0.0 if covered else 0.2) == [{"holds"}] * 5
    nothing_learnt, everything_learnt = judged(lambda covered: 0.5), judged(lambda covered: 0.0)
    assert nothing_learnt == [{"fails"}, *[{"fails", "holds"}] * 2, *[{"holds"}] * 2]
    assert everything_learnt == [{"holds"}, *[{"fails", "holds"}] * 2, *[{"fails"}] * 2]
    assert tasks.a_run(8, sets[8, "8 cyclic"], 10).prompts.irrelevant_patterns == 22
