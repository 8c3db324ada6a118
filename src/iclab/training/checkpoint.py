"""Trained runs as safetensors files: weights, optimizer, records, and the spec that made them. Never pickle."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from iclab.errors import CheckpointError, IclabError
from iclab.models import GPT2, ChainAttention, ChainEmbedding, GatedAttention, LabelEmbedding, SoftmaxMLP
from iclab.prompts import Chain, Classification
from iclab.specs import canonical, from_json, to_json
from iclab.training.run import Run, Training
from iclab.training.sgd import begin
from iclab.training.trained import Trained, named

FORMAT = "iclab-checkpoint-2"
PARTS: dict[str, tuple[type, ...]] = {
    "model": (GatedAttention, SoftmaxMLP, GPT2, ChainAttention), "prompts": (Classification, Chain),
    "training": (Training,),
    "embedding": (LabelEmbedding, ChainEmbedding),
}
"""The classes that each part of a run may be, for files that name them."""
KINDS = {cls.__name__: cls for cls in (Run, *(cls for classes in PARTS.values() for cls in classes))}


def save_checkpoint(path: str | Path, trained: Trained) -> None:
    """Write a checkpoint; the file appears whole or not at all."""
    write_whole(Path(path), to_bytes(trained))


def to_bytes(trained: Trained, key: str | None = None) -> bytes:
    """A checkpoint as the bytes of its file; in a store it holds its key."""
    tensors = named({"params": trained.params, "optimizer": trained.optimizer})
    tensors |= {"steps": np.asarray(trained.steps), "loss": np.asarray(trained.loss)}
    tensors |= {f"probes/{name}": rows for name, rows in (trained.probes or {}).items()}
    tensors = {name: np.array(tensor, order="C") for name, tensor in tensors.items()}
    text = json.dumps(to_json(trained.run))
    metadata = {"format": FORMAT, "run": text, "digest": _digest(tensors, text), "key": key}
    # In one value, because safetensors writes several in no fixed order and equal runs must be equal files.
    return save(tensors, metadata={"iclab": json.dumps(metadata)})


def load_checkpoint(path: str | Path, run: Run | None = None) -> Trained:
    """Read a checkpoint back.

    `run` is needed only when its spec holds a user's function or array, which a file cannot; it must be the spec that
    was saved.
    """
    path = Path(path)
    if path.is_dir():
        raise CheckpointError(f"checkpoint must be a file, got the folder {str(path)!r}")
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise CheckpointError(f"checkpoint must be an existing file, got {str(path)!r}") from None
    except OSError as error:
        raise CheckpointError(f"checkpoint {str(path)!r} cannot be read: {error.strerror}") from None
    return from_bytes(content, run, str(path))


def from_bytes(content: bytes, run: Run | None = None, path: str = "in memory", key: str | None = None) -> Trained:
    """The trained run that the bytes of a checkpoint hold, under this `key` if one is given; `path` is for errors."""
    try:
        tensors = load(content)
        header = int.from_bytes(content[:8], "little")
        metadata = json.loads(json.loads(content[8:8 + header]).get("__metadata__", {}).get("iclab", "{}"))
    except (SafetensorError, ValueError) as error:
        raise CheckpointError(f"checkpoint {path!r} cannot be read, truncated or not safetensors: {error}") from None
    if metadata.get("format") != FORMAT:
        raise CheckpointError(f"checkpoint {path!r} must have format {FORMAT!r}, got {metadata.get('format')!r}")
    if "run" not in metadata or metadata.get("digest") != _digest(tensors, metadata["run"]):
        raise CheckpointError(f"checkpoint {path!r} is damaged: its contents do not match their digest")
    if key is not None and metadata.get("key") != key:
        raise CheckpointError(f"checkpoint {path!r} must have the key {key!r}, got {metadata.get('key')!r}")
    saved = json.loads(metadata["run"])
    if run is None:
        try:
            run = from_json(saved, KINDS)
            matches = json.dumps(to_json(run)) == metadata["run"]
        except (IclabError, TypeError) as error:
            raise CheckpointError(f"checkpoint {path!r} has a spec this version cannot rebuild ({error}); "
                                  "pass the run it was trained with") from None
        if not matches:
            raise CheckpointError(f"checkpoint {path!r} was trained with a user's own function; "
                                  "pass the run it was trained with")
    elif canonical(run) != canonical(saved):
        raise CheckpointError(f"checkpoint {path!r} was trained with another spec than the run given")
    shapes = _shapes(run)
    try:
        params = _restored("params", shapes.params, tensors)
        optimizer = _restored("optimizer", shapes.optimizer, tensors)
        steps, loss = tensors["steps"], tensors["loss"]
    except KeyError as error:
        raise CheckpointError(f"checkpoint {path!r} lacks the tensor {error}") from None
    probes = {name.removeprefix("probes/"): rows for name, rows in tensors.items() if name.startswith("probes/")}
    return Trained(run, params, optimizer, steps, loss, probes or None)


_SHAPES: dict[Any, Any] = {}


def _shapes(run: Run) -> Any:
    """What a state of this run looks like; the same for all runs of a structure."""
    structure = jax.tree.structure(run)
    if structure not in _SHAPES:
        _SHAPES[structure] = jax.eval_shape(lambda: begin(run))
    return _SHAPES[structure]


def write_whole(path: Path, content: bytes) -> None:
    """Write a file through a temporary neighbour, so that a reader never sees half of it."""
    handle = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException as error:
        if handle is not None and os.path.exists(temporary):
            os.unlink(temporary)
        if not isinstance(error, OSError):
            raise
        raise IclabError(f"cannot write {str(path)!r}: {error.strerror or error}") from None


def _restored(prefix: str, shapes: Any, tensors: dict[str, np.ndarray]) -> Any:
    return jax.tree.unflatten(jax.tree.structure(shapes), [tensors[name] for name in named({prefix: shapes})])


def _digest(tensors: dict[str, np.ndarray], run: str) -> str:
    digest = hashlib.sha256(run.encode())
    for name in sorted(tensors):
        digest.update(f"{name}{tensors[name].dtype}{tensors[name].shape}".encode())
        digest.update(tensors[name].tobytes())
    return digest.hexdigest()
