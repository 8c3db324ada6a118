"""What is measured for which prompts: a user's family has no floor, and a message says so."""

from __future__ import annotations

import json

import pytest
from own_family import Halfspaces

from iclab import (
    Chain,
    Classification,
    GatedAttention,
    Run,
    SpecError,
    Sweep,
    Training,
    bayes_predictor,
    from_labelled,
    information_floor,
)
from iclab.cli import main
from iclab.probes.reference import HasBayes, HasFloor
from iclab.sweeps.measures import MEASURES, applies


@pytest.fixture
def own_run():
    return Run(model=GatedAttention(member="linear", normalise=True), prompts=Halfspaces(),
               training=Training(steps=20, batch_size=8, learning_rate=0.3, record_every=10))


def test_the_usual_measures_leave_out_what_a_family_does_not_have(own_run, tmp_path, capsys, monkeypatch):
    sweep = Sweep(base=own_run, seeds=2, prompts=500, name="own")
    monkeypatch.setattr("iclab.commands.sweep.read_sweep", lambda path, most: (sweep, None))
    assert main(["sweep", "own.toml", "--out", str(tmp_path), "--json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "iclab: floor is left out: Halfspaces prompts do not have it\n"
    assert json.loads(printed.out)["left_out"] == {"floor": ["Halfspaces"]}
    results = sweep.run(store=tmp_path / "store")
    assert results.left_out == {"floor": ["Halfspaces"]}
    assert results.measures == ["error", "hinge", "loss"]
    assert results.frame["status"].to_list() == ["trained"] * 2


def test_a_measure_applies_by_what_the_prompts_have(own_run):
    known = Classification(dimension=4, relevant_patterns=2, irrelevant_patterns=1, outlier_patterns=1, prompt_length=6)
    assert [name for name in MEASURES if applies(name, known)] == ["error", "hinge", "loss", "floor", "bayes"]
    assert [name for name in MEASURES if applies(name, own_run.prompts)] == ["error", "hinge", "loss"]
    assert [name for name in MEASURES if applies(name, Chain())] == ["loss", "cot", "cot_answer", "icl", "vote",
                                                                     "vote_icl"]
    Sweep(base=own_run, test=known, measure=("floor", "bayes")).trials()  # what counts is the test


@pytest.mark.parametrize("name", ["floor", "bayes"])
def test_a_requested_measure_must_apply(own_run, name, tmp_path):
    with pytest.raises(SpecError, match=f"^measure must be a quantity that Halfspaces prompts have, got '{name}'$"):
        Sweep(base=own_run, measure=("error", name), prompts=500).run(store=tmp_path / "store")
    assert not list(tmp_path.rglob("*.safetensors"))


def test_a_family_says_whether_it_has_a_floor():
    labelled = from_labelled([[0.0], [1.0]], [0, 1])
    for prompts in (Classification(), labelled):
        assert isinstance(prompts, HasFloor)
        assert isinstance(prompts, HasBayes)
    assert not isinstance(Halfspaces(), HasFloor)
    assert not isinstance(Halfspaces(), HasBayes)
    with pytest.raises(SpecError, match=r"^prompts must have prompt_length, decisive_fraction and outlier_fraction for "
                                        r"an information floor, got 'Halfspaces'$"):
        information_floor(Halfspaces())
    with pytest.raises(SpecError, match="prompts must have decisive_fraction and task_patterns for a Bayes "):
        bayes_predictor(Halfspaces())


def exits(trained, test, seed):
    raise SystemExit(3)


OWN = {"a setting": lambda *_: {"prompts.outlier_scale": 77.0}, "an interval": lambda *_: {"error_low": 9.0},
       "no text": lambda *_: {3: 1.0}, "an end of the program": exits}


@pytest.mark.parametrize("name", OWN)
def test_a_measure_that_misbehaves_fails_only_its_trial(tiny_run, name):
    results = Sweep(base=tiny_run, prompts=500, measure=("loss", OWN[name])).run()
    assert results.frame["status"].to_list() == ["failed"]
    assert results.frame["reason"][0].startswith("measure: ")
