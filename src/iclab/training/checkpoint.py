"""Trained runs as safetensors files: weights, optimizer, records, and the spec that made them. Never pickle."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from iclab.core import registry
from iclab.core.errors import CheckpointError, SpecError, require, shown
from iclab.core.files import read_file, read_json, write_whole
from iclab.core.identity import UnknownClass, canonical, from_json, to_json
from iclab.core.parse import hint_of, typed
from iclab.training.run import Run, Training
from iclab.training.sgd import Setup, begin
from iclab.training.size import check_size
from iclab.training.trained import Trained, named

FORMAT = "iclab-checkpoint-2"
PASS_THE_RUN = "in Python, pass the run it was trained with: load_checkpoint(path, run) or pull(where, run)"


def save_checkpoint(path: str | Path, trained: Trained) -> None:
    """Write a checkpoint; the file appears whole or not at all."""
    require(isinstance(trained, Trained), "trained", type(trained).__name__,
            "be a trained run, after the path: save_checkpoint(path, trained)")
    write_whole(Path(path), to_bytes(trained))


def to_bytes(trained: Trained, key: str | None = None) -> bytes:
    """A checkpoint as the bytes of its file; in a store it holds its key."""
    tensors = named({"params": trained.params, "optimizer": trained.optimizer})
    tensors |= {"steps": np.asarray(trained.steps), "loss": np.asarray(trained.loss)}
    tensors |= {f"probes/{name}": rows for name, rows in (trained.probes or {}).items()}
    tensors = {name: np.array(tensor, order="C") for name, tensor in tensors.items()}
    text = json.dumps(to_json(trained.run))
    metadata = {"format": FORMAT, "run": text, "digest": _digest(tensors, text), "key": key}
    # In one value: safetensors writes several in no fixed order, and equal runs must give equal files.
    return save(tensors, metadata={"iclab": json.dumps(metadata)})


def load_checkpoint(path: str | Path, run: Run | None = None) -> Trained:
    """Read a checkpoint back.

    `run` is needed only when its spec holds a user's function or array, which a file cannot; it must be the spec that
    was saved.
    """
    return from_bytes(read_file(path, "checkpoint", CheckpointError), run, str(path))


def from_bytes(content: bytes, run: Run | None = None, path: str = "in memory", key: str | None = None) -> Trained:
    """The trained run that the bytes of a checkpoint hold, under this `key` if one is given; `path` is for errors."""
    try:
        tensors = load(content)
        header = int.from_bytes(content[:8], "little")
        metadata = read_json((read_json(content[8:8 + header]).get("__metadata__") or {}).get("iclab", "{}"))
        # A digest can be forged, so everything else is checked too.
        form, text, digest = (metadata.get(name) for name in ("format", "run", "digest"))
    except (SafetensorError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(f"checkpoint {path!r} cannot be read, truncated or not safetensors: {error}") from None
    if form != FORMAT:
        raise CheckpointError(f"checkpoint {path!r} must have format {FORMAT!r}, got {shown(form)}")
    if not isinstance(text, str) or digest != _digest(tensors, text):
        raise CheckpointError(f"checkpoint {path!r} is damaged: its contents do not match their digest")
    if key is not None and metadata.get("key") != key:
        raise CheckpointError(f"checkpoint {path!r} must have the key {key!r}, got {shown(metadata.get('key'))}")
    try:
        run = _rebuilt(text, path) if run is None else _same(run, text, path)
        check_size(run)
        return _restored(run, tensors)
    except SpecError as error:
        raise CheckpointError(f"checkpoint {path!r} does not hold what its spec says: {error}") from None


def _rebuilt(text: str, path: str) -> Run:
    """The run that a checkpoint's spec describes."""
    try:
        classes = (Run, Training, *(cls for part in registry.GROUPS for cls in registry.kinds(part)))
        run = from_json(read_json(text), {cls.__name__: cls for cls in classes})
        _check_parts(run)
        matches = json.dumps(to_json(run)) == text
    except UnknownClass as error:
        raise CheckpointError(f"checkpoint {path!r} needs the class {error}, which is not known here; import the "
                              "module that defines it (in a command: --import MODULE)") from None
    except Exception as error:  # the specs' checks may fail in any way on a bad file
        raise CheckpointError(f"checkpoint {path!r} has a spec this version cannot rebuild ({error}); {PASS_THE_RUN}"
                              ) from None
    if not matches:
        raise CheckpointError(f"checkpoint {path!r} was trained with a user's own function; {PASS_THE_RUN}")
    return run


def _check_parts(spec: Any) -> None:
    """Every field of a spec from a file holds a value of its type, every part a spec of one of its classes."""
    for field in dataclasses.fields(spec):
        value = getattr(spec, field.name)
        if field.name in registry.GROUPS or field.name == "training":
            classes = (Training,) if field.name == "training" else registry.kinds(field.name)
            require(type(value) in classes, field.name, type(value).__name__,
                    f"be one of {', '.join(cls.__name__ for cls in classes)}")
            _check_parts(value)
        else:
            typed(hint_of(spec, field.name), value, field.name)


def _same(run: Run, text: str, path: str) -> Run:
    """The run given, which must be the one that was saved."""
    try:
        same = canonical(run) == canonical(read_json(text))
    except (ValueError, OverflowError, RecursionError):
        same = False
    if not same:
        raise CheckpointError(f"checkpoint {path!r} was trained with another spec than the run given")
    return run


_SHAPES: dict[Any, Any] = {}


def _shapes(run: Run) -> Any:
    """What a state of this run looks like; the same for all runs of a structure."""
    structure = jax.tree.structure(Setup.of(run))
    if structure not in _SHAPES:
        _SHAPES[structure] = jax.eval_shape(lambda: begin(run))
    return _SHAPES[structure]


def _restored(run: Run, tensors: dict[str, np.ndarray]) -> Trained:
    """The trained run, once every tensor has the name, shape and type that its spec requires."""
    state = _shapes(run)
    expected = named({"params": state.params, "optimizer": state.optimizer})
    probes = {name.removeprefix("probes/"): rows for name, rows in tensors.items() if name.startswith("probes/")}
    known = {*expected, "steps", "loss", *(f"probes/{name}" for name in probes)}
    for name in sorted(known ^ tensors.keys()):
        require(name in tensors, f"the tensor {name}", "none", "be there")
        require(name in known, "a tensor", name, f"be one of {', '.join(sorted(known))}")
    floats = {tensors[name].dtype for name, leaf in expected.items() if np.issubdtype(leaf.dtype, np.floating)}
    require(len(floats) <= 1 and floats <= {np.dtype(np.float32), np.dtype(np.float64)}, "the weights' types",
            sorted(map(str, floats)), "be float32 or float64, all the same")
    for name, leaf in expected.items():
        require(tensors[name].shape == leaf.shape, name, tensors[name].shape, f"have shape {leaf.shape}")
        kind = tensors[name].dtype
        same = kind.kind == leaf.dtype.kind and kind.itemsize in (leaf.dtype.itemsize, 4, 8)
        require(same, name, str(kind), f"be {leaf.dtype}")
    _check_records(run, tensors["steps"], tensors["loss"], probes)
    params, optimizer = (jax.tree.unflatten(jax.tree.structure(part), [tensors[name] for name in named({prefix: part})])
                         for prefix, part in (("params", state.params), ("optimizer", state.optimizer)))
    return Trained(run, params, optimizer, tensors["steps"], tensors["loss"], probes or None)


def _check_records(run: Run, steps: np.ndarray, loss: np.ndarray, probes: dict[str, np.ndarray]) -> None:
    """Records have one loss and one row per probe at increasing steps, up to the run's last one."""
    require(steps.ndim == 1 and len(steps) > 0 and steps.dtype.kind in "iu", "steps",
            f"{steps.dtype} of shape {steps.shape}", "be a list of whole numbers")
    ends = [0, *steps.tolist()]
    require(all(a < b for a, b in pairwise(ends)), "steps", steps.tolist(), "begin above 0 and grow")
    require(ends[-1] <= run.training.steps, "steps", ends[-1], f"end by training.steps = {run.training.steps}")
    one_each = loss.shape == steps.shape and loss.dtype in (np.float32, np.float64)
    require(one_each, "loss", f"{loss.dtype} of shape {loss.shape}", f"be {len(steps)} numbers, one per record")
    for name, rows in probes.items():
        require(rows.shape[:1] == steps.shape, f"probes/{name}", rows.shape, f"have {len(steps)} rows")


def _digest(tensors: dict[str, np.ndarray], run: str) -> str:
    digest = hashlib.sha256(run.encode())
    for name in sorted(tensors):
        digest.update(f"{name}{tensors[name].dtype}{tensors[name].shape}".encode())
        digest.update(tensors[name].tobytes())
    return digest.hexdigest()
