"""`iclab theory`: what the theorems say about a spec."""

from __future__ import annotations

import dataclasses
import shutil
import textwrap
from typing import Any

from iclab.commands.chain import add_transitions, read_transitions
from iclab.commands.options import Parser, add_spec, read_spec
from iclab.commands.output import to_text
from iclab.core.errors import IclabError
from iclab.core.files import read_file
from iclab.core.spec import replace
from iclab.papers.cot import settings as cot
from iclab.papers.icl import settings as icl
from iclab.papers.mamba import settings as mamba
from iclab.papers.selectors import settings as selectors
from iclab.prompts.transitions import as_transitions, matrices
from iclab.theory import Condition, Constant, Law, Statement, read_constants, shipped_constants, theory_of
from iclab.theory.statements import number
from iclab.training import Run, load_checkpoint

DESCRIPTION = """Evaluate every theorem, corollary and condition about a model for a training run and a test: which
premises hold, the predicted threshold or scaling with its fitted constant, and what is not covered. A bound is
sufficient, not necessary: where it does not hold, the theorem is silent and a measurement decides.

Without options the settings are those of the chosen paper's experiments."""
PAPERS = ("mamba", "icl", "selectors", "cot")
NOT_OF_RUN = ("paper", "checkpoint", "accuracy", "json")
"""Options that are not about the run."""
MARKS = {True: "yes", False: "no", None: "open"}


def main(arguments: list[str]) -> None:
    """Print the statements for a spec."""
    paper = _paper(arguments)
    run, test = _settings(paper)
    chains = paper == "cot"
    parser = Parser("theory", DESCRIPTION)
    parser.add_argument("--paper", default="mamba", metavar="NAME",
                        help=f"whose settings to start from: {', '.join(PAPERS)} [default: mamba]")
    parser.add_argument("--checkpoint", default=None, metavar="FILE",
                        help="use the run of a saved model; --test.* options start from its training prompts")
    parser.add_argument("--accuracy", type=float, default=0.1, metavar="FLOAT", help="the theorems' eps [default: 0.1]")
    parser.add_argument("--constants", default=None, metavar="FILE",
                        help="a constants.json written by `iclab reproduce` [default: those shipped with iclab]")
    parser.add_argument("--json", action="store_true", help="print JSON")
    if chains:
        add_transitions(parser)
    add_spec(parser, run, skip=("transitions", "pattern_mixtures") if chains else ())
    add_spec(parser, test, "test.", "as in the paper", skip=("transitions", "pattern_mixtures") if chains else ())
    options = vars(parser.parse_args(arguments))
    path = options.pop("constants")
    constants = shipped_constants() if path is None else _read(path)
    if options["checkpoint"] is not None:
        given = [name for name, value in options.items() if name not in NOT_OF_RUN and not name.startswith("test.")
                 and value is not None]
        if given:
            parser.error(f"--{given[0]} cannot be given with --checkpoint: the checkpoint fixes it")
        run = load_checkpoint(options["checkpoint"]).run
        if type(run.prompts) is not type(test):
            parser.error(f"paper must be one with {type(run.prompts).__name__} prompts, as the checkpoint has, got "
                         f"{paper!r}")
        test = read_spec(run.prompts, options, "test.")
    else:
        run = read_spec(run, options)
        test = _chain_test(run, test, options) if chains else read_spec(test, options, "test.")
    statements = theory_of(run, test, accuracy=options["accuracy"], constants=constants)
    if options["json"]:
        print(to_text([_plain(statement, run, test, constants) for statement in statements]))
    else:
        _show(statements, run, test, constants)


def _paper(arguments: list[str]) -> str:
    """The paper named in the arguments; it decides which options exist."""
    chosen = "mamba"
    for name, value in zip(arguments, [*arguments, ""][1:], strict=True):
        if name == "--paper":
            chosen = value
        elif name.startswith("--paper="):
            chosen = name.removeprefix("--paper=")
    if chosen not in PAPERS:
        raise IclabError(f"paper must be one of {', '.join(PAPERS)}, got {chosen!r}")
    return chosen


def _settings(paper: str) -> tuple[Run, Any]:
    """Training and test of a paper's experiments."""
    if paper == "mamba":
        return mamba.one_layer_run("mamba", mamba.SIZES["full"].steps), mamba.attacked_prompts("flip", 0.5)
    if paper == "icl":
        return icl.one_layer_run(0.8, icl.SIZES["full"].steps), icl.in_domain()
    if paper == "selectors":
        return selectors.a_run(selectors.SIZES["full"].steps), selectors.training_prompts()
    return cot.a_run(cot.SIZES["full"].steps), cot.default_test(prompt_length=20)


def _chain_test(run: Run, test: Any, options: dict[str, Any]) -> Any:
    """A chain test whose examples err as the options specify."""
    changed = read_spec(replace(test, transitions=None, pattern_mixtures=None), options, "test.")
    fields = {field.name: getattr(changed, field.name) for field in dataclasses.fields(changed)
              if field.name not in ("transitions", "pattern_mixtures")}
    sizes = {"steps": changed.reasoning_steps, "patterns": changed.patterns} if options["matrices"] is None else {}
    transitions = read_transitions({"steps": None, "patterns": None} | options | sizes)
    return cot.default_test(run.prompts, transitions=as_transitions(matrices(transitions)), **fields)


def _read(path: str) -> dict[str, Constant]:
    content = read_file(path, "constants")
    try:
        return read_constants(content.decode())
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise IclabError(f"constants must be a constants.json written by iclab reproduce, got {path!r} ({error})"
                         ) from None


def _law(law: Law, run: Any, test: Any, constants: dict[str, Constant]) -> dict[str, Any]:
    constant = constants.get(law.key)
    return {"law": law.key, "quantity": law.quantity, "formula": law.formula, "order": law.order(run, test),
            "constant": None if constant is None else constant.to_json(),
            "predicted": law.predict(run, test, constants), "yours": law.yours(run, test), "fitted in": law.entry,
            "at": law.measured_at}


def _plain(statement: Statement, run: Any, test: Any, constants: dict[str, Constant]) -> dict[str, Any]:
    return {"paper": statement.paper, "place": statement.place, "model": statement.subject,
            "verdict": statement.verdict, "promise": statement.promise,
            "premises": [premise._asdict() for premise in statement.premises],
            "laws": [_law(law, run, test, constants) for law in statement.laws], "not covered": statement.silent}


def _show(statements: list[Statement], run: Any, test: Any, constants: dict[str, Constant]) -> None:
    width = min(shutil.get_terminal_size((100, 20)).columns, 120)

    def say(text: str, first: str, rest: str | None = None) -> None:
        print(textwrap.fill(text, width, initial_indent=first, subsequent_indent=" " * len(first) if rest is None
                            else rest))

    if not statements:
        print(f"No theorem of the five papers covers this {type(run.model).__name__}.")
        return
    unmet = list(dict.fromkeys(f"{statement.paper}: {premise.sentence}" for statement in statements
                               for premise in statement.unmet))
    print("In short: every premise with a known constant is met." if not unmet else "In short:")
    for sentence in unmet:
        say(f"{sentence}.", "  ")
    shown: set[Condition] = set()
    for statement in statements:
        print(f"\n{statement.paper}, {statement.place} ({statement.subject}): {statement.verdict}")
        say(f"promises: {statement.promise}", "  ", "    ")
        for premise in statement.premises:
            if premise not in shown:
                say(_premise(premise), f"  {MARKS[premise.met]:>4}  ")
        repeated = sum(premise in shown for premise in statement.premises)
        if repeated:
            print(f"        and {repeated} listed above")
        shown |= set(statement.premises)
        for law in statement.laws:
            say(_law_words(law, run, test, constants), "   law  ")
        if statement.silent:
            say(f"note: {statement.silent}", "  ", "    ")


def _premise(premise: Condition) -> str:
    if premise.required == "yes":
        return premise.name
    return f"{premise.name} {premise.required}; yours {premise.actual}"


def _law_words(law: Law, run: Any, test: Any, constants: dict[str, Constant]) -> str:
    constant, order, yours = constants.get(law.key), law.order(run, test), law.yours(run, test)
    if constant is None:
        return f"{law.quantity} = c * {law.formula} = c * {order:.3g}, c not fitted; yours {number(yours)}"
    predicted = f"{constant.value:.3g} * {law.formula} = {constant.value * order:.3g}"
    return (f"{law.quantity} = {predicted}; yours {number(yours)} (constant fitted in {law.entry} for "
            f"{law.measured_at}; fitted to single settings, {constant.low:.3g} to {constant.high:.3g})")
