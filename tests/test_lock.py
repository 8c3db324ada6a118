"""CI installs exactly what requirements.lock names, so the lock has to satisfy pyproject.toml."""

from __future__ import annotations

import tomllib
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
BROUGHT_BY_PIP = {"torch"}
"""PyTorch's CPU build is chosen by pip's settings, which a lock of versions cannot express."""


def unsatisfied(wanted: list[str], locked: list[str]) -> list[str]:
    """The requirements that no line of a lock satisfies."""
    pins = {canonicalize_name(pin.name): pin for pin in map(Requirement, locked)}
    missing = []
    for requirement in map(Requirement, wanted):
        pin = pins.get(canonicalize_name(requirement.name))
        if pin is None or not requirement.specifier.contains(next(iter(pin.specifier)).version, prereleases=True):
            missing.append(str(requirement))
    return missing


def lines(lock: str) -> list[str]:
    return [line for line in lock.splitlines() if line and not line.lstrip().startswith("#")]


def test_the_lock_satisfies_what_the_project_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    wanted = [*project["project"]["dependencies"], *chain(*extras.values()), *project["dependency-groups"]["ci"]]
    wanted = [line for line in wanted if Requirement(line).name not in BROUGHT_BY_PIP | {"iclab"}]
    assert not unsatisfied(wanted, lines((ROOT / "requirements.lock").read_text()))


@pytest.mark.parametrize("lock", [[], ["jax==0.7.0"], ["jaxlib==0.9.0"]])
def test_a_lock_that_is_too_old_or_lacks_a_package_is_noticed(lock):
    assert unsatisfied(["jax>=0.8"], lock) == ["jax>=0.8"]


def test_no_line_names_an_address_or_a_path():
    text = (ROOT / "requirements.lock").read_text()
    assert "://" not in text
    assert "file:" not in text
