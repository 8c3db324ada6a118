"""Claim `mamba.eq3`: the state recurrence of equation 1 is the gated linear attention of equation 3.

Rule, written before the run: in double precision, for random weights and prompts, outputs and gradients of the two
differ by at most 1e-10 of their size. Equation 1 is written out here as in the paper (A = -I, zero-order hold, a
softplus step), so that the two sides share no code. Cost: a few seconds.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from iclab.core.spec import lower
from iclab.lab.claims import Check
from iclab.lab.entries import SCALES, Entry, Findings, Note, Part, Size
from iclab.lab.estimates import Mean
from iclab.lab.laboratory import Lab
from iclab.models import GatedAttention
from iclab.models.gated_attention import LayerParams

ALLOWED = 1e-10
DIMENSION, TOKENS = 30, 21


def equation1(layer: LayerParams, columns: Float[Array, "tokens width"]) -> Float[Array, ""]:
    """`h_t = exp(D A) h_{t-1} + (D A)^-1 (exp(D A) - 1) D B_t x_t`, A = -1, D = softplus(w.p_t), read off at the query.

    Reference: li2025mamba, eq. 1. Differs from the paper: the state starts at 0.
    """
    A = -1.0

    def step(h: Array, p: Array) -> tuple[Array, None]:
        delta = jax.nn.softplus(p @ layer.gate.w[0])
        decay = jnp.exp(delta * A)
        return decay * h + (decay - 1.0) / (delta * A) * delta * (layer.W_B @ p) * p[-1], None

    h, _ = jax.lax.scan(step, jnp.zeros(layer.W_B.shape[0]), columns)
    return h @ (layer.W_C @ columns[-1])


def differences(seed: int, member: str = "mamba") -> tuple[float, float]:
    """Largest relative difference of outputs and of gradients for random weights and a batch of prompts."""
    with jax.enable_x64(True):
        model = GatedAttention(member=member)
        random = np.random.default_rng(seed)
        weights = jax.eval_shape(lambda: model.init(jax.random.key(0), DIMENSION))
        params = jax.tree.map(lambda leaf: jnp.asarray(0.2 * random.normal(size=leaf.shape)), weights)
        columns = jnp.asarray(random.normal(size=(8, TOKENS, DIMENSION + 1)))
        columns = columns.at[:, :, -1].set(jnp.where(jnp.arange(TOKENS) < TOKENS - 1, jnp.sign(columns[:, :, -1]), 0.0))

        attention, recurrence = _both(lower(model), params, columns)
        return tuple(max(_relative(a, b) for a, b in zip(jax.tree.leaves(x), jax.tree.leaves(y), strict=True))
                     for x, y in zip(attention, recurrence, strict=True))  # type: ignore[return-value]


@jax.jit
def _both(model: Any, params: Any, columns: Any) -> list[Any]:
    """Outputs and gradients by equation 3, then by equation 1."""
    forms = (lambda params, columns: model.apply(params, columns)[0],
             lambda params, columns: equation1(params[0], columns))
    return [jax.vmap(jax.value_and_grad(form), in_axes=(None, 0))(params, columns) for form in forms]


def _relative(a: Any, b: Any) -> float:
    a, b = np.asarray(a), np.asarray(b)
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-300)) if a.size else 0.0


def checks(by_seed: Float[np.ndarray, "seeds 2"]) -> list[Check]:
    """The rule above."""
    return [Check(f"largest relative difference of {name}", Mean(by_seed[:, i]), "<=", ALLOWED)
            for i, name in enumerate(("outputs", "gradients"))]


def run(lab: Lab) -> Findings:
    """Compare the two forms for several draws of weights and prompts."""
    by_seed = np.array([lab.remember(differences, seed) for seed in lab.seeds()])
    outputs, gradients = by_seed.mean(axis=0)
    return Findings(
        shown="How far the state recurrence, written out as in equation 1, is from the sum over examples of "
              "equation 3.",
        measured=by_seed,
        numbers=f"In double precision outputs differ by {outputs:.1e}, gradients by {gradients:.1e} of their size.")


ENTRY = Entry(
    "mamba.eq3", "The recurrence is gated linear attention", "li2025mamba, eqs. 1, 3", run,
    says="One-layer Mamba, a recurrence over a state, is gated linear attention: equal outputs, equal gradients.",
    sizes={scale: Size(seeds=5) for scale in SCALES}, parts=(
        Part("remark", "equation 3", "The recurrence of equation 1 is the sum of equation 3.", checks,
             replies={"holds": "An identity, up to the rounding of double precision.",
                      "fails": "The two forms differ, so one of them is not the paper's."}),),
    notes=(Note("2026-11-18", "With the paper's starting state h_0 = U equation 3 would be false; h_0 = 0 is meant."),))
