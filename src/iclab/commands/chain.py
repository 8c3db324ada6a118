"""`iclab chain`: does it pay to reason step by step? The theorems' prediction, and a measurement."""

from __future__ import annotations

import io
import math
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from iclab.commands.options import Parser
from iclab.commands.output import to_text
from iclab.commands.progress import bar
from iclab.errors import IclabError
from iclab.inputs import read_file, read_json
from iclab.limits import LARGEST, MOST_PROMPTS
from iclab.papers.cot.compare import Comparison, compare_reasoning
from iclab.prompts.transitions import same_steps, weak_step

DESCRIPTION = """Predict from li2024cot's theorems, and measure with trained models, whether step-by-step prompting
(CoT) or direct prompting (ICL) wins on a reasoning task whose examples go wrong.

The examples' transition matrices are, in this order of choice:
  --matrices FILE                      your own: JSON [K matrices of M' rows], or a .npy of shape (K, M', M')
  --tau-o X --rho-o Y --condition-one  steps all alike, with one rival, that give these
  --tau X --rho Y --weak-step k        one weak step, the others go wrong evenly [default: tau 0.5, rho 0.8]"""

FAULTS = (ValueError, TypeError, SyntaxError, TokenError, RecursionError, MemoryError)
"""What reading JSON, and the Python literal in the header of a .npy file, can raise."""
RANGES = {"examples": (1, 100_000), "models": (2, 10_000), "prompts": (1, MOST_PROMPTS),
          "training_steps": (1, LARGEST - 1), "seed": (0, 2**20 - 1)}
"""The least and the largest whole numbers that these options may be; an interval needs two models."""


def main(arguments: list[str]) -> None:
    """Compare both ways of prompting."""
    parser = Parser("chain", DESCRIPTION)

    def option(name: str, kind: Any, default: Any, text: str) -> None:
        shown = "" if default is None else f" [default: {default}]"
        metavar = {int: "INT", float: "FLOAT"}.get(kind, "TEXT")
        parser.add_argument(f"--{name}", type=kind, default=default, metavar=metavar, help=text + shown)

    add_transitions(parser)
    option("steps", int, None, "K, steps of a chain, when there is no file [default: 3]")
    option("patterns", int, None, "M', patterns of the task, when there is no file [default: 10]")
    option("examples", int, 20, "test examples")
    option("matching-fraction", float, 0.8, "alpha', fraction of examples that start at the query's pattern")
    option("noise", float, 0.2, "length of the noise on the examples' patterns")
    option("models", int, 4, "models to train")
    option("prompts", int, 1000, "test prompts for each of them")
    option("training-steps", int, 1000, "T, training steps")
    option("seed", int, 0, "base seed")
    option("store", str, None, "folder that keeps the trained models for the next call")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    given = vars(parser.parse_args(arguments))
    made = read_transitions(given)
    for name, (least, most) in RANGES.items():
        if not least <= given[name] <= most:
            raise IclabError(f"{name.replace('_', '-')} must be in [{least}, {most:,}], got {given[name]}")
    with bar(f"{given['models']} models") as progress:
        found = compare_reasoning(
            made, examples=given["examples"], matching_fraction=given["matching_fraction"], noise_norm=given["noise"],
            models=given["models"], prompts=given["prompts"], training_steps=given["training_steps"],
            base_seed=given["seed"], store=given["store"], progress=progress)
    if given["json"]:
        print(to_text(_plain(found)))
    else:
        _show(found, given["examples"])


def add_transitions(parser: Parser) -> None:
    """The options that describe transition matrices."""
    for name, kind, text in (("matrices", str, "file with the transition matrices"),
                             ("tau", float, "least probability of a chain without a wrong step"),
                             ("rho", float, "how far the second most likely pattern stays behind in every step"),
                             ("weak-step", int, "which step is the weak one [default: 1]"),
                             ("tau-o", float, "least probability of the most likely answer"),
                             ("rho-o", float, "how far the second most likely answer stays behind"),
                             ("condition-one", str, "true or false: whether the most likely answer is the right one "
                                                    "[default: true]")):
        parser.add_argument(f"--{name}", type=kind, default=None, help=text,
                            metavar={int: "INT", float: "FLOAT"}.get(kind, "TEXT"))


def read_transitions(given: dict[str, Any]) -> Any:
    """The matrices that the options describe."""
    of_steps = [name for name in ("tau", "rho", "weak_step") if given[name] is not None]
    of_answers = [name for name in ("tau_o", "rho_o", "condition_one") if given[name] is not None]
    clash = [*of_steps, *of_answers, *(name for name in ("steps", "patterns") if given[name] is not None)]
    if given["matrices"] is not None:
        if clash:
            raise IclabError(f"{clash[0].replace('_', '-')} cannot be given with matrices: the file fixes it")
        return _read(given["matrices"])
    sizes = {"steps": given["steps"] or 3, "patterns": given["patterns"] or 10}
    for name in sizes:
        if given[name] is not None and given[name] < 1:
            raise IclabError(f"{name} must be a whole number >= 1, got {given[name]}")
    if not of_answers:
        asked = {"tau": 0.5, "rho": 0.8, "weak_step": 1} | {name: given[name] for name in of_steps}
        return weak_step(asked["tau"], asked["rho"], weak=int(asked["weak_step"]), **sizes)
    if of_steps:
        raise IclabError(f"{of_steps[0].replace('_', '-')} cannot be given with {of_answers[0].replace('_', '-')}: the "
                         "steps follow from what the answers are to be")
    for name in ("tau_o", "rho_o"):
        if given[name] is None:
            raise IclabError(f"{name.replace('_', '-')} must be given with {of_answers[0].replace('_', '-')}")
    said = str(given["condition_one"] or "true").lower()
    if said not in ("true", "false"):
        raise IclabError(f"condition-one must be true or false, got {given['condition_one']!r}")
    return same_steps(given["tau_o"], given["rho_o"], condition_one=said == "true", **sizes)


def _read(name: str) -> Any:
    """Matrices from a file."""
    content = read_file(name, "matrices")
    try:
        return _array(content) if Path(name).suffix == ".npy" else read_json(content)
    except FAULTS as error:
        raise IclabError(f"matrices must be JSON, or a .npy array of numbers, got {name!r} ({error})") from None


def _array(content: bytes) -> np.ndarray:
    """The array of a .npy file; its header must promise as many numbers as follow it."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in read_header:
        raise ValueError(f"version {version} of the format")
    shape, by_columns, kind = read_header[version](file)
    held = len(content) - file.tell()
    if kind.hasobject or math.prod(shape) * kind.itemsize != held:
        raise ValueError(f"{kind} of shape {shape} in {held} bytes")
    return np.frombuffer(content, kind, offset=file.tell()).reshape(shape, order="F" if by_columns else "C")


def _plain(found: Comparison) -> dict[str, Any]:
    """The comparison as JSON values."""
    said: dict[str, Any] = {
        "quality": found.quality._asdict(),
        "theory": {**found.prediction._asdict(), "winner": found.prediction.winner},
        "measured": {name: getattr(found, name)._asdict() for name in ("cot", "cot_answer", "icl", "difference")},
        "vote": {"cot": found.vote, "cot_answer": found.vote_answer, "icl": found.vote_icl},
        "winner": found.winner, "notes": list(found.notes)}
    for name in ("right", "failing"):
        said["quality"][name] = said["quality"][name].tolist()
    return said


def _show(found: Comparison, examples: int) -> None:
    q = found.quality
    fails = "" if q.condition_one else f" (not from {', '.join(map(str, q.failing[:6]))})"
    print(f"examples: tau {q.tau:.3f}, rho {q.rho:.3f}; tau_o {q.tau_o:.3f}, rho_o {q.rho_o:.3f}; Condition 1: "
          f"{'yes' if q.condition_one else 'no'}{fails}")
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in ("", "CoT", "ICL"):
        table.add_column(column, justify="right" if column else "left", no_wrap=True)

    def interval(part: Any) -> str:
        return f"{part.mean:.3f} [{max(part.low, 0):.3f}, {part.high:.3f}]"

    order = "never" if np.isinf(found.prediction.icl) else f"{found.prediction.icl:.0f}"
    table.add_row("order of examples needed", f"{found.prediction.cot:.0f}", order)
    table.add_row(f"error with {examples}, ideal vote", f"{found.vote_answer:.3f}", f"{found.vote_icl:.3f}")
    table.add_row(f"error with {examples}, trained", interval(found.cot_answer), interval(found.icl))
    table.add_row("  mean over steps", interval(found.cot), "")
    Console().print(table)
    won = "neither for certain" if found.winner == "neither" else found.winner
    print(f"predicted: {found.prediction.winner}    measured: {won} (ICL's error less CoT's: "
          f"{found.difference.mean:.3f} [{found.difference.low:.3f}, {found.difference.high:.3f}])")
    for note in found.notes:
        print(f"note: {note}")
