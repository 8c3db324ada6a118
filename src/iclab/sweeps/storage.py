"""Content-addressed files in a local folder or at any fsspec URL: a file's name contains the hash of its content."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import fsspec
from fsspec.implementations.local import LocalFileSystem

from iclab.core.errors import IclabError
from iclab.core.files import write_whole

T = TypeVar("T")
DIGEST = 24
ASIDE = "set-aside"
"""The folder for foreign objects that occupied the path of a store file or folder."""
AT_ONCE = 16
"""Files read concurrently, since reading waits for the disk or the network."""


class Files:
    """A tree of files `folder/KEY-DIGEST.suffix`.

    Local writes are atomic; elsewhere one call uploads a file, and its digest reveals a truncated upload. Files are
    never modified: recomputing the same content rewrites the same name. `damage` lists files whose content does not
    match their name, and paths that are not files; `moved` lists where the latter are now.
    """

    def __init__(self, place: str | Path):
        self.place = str(place)
        self.damage: list[str] = []
        self.moved: list[str] = []
        try:
            os.fsencode(self.place)
            if "\0" in self.place:
                raise ValueError("a path has no null byte")
            self.system, self.root = fsspec.core.url_to_fs(self.place)
        except Exception as error:  # whatever the protocol's library raises
            raise IclabError(_unusable(self.place, error)) from None
        self.local = isinstance(self.system, LocalFileSystem)

    @property
    def address(self) -> str:
        """Where the files are, independent of the working directory."""
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
            paths = os.listdir(f"{self.root}/{folder}") if self.local else \
                self.system.ls(f"{self.root}/{folder}", detail=False)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except Exception as error:
            if self.local and not os.path.isdir(f"{self.root}/{folder}"):  # a dangling link
                return []
            raise IclabError(f"store must be readable, got {self.place!r} ({_reason(error)})") from None
        return [name for name in (path.rsplit("/", 1)[-1] for path in paths) if not name.startswith(".")]

    def put(self, folder: str, key: str, suffix: str, content: bytes) -> str:
        """Write `folder/KEY-DIGEST.suffix`, replacing damaged files of that key, and return its name."""
        name = f"{key}-{digest(content)}.{suffix}"
        path = f"{self.root}/{folder}/{name}"
        if self.local:
            self._make_room(folder, name)
            write_whole(Path(path), content)
        else:
            try:
                self.system.makedirs(f"{self.root}/{folder}", exist_ok=True)
                self.system.pipe_file(path, content)
            except Exception as error:
                raise IclabError(_unusable(self.place, error)) from None
        for broken in [entry for entry in self.damage if entry.startswith(f"{folder}/{key}-")]:
            if broken != f"{folder}/{name}":
                self.remove(folder, broken.removeprefix(f"{folder}/"))
        return name

    def get(self, folder: str, key: str, decode: Callable[[bytes], T | None]) -> T | None:
        """The value stored for a key; None if there is none, or only damaged files: those whose digest does not match
        their name, and those for which `decode` returns None."""
        for name in self.names(folder):
            if name.startswith(f"{key}-"):
                content = self.read(folder, name)
                value = None if content is None else decode(content)
                if value is not None:
                    return value
                if content is not None:
                    self.note_damage(folder, name)
        return None

    def read(self, folder: str, name: str) -> bytes | None:
        """The content of a file; None if it is gone or damaged."""
        path = f"{self.root}/{folder}/{name}"
        if self.local and not _is_file(path):
            if os.path.lexists(path):
                self._set_aside(folder, name)
            return None
        try:
            content = self.system.cat_file(path)
        except FileNotFoundError:
            return None
        except Exception as error:  # unreadable does not mean damaged
            raise IclabError(f"store must be readable, got {self.place!r} ({_reason(error)})") from None
        return self._whole(folder, name, content)

    def read_many(self, folder: str, names: Sequence[str]) -> dict[str, bytes | None]:
        """The contents of many files, read concurrently; None for those that are gone or damaged."""
        if self.local:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                return dict(zip(names, pool.map(lambda name: self.read(folder, name), names), strict=True))
        if not names:
            return {}
        paths = {name: f"{self.root}/{folder}/{name}" for name in names}
        contents = self.system.cat(list(paths.values()), on_error="return")
        by_name = {path.rsplit("/", 1)[-1]: content for path, content in contents.items()}
        for content in by_name.values():
            if isinstance(content, Exception) and not isinstance(content, FileNotFoundError):
                raise IclabError(f"store must be readable, got {self.place!r} ({_reason(content)})") from None
        return {name: None if isinstance(by_name[name], Exception) else self._whole(folder, name, by_name[name])
                for name in names}

    def remove(self, folder: str, name: str) -> None:
        """Remove a file if possible."""
        with suppress(OSError):
            self.system.rm_file(f"{self.root}/{folder}/{name}")

    def note_damage(self, folder: str, name: str) -> None:
        """Record that a file is damaged."""
        if f"{folder}/{name}" not in self.damage:
            self.damage.append(f"{folder}/{name}")

    def _whole(self, folder: str, name: str, content: bytes) -> bytes | None:
        if name.split("-")[-1].split(".")[0] == digest(content):
            return content
        self.note_damage(folder, name)
        return None

    def _make_room(self, folder: str, name: str) -> None:
        """Set aside anything that blocks the path of a file or of a folder above it."""
        parts = folder.split("/")
        for end in range(1, len(parts) + 1):
            above = "/".join(parts[:end])
            if os.path.lexists(f"{self.root}/{above}") and not os.path.isdir(f"{self.root}/{above}"):
                self._set_aside("", above)
        path = f"{self.root}/{folder}/{name}"
        if os.path.lexists(path) and not _is_file(path):
            self._set_aside(folder, name)

    def _set_aside(self, folder: str, name: str) -> None:
        """Record something that is not a file and move it out of the way, unless the store is read-only."""
        inside = f"{folder}/{name}".lstrip("/")
        self.note_damage(*inside.rsplit("/", 1)) if "/" in inside else self.damage.append(inside)
        target = f"{self.root}/{ASIDE}/{inside.replace('/', '-')}"
        number = 0
        while os.path.lexists(f"{target}.{number}"):
            number += 1
        with suppress(OSError):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.rename(f"{self.root}/{inside}", f"{target}.{number}")
            self.moved.append(f"{target}.{number}".removeprefix(f"{self.root}/"))


def _is_file(path: str) -> bool:
    """Whether there is a regular file, perhaps behind a link: not a folder, a pipe or a dangling link."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def digest(content: bytes) -> str:
    """The hash of some bytes, as used in file names."""
    return hashlib.sha256(content).hexdigest()[:DIGEST]


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _unusable(place: str, error: Exception) -> str:
    return f"store must be a folder or fsspec URL that can be written, got {place!r} ({_reason(error)})"
