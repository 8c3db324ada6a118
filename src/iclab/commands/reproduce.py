"""`iclab reproduce`: run entries, write the report, the claims, the figures and the numbers behind them."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

from iclab.commands.options import Parser
from iclab.commands.output import to_text
from iclab.commands.programs import keep_compiled_programs
from iclab.commands.progress import bar
from iclab.papers.entries import SCALES, Lab, chosen_entries
from iclab.report.page import Finished, page
from iclab.runs.store import Store, check_writable
from iclab.training.checkpoint import write_whole


def main(arguments: list[str]) -> None:
    """Run the chosen entries; finished work is kept, so an interrupted run goes on where it stopped."""
    parser = Parser("reproduce", "Run figures and claims of the papers; with no ID, all of them.")
    parser.add_argument("ids", nargs="*", metavar="ID", help="entries to run (iclab list shows them)")
    parser.add_argument("--scale", default="full", metavar="SCALE", help="quick or full [default: full]")
    parser.add_argument("--out", default="results", metavar="DIR", help="where to write [default: results]")
    parser.add_argument("--store", default=None, metavar="DIR", help="where finished runs are kept [OUT/store]")
    parser.add_argument("--seed", type=int, default=0, metavar="INT", help="base seed of all runs [default: 0]")
    options = parser.parse_args(arguments)
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
    try:
        finished = []
        for entry in entries:
            began = time.perf_counter()
            with bar(entry.id) as progress:
                lab = Lab(store, options.scale, options.seed, progress)
                outcome = entry.run(lab)
            seconds = time.perf_counter() - began
            if outcome.claim is not None:
                outcome = dataclasses.replace(outcome, claim=dataclasses.replace(outcome.claim, seconds=seconds))
            finished.append(Finished(entry, outcome, seconds))
            write_results(out, finished, options.scale)
            verdict = f"{outcome.claim.verdict}: " if outcome.claim else ""
            print(f"{entry.id:18} {seconds:6.1f} s  {verdict}{outcome.measured}", flush=True)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"Finished runs are kept in {store.files.place}; the same command goes on from there."
                                ) from None
    print(f"report: {out / 'report.html'}")


def write_results(out: Path, finished: list[Finished], scale: str) -> None:
    """Write everything that is finished so far."""
    for plot in finished[-1].outcome.plots:
        write_whole(out / "figures" / f"{plot.name}.svg", plot.svg.encode())
        write_whole(out / "figures" / f"{plot.name}.csv", plot.csv.encode())
    for table in finished[-1].outcome.tables:
        write_whole(out / "tables" / f"{table.name}.csv", table.csv.encode())
    claims = [item.outcome.claim.to_json() for item in finished if item.outcome.claim]
    write_whole(out / "claims.json", to_text(claims).encode())
    write_whole(out / "report.html", page(finished, scale).encode())
