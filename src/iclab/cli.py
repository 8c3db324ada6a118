"""The command line: `iclab COMMAND`. Each command is a module of `iclab.commands`, imported when it is called."""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from contextlib import suppress

from iclab.commands import COMMANDS

LONGEST = 2000
"""Longest error message shown, in characters; it may quote an option's value of any length."""
USAGE = """usage: iclab COMMAND [OPTIONS]

A laboratory for the theory of in-context learning.

commands:
{commands}

`iclab COMMAND --help` explains a command."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; bad input is one line on standard error and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        return _run(arguments)
    except BrokenPipeError:  # the reader closed the pipe, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.filename is not None or error.errno not in (errno.ENOSPC, errno.EBADF, errno.EIO):
            raise
        return _fail(f"standard output must be writable ({error.strerror})")


def _run(arguments: list[str]) -> int:
    if sys.stdout is None:  # closed by the caller: discard the output
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE.format(commands="\n".join(f"  {name:10} {text}" for name, text in COMMANDS.items())), flush=True)
        return 0
    if arguments[0] == "--version":
        from iclab import __version__

        print(__version__)
        return 0
    name, *rest = arguments
    if name not in COMMANDS:
        from iclab.core.errors import did_you_mean

        return _fail(f"command must be one of {', '.join(COMMANDS)}, got {name!r}{did_you_mean(name, COMMANDS)}")
    from iclab.core.errors import IclabError

    _write_any_text()
    try:
        importlib.import_module("iclab.commands.backend").check_backend()
        importlib.import_module(f"iclab.commands.{name}").main(rest)
        sys.stdout.flush()
    except IclabError as error:
        return _fail(" ".join(str(error).split()))
    except OSError:
        raise
    except Exception as error:
        if not isinstance(error, MemoryError) and "RESOURCE_EXHAUSTED" not in str(error):
            raise
        reason = " ".join(str(error).split()) or "MemoryError"
        return _fail(f"the work must fit into memory, but memory ran out: {reason}")
    except KeyboardInterrupt as stop:
        print(f"iclab: interrupted. {stop}".rstrip(), file=sys.stderr)
        return 130
    return 0


def _write_any_text() -> None:
    """Print undecodable text, such as a path of arbitrary bytes, with escapes instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _fail(message: str) -> int:
    shown = message if len(message) <= LONGEST else message[:LONGEST] + "..."
    with suppress(OSError):  # standard error may be full or closed
        print(f"iclab: {shown}", file=sys.stderr, flush=True)
    return 2


if __name__ == "__main__":
    sys.exit(main())
