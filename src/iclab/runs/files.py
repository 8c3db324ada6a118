"""Content-addressed files in a local folder or at any fsspec URL: a file's name carries the hash of what is in it."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

import fsspec
from fsspec.implementations.local import LocalFileSystem

from iclab.errors import IclabError
from iclab.training.checkpoint import write_whole

DIGEST = 24


class Files:
    """A tree of files `folder/KEY-DIGEST.suffix`.

    A local file appears whole or not at all; elsewhere one call uploads it, and its digest tells if that was cut short.
    Nothing is ever changed: what is computed again has the same name and replaces itself.
    """

    def __init__(self, place: str | Path):
        self.place = str(place)
        try:
            self.system, self.root = fsspec.core.url_to_fs(self.place)
        except Exception as error:  # whatever the protocol's library raises
            raise IclabError(_unusable(self.place, error)) from None
        self.local = isinstance(self.system, LocalFileSystem)

    @property
    def address(self) -> str:
        """Where the files are, the same from every working directory."""
        return self.root if self.local else self.place

    def check(self) -> None:
        """Refuse a place that cannot be written, before any work is done."""
        probe = f"{self.root}/.iclab-write-test"
        try:
            self.system.makedirs(self.root, exist_ok=True)
            self.system.pipe_file(probe, b"")
            with suppress(FileNotFoundError):  # another process may have removed it
                self.system.rm_file(probe)
        except Exception as error:
            raise IclabError(_unusable(self.place, error)) from None

    def names(self, folder: str) -> list[str]:
        """Names of the files in a folder."""
        if not self.local:
            self.system.invalidate_cache()
        try:
            found = self.system.ls(f"{self.root}/{folder}", detail=False)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [name for name in (path.rsplit("/", 1)[-1] for path in found) if not name.startswith(".")]

    def put(self, folder: str, key: str, suffix: str, content: bytes) -> None:
        """Write `folder/KEY-DIGEST.suffix`."""
        path = f"{self.root}/{folder}/{key}-{digest(content)}.{suffix}"
        if self.local:
            write_whole(Path(path), content)
            return
        try:
            self.system.makedirs(f"{self.root}/{folder}", exist_ok=True)
            self.system.pipe_file(path, content)
        except Exception as error:
            raise IclabError(_unusable(self.place, error)) from None

    def get(self, folder: str, key: str) -> bytes | None:
        """What was put there for a key; None if there is nothing, or only damaged files."""
        for name in self.names(folder):
            if name.startswith(f"{key}-"):
                content = self.read(folder, name)
                if content is not None:
                    return content
        return None

    def read(self, folder: str, name: str) -> bytes | None:
        """The content of a file; None if it is gone or does not match its name."""
        try:
            content = self.system.cat_file(f"{self.root}/{folder}/{name}")
        except (FileNotFoundError, IsADirectoryError):
            return None
        except Exception as error:  # that it cannot be read does not make it damaged
            raise IclabError(f"store must be readable, got {self.place!r} ({error})") from None
        return content if name.split("-")[-1].split(".")[0] == digest(content) else None

    def remove(self, folder: str, name: str) -> None:
        """Take a file away, if it is still there."""
        with suppress(FileNotFoundError):
            self.system.rm_file(f"{self.root}/{folder}/{name}")


def digest(content: bytes) -> str:
    """The hash of some bytes, as file names carry it."""
    return hashlib.sha256(content).hexdigest()[:DIGEST]


def _unusable(place: str, error: Exception) -> str:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"store must be a folder or fsspec URL that can be written, got {place!r} ({reason})"
