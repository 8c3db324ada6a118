"""Rows of measurements in a store: small files that processes add concurrently, merged from time to time.

A file is `results/TRIAL-DIGEST.parquet`, named after the trial of its first row; a renamed file is rejected.
Merging writes the rows of many files into one and only then removes the originals: a process that is killed in
between, or merges concurrently with another, may duplicate rows but loses none. A trial with several rows counts once.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import polars as pl

from iclab.core.errors import IclabError
from iclab.sweeps.storage import Files

FOLDER = "results"
RESULT_FILE = re.compile(r"[0-9a-f]{24}-[0-9a-f]{24}\.parquet")
MERGE_ABOVE = 64
"""More files than this are merged into one."""
LARGE = 2**23
"""Files of at least this many bytes are not merged again."""


class Rows:
    """The result files of a store, each read once. Threads may share it."""

    def __init__(self, files: Files):
        self.files, self._lock = files, threading.RLock()
        self._frames: list[pl.DataFrame] = []
        self._read: dict[str, int] = {}
        """Size in bytes of each file read so far."""
        self._by_trial: dict[str, dict[str, Any]] = {}
        self._counted = 0
        self._added: list[str] = []

    def add(self, rows: Sequence[dict[str, Any]]) -> None:
        """Store rows; each has its `trial`."""
        name = self._put(pl.DataFrame(list(rows), infer_schema_length=None))
        with self._lock:
            self._added.append(name)
            if len(self._added) >= MERGE_ABOVE:
                names, self._added = self._added, []
                self._merge(names)

    def all(self) -> list[dict[str, Any]]:
        """Every row of every file, including duplicates of a trial."""
        with self._lock:
            self._update()
            return [row for frame in self._frames for row in frame.to_dicts()]

    def by_trial(self) -> dict[str, dict[str, Any]]:
        """The row of every trial measured so far; a failure counts only while there is no success."""
        with self._lock:
            self._update()
            for frame in self._frames[self._counted:]:
                for row in frame.iter_rows(named=True):
                    if self._by_trial.get(row["trial"], {"status": "failed"})["status"] == "failed":
                        self._by_trial[row["trial"]] = row
            self._counted = len(self._frames)
            return self._by_trial

    def damaged(self) -> list[str]:
        """Result files that cannot be read or do not match their names."""
        with self._lock:
            self._update()
            return sorted(self._listed() - self._read.keys())

    def tidy(self, trials: Collection[str | None] = ()) -> None:
        """Remove damaged files of these trials, whose rows have been recomputed; merge the rest if there are many."""
        with self._lock:
            for name in self.damaged():
                if name.split("-")[0] in trials:
                    self.files.remove(FOLDER, name)
            small = [name for name, size in self._read.items() if size < LARGE]
            if len(small) > MERGE_ABOVE:
                self._merge(small, self._frames if len(small) == len(self._read) else None)

    def _listed(self) -> set[str]:
        return {name for name in self.files.names(FOLDER) if RESULT_FILE.fullmatch(name)}

    def _update(self) -> None:
        """Read new files."""
        for _ in range(100):
            listed = self._listed()
            if not self._read.keys() <= listed:  # files were merged or removed: start over
                self._frames, self._read, self._by_trial, self._counted = [], {}, {}, 0
            contents = self.files.read_many(FOLDER, sorted(listed - self._read.keys()))
            whole = {name: content for name, content in contents.items() if content is not None}
            for names, frame in self._parsed(whole):
                self._frames.append(frame)
                self._read |= {name: len(whole[name]) for name in names}
            if (contents.keys() - whole.keys()) <= self._listed():
                return  # otherwise another process merged files in the meantime: read again
        raise IclabError(f"store must not keep changing while it is read, got {self.files.place!r}")

    def _parsed(self, contents: dict[str, bytes]) -> Iterable[tuple[list[str], pl.DataFrame]]:
        """The rows of these files, read in one call per schema: several times faster than one by one."""
        by_schema: dict[str, list[str]] = {}
        for name, content in contents.items():
            try:
                schema = str(pl.read_parquet_schema(io.BytesIO(content)))
            except Exception:  # polars raises many types
                self.files.note_damage(FOLDER, name)
                continue
            by_schema.setdefault(schema, []).append(name)
        for names in by_schema.values():
            yield from self._parsed_alike(names, contents)

    def _parsed_alike(self, names: list[str], contents: dict[str, bytes]) -> Iterable[tuple[list[str], pl.DataFrame]]:
        try:
            frame = pl.read_parquet([contents[name] for name in names])
            good = "status" in frame.columns and {name.split("-")[0] for name in names} <= set(frame["trial"])
        except Exception:
            good = False
        if good:
            yield names, frame
        elif len(names) == 1:
            self.files.note_damage(FOLDER, names[0])
        else:  # find the bad ones
            half = len(names) // 2
            yield from self._parsed_alike(names[:half], contents)
            yield from self._parsed_alike(names[half:], contents)

    def _put(self, frame: pl.DataFrame) -> str:
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        return self.files.put(FOLDER, frame["trial"][0], "parquet", buffer.getvalue())

    def _merge(self, names: list[str], frames: list[pl.DataFrame] | None = None) -> None:
        """Merge files into one, using `frames` if already read. A read-only store is left unchanged."""
        if frames is None:
            contents = self.files.read_many(FOLDER, names)
            parts = list(self._parsed({name: content for name, content in contents.items() if content is not None}))
            names, frames = [name for part, _ in parts for name in part], [frame for _, frame in parts]
        if not frames:
            return
        try:
            merged = self._put(pl.concat(frames, how="diagonal_relaxed").unique(maintain_order=True))
            for name in names:
                if name != merged:
                    self.files.remove(FOLDER, name)
        except (IclabError, OSError):
            return
