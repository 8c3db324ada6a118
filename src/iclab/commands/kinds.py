"""Options that choose the class of a run's parts, such as `--model softmax_mlp`, read before those of its fields."""

from __future__ import annotations

import argparse
from typing import Any

from iclab.commands.options import Parser
from iclab.core import registry
from iclab.core.parse import import_module, of_kind
from iclab.core.spec import replace
from iclab.training import Run
from iclab.training.matching import model_for, prompts_for, training_for

PARTS = ("model", "prompts", "model.embedding")


def add_kinds(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the class of a part, and `--import` for modules that define more classes."""
    group = parser.add_argument_group("kinds")
    add_import(group)
    for path in PARTS:
        names = ", ".join(registry.word(cls) for cls in registry.kinds(path.split(".")[-1]))
        group.add_argument(f"--{path}", metavar="KIND", default=argparse.SUPPRESS,
                           help=f"{names}; the options below are its fields")


def add_import(group: Any) -> None:
    """Add `--import`, which imports a module that registers more kinds."""
    group.add_argument("--import", dest="import", action="append", metavar="MODULE", default=argparse.SUPPRESS,
                       help="your module, in the working directory or installed, that defines kinds; may be "
                            "repeated")


def import_named(command: str, arguments: list[str]) -> None:
    """Import the modules given with `--import`, before any other option is read."""
    parser = Parser(command, "")
    add_import(parser)
    for module in vars(parser.parse_known_args(_without_help(arguments))[0]).get("import", ()):
        import_module(module, "import")


def default_run(command: str, arguments: list[str]) -> Run:
    """The run with parts of the kinds named in the arguments, and all fields at their defaults.

    Unnamed parts are chosen to match the named ones: chain prompts get the model that reads them. The model class's
    `usual_training` holds its training defaults.
    """
    import_named(command, arguments)
    parser = Parser(command, "")
    for path in PARTS:
        parser.add_argument(f"--{path}", default=None)
    given = vars(parser.parse_known_args(_without_help(arguments))[0])
    model, prompts, embedding = (None if given[path] is None else of_kind(path.split(".")[-1], given[path], path)
                                 for path in PARTS)
    if model is None:
        model = Run().model if prompts is None or embedding is not None else model_for(prompts)
    if embedding is not None:
        model = replace(model, embedding=embedding)
    if prompts is None:
        prompts = prompts_for(model)
    return Run(model=model, prompts=prompts, training=training_for(model, prompts))


def _without_help(arguments: list[str]) -> list[str]:
    return [argument for argument in arguments if argument not in ("-h", "--help")]
