"""`iclab verify`: compare the claims of a run with the reference that ships with this release."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from iclab.commands import reproduce
from iclab.commands.options import Parser
from iclab.commands.output import console
from iclab.core.files import read_file
from iclab.lab.claims import short
from iclab.lab.entries import SCALES
from iclab.lab.verify import Comparison, compare, read_claims, reference_for


def main(arguments: list[str]) -> None:
    """Compare a claims.json, or a run of all entries made now, with a reference; a difference ends with code 1."""
    parser = Parser("verify", "Compare the claims of a run with the reference that ships with iclab. Without "
                              "CLAIMS.json, run all entries first; finished ones are not run again.")
    parser.add_argument("claims", nargs="?", metavar="CLAIMS.json", help="what `iclab reproduce` wrote")
    parser.add_argument("--reference", default=None, metavar="FILE", help="another claims.json to compare with")
    parser.add_argument("--seed", type=int, default=0, metavar="INT", help="base seed of the run [default: 0]")
    parser.add_argument("--scale", default="full", metavar="SCALE", help="quick or full [default: full]")
    parser.add_argument("--out", default=None, metavar="DIR", help="where the run is written [results or "
                                                                   "results-seed-INT]")
    options = parser.parse_args(arguments)
    if options.scale not in SCALES:
        parser.error(f"scale must be one of {', '.join(SCALES)}, got {options.scale!r}")
    path = options.claims
    if path is None:
        out = options.out or ("results" if options.seed == 0 else f"results-seed-{options.seed}")
        reproduce.main(["--scale", options.scale, "--seed", str(options.seed), "--out", out])
        path = str(Path(out) / "claims.json")
    run = read_claims(read_file(path, "claims"), "claims")
    if options.reference is None:
        reference = reference_for(run)
    else:
        reference = read_claims(read_file(options.reference, "reference"), "reference")
    comparison = compare(reference, run)
    show(comparison, reference, run)
    if comparison.differing:
        raise SystemExit(1)


def show(comparison: Comparison, reference: dict[str, Any], run: dict[str, Any]) -> None:
    """Every check that differs or lies outside, changed verdicts, what cannot be compared, and the last line."""
    from rich.padding import Padding
    from rich.text import Text

    out = console()

    def say(first: str, *more: str) -> None:
        """A line, and indented below it others."""
        out.print(Text(first))
        for line in more:
            out.print(Padding(Text(line), (0, 0, 0, 4)))

    for name, document in (("reference", reference), ("this run", run)):
        about = document.get("about", {})
        say(f"{name}: scale {document.get('scale')}, base seed {document.get('base_seed')}, "
            f"{about.get('machine', 'machine unknown')}, iclab {document.get('iclab')}")
    if reference.get("scale") != run.get("scale"):
        say("The scales differ: numbers measured after other training times or on other sizes may differ for that "
            "reason.")
    outside = [check for check in comparison.checks if check.status != "inside"]
    for check in sorted(outside, key=lambda check: check.status):
        say(f"{'differs' if check.status == 'differs' else 'outside, within noise'}: {check.claim}, {check.part}",
            check.name, f"reference {_interval(check.reference)}, this run {_interval(check.yours)}")
    for part in comparison.verdicts:
        say(f"verdict: {part.claim}, {part.part}", f"{part.reference} in the reference, {part.yours} here")
    for keys, words in ((comparison.not_run, "only in the reference"), (comparison.new, "only in this run")):
        if keys:
            counts = Counter(key.split(" / ")[0] for key in keys)
            say(f"{words}: " + ", ".join(f"{claim} ({count} check{'s' if count > 1 else ''})"
                                         for claim, count in counts.items()))
    inside = sum(check.status == "inside" for check in comparison.checks)
    say(f"{inside} inside the reference's interval, {len(comparison.checks) - inside} outside; "
        f"{len(comparison.verdicts)} verdicts differ; {len(comparison.not_run)} checks not run, "
        f"{len(comparison.new)} new")
    say(comparison.last_line)


def _interval(numbers: tuple[float, float, float]) -> str:
    return f"{short(numbers[0])} [{short(numbers[1])}, {short(numbers[2])}]"
