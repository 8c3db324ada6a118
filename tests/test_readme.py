"""The README's numbers about verdicts are those of the reference."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from iclab.lab.verify import compare, shipped_reference
from iclab.papers.mamba.robustness import FLOOR
from iclab.papers.mamba.settings import FRACTIONS

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_counts_are_those_of_the_reference():
    counts = Counter(part["verdict"] for claim in shipped_reference("full")["claims"] for part in claim["parts"]
                     if part["kind"] == "theorem" and not part["tight"])
    tested = sum(counts.values()) - counts["outside"]
    words = re.sub(r"\s+", " ", README)
    assert (f"inside their premises {counts['holds']} of {tested} theorem parts hold, {counts['fails']} fail and "
            f"{counts['inconclusive']} are inconclusive; {counts['outside']} more") in words


def test_the_error_at_small_poison_is_that_of_the_reference():
    claim, = (claim for claim in shipped_reference("full")["claims"] if claim["id"] == "mamba.robust")
    part, = (part for part in claim["parts"] if part["place"] == "the training scale")
    error = part["checks"][0]["measured"] + FLOOR[FRACTIONS.index(0.8)]
    assert f"Mamba errs on {100 * error:.0f} % of the prompts at 80 % flipped" in re.sub(r"\s+", " ", README)


def test_both_references_agree_with_themselves_and_share_most_checks():
    full, quick = shipped_reference("full"), shipped_reference("quick")
    assert not compare(full, full).differing
    assert len(compare(full, quick).checks) > 0.6 * len(compare(full, full).checks)


def test_every_verdict_of_the_reference_that_needs_a_word_has_one():
    """What fails, is inconclusive or outside has a sentence on what a fair author would say to it, or why."""
    unconfirmed = ("fails", "inconclusive", "outside")
    silent = [f"{claim['id']}, {part['place']}" for claim in shipped_reference("full")["claims"]
              for part in claim["parts"] if part["verdict"] in unconfirmed and not part["reply"]]
    assert not silent
