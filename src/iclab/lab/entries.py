"""Entries: figures, tables and claims as they are declared, and what running one returns."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple

from iclab.core.errors import require
from iclab.figures.recipes import Plot, require_name, to_csv
from iclab.lab.claims import KINDS, TIGHT, VERDICTS, Check, Claim
from iclab.lab.premises import Spec
from iclab.theory.statements import Constant

SCALES = ("tiny", "quick", "full")
"""How much is measured: `tiny` for tests of the machinery, whose numbers mean nothing."""

Checks = Callable[[Any], list[Check]]
"""A rule: from what an entry measured to its checks."""


class Size(types.SimpleNamespace):
    """How much an entry measures at a scale: usually `seeds`, `steps` and `prompts`, and whatever else it varies."""

    seeds: int
    steps: int
    prompts: int


class Rule(NamedTuple):
    """An earlier rule of a part, which still judges."""

    checks: Checks
    reason: str
    """Why it was replaced."""


@dataclass(frozen=True)
class Part:
    """One statement of a claim and its rule, written before the run."""

    kind: str
    """theorem, figure, remark or ours."""
    place: str
    """Where the paper says it; for ours, what it is about. Different for every part of a claim."""
    says: str
    """What is said there, in one sentence."""
    checks: Checks
    theory: tuple[str, ...] = ()
    """The theorems of `iclab.theory` whose premises must be met."""
    measured: tuple[str, ...] = ()
    """Words of the premises that the part itself measures; these are not asked for."""
    accuracy: float = 0.1
    """The theorems' epsilon."""
    constant: float = 0.5
    """Up to which value open constants must meet the premises."""
    tight: bool = False
    """Whether the part asks if a sufficient bound is also needed."""
    earlier: tuple[Rule, ...] = ()
    """Earlier rules, the first one first."""
    replies: Mapping[str, str] = field(default_factory=dict)
    """By verdict: what a fair author of the paper would say to it, in one sentence, or why it stays inconclusive."""

    def __post_init__(self) -> None:
        unknown = sorted(set(self.replies) - {*VERDICTS, *TIGHT.values()})
        require(not unknown, "replies", unknown, f"be given for verdicts: {', '.join(VERDICTS)}")
        require(self.kind in KINDS, "kind", self.kind, f"be one of {', '.join(KINDS)}")
        require((self.kind == "theorem") <= bool(self.theory), "theory", self.theory,
                f"name the theorems whose premises {self.place!r} takes")


class Note(NamedTuple):
    """An observation that does not follow from a run."""

    date: str
    text: str


class Search(NamedTuple):
    """How open settings were chosen: on other seeds than those that judge."""

    axes: tuple[str, ...]
    tried: int
    seeds: int
    chosen: str


@dataclass(frozen=True)
class Table:
    """Numbers that are better read than drawn."""

    name: str
    title: str
    header: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def __post_init__(self) -> None:
        require_name("table", self.name)

    @property
    def csv(self) -> str:
        """The table as CSV text."""
        return to_csv(self.header, self.rows)


@dataclass(frozen=True)
class Findings:
    """What running an entry returns: measurements for its rules, pictures, and the settings that were judged."""

    shown: str
    """What the plots and tables show, in one sentence."""
    measured: Any = None
    """What the rules read."""
    numbers: str = ""
    """The main numbers in words; whether they agree with anything is left to the verdicts."""
    plots: Sequence[Plot] = ()
    tables: Sequence[Table] = ()
    specs: Sequence[Spec] | Mapping[str, Sequence[Spec]] = ()
    """Runs and tests that were judged, for the premises; by place if parts were judged at different ones."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Other settings worth showing."""
    constants: Sequence[Constant] = ()
    """Constants of the theorems' laws that this entry fitted."""
    searched: Search | None = None

    def specs_at(self, place: str) -> Sequence[Spec]:
        """The runs and tests of a part."""
        return self.specs.get(place, ()) if isinstance(self.specs, Mapping) else self.specs


@dataclass(frozen=True)
class Entry:
    """A figure, table or claim: what it is about, its parts, how much it measures, and how to run it."""

    id: str
    title: str
    place: str
    run: Callable[[Any], Findings]
    """`(lab) -> findings`; `lab.size` is this entry's size at the lab's scale."""
    says: str = ""
    """The claim, or what the paper's figure shows."""
    sizes: Mapping[str, Size] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    """The parts of a claim; figures and tables have none."""
    notes: tuple[Note, ...] = ()
    kind: str = "claim"
    """claim, figure or table."""
    aliases: tuple[str, ...] = ()
    """Other names: those of the workshop paper's figures that the full paper repeats."""
    module: str = ""
    """The module that defines it; set when the entry is loaded."""
    path: str = ""
    """The user's file that it comes from, if any."""

    def __post_init__(self) -> None:
        require(self.kind in ("claim", "figure", "table"), "kind", self.kind, "be claim, figure or table")
        require((self.kind == "claim") == bool(self.parts), "parts", len(self.parts),
                "be given for a claim, and only for a claim")
        places = [part.place for part in self.parts]
        require(len(set(places)) == len(places), "place", places, "differ between the parts of a claim")

    @property
    def paper(self) -> str:
        """The paper's key: the part of the id before the dot."""
        return self.id.split(".")[0]

    @property
    def room(self) -> str:
        """The folder below `papers/` that it stands in, which may be another than its paper's; of a plugin's or a
        user's own entry, the paper."""
        within = re.fullmatch(r"iclab\.papers\.(\w+)\.\w+", self.module)
        return within[1] if within else self.paper


@dataclass(frozen=True)
class Outcome:
    """A finished entry as it is stored and shown: plots and tables with the numbers behind them, text, and perhaps a
    claim that has been judged."""

    shown: str
    says: str
    """What the paper says."""
    measured: str
    """What was measured and, for a claim, what follows for its parts."""
    plots: list[Plot] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    claim: Claim | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    seeds: list[int] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    searched: Search | None = None

    def _repr_html_(self) -> str:
        """In a notebook: the figures and the verdict."""
        shown = [escape(self.shown), *(plot._repr_html_() for plot in self.plots)]
        return "<br>".join([*shown, *([self.claim._repr_html_()] if self.claim else [])])
