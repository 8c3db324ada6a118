"""Check that JAX can start with the current environment variables, before a command needs it."""

from __future__ import annotations

import os
import subprocess
import sys

from iclab.core.errors import IclabError

START = "import jax; jax.devices()"


def check_backend() -> None:
    """Raise a one-line error if JAX cannot start with the current environment variables."""
    flags = os.environ.get("XLA_FLAGS")
    # XLA aborts the process on an unknown flag, so a subprocess tries the flags first.
    if flags and "jax" not in sys.modules and not _starts(flags) and _starts(""):
        raise IclabError(f"XLA_FLAGS must be flags that XLA knows, got {flags!r}")
    try:
        import jax

        if os.environ.get("JAX_PLATFORMS"):
            jax.devices()
    except Exception as error:  # JAX raises many types, AssertionError included
        variables = ", ".join(f"{name}={value!r}" for name, value in os.environ.items() if name.startswith("JAX_"))
        raise IclabError(f"JAX must be able to start, got {variables or 'no JAX_ variables'} ({error})") from None


def _starts(flags: str) -> bool:
    """Whether JAX starts in a subprocess with these flags."""
    return subprocess.run([sys.executable, "-c", START], capture_output=True, check=False,
                          env={**os.environ, "XLA_FLAGS": flags}).returncode == 0
