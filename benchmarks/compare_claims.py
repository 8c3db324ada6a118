"""What changed between two runs of `iclab reproduce`: every check of two claims.json files, side by side.

    python benchmarks/compare_claims.py BEFORE/claims.json AFTER/claims.json [--tolerance 1e-6]

The exit code is 1 if a claim or check is in one file only, a verdict differs, or a measured mean differs by more than
the tolerance, relative to the larger of the two.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any


def checks(path: str) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Every check by claim, part, position and name; names repeat within some parts."""
    return {(claim["id"], part["place"], f"{number} {check['key']}"): check
            for claim in json.loads(Path(path).read_text())["claims"] for part in claim["parts"]
            for number, check in enumerate(part["checks"], 1)}


def distance(a: float | None, b: float | None) -> float:
    """Relative difference of two numbers; 0 if both are missing or both are NaN."""
    if a is None or b is None or not (math.isfinite(a) and math.isfinite(b)):
        return 0.0 if a == b or (a is not None and b is not None and math.isnan(a) and math.isnan(b)) else math.inf
    return abs(a - b) / max(abs(a), abs(b)) if a != b else 0.0


def main() -> int:
    """Print the differences; return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--tolerance", type=float, default=1e-6)
    options = parser.parse_args()
    before, after = checks(options.before), checks(options.after)
    differences = [f"only in one file: {' / '.join(name)}" for name in sorted(before.keys() ^ after.keys())]
    both = sorted(before.keys() & after.keys())
    equal = 0
    for name in both:
        old, new = before[name], after[name]
        relative = distance(old["measured"], new["measured"])
        equal += relative == 0
        if relative > options.tolerance or old["verdict"] != new["verdict"]:
            differences.append(f"{' / '.join(name)}: {old['measured']} {old['verdict']} -> "
                               f"{new['measured']} {new['verdict']}")
    summary = f"{len(both)} checks in both, {equal} equal to the last bit, {len(differences)} differences"
    print("\n".join([*differences, summary]))
    return int(bool(differences))


if __name__ == "__main__":
    raise SystemExit(main())
