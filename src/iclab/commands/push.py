"""`iclab push`: share a saved model in a folder, at a URL or on the Hugging Face Hub."""

from __future__ import annotations

from typing import Any

from iclab.commands.eval import WORDS, chain_rates
from iclab.commands.kinds import add_import, import_named
from iclab.commands.options import Parser
from iclab.core.spec import replace
from iclab.hub import push
from iclab.probes import measure_error
from iclab.prompts import Chain
from iclab.training import Trained, load_checkpoint


def main(arguments: list[str]) -> None:
    """Write the model, its spec and a model card, for which the error may be measured."""
    import_named("push", arguments)
    parser = Parser("push", "Share a saved model: WHERE gets model.safetensors, config.json and a model card, "
                            "README.md.\nWHERE is a folder, an fsspec URL such as s3://bucket/model, or a repository "
                            "of the Hugging Face Hub,\nhf://OWNER/NAME (needs the extra hub and an account that is "
                            "logged in; a new repository is private).")
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="a file saved by `iclab train`")
    parser.add_argument("where", metavar="WHERE", help="where it goes")
    parser.add_argument("--measure", type=int, default=0, metavar="INT", help="measure its error on so many fresh "
                        "prompts as in training, for the card [default: 0]")
    add_import(parser)
    options = parser.parse_args(arguments)
    if options.measure < 0:
        parser.error(f"measure must be a whole number >= 0, got {options.measure}")
    trained = load_checkpoint(options.checkpoint)
    push(trained, options.where, errors=_measured(trained, options.measure) if options.measure else None)
    print(f"pushed to {options.where}")


def _measured(trained: Trained, count: int) -> dict[str, Any]:
    """The error on prompts as in training; of a chain model step by step and direct."""
    prompts = trained.run.prompts
    if not isinstance(prompts, Chain):
        return {"prompts as in training": measure_error(trained, prompts, count=count)}
    rates = chain_rates(trained, replace(prompts, partly_solved=False), count, 0)
    return {f"{WORDS[name]}, {count} chains as in training": rates[name] for name in ("cot", "icl")}
