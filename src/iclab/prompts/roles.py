"""The roles in a prompt: the query's task, the pattern and label of each example, and which are poisoned.

The part of a prompt that does not depend on what an input looks like; `classification` and `arrays` turn it into
inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from iclab.core.errors import SpecError, require
from iclab.core.spec import require_choice, require_range
from iclab.prompts.attacks import LABEL_RULES, PLACEMENTS, label_rule, place
from iclab.prompts.randomness import Bits, TokenWords, choice, high_half, low_half, uniform16, uniform23
from iclab.prompts.tasks import parse_tasks


class Roles(NamedTuple):
    """The parts of one prompt before its inputs exist."""

    pattern: Int[Array, " tokens"]
    outlier: Bool[Array, " tokens"]
    clean: Float[Array, " tokens"]
    coin: Float[Array, " tokens"]
    query: Bool[Array, " tokens"]
    label: Float[Array, ""]
    task: Int[Array, " 2"]


def check_context(spec: Any, patterns: int) -> None:
    """The rules shared by every family of classification prompts."""
    require_range(spec, "outlier_fraction", 0, 1, open_high=True)
    require_range(spec, "decisive_fraction", 0, 1, open_low=True)
    require_choice(spec, "placement", PLACEMENTS)
    if callable(spec.label_rule):
        try_rule(spec)
    else:
        require_choice(spec, "label_rule", LABEL_RULES)
    parse_tasks(spec.tasks, patterns)
    if patterns == 2:
        require(spec.decisive_fraction == 1, "decisive_fraction", spec.decisive_fraction,
                "be 1 when there are only two patterns")


def try_rule(spec: Any) -> None:
    """Refuse a user's label rule that fails or returns another shape."""
    tokens = spec.prompt_length + 1
    labels, x = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((tokens,), (tokens, spec.dimension)))
    try:
        shape = jax.eval_shape(spec.label_rule, labels, labels, x).shape
    except (Exception, SystemExit) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise SpecError(f"label_rule must be a function (clean, coin, x) -> labels of JAX arrays, got "
                        f"{spec.label_rule!r}, which fails: {first}") from None
    require(shape == (tokens,), "label_rule", f"shape {shape}", f"return one label per token, shape ({tokens},)")


def stratified_cells(spec: Any, bits: Bits) -> Int[Array, "batch 3"]:
    """One (query pattern, partner, label) per prompt; in a batch the counts of query patterns differ by at most 1.

    Evenly spaced rows of the sorted list of queries, from a random start, fix the query and its label; the partner
    is then drawn from the tasks that contain them. Every task is equally likely.
    """
    cells = jnp.asarray(spec.tasks)
    batch, count = bits.prompt.shape[0], (cells[:, 4] > 0).sum()
    position = (jnp.arange(batch) + uniform23(bits.batch)) * (count / batch)
    chosen = cells[jnp.minimum(position.astype(jnp.int32), count - 1)]
    first, alike = chosen[:, 3], chosen[:, 4]
    return cells[first + (uniform23(bits.prompt) * alike).astype(jnp.int32)][:, :3]


def draw_roles(spec: Any, patterns: int, cell: Int[Array, " 3"], words: TokenWords) -> Roles:
    """Draw the parts of one prompt from its cell and its random words.

    An example is decisive (pattern a or b, half each) with probability `decisive_fraction`, else one of the other
    patterns with a fair coin for a label; it is poisoned with probability `outlier_fraction`.
    """
    tokens = words.first.shape[0]
    query_pattern, partner, label = cell[0], cell[1], cell[2].astype(float)
    query = jnp.arange(tokens) == tokens - 1
    same = ((words.second & 1) == 1) | query
    coin = jnp.where((words.second & 2) == 2, 1.0, -1.0)
    pattern = jnp.where(same, query_pattern, partner)
    clean = jnp.where(same, label, -label)
    if patterns > 2:
        decisive = (uniform16(high_half(words.first)) < spec.decisive_fraction) | query
        other = choice(low_half(words.fourth), patterns - 2)
        other = other + (other >= jnp.minimum(query_pattern, partner))
        other = other + (other >= jnp.maximum(query_pattern, partner))
        pattern = jnp.where(decisive, pattern, other)
        clean = jnp.where(decisive, clean, jnp.where((words.second & 4) == 4, 1.0, -1.0))
    outlier = (uniform16(low_half(words.first)) < spec.outlier_fraction) & ~query
    task = jnp.where(label > 0, jnp.stack([query_pattern, partner]), jnp.stack([partner, query_pattern]))
    return Roles(pattern, place(outlier, spec.placement), clean, coin, query, label, task)


def carried_labels(roles: Roles, rule: str | Callable[..., Any], x: Float[Array, "tokens dimension"]
                   ) -> Float[Array, " tokens"]:
    """The labels that the model reads: clean ones, those of the attack on poisoned examples, 0 at the query."""
    poisoned = label_rule(rule)(roles.clean, roles.coin, x)
    return jnp.where(roles.query, 0.0, jnp.where(roles.outlier, poisoned, roles.clean))
