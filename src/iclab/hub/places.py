"""Where shared models lie: a folder, any fsspec URL, or a repository of the Hugging Face Hub."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import fsspec
from fsspec.implementations.local import LocalFileSystem

from iclab.core.errors import IclabError, require
from iclab.core.files import read_file, write_whole

HUGGING_FACE = "hf://"


class Place(Protocol):
    """A place for a few files."""

    address: str

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if there is none."""

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write files in this order, each whole or not at all."""


def place_at(where: str | Path) -> Place:
    """The place of this path or URL."""
    require(isinstance(where, (str, os.PathLike)) and str(where).strip() != "", "where", where,
            "be a folder, an fsspec URL or hf://OWNER/NAME")
    return Repository(str(where)) if str(where).startswith(HUGGING_FACE) else Folder(str(where))


class Folder:
    """A folder on this machine or wherever fsspec reaches."""

    def __init__(self, where: str):
        self.address = where
        try:
            self.system, self.root = fsspec.core.url_to_fs(where)
        except Exception as error:  # whatever the protocol's library raises
            raise _refusal(where, "be a folder or an fsspec URL that can be reached", error) from None
        self.local = isinstance(self.system, LocalFileSystem)

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if there is none."""
        path = f"{self.root}/{name}"
        if self.local:
            return read_file(path, "where") if os.path.lexists(path) else None
        try:
            self.system.invalidate_cache()
            return self.system.cat_file(path)
        except FileNotFoundError:
            return None
        except Exception as error:
            raise _refusal(self.address, "be readable", error) from None

    def write(self, files: Mapping[str, bytes]) -> None:
        """One file after the other, each in one call."""
        for name, content in files.items():
            path = f"{self.root}/{name}"
            if self.local:
                write_whole(Path(path), content)
                continue
            try:
                self.system.makedirs(self.root, exist_ok=True)
                self.system.pipe_file(path, content)
            except Exception as error:
                raise _refusal(self.address, "be writable", error) from None


class Repository:
    """A repository of the Hugging Face Hub, `hf://OWNER/NAME`; a new one is private until its owner publishes it."""

    def __init__(self, where: str):
        self.address, self.name = where, where.removeprefix(HUGGING_FACE)
        require(re.fullmatch(r"[\w.-]+/[\w.-]+", self.name) is not None, "where", where, "be hf://OWNER/NAME")
        try:
            import huggingface_hub
        except ImportError:
            raise IclabError(f"{where} needs the package huggingface_hub: pip install '.[hub]' in a clone of "
                             "iclab") from None
        self.library: Any = huggingface_hub

    def read(self, name: str) -> bytes | None:
        """The content of a file, through the local cache of the hub's library."""
        try:
            return Path(self.library.HfApi().hf_hub_download(self.name, name)).read_bytes()
        except Exception as error:
            raise _refusal(self.address, f"be a repository with a readable {name}", error) from None

    def write(self, files: Mapping[str, bytes]) -> None:
        """All files in one commit."""
        added = [self.library.CommitOperationAdd(path_in_repo=name, path_or_fileobj=content)
                 for name, content in files.items()]
        try:
            api = self.library.HfApi()
            api.create_repo(self.name, exist_ok=True, private=True)
            api.create_commit(self.name, added, commit_message="A model trained with iclab")
        except Exception as error:
            raise _refusal(self.address, "be a repository that you may write", error) from None


def _refusal(where: str, rule: str, error: Exception) -> IclabError:
    reason = " ".join((getattr(error, "strerror", None) or str(error) or type(error).__name__).split())
    return IclabError(f"where must {rule}, got {where!r} ({reason})")
