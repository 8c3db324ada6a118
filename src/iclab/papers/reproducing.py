"""A figure, table or claim from Python, as `iclab reproduce` makes it on the command line."""

from __future__ import annotations

from pathlib import Path

from iclab.core.errors import require
from iclab.lab.entries import SCALES, Outcome
from iclab.lab.laboratory import Lab
from iclab.lab.outcomes import finish
from iclab.papers.catalogue import chosen_entries
from iclab.sweeps.store import Store


def reproduce(name: str, *, scale: str = "quick", store: Store | Path | str = "results/store", seed: int = 0
              ) -> Outcome:
    """Run one entry, or load it from the store where it ran before; a notebook shows its figures and its verdict.

    `name` is an id of `iclab list`, such as "mamba.fig2", or a Python file with an `ENTRY`. The outcome has the
    figures (`plots`; `plot.save("x.pdf")` writes one, `plot.figure()` returns it, `plot.csv` has its numbers), the
    tables and the judged claim, if it is one.
    """
    require(scale in SCALES, "scale", scale, f"be one of {', '.join(SCALES)}")
    require(0 <= seed < 2**20, "seed", seed, f"be in [0, {2**20})")
    entries = chosen_entries([name])
    require(len(entries) == 1, "name", name, "be the id of one entry")
    return finish(entries[0], Lab(store if isinstance(store, Store) else Store(store), scale, seed)).outcome
