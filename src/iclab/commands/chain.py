"""`iclab chain`: does step-by-step reasoning pay? The theorems' prediction and a measurement."""

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
from iclab.core.errors import IclabError
from iclab.core.files import read_file, read_json
from iclab.core.limits import LARGEST, MOST_PROMPTS
from iclab.papers.cot.compare import Comparison, compare_reasoning
from iclab.prompts.transitions import same_steps, weak_step

DESCRIPTION = """Predict from li2024cot's theorems, and measure with trained models, whether step-by-step prompting
(CoT) or direct prompting (ICL) wins on a reasoning task whose examples contain errors.

Give the examples' transition matrices in one of three ways:
  --matrices FILE                      your own: JSON [K matrices of M' rows], or a .npy of shape (K, M', M')
  --tau-o X --rho-o Y --condition-one  identical steps, with one rival, that yield these values
  --tau X --rho Y --weak-step k        one weak step, evenly spread errors in the others [default: tau 0.5, rho 0.8]"""

FAULTS = (ValueError, TypeError, SyntaxError, TokenError, RecursionError, MemoryError)
"""What reading JSON, and the Python literal in the header of a .npy file, can raise."""
RANGES = {"examples": (1, 100_000), "models": (2, 10_000), "prompts": (1, MOST_PROMPTS),
          "training_steps": (1, LARGEST - 1), "seed": (0, 2**20 - 1)}
"""Smallest and largest value of each option; an interval over models needs at least two."""


def main(arguments: list[str]) -> None:
    """Compare both ways of prompting."""
    parser = Parser("chain", DESCRIPTION)

    def option(name: str, kind: Any, default: Any, text: str) -> None:
        shown = "" if default is None else f" [default: {default}]"
        metavar = {int: "INT", float: "FLOAT"}.get(kind, "TEXT")
        parser.add_argument(f"--{name}", type=kind, default=default, metavar=metavar, help=text + shown)

    add_transitions(parser)
    option("steps", int, None, "K, steps per chain, without --matrices [default: 3]")
    option("patterns", int, None, "M', patterns of the task, without --matrices [default: 10]")
    option("examples", int, 20, "test examples")
    option("matching-fraction", float, 0.8, "alpha', fraction of examples that start at the query's pattern")
    option("noise", float, 0.2, "length of the noise on the examples' patterns")
    option("models", int, 4, "models to train")
    option("prompts", int, 1000, "test prompts per model")
    option("training-steps", int, 1000, "T, training steps")
    option("seed", int, 0, "base seed")
    option("store", str, None, "folder that keeps trained models for later calls")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    given = vars(parser.parse_args(arguments))
    transitions = read_transitions(given)
    for name, (least, most) in RANGES.items():
        if not least <= given[name] <= most:
            raise IclabError(f"{name.replace('_', '-')} must be in [{least}, {most:,}], got {given[name]}")
    with bar(f"{given['models']} models") as progress:
        comparison = compare_reasoning(
            transitions, examples=given["examples"], matching_fraction=given["matching_fraction"],
            noise_norm=given["noise"], models=given["models"], prompts=given["prompts"],
            training_steps=given["training_steps"], base_seed=given["seed"], store=given["store"], progress=progress)
    if given["json"]:
        print(to_text(_plain(comparison)))
    else:
        _show(comparison, given["examples"])


def add_transitions(parser: Parser) -> None:
    """Add the options that describe transition matrices."""
    for name, kind, text in (("matrices", str, "file with the transition matrices"),
                             ("tau", float, "smallest probability of a chain without a wrong step"),
                             ("rho", float, "how far behind the second most likely pattern is in every step"),
                             ("weak-step", int, "which step is the weak one [default: 1]"),
                             ("tau-o", float, "smallest probability of the most likely answer"),
                             ("rho-o", float, "how far behind the second most likely answer is"),
                             ("condition-one", str, "true or false: whether the most likely answer is the right one "
                                                    "[default: true]")):
        parser.add_argument(f"--{name}", type=kind, default=None, help=text,
                            metavar={int: "INT", float: "FLOAT"}.get(kind, "TEXT"))


def read_transitions(given: dict[str, Any]) -> Any:
    """The matrices that the options describe."""
    step_options = [name for name in ("tau", "rho", "weak_step") if given[name] is not None]
    answer_options = [name for name in ("tau_o", "rho_o", "condition_one") if given[name] is not None]
    clash = [*step_options, *answer_options, *(name for name in ("steps", "patterns") if given[name] is not None)]
    if given["matrices"] is not None:
        if clash:
            raise IclabError(f"{clash[0].replace('_', '-')} cannot be given with matrices: the file fixes it")
        return _read(given["matrices"])
    sizes = {"steps": given["steps"] or 3, "patterns": given["patterns"] or 10}
    for name in sizes:
        if given[name] is not None and given[name] < 1:
            raise IclabError(f"{name} must be a whole number >= 1, got {given[name]}")
    if not answer_options:
        chosen = {"tau": 0.5, "rho": 0.8, "weak_step": 1} | {name: given[name] for name in step_options}
        return weak_step(chosen["tau"], chosen["rho"], weak=int(chosen["weak_step"]), **sizes)
    if step_options:
        raise IclabError(f"{step_options[0].replace('_', '-')} cannot be given with "
                         f"{answer_options[0].replace('_', '-')}: the answers determine the steps")
    for name in ("tau_o", "rho_o"):
        if given[name] is None:
            raise IclabError(f"{name.replace('_', '-')} must be given with {answer_options[0].replace('_', '-')}")
    condition_one = str(given["condition_one"] or "true").lower()
    if condition_one not in ("true", "false"):
        raise IclabError(f"condition-one must be true or false, got {given['condition_one']!r}")
    return same_steps(given["tau_o"], given["rho_o"], condition_one=condition_one == "true", **sizes)


def _read(name: str) -> Any:
    """Matrices from a file."""
    content = read_file(name, "matrices")
    try:
        return _array(content) if Path(name).suffix == ".npy" else read_json(content)
    except FAULTS as error:
        raise IclabError(f"matrices must be JSON, or a .npy array of numbers, got {name!r} ({error})") from None


def _array(content: bytes) -> np.ndarray:
    """The array of a .npy file; its header must match the number of bytes that follow."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in read_header:
        raise ValueError(f"unsupported format version {version}")
    shape, by_columns, kind = read_header[version](file)
    size = len(content) - file.tell()
    if kind.hasobject or math.prod(shape) * kind.itemsize != size:
        raise ValueError(f"{kind} of shape {shape} in {size} bytes")
    return np.frombuffer(content, kind, offset=file.tell()).reshape(shape, order="F" if by_columns else "C")


def _plain(comparison: Comparison) -> dict[str, Any]:
    """The comparison as JSON values."""
    values: dict[str, Any] = {
        "quality": comparison.quality._asdict(),
        "theory": {**comparison.prediction._asdict(), "winner": comparison.prediction.winner},
        "measured": {name: getattr(comparison, name)._asdict() for name in ("cot", "cot_answer", "icl", "difference")},
        "vote": {"cot": comparison.vote, "cot_answer": comparison.vote_answer, "icl": comparison.vote_icl},
        "winner": comparison.winner, "notes": list(comparison.notes)}
    for name in ("right", "failing"):
        values["quality"][name] = values["quality"][name].tolist()
    return values


def _show(comparison: Comparison, examples: int) -> None:
    q = comparison.quality
    fails = "" if q.condition_one else f" (not from {', '.join(map(str, q.failing[:6]))})"
    print(f"examples: tau {q.tau:.3f}, rho {q.rho:.3f}; tau_o {q.tau_o:.3f}, rho_o {q.rho_o:.3f}; Condition 1: "
          f"{'yes' if q.condition_one else 'no'}{fails}")
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in ("", "CoT", "ICL"):
        table.add_column(column, justify="right" if column else "left", no_wrap=True)

    def interval(part: Any) -> str:
        return f"{part.mean:.3f} [{max(part.low, 0):.3f}, {part.high:.3f}]"

    order = "never" if np.isinf(comparison.prediction.icl) else f"{comparison.prediction.icl:.0f}"
    table.add_row("examples needed (order)", f"{comparison.prediction.cot:.0f}", order)
    table.add_row(f"error with {examples}, ideal vote", f"{comparison.vote_answer:.3f}", f"{comparison.vote_icl:.3f}")
    table.add_row(f"error with {examples}, trained", interval(comparison.cot_answer), interval(comparison.icl))
    table.add_row("  mean over steps", interval(comparison.cot), "")
    Console().print(table)
    winner = "no clear winner" if comparison.winner == "neither" else comparison.winner
    print(f"predicted: {comparison.prediction.winner}    measured: {winner} (ICL error minus CoT error: "
          f"{comparison.difference.mean:.3f} [{comparison.difference.low:.3f}, {comparison.difference.high:.3f}])")
    for note in comparison.notes:
        print(f"note: {note}")
