"""`iclab reproduce`: run entries, write the report, the claims, the figures and the numbers behind them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from iclab import __version__
from iclab.commands.board import board, claims_list
from iclab.commands.options import Parser
from iclab.commands.output import say_damage, to_text
from iclab.commands.play import PAGE, write_playground
from iclab.commands.programs import keep_compiled_programs
from iclab.core.files import write_whole
from iclab.figures.recipes import read_formats
from iclab.kernels.ahead import start_compiling
from iclab.lab.claims import Claim
from iclab.lab.entries import SCALES
from iclab.lab.laboratory import Lab
from iclab.lab.outcomes import Finished, finish, with_kept
from iclab.lab.verify import SCHEMA, usual_seconds
from iclab.papers.catalogue import all_entries, chosen_entries, main_entries
from iclab.report.page import Page, about
from iclab.report.playground.exhibits import kept
from iclab.sweeps.store import Store, check_writable

CLAIMS, FIGURES, TABLES = "claims.json", "figures", "tables"
WRITE_EVERY = 10.0
"""Seconds between rewrites of the page while entries run."""


def main(arguments: list[str]) -> None:
    """Run the chosen entries; finished work is kept, so an interrupted run resumes where it stopped."""
    parser = Parser("reproduce", "Run figures and claims of the papers; with no ID, all of theirs.")
    parser.add_argument("ids", nargs="*", metavar="ID",
                        help="entries to run (iclab list shows them); cot, say, is all of that paper, and beyond those "
                             "that run only when named")
    parser.add_argument("--scale", default="full", metavar="SCALE",
                        help="quick or full; tiny only tries the machinery [default: full]")
    parser.add_argument("--out", default="results", metavar="DIR", help="where to write [default: results]")
    parser.add_argument("--store", default=None, metavar="DIR", help="where finished runs are kept [OUT/store]")
    parser.add_argument("--seed", type=int, default=0, metavar="INT", help="base seed of all runs [default: 0]")
    parser.add_argument("--formats", default="svg,csv", metavar="NAMES",
                        help="formats of the figures besides SVG and the numbers in CSV, such as pdf,png")
    options = parser.parse_args(arguments)
    formats = read_formats(options.formats)
    if options.scale not in SCALES:
        parser.error(f"scale must be one of {', '.join(SCALES)}, got {options.scale!r}")
    if not 0 <= options.seed < 2**20:
        parser.error(f"seed must be in [0, {2**20}), got {options.seed}")
    entries = chosen_entries(options.ids)
    out = Path(options.out)
    check_writable(out)
    store = Store(options.store or out / "store")
    store.check()
    keep_compiled_programs(store)
    if not options.ids:
        start_compiling()
    lab = Lab(store, options.scale, options.seed)
    results, playground = ResultFiles(out, lab, formats), None
    try:
        with board(entries, usual_seconds(options.scale)) as live_board:
            for entry in entries:
                with live_board.entry(entry) as lab.progress:
                    item = finish(entry, lab)
                live_board.done(item)
                results.add(item)
        # A run of selected entries does not train the playground's models, but shows them if the store has them.
        models = kept(lab)
        if models is not None or not options.ids:
            results.write()
            playground = write_playground(out, lab, models)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"Finished runs are kept in {store.files.place}; rerun the same command to continue."
                                ) from None
    finally:
        results.write()
    say_damage(store)
    if results.claims:
        claims_list(results.claims)
    print(f"report: {out / 'report.html'}")
    for line in results.places():
        print(line)
    if playground is not None:
        print(f"playground: {playground}")


class ResultFiles:
    """The files of a run, written as entries finish."""

    def __init__(self, out: Path, lab: Lab, formats: Sequence[str] = ()):
        self.out, self.lab, self.formats, self.finished = out, lab, formats, list[Finished]()
        self._pictures: list[Path] = []
        self._page, self._written = Page(lab.scale, lab.base_seed, str(out / CLAIMS)), time.monotonic()

    @property
    def claims(self) -> list[Claim]:
        """The claims judged in this run."""
        return [item.outcome.claim for item in self.finished if item.outcome.claim]

    def add(self, item: Finished) -> None:
        """Write an entry's files, and from time to time those about all entries."""
        self.finished.append(item)
        for plot in item.outcome.plots:
            self._pictures += [path for path in plot.write(self.out / FIGURES, self.formats) if path.suffix != ".csv"]
        for table in item.outcome.tables:
            write_whole(self.out / TABLES / f"{table.name}.csv", table.csv.encode())
        if time.monotonic() - self._written > WRITE_EVERY:
            self.write()

    def places(self) -> list[str]:
        """Where figures and tables lie: each one's file if only one entry was run, else their folders."""
        plots = [plot.name for item in self.finished for plot in item.outcome.plots]
        tables = [table.name for item in self.finished for table in item.outcome.tables]
        if len(self.finished) == 1:
            return [*(f"figure: {path}" for path in self._pictures),
                    *(f"table: {self.out / TABLES / f'{name}.csv'}" for name in tables)]
        return [f"{folder}: {self.out / folder}" for folder, names in ((FIGURES, plots), (TABLES, tables)) if names]

    def write(self) -> None:
        """Write the claims, the fitted constants and the page, including stored outcomes of entries not run now."""
        if not self.finished:
            return
        known = list(all_entries().values())
        items = with_kept(self.finished, known, self.lab)
        claims = {"schema": SCHEMA, "iclab": __version__, "scale": self.lab.scale, "base_seed": self.lab.base_seed,
                  "about": about(), "seconds": {item.entry.id: round(item.seconds, 2) for item in items},
                  "claims": [item.outcome.claim.to_json() for item in items if item.outcome.claim]}
        constants = [constant.to_json() for item in items for constant in item.outcome.constants]
        write_whole(self.out / CLAIMS, to_text(claims).encode())
        write_whole(self.out / "constants.json", to_text(constants).encode())
        expected = {entry.id for entry in main_entries()} | {item.entry.id for item in items}
        page = self._page.render(items, len(expected), playground=(self.out / PAGE).exists(),
                                 opened=self.finished[0].entry.id if len(self.finished) == 1 else None)
        write_whole(self.out / "report.html", page.encode())
        self._written = time.monotonic()
