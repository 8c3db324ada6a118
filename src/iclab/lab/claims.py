"""Claims: checks with intervals, the theorem's conditions, and a verdict that follows from the checks."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from iclab.figures.plots import to_csv
from iclab.probes import Interval
from iclab.theory.statements import Condition

RELATIONS = {
    "<": lambda value, threshold: value < threshold,
    "<=": lambda value, threshold: value <= threshold,
    ">": lambda value, threshold: value > threshold,
    ">=": lambda value, threshold: value >= threshold,
}
WORST_FIRST = ("fails", "inconclusive", "holds")


@dataclass(frozen=True)
class Check:
    """One measured number compared with one threshold.

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

    @property
    def margin(self) -> float:
        """Distance from the threshold to the nearer end of the interval, relative to the larger of the two numbers."""
        distance = min(abs(self.low - self.threshold), abs(self.high - self.threshold))
        return distance / max(abs(self.threshold), abs(self.measured), 1e-12)

    @property
    def words(self) -> str:
        """The check in one line."""
        return (f"{self.name}: {short(self.measured)} [{short(self.low)}, {short(self.high)}], must be {self.relation} "
                f"{self.threshold:.3g}")

    def to_json(self) -> dict[str, Any]:
        """The check as written to claims.json."""
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

    @property
    def deciding(self) -> Check | None:
        """The check with the worst verdict that lies farthest beyond its threshold, or nearest to it if all hold.

        Checks without spread over seeds (all runs finished, say) are skipped if there are others.
        """
        worst = [check for check in self.checks if check.verdict == self.verdict]
        candidates = [check for check in worst if check.high > check.low] or worst
        pick = min if self.verdict == "holds" else max
        return pick(candidates, key=lambda check: check.margin, default=None)

    @property
    def checks_csv(self) -> str:
        """The checks as CSV text."""
        return to_csv(("check", "measured", "low", "high", "relation", "threshold", "verdict"),
                      [(c.name, c.measured, c.low, c.high, c.relation, c.threshold, c.verdict) for c in self.checks])

    @property
    def summary(self) -> str:
        """How many checks hold, and the one that decides."""
        holding = sum(check.verdict == "holds" for check in self.checks)
        counts = f"{holding} of {len(self.checks)} checks hold"
        return counts if self.deciding is None else f"{counts}; {self.deciding.words}"

    def to_json(self) -> dict[str, Any]:
        """The claim as written to claims.json."""
        data = asdict(self)
        data["checks"] = [check.to_json() for check in self.checks]
        data["conditions"] = [condition._asdict() for condition in self.conditions]
        data["conditions_met"] = all(condition.met for condition in self.conditions) if self.conditions else None
        return {"id": self.id, "verdict": self.verdict, **{k: v for k, v in data.items() if k != "id"}}


def short(value: float) -> str:
    """Four decimals, or scientific notation where those would show zero."""
    return f"{value:.1e}" if 0 < abs(value) < 5e-5 else f"{value:.4f}"
