"""Whether JAX can start here: what its environment variables say is judged before a command needs it."""

from __future__ import annotations

import os
import subprocess
import sys

from iclab.errors import IclabError

START = "import jax; jax.devices()"


def check_backend() -> None:
    """Refuse, in one line, environment variables with which JAX does not start."""
    flags = os.environ.get("XLA_FLAGS")
    # XLA ends the process over a flag that it does not know, so another process tries them first.
    if flags and "jax" not in sys.modules and not _starts(flags) and _starts(""):
        raise IclabError(f"XLA_FLAGS must be flags that XLA knows, got {flags!r}")
    try:
        import jax

        if os.environ.get("JAX_PLATFORMS"):
            jax.devices()
    except Exception as error:  # JAX raises many kinds, assertions among them
        given = ", ".join(f"{name}={value!r}" for name, value in os.environ.items() if name.startswith("JAX_"))
        raise IclabError(f"JAX must be able to start, got {given or 'no JAX_ variables'} ({error})") from None


def _starts(flags: str) -> bool:
    """Whether JAX starts in a process of its own with these flags."""
    return subprocess.run([sys.executable, "-c", START], capture_output=True, check=False,
                          env={**os.environ, "XLA_FLAGS": flags}).returncode == 0
