"""`iclab eval`: the error of a saved model under any attack."""

from __future__ import annotations

import os
from typing import Any

from iclab.commands.kinds import add_import, import_named
from iclab.commands.options import Parser, add_spec, read_spec
from iclab.commands.output import say, to_text
from iclab.core import registry
from iclab.core.spec import replace
from iclab.probes import bayes_predictor, information_floor, measure_error
from iclab.probes.chains import chain_errors
from iclab.prompts import Chain, Classification
from iclab.sweeps.measures import applies
from iclab.training import Trained, load_checkpoint


def main(arguments: list[str]) -> None:
    """Measure the error on test prompts: the training prompts with the given options applied."""
    import_named("eval", arguments)
    # The checkpoint decides which test fields exist, so it is read before the options.
    paths = [argument for argument in arguments if not argument.startswith("-") and os.path.isfile(argument)]
    trained = load_checkpoint(paths[0]) if paths else None
    parser = Parser("eval", "Measure the error of a checkpoint on fresh prompts. Test prompts are as in training "
                            "unless options change them.")
    parser.add_argument("checkpoint", help="a file saved by `iclab train`")
    parser.add_argument("--count", type=int, default=10_000, metavar="INT", help="test prompts [default: 10000]")
    parser.add_argument("--seed", type=int, default=0, metavar="INT", help="seed of the test prompts [default: 0]")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    add_import(parser)
    add_spec(parser, Classification() if trained is None else trained.run.prompts, "test.", otherwise="as in training")
    options = vars(parser.parse_args(arguments))
    if trained is None or options["checkpoint"] != paths[0]:
        trained = load_checkpoint(options["checkpoint"])
    chains = isinstance(trained.run.prompts, Chain)
    base = replace(trained.run.prompts, partly_solved=False) if chains else trained.run.prompts
    test = read_spec(base, options, "test.")
    if test.dimension != trained.run.prompts.dimension:
        parser.error(f"test.dimension must be that of the model, {trained.run.prompts.dimension}, got {test.dimension}")
    measured = (chain_rates if chains else label_rates)(trained, test, options["count"], options["seed"])
    if options["json"]:
        print(to_text({**measured, "status": trained.status}))
        return
    low, high, count = measured.pop("low", None), measured.pop("high", None), measured.pop("prompts")
    texts = [f"{WORDS[name]} {value:.4f}" for name, value in measured.items()]
    if low is not None:
        texts[0] += f" [{low:.4f}, {high:.4f}]"
    say("", "  ".join(texts) + f"  ({count} prompts, {registry.word(type(trained.run.model))} {trained.status})")


ERRORS = {"tokens": "cross_entropy"}
"""What the error of a kind of labels is called where it is neither a rate nor a squared error."""
WORDS = {"error": "error", "squared_error": "squared error", "cross_entropy": "cross-entropy", "hinge": "hinge",
         "floor": "floor", "bayes": "Bayes", "cot": "chain of thought", "cot_answer": "last step", "icl": "direct",
         "vote": "step-by-step vote", "vote_icl": "direct vote"}


def label_rates(trained: Trained, test: Any, count: int, seed: int) -> dict[str, Any]:
    """The error of a label model, with the floor and the Bayes error where they are known."""
    rates: dict[str, Any] = measure_error(trained, test, count=count, seed=seed)._asdict()
    if test.labels.name != "sign":
        del rates["hinge"]
    if not test.labels.is_rate:
        rates = {ERRORS.get(test.labels.name, "squared_error"): rates.pop("error"), **rates}
    for name in ("floor", "bayes"):
        if applies(name, test):
            rates[name] = (information_floor(test) if name == "floor"
                           else measure_error(bayes_predictor(test), test, count=count, seed=seed).error)
    return rates


def chain_rates(trained: Trained, test: Any, count: int, seed: int) -> dict[str, Any]:
    """Errors of a chain model, step by step and direct, with those of the ideal vote."""
    errors = chain_errors([trained], [test], [test.prompt_length], count=count, seed=seed)
    names = ("cot", "cot_answer", "icl", "vote", "vote_icl")
    return {**{name: float(getattr(errors, name)[0, 0, 0]) for name in names}, "prompts": count}
