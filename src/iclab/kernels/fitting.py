"""Which runs the kernels can train, said without importing Numba."""

from __future__ import annotations

from functools import cache
from importlib import metadata
from typing import Any

from iclab.models import ChainAttention, ChainEmbedding, GatedAttention, LabelEmbedding, SoftmaxMLP
from iclab.prompts import Chain, Classification

LOSSES = ("hinge", "squared", "logistic")
"""Losses of a sign that kernels know, by their number there."""


@cache
def numba_version() -> str | None:
    """The installed version of Numba; None where there is none."""
    try:
        return metadata.version("numba")
    except metadata.PackageNotFoundError:
        return None


@cache
def numba_fault() -> str:
    """Why Numba cannot be used, as a rule that the machine breaks; empty if it can."""
    if numba_version() is None:
        return "have Numba installed (there is none for every Python)"
    try:
        import numba  # noqa: F401
    except Exception as error:  # one that was built for another NumPy fails in its own way
        first = (str(error).splitlines() or [type(error).__name__])[0]
        return f"have a Numba that loads, which fails here: {first}"
    return ""


def training_misfit(model: Any, prompts: Any, training: Any) -> str:
    """Why no kernel can train such a run, as a rule that it breaks; empty if one can."""
    if training.optimizer != "sgd" or training.clip_norm is not None:
        return "be trained by plain sgd without a clip_norm"
    if type(model) is ChainAttention:
        return _chain_misfit(model, prompts) or ("" if training.loss == "squared" else "have the loss squared")
    return misfit(model, prompts) or ("" if training.loss in LOSSES else f"have a loss of {', '.join(LOSSES)}")


def misfit(model: Any, prompts: Any) -> str:
    """Why no kernel can let a model read such classification prompts, as a rule that they break; empty if one can."""
    if type(model) not in (GatedAttention, SoftmaxMLP):
        return "have a GatedAttention, a SoftmaxMLP or a ChainAttention"
    if type(model) is GatedAttention and (model.layers > 1 or model.member == "gla" or model.form != "sum"):
        return "have one layer, of the form sum, of a member other than gla"
    if type(model.embedding) is not LabelEmbedding:
        return "have a LabelEmbedding"
    if type(prompts) is not Classification:
        return "have Classification prompts"
    if prompts.noise_norm is not None or callable(prompts.label_rule):
        return "have prompts without dense noise and with a named label_rule"
    return ""


def decoding_misfit(model: Any) -> str:
    """Why no kernel can let a model decode chains, as a rule that it breaks; empty if one can."""
    fits = type(model) is ChainAttention and type(model.embedding) is ChainEmbedding
    return "" if fits else "have a ChainAttention and a ChainEmbedding"


def _chain_misfit(model: Any, prompts: Any) -> str:
    if type(model.embedding) is not ChainEmbedding or type(prompts) is not Chain:
        return "have a ChainEmbedding and Chain prompts"
    if not prompts.partly_solved or prompts.noise_norm is not None or prompts.pattern_mixtures is not None:
        return "have partly_solved prompts, without noise_norm and pattern_mixtures"
    return ""


def kernel_pack(model: Any) -> Any:
    """The class that trains packs of runs with this kind of model; its kernel is compiled when it is first used."""
    from iclab.kernels.ahead import wait_until_compiled
    from iclab.kernels.chain_pack import ChainPack
    from iclab.kernels.gated_pack import GatedPack
    from iclab.kernels.softmax_pack import SoftmaxPack

    wait_until_compiled(model)
    return {GatedAttention: GatedPack, SoftmaxMLP: SoftmaxPack, ChainAttention: ChainPack}[type(model)]
