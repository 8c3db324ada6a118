"""What was found, in words that follow from the verdicts: symbols, totals by kind, a sentence per paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from iclab.lab.claims import Claim, PartResult

SYMBOLS = {"holds": "✓", "fails": "✗", "inconclusive": "?", "outside": "○", "tight": "◆", "not tight": "◇"}
"""A verdict's symbol, so that colour never carries it alone."""
MEANINGS = {
    "holds": "the whole interval satisfies the rule",
    "fails": "no part of the interval satisfies it",
    "inconclusive": "part of the interval does",
    "outside": "a premise is not met, so the theorem is not tested",
    "tight": "a sufficient bound is also needed",
    "not tight": "it is not needed",
}
GROUPS = {"theorem": "theorems", "figure": "figures, tables", "remark": "remarks", "ours": "ours",
          "bound": "bound needed?"}
"""Rows of the totals: the kinds of parts, and apart from them those that ask whether a bound is also necessary."""
NAMES = {"theorem": "theorem parts", "figure": "figures and tables", "remark": "remarks", "ours": "statements of ours"}
ONE = {"theorem": "theorem part", "figure": "figure or table", "remark": "remark", "ours": "statement of ours"}


class Judged(NamedTuple):
    """A part and the claim that it belongs to."""

    claim: Claim
    part: PartResult

    @property
    def group(self) -> str:
        """Its row in the totals."""
        return "bound" if self.part.tight else self.part.kind


def parts_of(claims: Iterable[Claim]) -> list[Judged]:
    """All parts of all claims."""
    return [Judged(claim, part) for claim in claims for part in claim.parts]


def totals_by_group(claims: Iterable[Claim], first: bool = False) -> dict[str, Counter[str]]:
    """How many parts of each group have which verdict, or had by the rules as first written; groups without parts are
    left out."""
    counts = {group: Counter[str]() for group in GROUPS}
    for judged in parts_of(claims):
        counts[judged.group][judged.part.first_verdict if first else judged.part.verdict] += 1
    return {group: count for group, count in counts.items() if count}


def columns(totals: dict[str, Counter[str]]) -> list[str]:
    """The verdicts of the totals' columns: the four of any part, and those of bounds where bounds were judged."""
    return [verdict for verdict in SYMBOLS if "bound" in totals or verdict not in ("tight", "not tight")]


def label(part: PartResult) -> str:
    """Kind and place without saying the kind twice: `theorem 2`, `ours: three times the scale`."""
    if part.kind == "theorem" or part.kind == "figure" or part.place.lower().startswith(part.kind):
        return part.place
    return f"{part.kind}: {part.place}"


def verdict_words(part: PartResult) -> str:
    """The verdict as the end of a badge: `holds`, `outside its premises`, `bound not tight`."""
    if part.verdict in ("tight", "not tight"):
        return f"bound {part.verdict}"
    return "outside its premises" if part.verdict == "outside" else part.verdict


def overall(claims: Sequence[Claim]) -> str:
    """The first sentence: what became of the theorems."""
    counts = totals_by_group(claims).get("theorem", Counter())
    tested = counts.total() - counts["outside"]
    if not counts:
        return "None of the claims judged here is a theorem's."
    text = _tested(counts, tested) if tested else "No theorem part could be tested"
    if counts["outside"]:
        more = f"; {counts['outside']} more could not be tested" if tested else ""
        text += f"{more}, because a premise is not met at the judged settings"
    return f"{text}."


def _tested(counts: Counter[str], tested: int) -> str:
    if tested == 1:
        verdict = next(verdict for verdict in ("holds", "fails", "inconclusive") if counts[verdict])
        return f"Inside its premises, the one theorem part tested {_verb(verdict)}"
    if counts["holds"] == tested:
        return f"Inside their premises, all {tested} theorem parts hold"
    others = [f"{counts[verdict]} {_verb(verdict, counts[verdict])}" for verdict in ("fails", "inconclusive")
              if counts[verdict]]
    return (f"Inside their premises, {_count(counts['holds'], tested).lower()} theorem parts "
            f"{_verb('holds', counts['holds'])}, {' and '.join(others)}")


def of_paper(claims: Sequence[Claim]) -> str:
    """One sentence: what became of a paper's theorems, figures and remarks, and of what we added."""
    judged = parts_of(claims)
    if not judged:
        return "None of its claims has been judged yet."
    texts = [_of_group(group, [item.part for item in judged if item.group == group]) for group in NAMES]
    text = "; ".join(text for text in texts if text)
    return f"{text[:1].upper()}{text[1:]}." if text else "Only the need for its bounds was judged."


def counted_by_kind(parts: Sequence[PartResult]) -> str:
    """`: 47 theorem parts, 5 remarks, 73 statements of ours`, of parts that are not about bounds; empty without any."""
    counts = Counter(part.kind for part in parts)
    texts = [f"{counts[kind]} {(ONE if counts[kind] == 1 else NAMES)[kind]}" for kind in NAMES if counts[kind]]
    return f": {', '.join(texts)}" if texts else ""


def failures(claims: Sequence[Claim]) -> list[Judged]:
    """Theorems that fail inside their premises, then figures and remarks that do."""
    failing = [item for item in parts_of(claims) if item.part.verdict == "fails" and item.group in NAMES]
    return [item for group in ("theorem", "figure", "remark") for item in failing if item.group == group]


def _of_group(group: str, parts: Sequence[PartResult]) -> str:
    if not parts:
        return ""
    counts = Counter(part.verdict for part in parts)
    if len(parts) == 1:
        return f"{label(parts[0])} {_verb(parts[0].verdict)}"
    if len(counts) == 1:
        return f"all {len(parts)} {NAMES[group]} {_verb(parts[0].verdict, len(parts))}"
    others = [f"{counts[verdict]} {_verb(verdict, counts[verdict])}" for verdict in ("fails", "inconclusive", "outside")
              if counts[verdict]]
    holding = f"{_count(counts['holds'], len(parts))} {NAMES[group]} {_verb('holds', counts['holds'])}"
    return ", ".join([holding, *others])


def _verb(verdict: str, count: int = 1) -> str:
    """The verdict as the verb of a sentence about so many parts."""
    if verdict in ("holds", "fails"):
        return verdict if count == 1 else verdict[:-1]
    be = "is" if count == 1 else "are"
    return f"{be} {verdict}" + ("" if verdict != "outside" else " its premises" if count == 1 else " their premises")


def _count(count: int, of: int) -> str:
    return f"{count or 'None'} of {of}"
