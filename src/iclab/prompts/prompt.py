"""A prompt, the truth about it, and what every family of prompts has in common."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from iclab.core.errors import not_a, require
from iclab.core.html import Token, tokens
from iclab.core.limits import LARGEST, require_batch
from iclab.core.spec import lower
from iclab.prompts.labels import SIGN, LabelKind
from iclab.prompts.randomness import Key, as_key, jax_key

NUMBER = 4
"""Bytes of a number in single precision."""


class Prompt(NamedTuple):
    """What a model reads, and the truth about it; the last token is the query. A batch has a leading axis everywhere.

    One prompt of task (2, 5), four examples, the third poisoned by the flip rule:

        truth.pattern   2      5      2      2    | 2
        truth.outlier   no     no     yes    no   | no
        y               +1     -1     -1     +1   | 0
        x               x_1    x_2    x_3    x_4  | x_query        label +1
    """

    x: Float[Array, "tokens dimension"]
    """Input of each token."""
    y: Float[Array, "tokens *answer"]
    """Label of each token as the model reads it; 0 at the query."""
    label: Any
    """The query's true label; of token prompts the class that is asked for at every token, or -1."""
    truth: Any = None
    """What the family knows about the tokens and a model does not: `Truth`, `ChainTruth`, or your own named tuple."""
    step: Any = None
    """Which step of its chain each token is, from 0, -1 for an empty column; None where examples are not chains."""

    def numpy(self) -> Prompt:
        """The same prompt as NumPy arrays."""
        return jax.tree.map(np.asarray, self)

    def _repr_html_(self) -> str:
        """In a notebook: a row of examples, coloured by their pattern, with their labels; poisoned ones stand out."""
        batched = np.ndim(self.x) == 3
        prompt = jax.tree.map(lambda leaf: np.asarray(leaf)[0], self) if batched else self.numpy()
        if np.shape(prompt.label) == prompt.x.shape[:1] and prompt.label.dtype.kind == "i":
            numbers = prompt.x.argmax(axis=-1).tolist()
            row = [Token(str(number), "." if label < 0 else str(label), number)
                   for number, label in zip(numbers, prompt.label.tolist(), strict=True)]
            first = f"the first of {len(self.x)} prompts; " if batched else ""
            return tokens(row, f"{first}below each token the class that is asked for after it")
        pattern, outlier = (getattr(prompt.truth, name, None) for name in ("pattern", "outlier"))
        last = len(prompt.x) - 1
        row = [Token("query" if i == last else f"{i + 1}" if pattern is None else f"\u03bc{pattern[i] + 1}",
                     "?" if i == last else _label(prompt.y[i]), None if pattern is None else int(pattern[i]),
                     outlier is not None and bool(outlier[i])) for i in range(last + 1)]
        of = f"the first of {len(self.x)} prompts; " if batched else ""
        poisoned = "" if outlier is None else f"; {int(np.sum(outlier))} examples poisoned"
        return tokens(row, f"{of}the query's label is {_label(prompt.label)}{poisoned}")


def _label(value: Any) -> str:
    """A label in a few characters."""
    if np.ndim(value) == 0:
        return f"{float(value):+.3g}"
    return f"#{int(np.argmax(np.abs(value))) + 1}" if np.any(value) else "0"


class Truth(NamedTuple):
    """The truth about a classification prompt."""

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


class Family:
    """A distribution of prompts. The simplest way to define one is `draw`, one prompt from a JAX key.

    Programs draw random bits first, and prompts are a function of them: `bits` and `prompts` do that for whole batches
    and can be defined instead of `draw`, for speed or for batches that are stratified. All three run inside compiled
    programs, on the lowered spec.
    """

    dimension: int
    prompt_length: int
    labels: ClassVar[LabelKind] = SIGN
    """What a label is, and how an answer errs."""
    any_size: ClassVar[bool] = False
    """Whether inputs are a user's data, which may have any size."""

    def prompt_bytes(self) -> int:
        """Bytes of one prompt: its inputs and labels."""
        return NUMBER * (self.prompt_length + 1) * (self.dimension + 1)

    def sample(self, key: Key | Array | int, batch: int) -> Prompt:
        """Draw a batch of prompts."""
        require(1 <= batch < LARGEST, "batch", batch, f"be in [1, {LARGEST:,})")
        require_batch(self, batch)
        return _sample(lower(self), as_key(key), batch)

    def draw(self, key: Array) -> Prompt:
        """One prompt from a JAX key."""
        raise NotImplementedError(f"{type(self).__name__} must define draw, or bits and prompts")

    def bits(self, key: Key | Array | int, batch: int) -> Any:
        """The randomness of a batch: here the words of one JAX key per prompt."""
        return jax.random.key_data(jax.random.split(jax_key(as_key(key)), batch))

    def prompts(self, bits: Any) -> Prompt:
        """The batch of prompts that the bits determine."""
        return jax.vmap(lambda words: self.draw(jax.random.wrap_key_data(words, impl="threefry2x32")))(bits)


def require_family(value: Any, field: str = "prompts") -> None:
    """Refuse what is no distribution of prompts, and say what was meant."""
    if isinstance(value, Family):
        return
    advice = ""
    if isinstance(value, Prompt):
        advice = "give the distribution that the batch was drawn from"
    elif isinstance(value, tuple) and any(isinstance(item, Family) for item in value):
        advice = "unpack the pair: training, test = ..."
    elif isinstance(value, type) and issubclass(value, Family):
        advice = f"write {value.__name__}()"
    raise not_a(field, value, "a distribution of prompts, such as Classification()", advice)


@partial(jax.jit, static_argnums=2)
def _sample(family: Family, key: Key, batch: int) -> Prompt:
    return family.prompts(family.bits(key, batch))
