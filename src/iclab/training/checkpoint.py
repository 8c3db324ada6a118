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
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from iclab.errors import CheckpointError, IclabError
from iclab.models import GatedAttention, LabelEmbedding
from iclab.prompts import Classification
from iclab.specs import canonical, from_json, to_json
from iclab.training.ensemble import Trained
from iclab.training.run import Run, Training
from iclab.training.sgd import begin

FORMAT = "iclab-checkpoint-1"
KINDS = {cls.__name__: cls for cls in (Run, Training, Classification, GatedAttention, LabelEmbedding)}


def save_checkpoint(path: str | Path, trained: Trained) -> None:
    """Write a checkpoint; the file appears whole or not at all."""
    tensors = _named({"params": trained.params, "optimizer": trained.optimizer})
    tensors |= {"steps": np.asarray(trained.steps), "loss": np.asarray(trained.loss)}
    if trained.probes is not None:
        tensors |= _named({"probes": trained.probes})
    tensors = {name: np.array(tensor, order="C") for name, tensor in tensors.items()}
    metadata = {"format": FORMAT, "run": json.dumps(to_json(trained.run)), "digest": _digest(tensors)}
    write_whole(Path(path), save(tensors, metadata=metadata))


def load_checkpoint(path: str | Path, run: Run | None = None) -> Trained:
    """Read a checkpoint back.

    `run` is needed only when its spec holds a user's function or array, which a file cannot; it must be the spec that
    was saved. Records of probes are kept as a plain dictionary of arrays.
    """
    path = Path(path)
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise CheckpointError(f"checkpoint must be an existing file, got {str(path)!r}") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"checkpoint {str(path)!r} cannot be read, truncated or not safetensors: {error}") \
            from None
    if metadata.get("format") != FORMAT:
        raise CheckpointError(f"checkpoint {str(path)!r} must have format {FORMAT!r}, got {metadata.get('format')!r}")
    if metadata.get("digest") != _digest(tensors):
        raise CheckpointError(f"checkpoint {str(path)!r} is damaged: its contents do not match their digest")
    saved = json.loads(metadata["run"])
    if run is None:
        try:
            run = from_json(saved, KINDS)
            matches = json.dumps(to_json(run)) == metadata["run"]
        except (IclabError, TypeError) as error:
            raise CheckpointError(f"checkpoint {str(path)!r} has a spec this version cannot rebuild ({error}); "
                                  "pass the run it was trained with") from None
        if not matches:
            raise CheckpointError(f"checkpoint {str(path)!r} was trained with a user's own function; "
                                  "pass the run it was trained with")
    elif canonical(run) != canonical(saved):
        raise CheckpointError(f"checkpoint {str(path)!r} was trained with another spec than the run given")
    shapes = jax.eval_shape(begin, run)
    try:
        params = _restored("params", shapes.params, tensors)
        optimizer = _restored("optimizer", shapes.optimizer, tensors)
    except KeyError as error:
        raise CheckpointError(f"checkpoint {str(path)!r} lacks the tensor {error}") from None
    probes = {name: tensor for name, tensor in tensors.items() if name.startswith("probes")} or None
    return Trained(run, params, optimizer, tensors["steps"], tensors["loss"], probes)


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
    except OSError as error:
        if handle is not None and os.path.exists(temporary):
            os.unlink(temporary)
        raise IclabError(f"cannot write {str(path)!r}: {error.strerror or error}") from None


def _named(tree: Any) -> dict[str, np.ndarray]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {_name(path): np.asarray(leaf) for path, leaf in leaves}


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")


def _restored(prefix: str, shapes: Any, tensors: dict[str, np.ndarray]) -> Any:
    leaves, structure = jax.tree_util.tree_flatten_with_path({prefix: shapes})
    return jax.tree.unflatten(structure, [tensors[_name(path)] for path, _ in leaves])[prefix]


def _digest(tensors: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(f"{name}{tensors[name].dtype}{tensors[name].shape}".encode())
        digest.update(tensors[name].tobytes())
    return digest.hexdigest()
