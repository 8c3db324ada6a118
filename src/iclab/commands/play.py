"""`iclab play`: write the playground, a page in which trained models run, and open it."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from pathlib import Path

from iclab.commands.options import Parser
from iclab.commands.programs import keep_compiled_programs
from iclab.commands.progress import bar
from iclab.core.files import write_whole
from iclab.lab.laboratory import Lab
from iclab.report.playground.exhibits import exhibits, kept, trained
from iclab.report.playground.page import render
from iclab.sweeps.store import Store, check_writable
from iclab.training import Trained

PAGE = "playground.html"


def main(arguments: list[str]) -> None:
    """Train the playground's models or load them from the store, write the page and open it."""
    parser = Parser("play", "Open the playground: poison prompts, break chains of thought and prune neurons yourself, "
                            "and watch trained models react. The page is a single file that works offline; the first "
                            "call trains its models, which takes up to a minute.")
    parser.add_argument("--out", default="results", metavar="DIR", help=f"where to write {PAGE} [default: results]")
    parser.add_argument("--store", default=None, metavar="DIR", help="where trained models are kept [OUT/store]")
    parser.add_argument("--seed", type=int, default=0, metavar="INT", help="base seed of the models [default: 0]")
    parser.add_argument("--no-open", action="store_true", help="write the page without opening it")
    options = parser.parse_args(arguments)
    if not 0 <= options.seed < 2**20:
        parser.error(f"seed must be in [0, {2**20}), got {options.seed}")
    out = Path(options.out)
    check_writable(out)
    store = Store(options.store or out / "store")
    store.check()
    keep_compiled_programs(store)
    try:
        lab = Lab(store, base_seed=options.seed)
        path = write_playground(out, lab, kept(lab))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"Trained models are kept in {store.files.place}; rerun the same command to continue."
                                ) from None
    print(f"playground: {path}")
    if not options.no_open and not webbrowser.open(path.resolve().as_uri()):
        print("No browser could be opened; open the file in one yourself.")


def write_playground(out: Path, lab: Lab, models: Sequence[Trained] | None) -> Path:
    """Write the page; if `models` is None, train them first, with a progress bar."""
    if models is None:
        with bar(f"{len(exhibits())} models for the playground") as lab.progress:
            models = trained(lab)
    path = out / PAGE
    write_whole(path, render(models, report=(out / "report.html").exists()).encode())
    return path
