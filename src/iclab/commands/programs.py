"""XLA's compiled programs, kept beside the results so that the next run need not compile them again."""

from __future__ import annotations

import importlib
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from iclab.core.parallel import cores
from iclab.sweeps.store import Store

ZSTD = b"\x28\xb5\x2f\xfd"
"""First bytes of a file that JAX compressed with Zstandard; without that library it uses zlib."""


def keep_compiled_programs(store: Store) -> None:
    """Make JAX cache compiled programs in the store if it is local, has a printable path, and no cache is configured.

    Damaged programs are removed first: JAX would fail to read them, compile again, and never replace them.
    """
    import jax

    if store.files.root.isprintable() and store.files.local and jax.config.values["jax_compilation_cache_dir"] is None:
        folder = Path(store.files.root) / "xla"
        for name in remove_damaged(folder):
            store.files.note_damage("xla", name)
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


def remove_damaged(folder: Path) -> list[str]:
    """Remove the compiled programs in a folder that cannot be unpacked; returns their names."""
    paths = list(folder.glob("*-cache")) if folder.is_dir() else []
    with ThreadPoolExecutor(cores()) as pool:
        broken = [path for path, whole in zip(paths, pool.map(_is_whole, paths), strict=True) if not whole]
    for number, path in enumerate(broken):
        with suppress(OSError):  # a file that cannot be removed stays, and JAX recompiles its program
            if path.is_file() or path.is_symlink():
                path.unlink(missing_ok=True)
            else:
                path.rename(path.with_name(f"{path.name}.{time.time_ns()}-{number}.set-aside"))
    return [path.name for path in broken]


def _is_whole(path: Path) -> bool:
    """Whether a compiled program can be unpacked; the compressed format includes a checksum."""
    try:
        content = path.read_bytes() if path.is_file() else b""
        if not content.startswith(ZSTD):
            zlib.decompress(content)
        elif (zstd := _zstandard()) is not None:
            zstd.decompress(content)
    except Exception:  # each library raises its own types
        return False
    return True


def _zstandard() -> Any:
    for name in ("compression.zstd", "zstandard"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None
