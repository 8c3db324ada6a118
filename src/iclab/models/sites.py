"""Sites: values inside a forward pass that have a name, so that they can be read and replaced from outside.

A model's `apply` passes a value through `site(name, value)` and goes on with what comes back:

    attention = site("attention", jax.nn.softmax(logits))

Where nobody watches, that is the value itself and the program the same as without. `iclab.models.intervened` has the
models that replace values, `iclab.probes.interventions` the functions to start with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from jaxtyping import Array, Float

from iclab.core.errors import require

TOKEN, READER, UNITS = "token", "reader", ("head", "neuron")
"""Axes with a meaning: tokens that are read, from the first of the prompt on; tokens that read them, the last ones of
the prompt, as the last layer computes the query's alone; heads and neurons. Others can have any name."""


class Site(NamedTuple):
    """A named value of a forward pass."""

    name: str
    layer: int
    """Counted from 0."""
    axes: tuple[str, ...]
    shape: tuple[int, ...]

    def size(self, *axes: str) -> int | None:
        """The length of the first axis with one of these names; none if there is no such axis."""
        return next((size for axis, size in zip(self.axes, self.shape, strict=True) if axis in axes), None)


Watcher = Callable[[Site, Array], Array]
"""Sees every site of a forward pass, and returns the value to go on with."""
_WATCHERS: ContextVar[tuple[Watcher, ...]] = ContextVar("watchers", default=())


def site(name: str, value: Float[Array, "*axes"], layer: int = 0, axes: Sequence[str] = (TOKEN,)) -> Any:
    """The value, or what an intervention puts in its place.

    Call it where the value is computed, in a Python loop over layers: inside `jax.jit`, `scan` or `vmap` of your own
    a value cannot be handed to another forward pass.
    """
    for watcher in _WATCHERS.get():
        require(len(axes) == value.ndim, f"axes of site {name!r}", tuple(axes),
                f"name each of the {value.ndim} axes of its value")
        value = watcher(Site(name, layer, tuple(axes), value.shape), value)
    return value


def watched() -> bool:
    """Whether anybody watches: then a model computes its sites one by one, as its definition does."""
    return bool(_WATCHERS.get())


@contextmanager
def watching(watcher: Watcher, *, alone: bool = False) -> Iterator[None]:
    """Let a watcher see all sites of the forward passes inside, before those that watch already; or instead of them."""
    token = _WATCHERS.set((watcher, *(() if alone else _WATCHERS.get())))
    try:
        yield
    finally:
        _WATCHERS.reset(token)


class Recorded(dict[tuple[str, int], tuple[Site, Array]]):
    """A watcher that keeps every value, by name and layer, and changes none."""

    def __call__(self, place: Site, value: Array) -> Array:
        self[place.name, place.layer] = place, value
        return value
