"""The premises of a theorem at the settings that were judged, open constants decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iclab.core.errors import IclabError
from iclab.lab.claims import Premise
from iclab.theory import theory_of
from iclab.theory.statements import Condition

Spec = tuple[Any, Any]
"""A training run and a test."""


def premises_of(paper: str, theorems: Sequence[str], specs: Sequence[Spec], *, accuracy: float = 0.1,
                constant: float = 1.0, measured: Sequence[str] = ()) -> list[Premise]:
    """The premises of these theorems for all specs, each once, for the spec that is least inside: met if all specs meet
    it.

    An open constant c counts as met if the fitted one is, or if none was fitted, if every c up to `constant` is. Left
    out are those whose name contains a word of `measured`: they are what the part measures.
    """
    if theorems and not specs:
        raise IclabError(f"specs of {paper}: {', '.join(theorems)} must be at least one, got none")
    worst: dict[str, tuple[tuple[bool, float], Premise]] = {}
    for run, test in specs:
        stated = {statement.place: statement for statement in theory_of(run, test, accuracy=accuracy)
                  if statement.paper == paper}
        for place in theorems:
            if place not in stated:
                raise IclabError(f"{paper}: {place} says nothing about a {type(run.model).__name__} of these settings")
            for condition in stated[place].premises:
                if any(word in condition.name for word in measured):
                    continue
                rank, premise = _decided(condition, constant)
                key = f"{premise.name} {condition.required[:2]}"
                if key not in worst or rank < worst[key][0]:
                    worst[key] = rank, premise
    return [premise for _, premise in worst.values()]


def _decided(condition: Condition, constant: float) -> tuple[tuple[bool, float], Premise]:
    """The premise, and a rank that is lower the less it is met."""
    name, required, actual, met, room, fitted, margin = condition
    if room is None:
        return (bool(met), margin), Premise(name, required, actual, bool(met))
    enough = bool(room >= (1.0 if fitted else constant))
    words = "fitted" if fitted else f"met up to c = {room:.2g}; asked for: {constant:g}"
    return (enough, float(room)), Premise(name, required, actual, enough, words)
