"""Which kinds the parts of a run are: options such as `--model softmax_mlp` are read before those of their fields."""

from __future__ import annotations

import argparse
from typing import Any

from iclab import registry
from iclab.commands.options import Parser
from iclab.errors import IclabError
from iclab.fields import import_module, of_kind
from iclab.specs import replace
from iclab.training import Run, Training

PARTS = ("model", "prompts", "model.embedding")


def add_kinds(parser: argparse.ArgumentParser) -> None:
    """Options that choose the class of a part, and one that imports modules which define more of them."""
    group = parser.add_argument_group("kinds")
    add_import(group)
    for path in PARTS:
        words = ", ".join(registry.word(cls) for cls in registry.kinds(path.split(".")[-1]))
        group.add_argument(f"--{path}", metavar="KIND", default=argparse.SUPPRESS,
                           help=f"{words}; the options below are its fields")


def add_import(group: Any) -> None:
    """The option that imports a module whose kinds are then known."""
    group.add_argument("--import", dest="import", action="append", metavar="MODULE", default=argparse.SUPPRESS,
                       help="a module of yours, in the working directory or installed, that defines kinds; may be "
                            "given several times")


def import_named(command: str, arguments: list[str]) -> None:
    """Import the modules that the arguments name, before anything else is read."""
    parser = Parser(command, "")
    add_import(parser)
    for module in vars(parser.parse_known_args(_without_help(arguments))[0]).get("import", ()):
        import_module(module, "import")


def default_run(command: str, arguments: list[str]) -> Run:
    """The run whose parts are of the kinds that the arguments name, all fields at their defaults.

    What is not named suits what is: chains bring the model that reads them. `usual_training` of the model's class are
    its defaults of training.
    """
    import_named(command, arguments)
    parser = Parser(command, "")
    for path in PARTS:
        parser.add_argument(f"--{path}", default=None)
    given = vars(parser.parse_known_args(_without_help(arguments))[0])
    model, prompts, embedding = (None if given[path] is None else of_kind(path.split(".")[-1], given[path], path)
                                 for path in PARTS)
    usual = Run()
    if model is None:
        read = usual.prompts if prompts is None else prompts
        model = usual.model if embedding is not None or read.speaks_of == "labels" else _matching("model", read)
    if embedding is not None:
        model = replace(model, embedding=embedding)
    if prompts is None:
        labels = model.embedding.speaks_of == "labels"
        prompts = usual.prompts if labels else _matching("prompts", model.embedding)
    training = Training(**getattr(model, "usual_training", {}))
    if prompts.speaks_of == "chain":
        training = replace(training, loss="squared")
    return Run(model=model, prompts=prompts, training=training)


def _matching(part: str, other: Any) -> Any:
    """The first kind of a part that speaks of the same kind of prompts as another part does."""
    for cls in registry.kinds(part):
        made = of_kind(part, cls.__name__, part)
        if (made.embedding if part == "model" else made).speaks_of == other.speaks_of:
            return made
    raise IclabError(f"{part} must be named: no kind is known that goes with {type(other).__name__}")


def _without_help(arguments: list[str]) -> list[str]:
    return [argument for argument in arguments if argument not in ("-h", "--help")]
