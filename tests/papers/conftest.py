"""The laboratory for the tests of entries."""

from __future__ import annotations

import pytest
from shrunken import shrink

from iclab.lab.entries import Lab
from iclab.sweeps.store import Store


@pytest.fixture(scope="module")
def small_lab(tmp_path_factory):
    """A laboratory in which every entry is small; the tests of a file share its trained models."""
    with pytest.MonkeyPatch.context() as patched:
        shrink(patched)
        yield Lab(Store(tmp_path_factory.mktemp("store")), "quick")
