"""From findings to outcomes: premises of the very specs that were judged, earlier rules, what is remembered."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from iclab import IclabError, Training, replace
from iclab.lab.claims import Check
from iclab.lab.entries import Entry, Findings, Part, Rule, Size
from iclab.lab.estimates import Mean
from iclab.lab.judging import judge_part, run_entry
from iclab.lab.laboratory import Lab, crossed
from iclab.lab.premises import premises_of
from iclab.papers.mamba.settings import attacked_prompts, one_layer_run
from iclab.sweeps.store import Store

RUN = one_layer_run("mamba", 10_000)
TEST = attacked_prompts("flip", 0.5)
SMALL = replace(RUN, training=Training(steps=3, batch_size=8, learning_rate=0.1))


def at_most(threshold):
    return lambda values: [Check("number", Mean(values), "<=", threshold)]


def theorem(**fields):
    return Part("theorem", "theorem 2", "It works.", at_most(1.0), theory=("Theorem 2",), **fields)


@pytest.fixture
def lab(tmp_path):
    return Lab(Store(tmp_path), "tiny")


def test_premises_are_those_of_the_specs():
    assert judge_part("mamba", theorem(), [0.1, 0.2], [(RUN, TEST)]).verdict == "holds"
    for run, test, name in (
            (RUN, attacked_prompts("flip", 0.7), "Theorem 2 (c): outlier fraction"),
            (RUN, attacked_prompts("flip", 0.5, 0.5), "Theorem 2 (b): outlier scale"),
            (replace(RUN, training=replace(RUN.training, learning_rate=2.0)), TEST, "Theorems 1, 3: step size eta"),
            (one_layer_run("mamba", 2), TEST, "Theorem 1 (iv): number of iterations"),
            (replace(RUN, training=replace(RUN.training, batch_size=64)), TEST, "Theorem 1 (i): batch size")):
        part = judge_part("mamba", theorem(), [0.1, 0.2], [(RUN, TEST), (run, test)])
        assert part.verdict == "outside", name
        assert [premise.name for premise in part.premises if not premise.met] == [name]


def test_open_constants_are_met_up_to_what_the_part_states():
    small = [(replace(RUN, training=replace(RUN.training, batch_size=64)), TEST)]  # 0.28 of the theorem's order
    assert judge_part("mamba", theorem(constant=0.25), [0.1, 0.2], small).verdict == "holds"
    batch = next(p for p in premises_of("mamba", ["Theorem 2"], small) if "batch" in p.name)
    assert batch.constant == "met up to c = 0.28; asked for: 1"
    assert not batch.met


def test_what_a_part_measures_is_not_its_premise():
    few = [(one_layer_run("mamba", 2), TEST)]
    assert judge_part("mamba", theorem(measured=("number of iterations",)), [0.1, 0.2], few).verdict == "holds"


def test_a_theorem_without_specs_or_about_another_model_is_refused():
    with pytest.raises(IclabError, match="specs of mamba: Theorem 2 must be at least one, got none"):
        judge_part("mamba", theorem(), [0.1, 0.2], [])
    deep = replace(RUN, model=replace(RUN.model, layers=3))
    with pytest.raises(IclabError, match="Theorem 2 says nothing about a GatedAttention of these settings"):
        judge_part("mamba", theorem(), [0.1, 0.2], [(deep, TEST)])


def test_earlier_rules_judge_the_same_measurements():
    part = theorem(earlier=(Rule(at_most(0.01), "too strict for a finite prompt"),))
    result = judge_part("mamba", part, [0.1, 0.11, 0.12], [(RUN, TEST)])
    assert (result.verdict, result.version) == ("holds", 2)
    assert [(old.version, old.verdict, old.reason) for old in result.earlier] == [
        (1, "fails", "too strict for a finite prompt")]


def entry(run, **fields):
    return Entry("mine.claim", "Mine", "ours", run, says="It is small.", sizes={"tiny": Size(seeds=2, prompts=500)},
                 parts=(Part("ours", "the number", "It is small.", at_most(1.0)),), **fields)


def test_seeds_runs_and_settings_are_those_of_the_work(lab):
    def run(lab):
        models = lab.train_seeds(SMALL)
        return Findings(shown="Nothing.", measured=lab.errors(models, [TEST])[:, 0], numbers="Two models.")

    outcome = run_entry(entry(run), lab)
    assert outcome.claim.seeds == [0, 1]
    assert len(outcome.claim.runs) == 2
    assert outcome.settings["size"] == {"seeds": 2, "prompts": 500}
    assert outcome.measured.startswith("The number ")
    assert outcome.measured.endswith("Two models.")
    assert run_entry(entry(run), Lab(lab.store, "tiny", base_seed=3)).claim.seeds == [3000, 3001]


CALLS = []


def measured(models, offset):
    """A measurement that counts its calls."""
    CALLS.append(offset)
    return {"values": np.arange(3.0) + offset, "pair": (1, "two")}


def test_measurements_are_remembered_by_their_arguments_and_weights(lab):
    models = lab.at(entry(None)).train_seeds(SMALL)
    CALLS.clear()
    first, again = (lab.remember(measured, models, 2.0) for _ in range(2))
    np.testing.assert_array_equal(first["values"], [2.0, 3.0, 4.0])
    np.testing.assert_array_equal(again["values"], first["values"])
    assert again["pair"] == [1, "two"]
    assert CALLS == [2.0]
    lab.remember(measured, models, 3.0)
    layer = models[0].params[0]
    changed = dataclasses.replace(models[0], params=(layer._replace(W_B=layer.W_B + 1),))
    lab.remember(measured, [changed, models[1]], 2.0)
    assert CALLS == [2.0, 3.0, 2.0]


def test_searches_use_other_seeds(lab):
    assert not set(lab.search_seeds(8)) & set(lab.seeds(400))
    runs = crossed(SMALL, [0, 1], [5, 6, 7])
    assert [(run.init_seed, run.data_seed) for run in runs] == [(0, 5), (0, 6), (0, 7), (1, 5), (1, 6), (1, 7)]


def test_an_entry_without_the_scale_says_so(lab):
    with pytest.raises(IclabError, match=r"sizes of mine\.claim must have the scale quick"):
        _ = Lab(lab.store, "quick").at(entry(None)).size


def test_a_premise_shows_the_spec_that_is_least_inside():
    tests = [attacked_prompts("flip", fraction) for fraction in (0.1, 0.55, 0.3)]
    premises = premises_of("mamba", ("Theorem 2",), [(RUN, test) for test in tests])
    actual = {premise.name: premise.actual for premise in premises}
    assert actual["Theorem 2 (c): outlier fraction"] == "0.55"
