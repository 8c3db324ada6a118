"""Rules on token prompts: they hold on what is expected and fail on broken models."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from every_entry import verdicts
from untrained import UntrainedLab

from iclab.lab.entries import Size
from iclab.lab.judging import run_entry
from iclab.papers.beyond import tokens_markov, tokens_parity
from iclab.sweeps.store import Store

SEEDS = 4
SPREAD = 1 + 0.01 * np.arange(SEEDS)[:, None]
RECORDS = np.arange(1, 6) * 10.0


def learned(left=None, **changes):
    """Models that count tokens first and transitions in the end, with two heads that look where they should."""
    references = tokens_markov.References(np.full(32, 0.8), np.full(32, 0.6), np.full(32, 1.0))
    left = {"attention": 0.2, "Mamba": 0.1, "one layer": 0.8} | (left or {})
    losses = {name: 0.8 + 0.2 * share * SPREAD * np.ones(32) for name, share in left.items()}
    rows = {"unigram": [0.15, 0.05, 0.1, 0.2, 0.2], "bayes": [0.3, 0.2, 0.15, 0.05, 0.03]} | {
        name: values for name, values in changes.items() if name in ("unigram", "bayes")}
    heads = {"previous": 0.8, "induction": 0.85} | {
        name: value for name, value in changes.items() if name in ("previous", "induction")}
    phases = tokens_markov.Phases(RECORDS, *(np.array(row) * SPREAD for row in rows.values()),
                                  *(value * SPREAD[..., None] * np.ones((5, 2)) for value in heads.values()))
    return tokens_markov.Learned(losses, references, phases, 0.18)


def failing(measured, parts):
    """Places of the parts that do not hold."""
    return [part.place for part in parts if set(verdicts(part.checks(measured))) != {"holds"}]


def test_models_that_count_as_expected_pass_and_each_rule_fails_on_its_own():
    parts = tokens_markov.ENTRY.parts
    assert failing(learned(), parts) == []
    assert failing(learned({"attention": 0.6}), parts) == ["two layers of attention, floor"]
    assert failing(learned({"Mamba": 0.3}), parts) == ["a Mamba block, floor"]
    assert failing(learned({"one layer": 0.2}), parts) == failing(learned({"one layer": 1.8}), parts) == ["depth"]
    assert failing(learned(previous=0.2), parts) == ["heads"]
    assert failing(learned(induction=0.5), parts) == ["heads"]


@pytest.mark.parametrize("changes", [
    {"unigram": [0.18, 0.17, 0.17, 0.2, 0.2]},  # never near the unigram estimator
    {"bayes": [0.3, 0.06, 0.06, 0.05, 0.03]},  # both together
    {"bayes": [0.3, 0.3, 0.3, 0.3, 0.3]},  # never past it
    {"unigram": [0.05, 0.1, 0.15, 0.2, 0.2], "bayes": [0.04, 0.03, 0.03, 0.03, 0.03]}])  # transitions first
def test_other_orders_of_phases_do_not_pass(changes):
    assert "fails" in verdicts(tokens_markov.unigram_first(learned(**changes)))


def parities(with_steps, without=0.5, stuck=0):
    """Shares of wrong answers of twelve seeds, some of which stay at a quarter."""
    spread = 1 + 0.01 * np.arange(12)
    wrong = np.where(np.arange(12) < stuck, 0.25, with_steps * spread)
    return tokens_parity.Answers({"with steps": wrong, "without steps": without * spread}, 2_000)


def test_steps_that_help_most_seeds_pass_and_steps_that_do_not_fail():
    parts = tokens_parity.ENTRY.parts
    assert failing(parities(0.001), parts) == failing(parities(0.001, stuck=1), parts) == []
    assert "fails" in verdicts(tokens_parity.with_steps(parities(0.5)))
    assert "fails" in verdicts(tokens_parity.without_steps(parities(0.5)))
    assert "fails" in verdicts(tokens_parity.without_steps(parities(0.001, 0.2)))
    assert failing(parities(0.001, stuck=6), parts) == ["with steps", "without steps"]


def test_a_mean_over_seeds_is_undecided_where_one_of_them_is_stuck():
    earlier = [rule.checks for part in tokens_parity.ENTRY.parts for rule in part.earlier]
    assert [set(verdicts(rule(parities(0.001)))) for rule in earlier] == [{"holds"}] * 2
    assert verdicts(earlier[0](parities(0.001, stuck=1))) == ["inconclusive"]


@pytest.mark.slow
@pytest.mark.parametrize("entry", [tokens_markov.ENTRY, tokens_parity.ENTRY], ids=lambda entry: entry.id)
def test_no_rule_holds_on_untrained_models(entry, tmp_path):
    few = dataclasses.replace(entry, sizes={"tiny": Size(seeds=4, steps=16, prompts=1_000, record_every=8)})
    outcome = run_entry(few, UntrainedLab(Store(tmp_path), "tiny"))
    assert [part.place for part in outcome.claim.parts if part.verdict == "holds"] == []
