"""`iclab sweep`: run a sweep file, keep every run, write its tables and its picture."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from iclab.commands.options import Parser
from iclab.commands.output import say_damage, to_text
from iclab.commands.programs import keep_compiled_programs
from iclab.commands.progress import tally_bar
from iclab.core.errors import IclabError
from iclab.core.files import write_whole
from iclab.core.limits import read_bytes
from iclab.core.words import duration
from iclab.figures.lines import line_plot
from iclab.figures.phase import find_theory, phase_diagram
from iclab.figures.recipes import read_formats
from iclab.sweeps import sweep_file
from iclab.sweeps.engines import ENGINES, run_sweep
from iclab.sweeps.planner import Plan, plan_sweep
from iclab.sweeps.results import Results
from iclab.sweeps.store import Store, check_writable
from iclab.sweeps.sweep import MOST_TRIALS
from iclab.sweeps.sweep_file import LineRequest, PhaseRequest, read_sweep

MOST_WORKERS = 4096
"""Largest number of packs that run at once."""


def main(arguments: list[str]) -> None:
    """Run the unfinished trials; `--dry-run` only estimates the cost."""
    parser = Parser("sweep", "Train and measure every run that a sweep file describes; after an interruption, the same "
                             "command resumes.\nThe exit code is 1 if a trial failed; one that diverged or got stuck "
                             "is a result like any other, and is counted.\nThe file, by example:\n\n"
                             + (sweep_file.__doc__ or "").partition("\n\n")[2].rstrip())
    parser.add_argument("file", metavar="FILE", help="a sweep file (TOML)")
    parser.add_argument("--engine", default="local", metavar="NAME", help="local or ray [default: local]")
    parser.add_argument("--address", metavar="ADDRESS", help="a running Ray cluster [default: start one locally]")
    parser.add_argument("--out", default="results", metavar="DIR", help="where to write [default: results]")
    parser.add_argument("--store", metavar="DIR", help="where runs are kept: a folder or fsspec URL [OUT/store]")
    parser.add_argument("--workers", type=int, metavar="INT", help="packs to run at once [default: one per core]")
    parser.add_argument("--memory", metavar="SIZE", help="memory limit for all packs together, such as 2GiB")
    parser.add_argument("--gpus", type=float, default=0.0, metavar="FLOAT", help="GPU share of a Ray task [default: 0]")
    parser.add_argument("--max-trials", type=int, default=MOST_TRIALS, metavar="INT",
                        help=f"largest number of trials that the file may describe [default: {MOST_TRIALS}]")
    parser.add_argument("--dry-run", action="store_true", help="count runs, time them briefly, estimate the cost")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.add_argument("--formats", default="svg,csv", metavar="NAMES",
                        help="formats of the picture besides SVG and the numbers in CSV, such as pdf,png")
    options = parser.parse_args(arguments)
    formats = read_formats(options.formats)
    if options.engine not in ENGINES:
        parser.error(f"engine must be one of {', '.join(ENGINES)}, got {options.engine!r}")
    if options.address is not None and options.engine != "ray":
        parser.error(f"address must be given with --engine ray, got {options.address!r}")
    if options.workers is not None and not 1 <= options.workers <= MOST_WORKERS:
        parser.error(f"workers must be in [1, {MOST_WORKERS}], got {options.workers}")
    if not 0 <= options.gpus <= MOST_WORKERS:
        parser.error(f"gpus must be in [0, {MOST_WORKERS}], got {options.gpus}")
    if options.max_trials < 1:
        parser.error(f"max-trials must be at least 1, got {options.max_trials}")
    memory = None if options.memory is None else read_bytes(options.memory, "memory")
    sweep, plot = read_sweep(options.file, options.max_trials)
    if isinstance(plot, PhaseRequest) and plot.theory is not None:
        find_theory(plot.theory)
    out = Path(options.out)
    check_writable(out)
    store = Store(options.store or out / "store")
    store.check()
    keep_compiled_programs(store)
    if options.dry_run:
        plan = plan_sweep(sweep, store, options.workers)
        print(to_text(plan.to_json()) if options.json else _plan_summary(plan, store))
        return
    began = time.perf_counter()
    finished_before = len(store.rows())
    try:
        with tally_bar() as show:
            results = run_sweep(sweep, store=store, engine=options.engine, address=options.address,
                                workers=options.workers, memory=memory, gpus=options.gpus, watch=show)
    except KeyboardInterrupt:
        newly_finished = len(store.rows()) - finished_before
        raise KeyboardInterrupt(f"{newly_finished} trials finished and are kept in {store.files.place}; rerun the same "
                                "command to continue.") from None
    say_damage(store)
    failed = results.frame.filter(results.frame["status"] == "failed")
    for name, families in results.left_out.items():
        print(f"iclab: {name} is left out: {', '.join(families)} prompts do not have it", file=sys.stderr)
    if len(failed):
        print(f"iclab: {len(failed)} trials failed, the first: {failed['reason'][0]}", file=sys.stderr)
    try:
        written = write_tables(out / "sweeps" / sweep.name, results, plot, formats)
    except IclabError as error:
        if not len(failed):
            raise
        print(f"iclab: {error}", file=sys.stderr)
        sys.exit(1)
    seconds = time.perf_counter() - began
    if options.json:
        print(to_text({"name": sweep.name, "trials": len(results.trials), **results.counts, "seconds": seconds,
                       "left_out": results.left_out, "files": [str(path) for path in written]}))
    else:
        counts = ", ".join(f"{number} {state}" for state, number in results.counts.items())
        print(f"{sweep.name}: {len(results.trials)} trials ({counts}) in {duration(seconds)}")
        print("\n".join(str(path) for path in written))
    if len(failed):
        sys.exit(1)


def write_tables(folder: Path, results: Results, plot: PhaseRequest | LineRequest | None, formats: Sequence[str] = ()
                 ) -> list[Path]:
    """Write every trial, the means over seeds and the picture; returns their paths."""
    files = {"trials.csv": results.frame.write_csv().encode(),
             "over_seeds.csv": results.over_seeds().write_csv().encode()}
    for name, content in files.items():
        write_whole(folder / name, content)
    paths = [folder / name for name in files]
    if plot is None:
        return paths
    if plot.quantity not in results.measures:
        print(f"iclab: no {plot.words}, {plot.quantity} was not measured in any run", file=sys.stderr)
        return paths
    if isinstance(plot, LineRequest):
        drawn = line_plot(results, plot.x, plot.y, by=plot.by, panel=plot.panel, centre=plot.centre, log_x=plot.log_x,
                          log_y=plot.log_y, title=results.sweep.name)
    else:
        drawn = phase_diagram(results, plot.x, plot.y, colour=plot.colour, panel=plot.panel, theory=plot.theory,
                              title=results.sweep.name)
    return paths + drawn.write(folder, formats)


def _plan_summary(plan: Plan, store: Store) -> str:
    if plan.trials == plan.finished:
        return f"{plan.trials} trials, all finished in {store.files.place}"
    return (f"{plan.trials} trials of {plan.trainings} trainings; {plan.finished} trials are finished in "
            f"{store.files.place}\n"
            f"{plan.packs} packs for {plan.workers} workers, {plan.compilations} programs to compile\n"
            f"about {duration(plan.seconds)}, of which {duration(plan.compile_seconds)} compiling "
            f"(measured: {plan.microseconds_per_model_step:.0f} us per model-step)\n"
            f"about {plan.total_mebibytes:.0f} MiB, of which {plan.pack_mebibytes:.1f} MiB per running pack")


