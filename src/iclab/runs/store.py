"""Finished work kept on disk: a run is found again by the hash of its spec and of the code that computes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import jax

from iclab.errors import IclabError
from iclab.specs import canonical, to_json
from iclab.training import Run, Trained, load_checkpoint, save_checkpoint, train_many
from iclab.training.checkpoint import write_whole
from iclab.training.ensemble import Progress


@cache
def code_fingerprint(*folders: str) -> str:
    """Hash of the source below these folders of the package (all of it when none is named) and of what it runs on."""
    root = Path(__file__).resolve().parents[1]
    versions = [metadata.version(name) for name in ("jax", "numpy", "optax")]
    digest = hashlib.sha256(" ".join(versions).encode())
    files = [file for folder in folders for file in (root / folder).rglob("*.py")] if folders else root.rglob("*.py")
    for file in sorted([*files, root / "specs.py"]):
        digest.update(file.relative_to(root).as_posix().encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def run_id(run: Run) -> str:
    """Hash of a run's spec, seeds, and the code that trains it."""
    code = code_fingerprint("prompts", "models", "training")
    return hashlib.sha256(f"{canonical(run)}{code}{_precision()}".encode()).hexdigest()[:24]


def _precision() -> str:
    return "float64" if jax.config.values["jax_enable_x64"] else "float32"


class Store:
    """A folder of finished runs and measurements. A damaged file counts as absent; files appear whole or not at all."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)

    def run_path(self, run: Run) -> Path:
        """Where a run's checkpoint is or would be."""
        name = run_id(run)
        return self.folder / "runs" / name[:2] / f"{name}.safetensors"

    def find(self, run: Run) -> Trained | None:
        """The finished run, if the store has it undamaged."""
        path = self.run_path(run)
        if not path.exists():
            return None
        try:
            return load_checkpoint(path, run)
        except IclabError:
            return None

    def train(self, runs: Sequence[Run], progress: Progress | None = None) -> list[Trained]:
        """Train what the store does not have, keep each run as it finishes, return all in order."""
        found = [self.find(run) for run in runs]
        missing = [i for i, trained in enumerate(found) if trained is None]
        if missing:
            fresh = train_many([runs[i] for i in missing], progress=progress,
                               finished=lambda _, trained: save_checkpoint(self.run_path(trained.run), trained))
            for i, trained in zip(missing, fresh, strict=True):
                found[i] = trained
        return found  # type: ignore[return-value]

    def recall(self, name: str, ingredients: Any, compute: Callable[[], Any]) -> Any:
        """A JSON result computed from `ingredients`, remembered while neither they nor the package's code change."""
        text = json.dumps(to_json(ingredients), sort_keys=True)
        digest = hashlib.sha256(f"{name}{text}{code_fingerprint()}{_precision()}".encode()).hexdigest()[:24]
        path = self.folder / "measurements" / f"{name}-{digest}.json"
        try:
            kept = json.loads(path.read_text())
            if kept["sha256"] == _sha256(kept["value"]):
                return kept["value"]
        except (OSError, ValueError, KeyError, TypeError):
            pass
        value = json.loads(json.dumps(compute()))
        write_whole(path, json.dumps({"sha256": _sha256(value), "value": value}).encode())
        return value


def _sha256(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def check_writable(folder: str | Path) -> None:
    """Refuse a folder that cannot be written before any work is done."""
    probe = Path(folder) / ".iclab-write-test"
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise IclabError(f"out must be a folder that can be written, got {str(folder)!r} ({error.strerror})") from None
