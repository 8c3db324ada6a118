"""Kinds are known where they are defined: in the package, a user's module, another package with entry points."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from iclab import GPT2, Classification, GatedAttention, SoftmaxMLP, SpecError
from iclab.cli import main
from iclab.core import registry
from iclab.core.spec import spec

MODEL = '''
from typing import NamedTuple

import jax
import jax.numpy as jnp

from iclab import LabelEmbedding
from iclab.core.spec import number, part, spec


class Seen(NamedTuple):
    scores: jax.Array


@spec(part="model")
class PlainVote:
    """Every example votes alike, by how much it resembles the query."""

    init_scale: float = number(default=0.1)
    """Starting value of the one weight."""
    embedding: LabelEmbedding = part(default_factory=LabelEmbedding)
    """How labels enter the columns."""

    def init(self, key, dimension):
        return self.init_scale * jnp.ones(())

    def apply(self, weight, columns):
        scores = weight * (columns[:-1] @ columns[-1])
        return scores @ columns[:-1, -1], Seen(jnp.append(scores, 0.0)[None])
'''
ENTRY = '''
from iclab.lab.claims import Check
from iclab.lab.entries import Entry, Findings, Part
from iclab.lab.estimates import Mean


def checks(ones):
    return [Check("one", Mean(ones), "<", 2)]


def run(lab):
    return Findings("one", measured=[1, 1])


ENTRY = Entry("added.claim", "A claim of another package", "here", run, says="1 is below 2.",
              parts=(Part("ours", "the number", "It is below 2.", checks),))
'''
SWEEP = """
test_prompts = 500
[base]
model.kind = "plain_vote"
training.steps = 20
training.batch_size = 16
[grid]
model.init_scale = [0.1, 0.2]
"""


@pytest.fixture
def package(tmp_path):
    """An installed package with a model and a claim, as pip would install it: its modules and its metadata."""
    place = tmp_path / "site"
    info = place / "iclab_votes-1.0.dist-info"
    info.mkdir(parents=True)
    (place / "iclab_votes.py").write_text(MODEL)
    (place / "iclab_votes_claims.py").write_text(ENTRY)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: iclab-votes\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[iclab.models]\nplain_vote = iclab_votes:PlainVote\n"
                                           "[iclab.papers]\nadded = iclab_votes_claims:ENTRY\n")
    return place


def started(place, folder, *arguments):
    """Run a command in a separate process that can import the package."""
    paths = os.pathsep.join(filter(None, [str(place), os.environ.get("PYTHONPATH")]))
    return subprocess.run([sys.executable, "-m", "iclab.cli", *arguments], cwd=folder, capture_output=True, text=True,
                          check=False, env={**os.environ, "PYTHONPATH": paths})


def iclab(place, folder, *arguments):
    done = started(place, folder, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_another_packages_model_trains_reloads_and_sweeps(package, tmp_path):
    steps = ("--training.steps", "20", "--training.batch-size", "16")
    assert "plain_vote" in iclab(package, tmp_path, "train", "--help")
    iclab(package, tmp_path, "train", "--model", "plain_vote", "--model.init-scale", "0.05", *steps)
    rates = json.loads(iclab(package, tmp_path, "eval", "model.safetensors", "--count", "500", "--json"))
    assert rates["error"] < 0.5
    (tmp_path / "sweep.toml").write_text(SWEEP)
    iclab(package, tmp_path, "sweep", "sweep.toml", "--store", "store")
    assert iclab(package, tmp_path, "results", "store").count("plain_vote") == 0  # only one kind, so it has no column
    assert "added.claim" in iclab(package, tmp_path, "list")


def test_a_users_module_is_named_by_an_option(tmp_path, monkeypatch, capsys):
    (tmp_path / "votes_of_mine.py").write_text(MODEL.replace("PlainVote", "MyVote"))
    monkeypatch.chdir(tmp_path)
    steps = ["--training.steps", "5", "--training.batch-size", "8"]
    assert main(["train", "--import", "votes_of_mine", "--model", "my_vote", *steps]) == 0
    assert main(["eval", "model.safetensors", "--import", "votes_of_mine", "--count", "500"]) == 0
    assert "my_vote trained" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "cls"), [("softmax_mlp", SoftmaxMLP), ("SoftmaxMLP", SoftmaxMLP), ("gpt2", GPT2),
                                           ("GatedAttention", GatedAttention)])
def test_a_kind_is_found_whatever_its_case(name, cls):
    assert registry.kind("model", name, "model") is cls
    assert registry.kind("model", registry.word(cls), "model") is cls


def test_kinds_of_one_part_are_not_kinds_of_another():
    assert Classification in registry.kinds("prompts")
    with pytest.raises(SpecError, match=r"model must be one of .*, got 'classification'"):
        registry.kind("model", "classification", "model")


def test_a_kind_of_the_package_is_not_replaced():
    with pytest.raises(SpecError, match="a model of your own must have a name of its own, got 'GPT2'"):
        spec(part="model")(type("GPT2", (), {"__module__": "mine"}))
    assert registry.kind("model", "gpt2", "model") is GPT2


def test_a_package_that_cannot_be_imported_is_named(package, tmp_path):
    (package / "iclab_votes.py").write_text("1 / 0")
    done = started(package, tmp_path, "train", "--model", "plain_vote")
    assert done.returncode == 2
    assert "entry point 'plain_vote' of iclab-votes (group iclab.models) must be importable" in done.stderr
    assert "Traceback" not in done.stderr
