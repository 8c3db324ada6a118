"""`iclab reproduce` with every entry made small: a program of its own, so that a test can kill it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "papers"))

from shrunken import shrink

from iclab.cli import main

if __name__ == "__main__":
    shrink(pytest.MonkeyPatch())
    sys.exit(main(["reproduce", *sys.argv[1:]]))
