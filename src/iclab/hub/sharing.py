"""Share trained models: three files in a folder, of which the last one written says that all are there.

    README.md            the model card
    model.safetensors    the checkpoint
    config.json          the spec, how training ended, and the digest of the checkpoint
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from iclab.core.errors import CheckpointError, IclabError, require, shown
from iclab.core.files import read_json
from iclab.core.identity import to_json
from iclab.hub.model_card import LIBRARY, model_card
from iclab.hub.places import Folder, Place, Repository, place_at
from iclab.probes.error_rate import ErrorRate
from iclab.training import Run, Trained
from iclab.training.checkpoint import from_bytes, to_bytes

CARD, MODEL, CONFIG = "README.md", "model.safetensors", "config.json"
SHARED = "iclab-model-1"
"""The format of a shared model, as its config names it."""


def push(trained: Trained, where: str | Path, *, errors: Mapping[str, ErrorRate | float] | None = None) -> None:
    """Share a trained run in a folder, at any fsspec URL, or in the Hugging Face repository `hf://OWNER/NAME`.

    The model card names `errors` that you measured, each by what it was measured on:
    `push(trained, where, errors={"60 % flipped": measure_error(trained, attack)})`.
    """
    require(isinstance(trained, Trained), "trained", type(trained).__name__,
            "be a trained run, before the place: push(trained, where)")
    errors = dict(errors or {})
    for name, rate in errors.items():
        require(isinstance(rate, (ErrorRate, int, float)), f"errors[{name!r}]", rate, "be a number or an ErrorRate")
    place = place_at(where)
    if isinstance(place, Folder):
        _check_room(place)
    checkpoint = to_bytes(trained)
    # Not the path of a folder: it says something about its owner, and another reader has another one.
    address = place.address if isinstance(place, Repository) else "THIS_FOLDER"
    card = model_card(trained, address, errors, checkpoint)
    config = json.dumps(_config(trained, errors, checkpoint), indent=2, allow_nan=False)
    place.write({CARD: card.encode(), MODEL: checkpoint, CONFIG: config.encode()})


def pull(where: str | Path, run: Run | None = None) -> Trained:
    """The trained run that was pushed there.

    `run` is needed only when its spec holds a user's function or array, as with `load_checkpoint`.
    """
    place = place_at(where)
    content = place.read(CONFIG)
    if content is None:
        raise CheckpointError(f"where must hold a model that was pushed whole, got {place.address!r} without {CONFIG}")
    config = _read_config(content)
    if config is None:
        raise CheckpointError(f"where must hold a model that iclab pushed, got {place.address!r} with another {CONFIG}")
    checkpoint = place.read(MODEL)
    # Not of the card, which its author may have edited since.
    if checkpoint is None or hashlib.sha256(checkpoint).hexdigest() != config.get("sha256"):
        raise CheckpointError(f"where must hold a model that was pushed whole, got {place.address!r} with a {MODEL} "
                              f"other than its {CONFIG} says; push it again")
    return from_bytes(checkpoint, run, f"{place.address.rstrip('/')}/{MODEL}")


def _check_room(place: Place) -> None:
    """Refuse a folder in which another file would be overwritten than those of an earlier push, which wrote its card
    first."""
    card = place.read(CARD)
    if card is None:
        taken = [name for name in (MODEL, CONFIG) if place.read(name) is not None]
    else:
        taken = [] if LIBRARY.encode() in card.splitlines() else [CARD]
    if taken:
        raise IclabError(f"where must be a folder without another {taken[0]}, got {shown(place.address)}")


def _config(trained: Trained, errors: Mapping[str, ErrorRate | float], checkpoint: bytes) -> dict[str, Any]:
    from iclab import __version__

    loss = float(trained.loss[-1])
    return {"format": SHARED, "iclab": __version__, "sha256": hashlib.sha256(checkpoint).hexdigest(),
            "steps": int(trained.steps[-1]), "loss": loss if math.isfinite(loss) else None, "status": trained.status,
            "errors": {name: _plain(rate) for name, rate in errors.items()}, "run": to_json(trained.run)}


def _plain(rate: ErrorRate | float) -> Any:
    if isinstance(rate, ErrorRate):
        return {"error": rate.error, "low": rate.low, "high": rate.high, "prompts": rate.prompts}
    return float(rate)


def _read_config(content: bytes) -> dict[str, Any] | None:
    """The config, if it is one of ours."""
    try:
        config = read_json(content)
    except ValueError:
        return None
    return config if isinstance(config, dict) and config.get("format") == SHARED else None
