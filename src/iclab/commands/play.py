"""`iclab play`: write the playground, a page in which trained models run, and open it."""

from __future__ import annotations

import webbrowser
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from iclab.commands.kinds import add_import, import_named
from iclab.commands.options import Parser
from iclab.commands.programs import keep_compiled_programs
from iclab.commands.progress import bar
from iclab.core.errors import IclabError
from iclab.core.files import write_whole
from iclab.lab.laboratory import Lab
from iclab.report.playground.exhibits import exhibits, kept, trained
from iclab.report.playground.order_curves import predicted_order
from iclab.report.playground.own import playground
from iclab.report.playground.page import render
from iclab.sweeps.store import Store, check_writable
from iclab.training import Trained, load_checkpoint

PAGE = "playground.html"
OWN_PAGE = "my_models.html"


def main(arguments: list[str]) -> None:
    """Write the page of the given checkpoints, or of the papers' models, and open it."""
    import_named("play", arguments)
    parser = Parser("play", "Open the playground: poison prompts, break chains of thought and prune neurons yourself, "
                            "and watch trained models react. The page is a single file that works offline. With "
                            "checkpoints it shows your own models on prompts like theirs; without, those of the "
                            "papers, which the first call trains in up to a minute.")
    parser.add_argument("checkpoints", nargs="*", metavar="CHECKPOINT",
                        help=f"files saved by `iclab train`, for a page of your own models, {OWN_PAGE}")
    parser.add_argument("--out", default="results", metavar="DIR", help="where to write the page [default: results]")
    parser.add_argument("--store", metavar="DIR", help="where trained models are kept [OUT/store]")
    parser.add_argument("--seed", type=int, metavar="INT", help="base seed of the papers' models [default: 0]")
    parser.add_argument("--no-open", action="store_true", help="write the page without opening it")
    add_import(parser)
    options = parser.parse_args(arguments)
    if options.seed is not None and not 0 <= options.seed < 2**20:
        parser.error(f"seed must be in [0, {2**20}), got {options.seed}")
    if options.checkpoints:
        for name in ("seed", "store"):
            if getattr(options, name) is not None:
                parser.error(f"{name} must not be given with checkpoints, got {getattr(options, name)}")
    out = Path(options.out)
    check_writable(out)
    path = _own_page(out, options.checkpoints) if options.checkpoints else _papers_page(out, options)
    print(f"playground: {path}")
    if not options.no_open and not webbrowser.open(path.resolve().as_uri()):
        print("No browser could be opened; open the file in one yourself.")


def _own_page(out: Path, checkpoints: Sequence[str]) -> Path:
    """The page of the models in these files, under the files' names; under their paths where names are not enough."""
    stems = [Path(text).stem for text in checkpoints]
    names = checkpoints if len(set(stems)) < len(stems) else stems
    for text in checkpoints:
        if checkpoints.count(text) > 1:
            raise IclabError(f"checkpoints must be different files, got {text!r} twice")
    path = out / OWN_PAGE
    playground({name: load_checkpoint(text) for name, text in zip(names, checkpoints, strict=True)}).save(path)
    return path


def _papers_page(out: Path, options: Namespace) -> Path:
    """The page of the papers' models, trained now if the store does not have them."""
    store = Store(options.store or out / "store")
    store.check()
    keep_compiled_programs(store)
    try:
        lab = Lab(store, base_seed=options.seed or 0)
        return write_playground(out, lab, kept(lab))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"Trained models are kept in {store.files.place}; rerun the same command to continue."
                                ) from None


def write_playground(out: Path, lab: Lab, models: Sequence[Trained] | None) -> Path:
    """Write the page; if `models` is None, train them first, with a progress bar."""
    if models is None:
        with bar(f"{len(exhibits())} models for the playground") as lab.progress:
            models = trained(lab)
    path = out / PAGE
    predicted = lab.remember(predicted_order, models[0].run)  # Mamba is the first exhibit
    write_whole(path, render(models, report=(out / "report.html").exists(), predicted=predicted).encode())
    return path
