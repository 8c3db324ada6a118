"""The house keeps its order: imports go up the list, names are words, modules stay small."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections import Counter
from pathlib import Path

import pytest

import iclab
from iclab.core.spec import field_help
from iclab.models import (
    GPT2,
    ChainAttention,
    ChainEmbedding,
    GatedAttention,
    LabelEmbedding,
    Mamba2Block,
    MambaBlock,
    SoftmaxAttention,
    SoftmaxMLP,
    TokenEmbedding,
    VectorEmbedding,
)
from iclab.notation import NOTATION
from iclab.prompts import ArrayPrompts, Chain, Classification, MarkovChain, Parity, Recall
from iclab.training import Run, Training

SOURCE = Path(iclab.__file__).parent
ORDER = ["core", "notation", "prompts", "models", "kernels", "training", "tracking", "torch", "probes", "hub",
         "conformance", "theory", "sweeps", "figures", "lab", "papers", "report", "bench", "commands", "cli",
         "__main__"]
FILES = sorted(SOURCE.rglob("*.py"))
SPECS = [Classification, ArrayPrompts, Chain, MarkovChain, Recall, Parity, GatedAttention, SoftmaxMLP, GPT2, MambaBlock,
         Mamba2Block, SoftmaxAttention, ChainAttention, LabelEmbedding, VectorEmbedding, ChainEmbedding, TokenEmbedding,
         Training, Run]


def room(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return parts[0]


def imports(path):
    """The rooms that a module imports when it is imported."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("iclab."):
            yield node.module.split(".")[1]


@pytest.mark.parametrize("path", [f for f in FILES if room(f) not in ("__init__",)], ids=lambda p: p.stem)
def test_imports_go_up_the_list(path):
    for name in imports(path):
        assert ORDER.index(name) <= ORDER.index(room(path)), f"{path.name} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_modules_are_of_one_idea(path):
    text = path.read_text()
    assert text.startswith('"""')
    assert text.count("\n") <= 400


def test_no_two_modules_and_no_two_classes_have_one_name():
    """Commands and entries are named after what they show, in folders of their own."""
    rooms = [path for path in FILES if room(path) not in ("commands", "papers") and path.stem != "__init__"
             and "playground" not in path.parts]
    modules = Counter(path.stem for path in rooms)
    assert [name for name, count in modules.items() if count > 1] == []
    classes = Counter(node.name for path in FILES if "papers" not in path.parts
                      for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef))
    assert [name for name, count in classes.items() if count > 1] == []


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.__name__)
def test_public_fields_are_words_with_an_explanation(spec):
    explained = field_help(spec)
    for field in dataclasses.fields(spec):
        assert field.name in explained, f"{spec.__name__}.{field.name} has no docstring"
        assert "alpha" not in field.name
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", field.name)


def test_the_notation_names_existing_fields():
    fields = {f"{spec.__name__}.{field.name}" for spec in SPECS for field in dataclasses.fields(spec)}
    for symbol in NOTATION:
        for name in symbol.fields:
            assert name in fields, f"{symbol.symbol}: {name}"


def test_public_names_exist():
    for name in iclab.__all__:
        assert getattr(iclab, name) is not None
    with pytest.raises(AttributeError):
        _ = iclab.nothing
