"""How bad input must be refused: exit code 2, one line, nothing left behind."""

from __future__ import annotations

import contextlib
import io
import os
import re

from iclab.cli import main

LONGEST = 2100


def outcome(arguments):
    """Exit code, standard output and standard error of a command; its exceptions are not caught."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return code, out.getvalue(), err.getvalue()


def refused(arguments, message=""):
    """Check that a command refuses its arguments as it should, with a message that matches `message`."""
    before = sorted(os.listdir())
    code, out, err = outcome(arguments)
    shown = [argument[:80] for argument in arguments]
    assert code == 2, f"{shown} was accepted, {code}: {out[:200]}{err}"
    assert err.startswith("iclab: "), f"{shown}: {err}"
    assert err.count("\n") == 1, f"{shown}: more than a line: {err}"
    assert err.endswith("\n"), shown
    assert len(err) < LONGEST, f"{shown}: a line of {len(err)} characters"
    assert "Traceback" not in err, shown
    assert re.search(message, err), f"{shown}: {message!r} is not in {err!r}"
    assert sorted(os.listdir()) == before, f"{shown} left {set(os.listdir()) - set(before)}"
