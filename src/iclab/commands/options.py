"""Command-line options from specs: every field is a typed option, its docstring the help."""

from __future__ import annotations

import argparse
import dataclasses
import shutil
import textwrap
import typing
from collections.abc import Collection
from typing import Any, NoReturn

from iclab.core.errors import IclabError, SpecError, did_you_mean, nearest
from iclab.core.parse import import_function, kinds
from iclab.core.spec import field_help, replace
from iclab.prompts.patterns import Matrix


class Parser(argparse.ArgumentParser):
    """A parser that reports errors in one line, and folds the paragraphs of its description, but no indented line."""

    def __init__(self, command: str, description: str):
        width = shutil.get_terminal_size().columns - 2
        lines = [line if line.startswith(" ") else textwrap.fill(line, width) for line in description.split("\n")]
        super().__init__(prog=f"iclab {command}", usage=f"iclab {command} [OPTIONS]", description="\n".join(lines),
                         allow_abbrev=False,
                         formatter_class=argparse.RawDescriptionHelpFormatter)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Like argparse, but refuse an option whose value is `--`, which argparse would turn into an empty list."""
        for argument in args or ():
            if argument.startswith("--") and argument.endswith("=--"):
                self.error(f"{argument[2:-3]} must be a value, got '--'")
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        _, _, unknown = message.partition("unrecognized arguments: ")
        raise IclabError(f"{message}{self._hint(unknown.split()[0]) if unknown else ''} (see `{self.prog} --help`)")

    def _hint(self, unknown: str) -> str:
        """The option that is meant, or whose last word is: `--training.steps` for `--step`."""
        name, options = unknown.split("=")[0], list(self._option_string_actions)
        words = {option.lstrip("-").split(".")[-1]: option for option in options}
        word = nearest(name.lstrip("-").split(".")[-1], words)
        return did_you_mean(name, options) if word is None else f"; did you mean {words[word]}?"


def add_spec(parser: argparse.ArgumentParser, default: Any, prefix: str = "", otherwise: str | None = None,
             skip: Collection[str] = ()) -> None:
    """Add an option `--prefix.field` for every field of a spec, nested specs included, except those in `skip`.

    `otherwise` replaces the default value shown in the help.
    """
    group = parser.add_argument_group(f"{prefix.rstrip('.') or 'run'} ({type(default).__name__})")
    hints = typing.get_type_hints(type(default))
    kind: Any = type(default)
    help_texts = field_help(kind)
    for field in dataclasses.fields(default):
        value, name = getattr(default, field.name), prefix + field.name.replace("_", "-")
        if field.name in skip:
            continue
        if dataclasses.is_dataclass(value):
            add_spec(parser, value, f"{name}.", otherwise, skip)
            continue
        text = f"{help_texts.get(field.name, '')} [default: {otherwise or value}]".replace("%", "%%")
        group.add_argument(f"--{name}", dest=name, help=text, metavar=_metavar(hints[field.name]),
                           type=_converter(hints[field.name], name), default=argparse.SUPPRESS)


def read_spec(default: Any, given: dict[str, Any], prefix: str = "") -> Any:
    """The spec with the given options applied."""
    changes = {}
    for field in dataclasses.fields(default):
        value, name = getattr(default, field.name), prefix + field.name.replace("_", "-")
        if dataclasses.is_dataclass(value):
            changes[field.name] = read_spec(value, given, f"{name}.")
        elif name in given:
            changes[field.name] = given[name]
    try:
        return replace(default, **changes)
    except SpecError as error:
        raise SpecError(f"{prefix}{error}") from None


def _metavar(hint: Any) -> str:
    allowed = kinds(hint)
    if Matrix in allowed:
        return "ROWS"
    for kind, name in ((bool, "BOOL"), (int, "INT"), (float, "FLOAT")):
        if kind in allowed:
            return name
    return "TEXT"


def _converter(hint: Any, name: str) -> Any:
    allowed = kinds(hint)

    def convert(text: str) -> Any:
        if text.lower() == "none" and type(None) in allowed:
            return None
        if bool in allowed:
            if text.lower() not in ("true", "false"):
                raise IclabError(f"{name} must be true or false, got {text!r}")
            return text.lower() == "true"
        for kind, what in ((int, "a whole number"), (float, "a number")):
            if kind in allowed:
                try:
                    return kind(text)
                except ValueError:
                    raise IclabError(f"{name} must be {what}, got {text!r}") from None
        if Matrix in allowed:
            return _rows(text, name)
        if name.endswith("tasks"):
            return _tasks(text, name)
        return import_function(text, name) if ":" in text else text

    return convert


def _rows(text: str, name: str) -> Matrix:
    try:
        return tuple(tuple(float(number) for number in row.split(",")) for row in text.split(";"))
    except ValueError:
        raise IclabError(f"{name} must be rows of numbers such as '0.7,0.6,-0.4;0.4,0.7,-0.6', got {text!r}") from None


def _tasks(text: str, name: str) -> Any:
    if "-" not in text:
        return text
    try:
        return tuple((int(a), int(b)) for a, b in (pair.split("-") for pair in text.split(",")))
    except ValueError:
        raise IclabError(f"{name} must be all, cyclic:U, unseen:U or pairs such as '0-1,2-3', got {text!r}") from None
