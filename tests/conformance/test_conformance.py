"""Every registered model and family keeps the rules, and so do those of the examples; broken ones are caught."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import iclab
from iclab import (
    ChainEmbedding,
    Classification,
    GatedAttention,
    LabelEmbedding,
    Mamba2Block,
    MambaBlock,
    MarkovChain,
    Parity,
    Recall,
    Regression,
    SoftmaxAttention,
    SoftmaxMLP,
    TokenEmbedding,
    replace,
)
from iclab.conformance import ConformanceError, check_model, check_prompts, check_values
from iclab.core import registry
from iclab.core.parse import of_kind
from iclab.core.spec import number, spec
from iclab.prompts.arrays import from_labelled
from iclab.prompts.chain import Chain, chain_test

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = Classification(dimension=8, relevant_patterns=3, irrelevant_patterns=3, outlier_patterns=2, prompt_length=4,
                       outlier_fraction=0.4)
SHORT = Chain(dimension=7, patterns=5, prompt_length=3)
FAMILIES = {
    "patterns": SMALL, "patterns with noise": replace(SMALL, noise_norm=0.2, rotation_seed=1), "chains": SHORT,
    "chain tests": chain_test(SHORT, patterns=4),
    "rows": from_labelled([[1.0, 2], [0, 1], [3, 1], [2, 2]], [0, 1, 0, 1], perturb=np.copy, prompt_length=3,
                          outlier_fraction=0.3),
    "Markov chains": MarkovChain(order=2, prompt_length=5), "recall": Recall(keys=4, values=3, pairs=3, queries=2),
    "parity": Parity(length=3),
    "regression": Regression(dimension=6, outlier_patterns=1, outlier_fraction=0.3, prompt_length=4, pool=3),
}
PROMPTS = {"sign": SMALL, "step": SHORT}


def test_it_is_there_without_an_import_of_its_own(monkeypatch):
    monkeypatch.delattr(iclab, "conformance")
    assert iclab.conformance.check_model is check_model
    with pytest.raises(AttributeError, match="module 'iclab' has no attribute 'conformence'"):
        iclab.conformence  # noqa: B018


def example(name, monkeypatch):
    path = next(EXAMPLES.glob(f"{name}_*.py"))
    monkeypatch.setattr(sys, "argv", [str(path)])
    module_spec = importlib.util.spec_from_file_location(f"conforming_{name}", path)
    module = importlib.util.module_from_spec(module_spec)
    monkeypatch.setitem(sys.modules, module_spec.name, module)
    module_spec.loader.exec_module(module)
    return module


SMALLER = {"gpt2": {"layers": 2, "size": 8}, "mamba_block": {"size": 8, "state": 4},
           "mamba2_block": {"size": 8, "state": 4}, "softmax_attention": {"size": 8}}
"""At its full size GPT-2 would compile for half a minute."""
MODELS = ["chain_attention", "clamped", "gated_attention", "grafted", "patched", "scaled", "softmax_mlp", *SMALLER]
LIKE_OTHERS = ("gpt2", "mamba_block", "grafted", "mamba2_block", "scaled", "softmax_attention")
"""Made of parts that the others have."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if name in LIKE_OTHERS else name
                                  for name in MODELS])
def test_a_registered_model_keeps_the_rules(name, tmp_path):
    model = replace(of_kind("model", name, "model"), **SMALLER.get(name, {}))
    check_model(model, PROMPTS[model.embedding.reads[0]], tmp_path)


def test_every_registered_kind_of_the_package_is_tested_here():
    package_models = {registry.word(cls) for cls in registry.kinds("model") if cls.__module__.startswith("iclab.")}
    assert package_models == set(MODELS)
    families = {cls for cls in registry.kinds("prompts") if cls.__module__.startswith("iclab.")}
    assert families <= {type(family) for family in FAMILIES.values()}


@pytest.mark.parametrize("embedding", [LabelEmbedding(size=3, norm=2.0), ChainEmbedding(norm=0.5)])
def test_a_model_keeps_the_rules_with_another_embedding(embedding):
    check_model(GatedAttention(embedding=embedding), PROMPTS[embedding.reads[0]])
    check_values(embedding)


@pytest.mark.slow
@pytest.mark.parametrize("model", [
    SoftmaxAttention(layers=2, heads=2, size=8, reach=4, embedding=TokenEmbedding()),
    MambaBlock(size=8, state=4, embedding=TokenEmbedding()),
    Mamba2Block(size=8, state=4, embedding=TokenEmbedding())], ids=["attention", "mamba", "mamba2"])
def test_a_model_that_answers_at_every_token_keeps_the_rules(model, tmp_path):
    check_model(model, FAMILIES["Markov chains"], tmp_path)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_keeps_the_rules(name):
    check_prompts(FAMILIES[name])


def test_the_examples_own_model_and_family_keep_the_rules(monkeypatch, tmp_path):
    check_model(example("09", monkeypatch).KernelVote(), SMALL, tmp_path)
    check_prompts(example("10", monkeypatch).Halfspaces())


@jax.custom_vjp
def doubled_backwards(x):
    return x


doubled_backwards.defvjp(lambda x: (x, None), lambda _, slope: (2.0 * slope,))


class WrongGradient(SoftmaxMLP):
    def apply(self, params, columns):
        output, seen = super().apply(params, columns)
        return doubled_backwards(output), seen


class TwoOutputs(SoftmaxMLP):
    def apply(self, params, columns):
        output, seen = super().apply(params, columns)
        return jnp.stack([output, output]), seen


@pytest.mark.parametrize(("broken", "rule"), [(WrongGradient, "gradient must be that of the loss"),
                                              (TwoOutputs, "model must return one score per prompt")])
def test_a_broken_model_is_caught(broken, rule):
    with pytest.raises(ConformanceError, match=rule):
        check_model(spec(broken)(), SMALL)


class Neighbours(Classification):
    def prompts(self, bits):
        drawn = super().prompts(bits)
        return drawn._replace(x=drawn.x + drawn.x.mean(axis=0))


class Forgetful(Classification):
    def sample(self, key, batch):
        return super().sample(0, batch)


@pytest.mark.parametrize(("broken", "rule"), [(Neighbours, "not of its neighbours'"),
                                              (Forgetful, "different seeds must draw different prompts")])
def test_a_broken_family_is_caught(broken, rule):
    with pytest.raises(ConformanceError, match=rule):
        check_prompts(spec(broken)(outlier_fraction=0.4))


def test_a_spec_that_takes_any_value_is_caught():
    @spec
    class Anything:
        """No check at all."""

        scale: float = number(default=1.0)
        """Any number."""

    @spec
    class AnyWord:
        """No check at all."""

        colour: str = "red"
        """Any word."""

    with pytest.raises(ConformanceError, match=r"must refuse scale = nan"):
        check_values(Anything())
    with pytest.raises(ConformanceError, match=r"must refuse colour = 'no such word'"):
        check_values(AnyWord())
