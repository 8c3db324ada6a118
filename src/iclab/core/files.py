"""Read and write users' files whole; anything but a plain file or valid JSON is refused in one line."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

from iclab.core.errors import IclabError
from iclab.core.limits import memory_limit, size_words


def read_file(path: str | Path, name: str, error: type[IclabError] = IclabError) -> bytes:
    """The bytes of a file; folders, pipes, devices and files larger than memory are refused at once."""
    path = Path(path)
    try:
        info = path.stat()
        if stat.S_ISDIR(info.st_mode):
            raise error(f"{name} must be a file, got the folder {str(path)!r}")
        if not stat.S_ISREG(info.st_mode):
            raise error(f"{name} must be a plain file, got the pipe or device {str(path)!r}")
        if info.st_size > memory_limit():
            raise error(f"{name} must fit into memory, got {str(path)!r} of {size_words(info.st_size)}")
        return path.read_bytes()
    except FileNotFoundError:
        raise error(f"{name} must be an existing file, got {str(path)!r}") from None
    except (OSError, ValueError) as reason:
        raise error(f"{name} {str(path)!r} cannot be read: {getattr(reason, 'strerror', None) or reason}") from None


def read_json(content: bytes | str) -> Any:
    """The value of a JSON text; every fault is a ValueError, including nesting too deep to read."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file through a temporary neighbour, so that a reader never sees half of it."""
    path = Path(os.path.realpath(path)) if path.is_symlink() else path  # write the target, keep the link
    if path.exists() and not path.is_file():
        raise IclabError(f"cannot write {str(path)!r}: it is a folder, a device or a pipe, not a file")
    handle = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException as error:
        if handle is not None and os.path.exists(temporary):
            os.unlink(temporary)
        if not isinstance(error, OSError):
            raise
        raise IclabError(f"cannot write {str(path)!r}: {error.strerror or error}; name another path") from None
