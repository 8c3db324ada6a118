"""Claims and their parts, judged: checks with simultaneous intervals, premises, verdicts that follow from both."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any, NamedTuple

from iclab.core.errors import require
from iclab.core.html import table
from iclab.figures.recipes import to_csv
from iclab.lab.estimates import Estimate

RELATIONS = {
    "<": lambda value, threshold: value < threshold,
    "<=": lambda value, threshold: value <= threshold,
    ">": lambda value, threshold: value > threshold,
    ">=": lambda value, threshold: value >= threshold,
}
KINDS = {"theorem": "theorem, corollary or proposition", "figure": "figure or table", "remark": "remark",
         "ours": "ours, not the paper's"}
"""Kinds of parts, in the order in which they are shown."""
VERDICTS = ("holds", "fails", "inconclusive", "outside")
WORST_FIRST = ("fails", "inconclusive", "holds")
TIGHT = {"holds": "tight", "fails": "not tight"}
"""Words for the verdict of a part that asks whether a sufficient bound is also needed."""
LEVEL = 0.95
"""Probability with which all intervals of a part contain their numbers."""


@dataclass(frozen=True, eq=False)
class Check:
    """A rule: an estimate compared with a threshold."""

    name: str
    estimate: Estimate
    relation: str
    threshold: float
    among: int = 1
    """Of how many estimates this is the worst; the choice makes its interval wider."""
    key: str = ""
    """Its name in every run, if the name says which of several was the worst in this one."""

    def __post_init__(self) -> None:
        require(self.relation in RELATIONS, "relation", self.relation, f"be one of {' '.join(RELATIONS)}")


def between(name: str, estimate: Estimate, low: float, high: float) -> list[Check]:
    """The estimate lies in [low, high]."""
    return [Check(name, estimate, ">=", low), Check(name, estimate, "<=", high)]


def worst(name: str, estimates: Sequence[tuple[str, Estimate]], relation: str, threshold: float) -> Check:
    """The check of the worst of several named estimates; `{}` in the name is replaced by its name."""
    pick = max if relation in ("<", "<=") else min
    chosen, estimate = pick(estimates, key=lambda item: item[1].value if math.isfinite(item[1].value) else
                            (math.inf if pick is max else -math.inf))
    return Check(name.format(chosen), estimate, relation, threshold, len(estimates), name.format("the worst"))


class CheckResult(NamedTuple):
    """One measured number compared with one threshold.

    Holds if its whole interval satisfies the relation, fails if none of it does, else is inconclusive. Without an
    interval (a single seed) it is inconclusive whatever the number.
    """

    name: str
    kind: str
    measured: float
    relation: str
    threshold: float
    low: float
    high: float
    level: float
    seeds: int
    detail: dict[str, float]
    key: str
    """Its name in every run."""

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
        return {"name": self.name, "key": self.key, "kind": self.kind, "measured": self.measured,
                "relation": self.relation, "threshold": self.threshold, "interval": [self.low, self.high],
                "level": self.level, "seeds": self.seeds, "detail": self.detail, "verdict": self.verdict}


def judged(checks: Iterable[Check]) -> list[CheckResult]:
    """The checks of one part with simultaneous intervals (Bonferroni's): all contain their numbers with probability
    95 %, so that a true part fails at most one time in twenty."""
    checks = list(checks)
    estimates = {id(check.estimate): check.among for check in checks}
    level = 1 - (1 - LEVEL) / max(sum(estimates.values()), 1)
    return [CheckResult(check.name, check.estimate.kind, check.estimate.value, check.relation, float(check.threshold),
                        *check.estimate.interval(level), level, check.estimate.seeds, check.estimate.detail,
                        check.key or check.name)
            for check in checks]


def worst_verdict(checks: Iterable[CheckResult]) -> str:
    """That of the worst check; inconclusive without any."""
    verdicts = [check.verdict for check in checks]
    return next((verdict for verdict in WORST_FIRST if verdict in verdicts), "inconclusive")


class Premise(NamedTuple):
    """A premise of a theorem at the judged settings."""

    name: str
    required: str
    actual: str
    met: bool
    constant: str = ""
    """What an open constant was taken to be."""


class Earlier(NamedTuple):
    """An earlier version of a part's rule, and what it says about the same measurements."""

    version: int
    reason: str
    """Why it was replaced."""
    verdict: str
    checks: tuple[CheckResult, ...]


@dataclass(frozen=True)
class PartResult:
    """One statement of a claim, judged."""

    kind: str
    place: str
    says: str
    premises: list[Premise]
    checks: list[CheckResult]
    version: int = 1
    earlier: list[Earlier] = field(default_factory=list)
    tight: bool = False
    replies: Mapping[str, str] = field(default_factory=dict)
    """What a fair author would say to each verdict."""
    by_seed: list[str] = field(default_factory=list)
    """Verdicts of the reference runs with base seeds 0, 1, 2; none where no reference ships."""

    @property
    def verdict_here(self) -> str:
        """`outside` where a premise is not met; else that of its worst check, in the words of a bound if `tight`."""
        if any(not premise.met for premise in self.premises):
            return "outside"
        verdict = worst_verdict(self.checks)
        return TIGHT.get(verdict, verdict) if self.tight else verdict

    @property
    def verdict(self) -> str:
        """That of this run; inconclusive if it depends on the base seed."""
        return "inconclusive" if self.wavers and self.verdict_here != "outside" else self.verdict_here

    @property
    def first_verdict(self) -> str:
        """That of the rule as it was first written, on the same measurements."""
        if not self.earlier or self.verdict_here == "outside":
            return self.verdict
        return TIGHT.get(self.earlier[0].verdict, self.earlier[0].verdict) if self.tight else self.earlier[0].verdict

    @property
    def wavers(self) -> bool:
        """Whether the reference runs disagree."""
        return len(set(self.by_seed)) > 1

    @property
    def reply(self) -> str:
        """What a fair author would say to the verdict; empty if nothing is written down for it."""
        return self.replies.get(self.verdict, "")

    @property
    def deciding(self) -> CheckResult | None:
        """The check with the worst verdict that lies farthest beyond its threshold, or nearest to it if all hold.

        Checks without spread over seeds, and shares of all seeds (all runs finished, say), are skipped if there are
        others.
        """
        verdict = worst_verdict(self.checks)
        candidates = [check for check in self.checks if check.verdict == verdict]
        candidates = [check for check in candidates if check.high > check.low
                      and (check.kind, check.measured) != ("share", 1.0)] or candidates
        pick = min if verdict == "holds" else max
        return pick(candidates, key=lambda check: check.margin, default=None)

    @property
    def sentence(self) -> str:
        """The verdict in words, with what decided it."""
        subject = self.place[:1].upper() + self.place[1:]
        decided = "" if self.deciding is None else f" {self.deciding.words}."
        if self.verdict == "outside":
            unmet = "; ".join(f"{premise.name} must be {premise.required}, is {premise.actual}"
                              for premise in self.premises if not premise.met)
            return f"{subject} is not tested: outside its premises ({unmet}). Measured all the same:{decided}"
        if self.wavers:
            others = ", ".join(f"{verdict} at {seed}" for seed, verdict in enumerate(self.by_seed))
            return f"{subject} is inconclusive, because its verdict depends on the base seed ({others}). Here:{decided}"
        verb = f"is {self.verdict}" if self.tight or self.verdict == "inconclusive" else self.verdict
        return f"{subject} {verb}:{decided}"

    def to_json(self) -> dict[str, Any]:
        """The part as written to claims.json."""
        return {"kind": self.kind, "place": self.place, "says": self.says, "verdict": self.verdict,
                "verdict_here": self.verdict_here, "by_seed": list(self.by_seed), "tight": self.tight,
                "reply": self.reply,
                "premises": [premise._asdict() for premise in self.premises],
                "checks": [check.to_json() for check in self.checks], "rule_version": self.version,
                "earlier_rules": [{"version": old.version, "reason": old.reason, "verdict": old.verdict,
                                   "checks": [check.to_json() for check in old.checks]} for old in self.earlier]}


@dataclass(frozen=True)
class Claim:
    """A statement about a paper in parts, how it was measured, and what came out."""

    id: str
    statement: str
    parts: list[PartResult]
    settings: dict[str, Any]
    seeds: list[int]
    runs: list[str]
    scale: str
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def _repr_html_(self) -> str:
        """In a notebook: every part with its verdict and what decided it."""
        return f"<b>{escape(self.id)}</b>: {escape(self.statement)}" + table(("part", "verdict", "what decides"), [
            (f"{part.kind}: {part.place}", part.verdict, part.deciding.words if part.deciding else "")
            for part in self.parts])

    @property
    def headline(self) -> str:
        """The parts' verdicts side by side, by kind: `theorem holds, figure fails`."""
        words = []
        for kind in KINDS:
            verdicts = Counter(part.verdict for part in self.parts if part.kind == kind)
            if len(verdicts) == 1:
                words.append(f"{kind} {next(iter(verdicts))}")
            elif verdicts:
                words.append(f"{kind} " + " and ".join(f"{verdict} ({count})" if count > 1 else verdict
                                                       for verdict, count in verdicts.items()))
        return ", ".join(words)

    @property
    def deciding(self) -> PartResult | None:
        """The part to look at first: one that fails, else one that is open, else the first that holds."""
        rank = ("fails", "inconclusive", "holds", "not tight", "tight", "outside")
        order = {kind: number for number, kind in enumerate(KINDS)}
        return min(self.parts, key=lambda part: (rank.index(part.verdict), order[part.kind]), default=None)

    @property
    def summary(self) -> str:
        """What the part that decides says."""
        return "" if self.deciding is None else self.deciding.sentence

    @property
    def checks(self) -> list[CheckResult]:
        """All checks of all parts."""
        return [check for part in self.parts for check in part.checks]

    @property
    def checks_csv(self) -> str:
        """The checks as CSV text."""
        return to_csv(("part", "check", "kind", "measured", "low", "high", "relation", "threshold", "verdict"),
                      [(part.place, c.name, c.kind, c.measured, c.low, c.high, c.relation, c.threshold, c.verdict)
                       for part in self.parts for c in part.checks])

    def to_json(self) -> dict[str, Any]:
        """The claim as written to claims.json."""
        data = asdict(self)
        data["parts"] = [part.to_json() for part in self.parts]
        return {"id": self.id, "headline": self.headline, **{k: v for k, v in data.items() if k != "id"}}


def totals(claims: Iterable[Claim]) -> dict[str, Counter[str]]:
    """How many parts of each kind have which verdict."""
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for claim in claims:
        for part in claim.parts:
            counts[part.kind][part.verdict] += 1
    return counts


def short(value: float) -> str:
    """Three significant digits."""
    return f"{value:.3g}" if value == 0 or abs(value) >= 5e-5 else f"{value:.1e}"
