"""The laboratory for the tests of entries."""

from __future__ import annotations

import pytest

from iclab.lab.laboratory import Lab
from iclab.sweeps.store import Store


@pytest.fixture(scope="module")
def small_lab(tmp_path_factory):
    """A laboratory at the tiny scale; the tests of a file share its trained models."""
    return Lab(Store(tmp_path_factory.mktemp("store")), "tiny")
