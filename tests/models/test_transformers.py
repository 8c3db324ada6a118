"""With copied weights, models equal those of `transformers` or PyTorch: GPT-2 in values, others in gradients, too."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iclab import GPT2, Mamba2Block, MambaBlock, SoftmaxAttention
from iclab.models.gpt2 import Block, GPT2Params
from iclab.models.mamba2_block import Mamba2Weights
from iclab.models.mamba_block import MambaWeights
from iclab.models.selective import BlockParams
from iclab.models.softmax_attention import AttentionParams, AttentionWeights
from iclab.models.stack import Affine, stacked

mamba_blocks = st.builds(MambaBlock, layers=st.integers(1, 3), size=st.integers(2, 9), expand=st.integers(1, 3),
                         state=st.integers(1, 5), convolution=st.integers(1, 5), rank=st.integers(1, 3))
mamba2_blocks = st.builds(
    lambda per_group, groups, part, expand, **fields: Mamba2Block(
        heads=per_group * groups, groups=groups, size=per_group * groups * part, expand=expand, **fields),
    st.integers(1, 2), st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), layers=st.integers(1, 3),
    state=st.integers(1, 4), convolution=st.integers(1, 5))
attentions = st.builds(lambda heads, part, layers: SoftmaxAttention(heads=heads, size=heads * part, layers=layers),
                       st.integers(1, 3), st.integers(2, 4), st.integers(1, 3))
MISSING = "the transformers extra is not installed"
NONE = Affine(jnp.zeros((1, 1)), jnp.zeros(1))


def copied(reference) -> GPT2Params:
    """The weights of a `transformers.GPT2Model` in our form."""
    def affine(module):
        return Affine(jnp.asarray(module.weight.detach().numpy()), jnp.asarray(module.bias.detach().numpy()))

    def norm(module):
        return Affine(jnp.asarray(module.weight.detach().numpy())[None], jnp.asarray(module.bias.detach().numpy()))

    blocks = stacked([Block(norm(b.ln_1), affine(b.attn.c_attn), affine(b.attn.c_proj), norm(b.ln_2),
                            affine(b.mlp.c_fc), affine(b.mlp.c_proj)) for b in reference.h])
    zero = Affine(jnp.zeros((1, 1)), jnp.zeros(1))
    return GPT2Params(zero, jnp.asarray(reference.wpe.weight.detach().numpy()), blocks, norm(reference.ln_f), zero)


def test_it_is_the_gpt2_of_transformers():
    torch, transformers = (pytest.importorskip(name, reason=MISSING) for name in ("torch", "transformers"))
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=3, n_head=2, n_embd=64, n_positions=21, vocab_size=2, resid_pdrop=0.0,
                                     embd_pdrop=0.0, attn_pdrop=0.0)
    reference = transformers.GPT2Model(config).eval()
    with torch.no_grad():
        for weight in reference.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
        embedded = torch.randn(4, 21, 64)
        expected = reference(inputs_embeds=embedded).last_hidden_state.numpy()
    params, model = copied(reference), GPT2(layers=3, heads=2, size=64, positions=21)
    ours = jax.jit(jax.vmap(lambda h: model.stream(params, h + params.positions)[0]))(jnp.asarray(embedded.numpy()))
    np.testing.assert_allclose(ours, expected, atol=1e-4)


def shaken(torch, module):
    """The module in double precision, its weights away from their start."""
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return module.double().eval()


def compare(torch, model, tokens, reference, ours):
    """Values, and gradients of the inputs and of every weight, for a random cotangent; `ours(taken)` has the
    reference's weights in our form, each as `taken` makes it."""
    embedded = torch.randn(tokens, model.size, dtype=torch.float64, requires_grad=True)
    expected = reference(embedded)
    slope = torch.randn_like(expected)
    (expected * slope).sum().backward()
    params = ours(lambda weight: jnp.asarray(weight.detach().numpy()))
    h, slope = jnp.asarray(embedded.detach().numpy()), slope.numpy()

    def value(params, h):
        out = model.stream(params, h)[0]
        return (out * slope).sum(), out

    gradients, out = jax.jit(jax.grad(value, argnums=(0, 1), has_aux=True))(params, h)
    close = partial(np.testing.assert_allclose, rtol=1e-7, atol=1e-8)
    close(out, expected.detach().numpy())
    close(gradients[1], embedded.grad.numpy())
    theirs = ours(lambda weight: jnp.asarray(weight.grad.numpy()))
    jax.tree.map(close, (gradients[0].blocks, gradients[0].norm), (theirs.blocks, theirs.norm))
    close(jax.jit(partial(model.stream, asked=1))(params, h)[0][0], out[-1])


def held_to_transformers(torch, model, tokens):
    """The slow path of the library's models. It casts to single precision, which is made to mean double."""
    transformers = pytest.importorskip("transformers", reason=MISSING)
    torch.manual_seed(tokens)
    common = {"hidden_size": model.size, "state_size": model.state, "num_hidden_layers": model.layers, "vocab_size": 3,
              "expand": model.expand, "conv_kernel": model.convolution, "use_cache": False, "pad_token_id": 0}
    if isinstance(model, Mamba2Block):
        built = transformers.Mamba2Model(transformers.Mamba2Config(
            num_heads=model.heads, head_dim=model.size * model.expand // model.heads, n_groups=model.groups,
            chunk_size=4, **common))
    else:
        built = transformers.MambaModel(transformers.MambaConfig(time_step_rank=model.rank, **common))
    shaken(torch, built)

    def ours(taken):
        def block(layer):
            mixer = layer.mixer
            same = {"norm": taken(layer.norm.weight), "in_proj": taken(mixer.in_proj.weight).T,
                    "conv": Affine(taken(mixer.conv1d.weight)[:, 0].T, taken(mixer.conv1d.bias)),
                    "A_log": taken(mixer.A_log), "D": taken(mixer.D), "out_proj": taken(mixer.out_proj.weight).T}
            if isinstance(model, Mamba2Block):
                return Mamba2Weights(dt_bias=taken(mixer.dt_bias), gated=taken(mixer.norm.weight), **same)
            return MambaWeights(x_proj=taken(mixer.x_proj.weight).T, dt_proj=Affine(
                taken(mixer.dt_proj.weight).T, taken(mixer.dt_proj.bias)), **same)

        return BlockParams(NONE, stacked([block(layer) for layer in built.layers]), taken(built.norm_f.weight), NONE)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "float32", torch.float64)
        patch.setattr(torch.Tensor, "float", torch.Tensor.double)
        compare(torch, model, tokens, lambda h: built(inputs_embeds=h[None]).last_hidden_state[0], ours)


def held_to_pytorch(torch, model, tokens):
    """PyTorch's layers put together: norm, attention, residual."""
    torch.manual_seed(tokens)
    norms = [shaken(torch, torch.nn.LayerNorm(model.size)) for _ in range(model.layers + 1)]
    attends = [shaken(torch, torch.nn.MultiheadAttention(model.size, model.heads)) for _ in range(model.layers)]
    unseen = torch.triu(torch.ones(tokens, tokens, dtype=torch.bool), 1)

    def reference(h):
        for norm, attention in zip(norms, attends, strict=False):
            normed = norm(h)
            h = h + attention(normed, normed, normed, attn_mask=unseen, need_weights=False)[0]
        return norms[-1](h)

    def ours(taken):
        def norm(module):
            return Affine(taken(module.weight)[None], taken(module.bias))

        return AttentionParams(NONE, stacked([AttentionWeights(
            norm(normed), Affine(taken(one.in_proj_weight).T, taken(one.in_proj_bias)),
            Affine(taken(one.out_proj.weight).T, taken(one.out_proj.bias)))
            for normed, one in zip(norms, attends, strict=False)]), norm(norms[-1]), NONE)

    compare(torch, model, tokens, reference, ours)


HELD = {MambaBlock: held_to_transformers, Mamba2Block: held_to_transformers, SoftmaxAttention: held_to_pytorch}


@pytest.mark.parametrize("model", [
    MambaBlock(layers=2, size=5, state=3, convolution=3, rank=2),
    Mamba2Block(layers=2, size=4, expand=3, heads=4, groups=2, state=3, convolution=2),
    SoftmaxAttention(layers=2, heads=3, size=6)], ids=lambda model: type(model).__name__)
def test_it_is_the_block_of_the_reference(float64, model):
    HELD[type(model)](pytest.importorskip("torch", reason=MISSING), model, 7)


@pytest.mark.slow
@settings(max_examples=12)
@given(model=mamba_blocks | mamba2_blocks | attentions, tokens=st.integers(1, 12))
def test_every_size_is_that_of_the_reference(model, tokens):
    torch = pytest.importorskip("torch", reason=MISSING)
    with jax.enable_x64(True):
        HELD[type(model)](torch, model, tokens)
