"""Claims that can be judged: checks with intervals, conditions, a verdict that follows from them by rule."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from iclab.probes import Interval
from iclab.theory.conditions import Condition

RELATIONS = {
    "<": lambda value, threshold: value < threshold,
    "<=": lambda value, threshold: value <= threshold,
    ">": lambda value, threshold: value > threshold,
    ">=": lambda value, threshold: value >= threshold,
}
WORST_FIRST = ("fails", "inconclusive", "holds")


@dataclass(frozen=True)
class Check:
    """One number against one threshold.

    Holds if its whole interval satisfies the relation, fails if none of it does, else is inconclusive. Without an
    interval (a single seed) it is inconclusive whatever the number.
    """

    name: str
    measured: float
    relation: str
    threshold: float
    low: float
    high: float

    @classmethod
    def of(cls, name: str, interval: Interval, relation: str, threshold: float) -> Check:
        """A check of a mean over seeds."""
        return cls(name, interval.mean, relation, threshold, interval.low, interval.high)

    @property
    def verdict(self) -> str:
        """holds, fails or inconclusive."""
        if not all(math.isfinite(value) for value in (self.measured, self.low, self.high)):
            return "inconclusive"
        ends = [RELATIONS[self.relation](end, self.threshold) for end in (self.low, self.high)]
        if all(ends):
            return "holds"
        return "inconclusive" if any(ends) else "fails"

    def to_json(self) -> dict[str, Any]:
        """As it stands in claims.json."""
        return {"name": self.name, "measured": self.measured, "relation": self.relation, "threshold": self.threshold,
                "interval": [self.low, self.high], "verdict": self.verdict}


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, how it was measured, and the verdict: that of its worst check."""

    id: str
    statement: str
    place: str
    checks: list[Check]
    conditions: list[Condition]
    settings: dict[str, Any]
    seeds: list[int]
    runs: list[str]
    scale: str
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """holds, fails or inconclusive; a claim without checks is inconclusive."""
        verdicts = [check.verdict for check in self.checks]
        return next((verdict for verdict in WORST_FIRST if verdict in verdicts), "inconclusive")

    def to_json(self) -> dict[str, Any]:
        """As it stands in claims.json."""
        data = asdict(self)
        data["checks"] = [check.to_json() for check in self.checks]
        data["conditions"] = [condition._asdict() for condition in self.conditions]
        data["conditions_met"] = all(condition.met for condition in self.conditions)
        return {"id": self.id, "verdict": self.verdict, **{k: v for k, v in data.items() if k != "id"}}
