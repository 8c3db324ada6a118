"""`iclab pull`: fetch a shared model into a checkpoint file."""

from __future__ import annotations

from iclab.commands.kinds import add_import, import_named
from iclab.commands.options import Parser
from iclab.core import registry
from iclab.hub import pull
from iclab.training import save_checkpoint


def main(arguments: list[str]) -> None:
    """Read a shared model, check it, and save it."""
    import_named("pull", arguments)
    parser = Parser("pull", "Fetch a model that `iclab push` or `iclab.push` shared, and save it as a checkpoint.")
    parser.add_argument("where", metavar="WHERE", help="a folder, an fsspec URL, or hf://OWNER/NAME (extra hub)")
    parser.add_argument("file", metavar="FILE", help="the checkpoint to write, for `iclab eval` and the others")
    add_import(parser)
    options = parser.parse_args(arguments)
    trained = pull(options.where)
    save_checkpoint(options.file, trained)
    print(f"{registry.word(type(trained.run.model))} {trained.state}, {int(trained.steps[-1])} steps, loss "
          f"{trained.loss[-1]:.4g}, saved to {options.file}")
