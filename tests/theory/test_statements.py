"""Every theorem of the papers for a spec: premises met or not by hand-computed numbers, laws with their constants."""

from __future__ import annotations

import json

import numpy as np
import pytest

from iclab import GPT2, Classification, GatedAttention, Run, SpecError, save_checkpoint, theory_of, train
from iclab.cli import main
from iclab.core.spec import replace
from iclab.papers.catalogue import all_entries
from iclab.papers.cot import settings as cot
from iclab.papers.icl import settings as icl
from iclab.papers.mamba import settings as mamba
from iclab.papers.selectors import settings as selectors
from iclab.prompts.transitions import same_steps
from iclab.theory import Condition, Constant, read_constants, shipped_constants
from iclab.theory.all import LAWS
from iclab.theory.mamba import promise
from iclab.theory.statements import by_law

MAMBA = mamba.one_layer_run("mamba", 10_000)
ICL = icl.one_layer_run(0.8, 1_000)
COT = cot.a_run(2_000)


def place(statements, name):
    return next(statement for statement in statements if statement.place == name)


def premise(statements, name, start):
    return next(p for p in place(statements, name).premises if p.name.startswith(start))


def test_every_statement_of_the_papers_is_there():
    assert [s.place for s in theory_of(MAMBA)] == ["Theorem 1", "Theorem 2", "Theorem 3", "Theorem 4", "Corollary 1",
                                                   "Corollary 2"]
    of_softmax = theory_of(ICL)
    assert [s.place for s in of_softmax if s.paper == "icl"] == [
        "Condition 3.2", "Theorem 3.3", "Theorem 3.4", "Theorem 3.7", "Proposition 4.1", "Corollary 4.3",
        "Proposition 4.5"]
    assert [s.place for s in of_softmax if s.paper == "selectors"] == [
        "Lemma 1", "Theorem 1", "Theorem 2", "Proposition 1", "Proposition 2", "Corollary 1"]
    assert [s.place for s in theory_of(COT, cot.default_test())] == [
        "Theorem 1", "Equation 34", "Lemmas F.5 and F.7", "Lemma F.6", "Condition 1", "Theorem 2", "Theorem 3 (a)",
        "Theorem 3 (b)", "Proposition 1"]


@pytest.mark.parametrize("model", [GPT2(), GatedAttention(member="retnet"), GatedAttention(layers=3)])
def test_no_theorem_covers_other_models(model):
    assert theory_of(Run(model=model)) == []


def test_the_outlier_fraction_against_both_bounds():
    statements = theory_of(MAMBA, mamba.attacked_prompts("flip", 0.7))
    two, four = premise(statements, "Theorem 2", "Theorem 2 (c)"), premise(statements, "Theorem 4", "Theorem 4 (c)")
    assert two.sentence == "Theorem 2 (c) needs the outlier fraction below 0.6 [min(1, p_a l_tr / l_ts)]; yours is 0.7"
    assert four.sentence == "Theorem 4 (c) needs the outlier fraction below 0.5; yours is 0.7"
    assert place(statements, "Theorem 2").verdict == place(statements, "Theorem 4").verdict == "not covered"
    inside = theory_of(MAMBA, mamba.attacked_prompts("flip", 0.45))
    assert premise(inside, "Theorem 2", "Theorem 2 (c)").met
    assert premise(inside, "Theorem 4", "Theorem 4 (c)").met
    shorter = theory_of(MAMBA, mamba.attacked_prompts("flip", 0.7, prompt_length=15))
    assert premise(shorter, "Theorem 2", "Theorem 2 (c)").met  # 0.6 * 20 / 15 = 0.8


def test_orders_of_the_mamba_paper_by_hand():
    statements = theory_of(MAMBA, mamba.attacked_prompts("flip", 0.4), accuracy=0.1, constants={})
    # p_a .6, M1 6, beta 3, V 3, kappa_a 2: V / beta^4, V beta (1 - p_a) / (p_a eps), log M1 / (1 - p_a)
    low, high = [p for p in place(statements, "Theorem 1").premises if p.name.startswith("Theorem 1 (ii)")]
    assert low.required.startswith(">= c * 0.037 ")
    assert high.required.startswith("<= c * 60 ")
    assert premise(statements, "Theorem 1", "Theorem 1 (iii): length").required.startswith(">= c * 4.48 ")
    assert premise(statements, "Theorem 1", "Theorem 1 (i)").required.startswith(">= c * 230 ")  # eps^-2 log 1/eps
    steps, = place(statements, "Theorem 1").laws
    assert steps.order(MAMBA, None) == pytest.approx(6 / (0.4 * 9))
    linear, = place(statements, "Theorem 3").laws
    assert linear.order(MAMBA, None) == pytest.approx(6 / (0.4 * 9 * 20))
    examples, = place(statements, "Theorem 4").laws
    assert examples.order(MAMBA, mamba.attacked_prompts("flip", 0.4)) == pytest.approx(0.4 / 0.01 * np.log(6))
    assert examples.order(MAMBA, mamba.attacked_prompts("flip", 0.6)) == np.inf
    assert place(statements, "Theorem 1").verdict == "covered up to constants"


@pytest.mark.parametrize(("changes", "name"), [
    ({"training": {"optimizer": "adam"}}, "Algorithm 1"), ({"training": {"loss": "squared"}}, "Algorithm 1"),
    ({"prompts": {"decisive_fraction": 0.5}}, "Definition 1"), ({"prompts": {"label_rule": "flip"}}, "Definition 1"),
    ({"prompts": {"pattern_norm": 0.5}}, "Section 3: pattern norm"),
    ({"prompts": {"noise_norm": 1.0}}, "Section 3: relevant"),
    ({"prompts": {"irrelevant_scale": 2.0}}, "Section 3: irrelevant"),
    ({"prompts": {"tasks": ((0, 1),)}}, "Condition 1"),
])
def test_what_the_mamba_paper_takes_for_granted(changes, name):
    run = replace(MAMBA, **{part: replace(getattr(MAMBA, part), **fields) for part, fields in changes.items()})
    statements = theory_of(run, mamba.attacked_prompts("flip", 0.4))
    assert premise(theory_of(MAMBA, mamba.attacked_prompts("flip", 0.4)), "Theorem 1", name).met
    for where in ("Theorem 1", "Theorem 2", "Theorem 3", "Theorem 4", "Corollary 1", "Corollary 2"):
        assert premise(statements, where, name).met is False


def test_a_test_of_other_patterns_is_not_covered():
    more = theory_of(MAMBA, mamba.attacked_prompts("flip", 0.4, outlier_patterns=5, outlier_mixtures=None))
    assert premise(more, "Theorem 2", "Definition 2").met is False
    few = replace(COT, training=replace(COT.training, steps=1))
    for statement in theory_of(few, cot.default_test(prompt_length=20)):
        assert statement.place == "Condition 1" or statement.verdict == "not covered"


def test_outliers_of_ones_own_are_covered_as_far_as_they_are_made_of_the_training_ones():
    v = MAMBA.prompts.outliers()
    mixed = mamba.attacked_prompts("flip", 0.4)
    rows = np.asarray(mixed.outlier_mixtures)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    same = replace(mixed, outlier_mixtures=None, outlier_vectors=6.0 * unit @ v, outlier_scale=1.0)
    for (a, b) in zip(theory_of(MAMBA, mixed), theory_of(MAMBA, same), strict=True):
        assert [(p.name, p.met) for p in a.premises] == [(p.name, p.met) for p in b.premises]
    assert promise(MAMBA, same) == pytest.approx(promise(MAMBA, mixed))
    small = theory_of(MAMBA, replace(same, outlier_vectors=((*v[0],), (*(1.9 * v[1]),))))
    assert premise(small, "Theorem 2", "Theorem 2 (b)").actual == "1"
    astray = replace(same, outlier_vectors=6.0 * np.eye(30)[-1:])
    for where, start in (("Theorem 2", "Theorem 2 (a): test outliers are comb"), ("Theorem 4", "Theorem 4 (a)")):
        assert premise(theory_of(MAMBA, astray), where, start).met is False
    assert np.isnan(promise(MAMBA, astray))
    own = replace(MAMBA, prompts=replace(MAMBA.prompts, outlier_vectors=v))
    assert premise(theory_of(own, mixed), "Theorem 1", "Definition 1: training outliers").met is False
    assert np.isnan(promise(own, mixed))


def test_without_outliers_their_premises_are_met():
    clean = replace(MAMBA, prompts=replace(MAMBA.prompts, outlier_fraction=0.0))
    statements = theory_of(clean, replace(clean.prompts, tasks="all"))
    assert premise(statements, "Theorem 2", "Theorem 2 (a)").met
    assert premise(statements, "Theorem 1", "Theorem 1 (ii)").met


def test_laws_of_the_other_papers_by_hand():
    by_key = {law.key: law for law in LAWS}
    assert by_key["icl.T"].order(ICL, None) == pytest.approx(
        (100**2 / 6) ** (1 / 3) * np.sqrt(np.log(6)) * (0.13 * 0.8 * 3) ** (-2 / 3) / 0.5)
    assert by_key["icl.l_tr"].order(ICL, None) == pytest.approx(np.log(6) / 0.8)
    assert by_key["icl.l_ts"].order(ICL, icl.in_domain(0.4)) == pytest.approx(2.5)
    run = selectors.a_run(100, coefficient_low=0.5, noise_norm=0.1)
    assert by_key["selectors.T"].order(run, None) == pytest.approx(np.sqrt(30) / (0.5 * 0.5) * (1 - 0.6) ** -0.5)
    assert by_key["selectors.T"].order(selectors.a_run(100, noise_norm=0.2), None) == np.inf
    assert by_key["cot.T"].order(COT, None) == pytest.approx(
        (27 * np.log(3 / 0.1) / 0.4 + 60 * (1 / 0.4 + 1 / 0.1)) / 10)
    test = cot.default_test()
    assert by_key["cot.l_ts"].order(COT, test) == pytest.approx(np.log(20) / (0.8 * 0.5 * 0.8) ** 2, rel=1e-6)


def test_direct_prompting_is_only_promised_with_condition_one():
    bad = cot.default_test(transitions=same_steps(0.4, 0.1, condition_one=False), prompt_length=20)
    statements = theory_of(COT, bad)
    assert not premise(statements, "Theorem 3 (b)", "Condition 1").met
    assert premise(statements, "Theorem 3 (a)", "Theorem 3 (a)").met
    assert not any(p.name.startswith("Condition 1") for p in place(statements, "Theorem 2").premises)
    good = theory_of(COT, cot.default_test(prompt_length=20))
    assert premise(good, "Theorem 3 (b)", "Condition 1").met
    assert place(good, "Theorem 3 (a)").verdict == "not covered"


def test_a_constant_turns_an_order_into_a_premise():
    law = next(law for law in LAWS if law.key == "mamba.T")
    constants = {"mamba.T": Constant("mamba.T", 3.0, 2.0, 4.0, 5, 4, "full")}
    enough = by_law("Theorem 1 (iv): number of iterations", law, MAMBA, None, 0.3, constants)
    assert enough.met
    assert enough.required.startswith(">= 5 ")

    def met(steps, accuracy=0.3):
        return by_law("x: y", law, replace(MAMBA, training=replace(MAMBA.training, steps=steps)), None, accuracy,
                      constants).met

    assert [met(3), met(4), met(6), met(7)] == [False, None, None, True]  # 2, 3, 4 times 1.67
    assert met(7, accuracy=0.1) is None  # the constant was fitted at a loss of 0.2
    assert met(3, accuracy=0.1) is False
    assert by_law("x: y", law, MAMBA, None, 0.3, {}).met is None


def test_every_law_has_a_shipped_constant_and_an_entry_that_fits_it():
    entries = all_entries()
    assert {law.key for law in LAWS} == set(shipped_constants())
    for law in LAWS:
        assert law.entry in entries
        shipped = shipped_constants()[law.key]
        assert 0 < shipped.low <= shipped.value <= shipped.high
        assert shipped.scale == "full"
    text = json.dumps([constant.to_json() for constant in shipped_constants().values()])
    assert read_constants(text) == {key: Constant(**c.to_json()) for key, c in shipped_constants().items()}


def test_accuracy_is_checked():
    with pytest.raises(SpecError, match=r"accuracy must be in \[1e-06, 1\), got 0"):
        theory_of(MAMBA, accuracy=0)


def test_facts_in_words():
    assert Condition("Condition 1: tasks are balanced", "yes", "no", False).sentence == \
        "Condition 1 does not hold: tasks are balanced"


@pytest.mark.parametrize("paper", ["mamba", "icl", "selectors", "cot"])
def test_the_command(paper, capsys):
    assert main(["theory", "--paper", paper]) == 0
    assert "Theorem" in capsys.readouterr().out
    assert main(["theory", "--paper", paper, "--json"]) == 0
    statements = json.loads(capsys.readouterr().out)
    assert all(set(statement) >= {"place", "verdict", "premises", "laws"} for statement in statements)


def test_the_command_reads_any_field(capsys):
    assert main(["theory", "--test.outlier-fraction", "0.7"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Theorem 2 (c) needs the outlier fraction below 0.6 [min(1, p_a l_tr / l_ts)]; yours is 0.7." in printed
    assert "Theorem 4 (c) needs the outlier fraction below 0.5; yours is 0.7." in printed
    assert main(["theory", "--paper", "cot", "--tau", "0.4", "--rho", "0.2", "--test.prompt-length", "15"]) == 0
    assert "tau 0.4, rho 0.2" in capsys.readouterr().out
    assert main(["theory", "--paper", "cot", "--tau-o", "0.4", "--rho-o", "0.1", "--condition-one", "false"]) == 0
    assert "cot: Condition 1 does not hold: the most likely answer" in " ".join(capsys.readouterr().out.split())


def test_the_command_reads_a_checkpoint(tmp_path, tiny_run, capsys):
    path = str(tmp_path / "m.safetensors")
    save_checkpoint(path, train(replace(tiny_run, training=replace(tiny_run.training, steps=2))))
    assert main(["theory", "--checkpoint", path, "--test.outlier-fraction", "0.45"]) == 0
    assert "mamba: Theorem 2 (c) needs the outlier fraction below 0.4" in " ".join(capsys.readouterr().out.split())
    assert main(["theory", "--paper", "cot", "--checkpoint", path]) == 2
    assert "paper must be one with Classification prompts" in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "message"), [
    (["--paper", "gpt"], "paper must be one of mamba, icl, selectors, cot, got 'gpt'"),
    (["--accuracy", "2"], "accuracy must be in [1e-06, 1), got 2.0"),
    (["--constants", "absent.json"], "constants must be an existing file"),
    (["--checkpoint", "absent.safetensors"], "checkpoint must be an existing file"),
    (["--checkpoint", "x.safetensors", "--training.steps", "3"], "cannot be given with --checkpoint"),
    (["--checkpoint", "x.safetensors", "--data-seed", "3"], "cannot be given with --checkpoint"),
    (["--paper", "cot", "--checkpoint", "x.safetensors", "--tau", "0.3"], "cannot be given with --checkpoint"),
    (["--test.outlier-fraction", "1.5"], "outlier_fraction must be in [0, 1), got 1.5"),
])
def test_bad_input_is_one_line(arguments, message, capsys):
    assert main(["theory", *arguments]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


def test_notation(capsys):
    assert main(["notation", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert any(symbol["symbol"] == "p_a, alpha" for symbol in listed)
    assert main(["notation"]) == 0
    assert "fraction of poisoned examples" in " ".join(capsys.readouterr().out.split())


def test_the_command_needs_no_options(capsys):
    from iclab.cli import main

    assert main(["theory"]) == 0
    assert "Theorem 2 (c)" in capsys.readouterr().out


def test_theorems_about_a_model_of_ones_own_enter_where_they_are_defined(monkeypatch):
    from iclab.theory import all as every

    monkeypatch.setattr(every, "_THEORIES", list(every._THEORIES))

    class OwnAttention(GatedAttention):
        """A model of a user's own."""

    run = Run(model=OwnAttention(layers=2))
    assert theory_of(run) == []
    every.theorems(OwnAttention, Classification, covers=lambda run: run.model.layers == 2)(
        lambda run, test, accuracy, constants: [accuracy, test])
    assert theory_of(run, accuracy=0.2) == [0.2, run.prompts]
    assert theory_of(replace(run, model=OwnAttention(layers=3))) == []
