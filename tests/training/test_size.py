"""The memory estimated from a spec is what is then needed; too much is refused before work begins."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from iclab import Chain, Classification, GatedAttention, Run, SpecError, Training, train
from iclab.core.limits import memory_limit, read_bytes, size_words
from iclab.models import (
    GPT2,
    ChainAttention,
    ChainEmbedding,
    LabelEmbedding,
    Mamba2Block,
    MambaBlock,
    SoftmaxAttention,
    SoftmaxMLP,
)
from iclab.models.gates import MEMBERS
from iclab.probes import measure_error
from iclab.training.sgd import begin
from iclab.training.size import batch_bytes, weight_bytes

MODELS = [*(GatedAttention(member=member, layers=layers, gate_per_channel=per) for member in MEMBERS
            for layers in (1, 3) for per in (False, True)),
          GatedAttention(embedding=LabelEmbedding(size=4)), SoftmaxMLP(neurons=10), SoftmaxMLP(attention_size=7),
          GPT2(), GPT2(layers=2, heads=4, size=12, positions=30), MambaBlock(), Mamba2Block(), SoftmaxAttention(),
          MambaBlock(layers=2, size=5, expand=3, state=7, convolution=2, rank=4), SoftmaxAttention(layers=3, size=12),
          Mamba2Block(layers=2, size=5, expand=3, heads=3, groups=3, state=7, convolution=2)]


def test_weights_are_counted_as_models_make_them():
    for model in MODELS:
        leaves = jax.tree.leaves(jax.eval_shape(lambda model=model: begin(Run(model=model)).params))
        assert weight_bytes(model, 30) == 4 * sum(int(np.prod(leaf.shape)) for leaf in leaves), model
    chain = ChainAttention(embedding=ChainEmbedding(steps=4))
    assert weight_bytes(chain, 30) == chain.init(jax.random.key(0), 30).W.nbytes


@pytest.mark.parametrize("prompts", [Classification(prompt_length=7), Chain(prompt_length=5, noise_norm=0.2),
                                     Chain(partly_solved=False, patterns=9)], ids=["labels", "chain", "chain test"])
def test_a_batch_is_estimated_within_a_factor_of_two(prompts):
    drawn = jax.eval_shape(lambda: prompts.sample(0, 16))
    actual = sum(leaf.dtype.itemsize * int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(drawn))
    assert actual / 2 < 16 * prompts.prompt_bytes() < actual * 2


def test_scores_between_tokens_count():
    deep = Run(model=GatedAttention(layers=3))
    assert batch_bytes(deep) - batch_bytes(Run()) == 4 * 128 * 2 * 21**2


def test_work_beyond_the_limit_is_refused(monkeypatch, tiny_run):
    monkeypatch.setenv("ICLAB_MEMORY", "10KiB")
    with pytest.raises(SpecError, match=r"must fit into memory: training .* takes about .* KiB, more than 10 KiB"):
        train(tiny_run)
    with pytest.raises(SpecError, match=r"a batch of 500 prompts takes about .* KiB, more than 10 KiB"):
        measure_error(lambda batch: batch.label, tiny_run.prompts, count=500)
    with pytest.raises(SpecError, match="prompt_length and dimension must fit into memory"):
        tiny_run.prompts.sample(0, 1000)
    monkeypatch.setenv("ICLAB_MEMORY", "1TiB")
    assert memory_limit() == 2**40


def test_sizes_beyond_what_programs_count_are_refused():
    for make, field in ((lambda size: Training(batch_size=size), "batch_size"),
                        (lambda size: Classification(prompt_length=size), "prompt_length"),
                        (lambda size: Classification(dimension=size), "dimension"),
                        (lambda size: SoftmaxMLP(neurons=size), "neurons"), (lambda size: GPT2(size=size), "size"),
                        (lambda size: GatedAttention(layers=size), "layers"),
                        (lambda size: Run(init_seed=size * 2), "init_seed")):
        for size in (2**31, 10**30):
            with pytest.raises(SpecError, match=f"{field} must be below"):
                make(size)


def test_sizes_are_read_and_written():
    assert [read_bytes(text, "memory") for text in ("512MiB", "1.5 GiB", "2TiB")] == [2**29, 3 * 2**29, 2**41]
    assert [size_words(size) for size in (100, 2**20, 3 * 2**40)] == ["100 bytes", "1 MiB", "3 TiB"]
    for text in ("lots", "9" * 400 + "GiB", "1.2.3GiB", "0GiB"):
        with pytest.raises(Exception, match="memory must be a size such as 512MiB or 2GiB"):
            read_bytes(text, "memory")
