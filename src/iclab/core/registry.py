"""The kinds that each part of a run may be: a class registers where it is defined; files and options name it.

    @spec(part="model")
    class KernelVote: ...            # --model kernel_vote, model.kind = "kernel_vote", and in checkpoints

Another package adds its classes by entry points of the groups in `GROUPS`. They are imported when all kinds are listed,
or when no registered class has the requested name.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata
from typing import Any

from iclab.core.errors import IclabError, SpecError, did_you_mean

GROUPS = {"model": "iclab.models", "prompts": "iclab.prompts", "embedding": "iclab.embeddings"}
"""The parts of a run that have kinds, and the entry points that add to them."""
ENTRIES = "iclab.papers"
"""The group of entry points that add figures, tables and claims."""
_KINDS: dict[str, dict[str, type]] = {part: {} for part in GROUPS}


def word(cls: type) -> str:
    """How files and options call a class: SoftmaxMLP is softmax_mlp."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()


def _folded(name: str) -> str:
    return name.replace("_", "").lower()


def enter(part: str, cls: type) -> None:
    """Add a class to the kinds of a part; a class defined again, as in a notebook, replaces its old version."""
    if part not in GROUPS:
        raise SpecError(f"part must be one of {', '.join(GROUPS)}, got {part!r}")
    other = _KINDS[part].get(_folded(cls.__name__))
    package = __name__.partition(".")[0]
    if other is not None and other.__module__.partition(".")[0] == package != cls.__module__.partition(".")[0]:
        raise SpecError(f"a {part} of your own must have a name of its own, got {cls.__name__!r}, which iclab has")
    _KINDS[part][_folded(cls.__name__)] = cls


def kinds(part: str) -> tuple[type, ...]:
    """Every class that a part may be, those of other packages included."""
    _load(GROUPS[part])
    return tuple(_KINDS[part].values())


def kind(part: str, name: Any, path: str) -> type:
    """The class of this name, whatever its case and underscores; `path` is what an error calls the field."""
    if isinstance(name, str) and _folded(name) in _KINDS[part]:
        return _KINDS[part][_folded(name)]
    known = {_folded(cls.__name__): cls for cls in kinds(part)}
    if not isinstance(name, str) or _folded(name) not in known:
        words = [word(cls) for cls in known.values()]
        raise SpecError(f"{path} must be one of {', '.join(words)}, got {name!r}{did_you_mean(name, words)}")
    return known[_folded(name)]


@cache
def _load(group: str) -> tuple[Any, ...]:
    """What the entry points of a group name, imported once."""
    loaded = []
    for point in metadata.entry_points(group=group):
        try:
            loaded.append(point.load())
        except Exception as error:  # a package may fail in any way while it is imported
            package = point.dist.name if point.dist is not None else "a package"
            raise IclabError(f"entry point {point.name!r} of {package} (group {group}) must be importable, got "
                             f"{point.value!r} ({type(error).__name__}: {error})") from None
    return tuple(loaded)


def added_entries() -> tuple[Any, ...]:
    """The figures, tables and claims that other packages add."""
    return _load(ENTRIES)
