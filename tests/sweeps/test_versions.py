"""The version of a run changes with the code that it uses, and with no other."""

from __future__ import annotations

import dataclasses
import importlib
import linecache
import os
import sys
from functools import partial

import jax
import pytest

from iclab import Run
from iclab.core.identity import function_name
from iclab.core.spec import replace
from iclab.sweeps import versions
from iclab.sweeps.sources import Untraceable
from iclab.sweeps.store import run_id
from iclab.sweeps.tracing import trace
from iclab.sweeps.versions import modules_used, precision


def test_the_modules_a_run_uses():
    used = modules_used(["iclab.training.trainer", "iclab.models.gated_attention", "iclab.prompts.classification"])
    assert {"iclab.prompts.randomness", "iclab.models.forms", "iclab.training.sgd", "iclab.core.spec"} <= used
    assert not {"iclab.cli", "iclab.report.page", "iclab.figures.plots", "iclab.sweeps.store", "iclab.prompts.arrays",
                "iclab.models", "iclab.probes.error_rate"} & used


@pytest.mark.parametrize(("module", "changes"), [("forms", True), ("arrays", False), ("page", False)])
def test_a_runs_id_changes_with_the_code_it_uses(monkeypatch, tmp_path, module, changes):
    before, real = run_id(Run()), versions._file

    def file(name):
        path = real(name)
        if name.endswith(f".{module}"):
            path = tmp_path / path.name
            path.write_text(real(name).read_text() + "\n# changed\n")
        return path

    monkeypatch.setattr(versions, "_file", file)
    versions._code_version.cache_clear()
    try:
        assert (run_id(Run()) != before) == changes
    finally:
        versions._code_version.cache_clear()


def rule(clean, coin, x):
    return -clean


@dataclasses.dataclass(frozen=True)
class Threshold:
    value: float

    def above(self, trained, test, seed):
        return self.value


class Loose:
    def above(self, trained, test, seed):
        return 1.0


def jitted(factor):
    @jax.jit
    def rule(clean, coin, x):
        return clean * factor
    return rule


def test_what_a_function_holds_is_part_of_its_name():
    assert function_name(Threshold(0.1).above) != function_name(Threshold(0.9).above)
    assert function_name(jitted(1.0)) != function_name(jitted(-1.0))
    assert function_name(jitted(1.0)) == function_name(jitted(1.0))
    assert trace(Threshold(0.1).above).files == {os.path.realpath(__file__)}
    assert trace(partial(rule, 1.0)).files == {os.path.realpath(__file__)}
    assert trace(jitted(1.0)).files == {os.path.realpath(__file__)}
    for unnamed in (Loose().above, jitted(lambda: 1.0)):
        with pytest.raises(Untraceable):
            trace(unnamed)


def test_the_module_of_a_users_function_counts(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    ids = []
    for factor in (1.0, -1.0):
        (tmp_path / "own_rules.py").write_text(f"K = {factor}\ndef rule(clean, coin, x):\n    return clean * K\n")
        sys.modules.pop("own_rules", None)
        linecache.clearcache()
        importlib.invalidate_caches()
        function = importlib.import_module("own_rules").rule
        ids.append(run_id(replace(Run(), prompts=replace(Run().prompts, label_rule=function))))
    assert ids[0] != ids[1]


def test_a_lambda_has_no_id():
    run = Run()
    assert trace(run).words == []
    assert trace(replace(run, prompts=replace(run.prompts, label_rule=rule))).files == {os.path.realpath(__file__)}
    assert run_id(replace(run, prompts=replace(run.prompts, label_rule=lambda clean, coin, x: -clean))) is None


def test_settings_of_jax_that_change_numbers_are_part_of_a_result(monkeypatch):
    usual = precision()
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true --xla_cpu_max_isa=AVX2")
    assert precision() == f"{usual} --xla_cpu_enable_fast_math=true"
    monkeypatch.delenv("XLA_FLAGS")
    with jax.threefry_partitionable(False):
        assert precision() == f"{usual} jax_threefry_partitionable=False"
    assert precision() == usual
