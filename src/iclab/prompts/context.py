"""Who plays which part in a prompt: the query's task, the pattern and label of each example, which are poisoned.

The part of a prompt that does not depend on what an input looks like; `classification` and `arrays` turn it into
inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from iclab.errors import SpecError, require
from iclab.limits import LARGEST, require_batch
from iclab.prompts.attacks import LABEL_RULES, PLACEMENTS, label_rule, place
from iclab.prompts.randomness import (
    Bits,
    Key,
    TokenWords,
    as_key,
    choice,
    draw_bits,
    high_half,
    low_half,
    uniform16,
    uniform23,
)
from iclab.prompts.tasks import parse_tasks, tasks_code
from iclab.specs import is_code, require_choice, require_range

NUMBER = 4
"""Bytes of a number in single precision."""


class Prompt(NamedTuple):
    """A prompt and its truth; the last token is the query. A batch has a leading axis on every field.

    One prompt of task (2, 5), four examples, the third poisoned by the flip rule:

        pattern   2      5      2      2    | 2
        outlier   no     no     yes    no   | no
        y         +1     -1     -1     +1   | 0
        x         x_1    x_2    x_3    x_4  | x_query        label +1
    """

    x: Float[Array, "tokens dimension"]
    y: Float[Array, " tokens"]
    """Labels +-1 as the model reads them; 0 at the query."""
    label: Float[Array, ""]
    """The query's true label."""
    pattern: Int[Array, " tokens"]
    """Relevant pattern of each token."""
    outlier: Bool[Array, " tokens"]
    """Which examples are poisoned; never the query."""
    clean: Float[Array, " tokens"]
    """The label each example would carry without poison; the true label at the query."""
    task: Int[Array, " 2"]
    """(a, b): pattern a is labelled +1, pattern b -1."""
    irrelevant: Int[Array, " tokens"]
    """Irrelevant pattern of each token (for a user's own data: the row of the array)."""
    direction: Int[Array, " tokens"]
    """Which outlier direction a poisoned example carries."""

    def numpy(self) -> Prompt:
        """The same prompt as NumPy arrays."""
        return Prompt(*(np.asarray(field) for field in self))  # type: ignore[arg-type]


class Family:
    """What every family of prompts does alike: bits are drawn first, and prompts are a function of them."""

    dimension: int
    prompt_length: int
    speaks_of = "labels"
    """What is asked of a model, labels or a chain: only an embedding that speaks of the same can read it."""

    def prompt_bytes(self) -> int:
        """Bytes of one prompt: its inputs and labels."""
        return NUMBER * (self.prompt_length + 1) * (self.dimension + 1)

    def sample(self, key: Key | Array | int, batch: int) -> Any:
        """Draw a batch of prompts in which every query pattern is asked equally often (Algorithm 1)."""
        require(1 <= batch < LARGEST, "batch", batch, f"be in [1, {LARGEST:,})")
        require_batch(self, batch)
        return _sample(self, as_key(key), batch)

    def bits(self, key: Key | Array | int, batch: int) -> Any:
        """The randomness of a batch."""
        return draw_bits(as_key(key), batch, self.prompt_length + 1)

    def prompts(self, bits: Any) -> Any:
        """The batch of prompts that the bits determine."""
        raise NotImplementedError


@partial(jax.jit, static_argnums=2)
def _sample(family: Family, key: Key, batch: int) -> Any:
    return family.prompts(family.bits(key, batch))


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
        _try_rule(spec)
    else:
        require_choice(spec, "label_rule", LABEL_RULES)
    parse_tasks(spec.tasks, patterns)
    if patterns == 2:
        require(spec.decisive_fraction == 1, "decisive_fraction", spec.decisive_fraction,
                "be 1 when there are only two patterns")


def _try_rule(spec: Any) -> None:
    tokens = spec.prompt_length + 1
    labels, x = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((tokens,), (tokens, spec.dimension)))
    try:
        made = jax.eval_shape(spec.label_rule, labels, labels, x).shape
    except (Exception, SystemExit) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise SpecError(f"label_rule must be a function (clean, coin, x) -> labels of JAX arrays, got "
                        f"{spec.label_rule!r}, which fails: {first}") from None
    require(made == (tokens,), "label_rule", f"shape {made}", f"return one label a token, shape ({tokens},)")


def stratified_cells(spec: Any, bits: Bits) -> Int[Array, "batch 3"]:
    """One (query pattern, partner, label) a prompt; over a batch the counts of every query pattern differ by 1 at most.

    Evenly spaced rows of the sorted list of ways to ask, from a random start, fix the query and its label; the partner
    is then drawn among the tasks that ask them. Every task is equally likely.
    """
    cells = jnp.asarray(spec.tasks if is_code(spec.tasks) else tasks_code(spec, spec.tasks))
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
    asked, partner, label = cell[0], cell[1], cell[2].astype(float)
    query = jnp.arange(tokens) == tokens - 1
    same = ((words.second & 1) == 1) | query
    coin = jnp.where((words.second & 2) == 2, 1.0, -1.0)
    pattern = jnp.where(same, asked, partner)
    clean = jnp.where(same, label, -label)
    if patterns > 2:
        decisive = (uniform16(high_half(words.first)) < spec.decisive_fraction) | query
        other = choice(low_half(words.fourth), patterns - 2)
        other = other + (other >= jnp.minimum(asked, partner))
        other = other + (other >= jnp.maximum(asked, partner))
        pattern = jnp.where(decisive, pattern, other)
        clean = jnp.where(decisive, clean, jnp.where((words.second & 4) == 4, 1.0, -1.0))
    outlier = (uniform16(low_half(words.first)) < spec.outlier_fraction) & ~query
    task = jnp.where(label > 0, jnp.stack([asked, partner]), jnp.stack([partner, asked]))
    return Roles(pattern, place(outlier, spec.placement), clean, coin, query, label, task)


def carried_labels(roles: Roles, rule: str | Callable[..., Any], x: Float[Array, "tokens dimension"]
                   ) -> Float[Array, " tokens"]:
    """The labels that the model reads: clean ones, those of the attack on poisoned examples, 0 at the query."""
    poisoned = label_rule(rule)(roles.clean, roles.coin, x)
    return jnp.where(roles.query, 0.0, jnp.where(roles.outlier, poisoned, roles.clean))
