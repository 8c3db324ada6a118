"""Kinds of labels: what a prompt's label is, and how an answer errs.

An error rate is a share of wrong answers, so labels that are no signs or classes, and answers that choose none, are
refused: what would be counted means nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from iclab.core.errors import require

Error = Callable[[Array, Array], Float[Array, ""]]
"""`(output, label) -> error` of one prompt; its mean over prompts is the error that probes report."""


def wrong_sign(output: Float[Array, ""], label: Float[Array, ""]) -> Float[Array, ""]:
    """1 when `z F <= 0`: an output of exactly 0 is wrong."""
    return jnp.where(output * label > 0, 0.0, 1.0)


def squared_error(output: Float[Array, "*answer"], label: Float[Array, "*answer"]) -> Float[Array, ""]:
    """`|F - z|^2`."""
    return jnp.sum((output - label) ** 2)


def wrong_class(output: Float[Array, " classes"], label: Int[Array, ""]) -> Float[Array, ""]:
    """1 unless the largest output is that of the label's class."""
    return jnp.where(jnp.argmax(output) == label, 0.0, 1.0)


UNASKED = -1
"""The label of a token at which no answer is asked for."""


def token_losses(output: Float[Array, "tokens classes"], label: Int[Array, " tokens"]) -> Float[Array, " tokens"]:
    """`-log softmax_z(F)` at every token; 0 where no answer is asked for."""
    tokens, shape = jnp.shape(label), jnp.shape(output)
    require(len(shape) == 2 and shape[:1] == tokens, "model", f"shape {shape}",
            f"return a score for every token and class, shape {(*tokens, 'classes')}")
    chosen = label[:, None] == jnp.arange(shape[1])
    return -jnp.where(chosen, jax.nn.log_softmax(output, axis=1), 0.0).sum(axis=1)


def token_cross_entropy(output: Float[Array, "tokens classes"], label: Int[Array, " tokens"]) -> Float[Array, ""]:
    """The mean of `-log softmax_z(F)` over the tokens at which an answer is asked for."""
    return token_losses(output, label).sum() / jnp.maximum((label != UNASKED).sum(), 1)


@dataclass(frozen=True)
class LabelKind:
    """What a label is, and how an answer errs."""

    name: str
    """What the label is: sign (+1 or -1), number, vector, class (0, 1, ...), step (of a chain) or tokens (a class at
    every token, or -1 where none is asked for)."""
    error: Error
    """How an answer errs."""
    losses: tuple[str, ...]
    """The named losses that suit it; the first is the default."""
    is_rate: bool
    """Whether the mean error is a fraction of prompts, in [0, 1]."""


SIGN = LabelKind("sign", wrong_sign, ("hinge", "logistic", "squared"), True)
REAL = LabelKind("number", squared_error, ("squared",), False)
VECTOR = LabelKind("vector", squared_error, ("squared",), False)
STEP = LabelKind("step", squared_error, ("squared",), False)
"""The output of one step of a chain, a vector of unit length."""
CLASS = LabelKind("class", wrong_class, ("cross_entropy",), True)
TOKENS = LabelKind("tokens", token_cross_entropy, ("token_cross_entropy",), False)
"""A class at every token: what follows it. The error is a cross-entropy, in nats."""


def require_labels(kind: LabelKind, labels: Any) -> None:
    """Refuse the labels of a batch that are not of their kind."""
    labels = np.asarray(labels)
    if kind.name == "sign":
        bad = labels[~np.isin(labels, (-1, 1))]
        require(bad.size == 0, "label", bad.ravel()[:1].tolist(), "be +1 or -1 where labels are signs; a family whose "
                "labels are real numbers says `labels = REAL`, and its error is a squared one")
        require(labels.ndim == 1, "label", labels.shape, "be one sign per prompt")
    if kind.name == "class":
        require(np.issubdtype(labels.dtype, np.integer), "label", labels.ravel()[:1].tolist(),
                "be a whole number where labels are classes; a family whose labels are real numbers says `labels = "
                "REAL`, and its error is a squared one")
        require(labels.ndim == 1 and (labels >= 0).all(), "label", labels.min(), "be the number of a class, from 0")
    if kind.name == "tokens":
        require(np.issubdtype(labels.dtype, np.integer) and labels.ndim == 2, "label",
                f"{labels.dtype} of shape {labels.shape}", "be one whole number per token where labels are tokens")
        require((labels >= UNASKED).all(), "label", labels.min(), f"be the number of a class, or {UNASKED} at a token "
                "without a question")


def require_answers(kind: LabelKind, answers: Sequence[int], labels: Any, of: str = "model") -> None:
    """Refuse answers of such a shape, one per prompt, that do not answer labels of this kind."""
    if kind.name == "tokens":
        rule = "return a score for every token and class of each prompt"
        require(len(answers) == 3 and tuple(answers[:2]) == np.shape(labels), of, f"shape {tuple(answers)}", rule)
        require(bool(np.max(labels) < answers[2]), of, f"{answers[2]} per token", f"{rule}: labels go up to "
                f"{np.max(labels)}")
        return
    if kind.name != "class":
        wanted = tuple(np.shape(labels))
        require(tuple(answers) == wanted, of, f"shape {tuple(answers)}",
                "return one score per prompt" if kind.name == "sign" else
                f"return an answer like the label for each prompt, shape {wanted}")
        return
    rule = "return a score for every class and prompt"
    require(len(answers) == 2 and answers[0] == len(labels), of, f"shape {tuple(answers)}", rule)
    require(bool(np.max(labels) < answers[1]), of, f"{answers[1]} per prompt", f"{rule}: labels go up to "
            f"{np.max(labels)}")
