"""Fields by path: read, checked, set in nested specs."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from iclab import Classification, GatedAttention, IclabError, Run, SpecError
from iclab.core.parse import flat, hint_of, typed, with_fields


def test_values_are_set_where_their_paths_lead():
    run = with_fields(Run(), {"model.member": "linear", "model.embedding.norm": 2, "prompts.tasks": [[0, 1], [2, 3]],
                              "prompts.outlier_mixtures": [[1, 0, 0]], "training.clip_norm": "none", "init_seed": 3})
    assert run.model.member == "linear"
    assert run.model.embedding.norm == 2.0
    assert run.prompts.tasks == ((0, 1), (2, 3))
    assert run.prompts.outlier_mixtures == ((1, 0, 0),)
    assert run.training.clip_norm is None
    assert run.init_seed == 3


def test_a_part_may_be_another_class_or_a_spec():
    assert with_fields(Run(), {"model.kind": "GatedAttention", "model.layers": 2}).model.layers == 2
    assert with_fields(Run(), {"model": GatedAttention(layers=3)}).model.layers == 3
    with pytest.raises(SpecError, match=r"model.kind must be one of .*gated_attention.*, got 'LSTM'"):
        with_fields(Run(), {"model.kind": "LSTM"})


def test_a_function_is_imported_by_its_name():
    import optax

    assert with_fields(Run(), {"training.optimizer": "optax:adam"}).training.optimizer is optax.adam
    for text in ("optax:nothing", "no_such_module:f", "optax:__version__"):
        with pytest.raises(IclabError, match=r"training.optimizer must be a function that can be imported"):
            with_fields(Run(), {"training.optimizer": text})


@pytest.mark.parametrize(("path", "value", "message"), [
    ("model.membr", "mamba", r"GatedAttention has no field 'membr'"),
    ("outlier_scale", 2.0, r"it is a field of its prompts: prompts.outlier_scale, or test.outlier_scale in a sweep"),
    ("prompts.outlier_scal", 2.0, r"did you mean outlier_scale\?; it has dimension, (?!.*(labels|any_size))"),
    ("modle.member", "mamba", r"Run has no field 'modle'"),
    ("init_seed.deep", 1, r"init_seed.deep: init_seed has no fields of its own"),
    ("prompts.outlier_fraction", "lots", r"prompts.outlier_fraction must be a number, got 'lots'"),
    ("prompts.outlier_fraction", 1.5, r"prompts.outlier_fraction must be in \[0, 1\), got 1.5"),
    ("prompts.outlier_fraction", True, r"prompts.outlier_fraction must be a number, got True"),
    ("prompts.prompt_length", 2.5, r"prompts.prompt_length must be a whole number, got 2.5"),
    ("prompts.prompt_length", [3], r"prompts.prompt_length must be a whole number, got \[3\]"),
    ("model.normalise", 1, r"model.normalise must be true or false, got 1"),
    ("prompts.outlier_mixtures", [1, 2], r"prompts.outlier_mixtures must be a list of rows of numbers"),
    ("model.embedding.size", 0, r"model.embedding.size must be"),
    ("prompts.outlier_fraction", {"from": 0}, r"prompts.outlier_fraction must be a number, got {'from': 0}"),
    ("prompts.outlier_fraction", date(2020, 1, 1), r"prompts.outlier_fraction must be a number, got datetime.date"),
    ("prompts.outlier_scale", np.ones(2), r"prompts.outlier_scale must be a number, got array"),
    ("prompts.outlier_scale", 10**400, r"prompts.outlier_scale must be a number"),
    ("training.steps", float("inf"), r"training.steps must be a whole number, got inf"),
    ("training.steps", float("nan"), r"training.steps must be a whole number, got nan"),
    ("model", "mamba", r"model must be a spec \(in a file, name its fields: model.FIELD\), got 'mamba'"),
    ("prompts.tasks", [[0, 1.5]], r"prompts.tasks must be 'all'"),
])
def test_a_wrong_value_is_named_by_its_path(path, value, message):
    with pytest.raises(SpecError, match=message):
        with_fields(Run(), {path: value})


def test_flat_is_every_field():
    fields = flat(Run())
    assert fields["model.kind"] == "gated_attention"
    assert fields["model.embedding.norm"] == 1.0
    assert fields["prompts.outlier_fraction"] == 0.6
    assert hint_of(Run(), "prompts.prompt_length") is int
    assert typed(float, 3, "x") == 3.0
    assert isinstance(typed(float, 3, "x"), float)
    assert flat(Classification())["outlier_mixtures"] is None
