"""Which parts get the same verdict at every base seed, written to the file that ships with the package.

    for seed in 0 1 2; do iclab reproduce --seed $seed --out results-seed-$seed; done
    python benchmarks/verdicts_by_seed.py results-seed-*/claims.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from iclab.lab.base_seeds import verdicts_by_seed
from iclab.lab.verify import read_claims

SHIPPED = Path(__file__).parent.parent / "src" / "iclab" / "lab" / "verdicts_by_seed.json"


def main() -> None:
    """Write the file; print the parts whose verdict depends on the seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("claims", nargs="+", help="claims.json of runs that differ in their base seed alone")
    parser.add_argument("--out", type=Path, default=SHIPPED)
    options = parser.parse_args()
    document = verdicts_by_seed([read_claims(Path(path).read_bytes(), path) for path in options.claims])
    options.out.write_text(json.dumps(document, indent=1) + "\n")
    parts = [(claim, place, part["verdicts"]) for claim, places in document["claims"].items()
             for place, part in places.items()]
    differing = [(claim, place, verdicts) for claim, place, verdicts in parts if len(set(verdicts)) > 1]
    for claim, place, verdicts in differing:
        print(f"{claim}, {place}: {', '.join(verdicts)}")
    print(f"{len(parts)} parts, {len(differing)} with verdicts that depend on the base seed")


if __name__ == "__main__":
    main()
