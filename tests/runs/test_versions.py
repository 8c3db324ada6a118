"""The version of a run changes with the code that it uses, and with no other."""

from __future__ import annotations

import pytest

from iclab import Run
from iclab.runs import versions
from iclab.runs.store import run_id
from iclab.runs.versions import imports, own_source
from iclab.specs import replace


def closure(*modules):
    waiting, seen = list(modules), set()
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting += imports(module)
    return seen


def test_the_modules_a_run_uses():
    used = closure("iclab.training.ensemble", "iclab.models.gated_attention", "iclab.prompts.classification")
    assert {"iclab.prompts.randomness", "iclab.models.forms", "iclab.training.sgd", "iclab.specs"} <= used
    assert not {"iclab.cli", "iclab.report.page", "iclab.figures.plots", "iclab.runs.store", "iclab.prompts.arrays",
                "iclab.models", "iclab.probes.errors"} & used


@pytest.mark.parametrize(("module", "changes"), [("forms", True), ("arrays", False), ("page", False)])
def test_a_run_is_another_when_what_it_uses_changes(monkeypatch, tmp_path, module, changes):
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


def test_what_has_no_name_of_its_own():
    run = Run()
    assert own_source(run) == []
    assert own_source(replace(run, prompts=replace(run.prompts, label_rule=rule))) == []
    assert own_source(replace(run, prompts=replace(run.prompts, label_rule=lambda clean, coin, x: -clean))) is None
