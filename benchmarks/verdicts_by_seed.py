"""Which parts get the same verdict at every base seed, written to the file that ships with the package.

    for seed in 0 1 2; do iclab reproduce --seed $seed --out results-seed-$seed; done
    python benchmarks/verdicts_by_seed.py results-seed-*/claims.json

The same with `iclab reproduce beyond`. Claims that the runs lack keep what the file says of them.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from iclab.core.errors import require
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
    before = json.loads(options.out.read_text()) if options.out.exists() else document
    require(all(before[name] == document[name] for name in ("scale", "base_seeds")), "claims", options.claims,
            f"be runs at scale {before['scale']} with base seeds {before['base_seeds']}, as those in {options.out} are")
    written = document | {"claims": before["claims"] | document["claims"]}
    options.out.write_text(json.dumps(written, indent=1) + "\n")
    parts = [(claim, place, part["verdicts"]) for claim, places in document["claims"].items()
             for place, part in places.items()]
    differing = [(claim, place, verdicts) for claim, place, verdicts in parts if len(set(verdicts)) > 1]
    for claim, place, verdicts in differing:
        print(f"{claim}, {place}: {', '.join(verdicts)}")
    print(f"{len(parts)} parts, {len(differing)} with verdicts that depend on the base seed")


if __name__ == "__main__":
    main()
