"""`iclab train`: train one model and save it; an interrupted run can be resumed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from iclab.commands.kinds import add_kinds, default_run
from iclab.commands.options import Parser, add_spec, read_spec
from iclab.commands.output import to_text
from iclab.commands.progress import bar
from iclab.core import registry
from iclab.core.errors import shown
from iclab.core.identity import to_json
from iclab.core.spec import replace
from iclab.sweeps.store import check_writable
from iclab.tracking import tracker
from iclab.training import Trained, load_checkpoint, save_checkpoint, train

SAVE_EVERY = 5.0


def main(arguments: list[str]) -> None:
    """Train, saving the state every few seconds."""
    parser = Parser("train", "Train one model and save it as a safetensors checkpoint.\nThe exit code is 1 if training "
                             "diverged or got stuck (it learned nothing); the model is saved anyway.")
    parser.add_argument("--out", default="model.safetensors", metavar="FILE", help="[default: model.safetensors]")
    parser.add_argument("--resume", default=None, metavar="FILE", help="continue from this checkpoint; only "
                        "--training.steps may be given with it")
    parser.add_argument("--log", action="append", default=[], metavar="TRACKER:WHERE", help="log the training to "
                        "tensorboard:DIR, wandb:PROJECT (offline), mlflow:DIR or trackio:PROJECT (each needs the extra "
                        "of that name); may be repeated")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    default = default_run("train", arguments)
    add_kinds(parser)
    add_spec(parser, default)
    options = vars(parser.parse_args(arguments))
    out, resume, as_json = Path(options.pop("out")), options.pop("resume"), options.pop("json")
    logs = options.pop("log")
    options.pop("import", None)
    start = None
    if resume is None:
        run = read_spec(default, options)
    else:
        others = [name for name in options if name != "training.steps"]
        if others:
            parser.error(f"--{others[0]} cannot be given with --resume: the checkpoint fixes it")
        start = load_checkpoint(resume)
        steps = options.get("training.steps", start.run.training.steps)
        run = replace(start.run, training=replace(start.run.training, steps=steps))
    if os.path.isdir(out):
        parser.error(f"out must be a file, got the folder {str(out)!r}")
    check_writable(out.parent)
    try:
        out.stat()  # detect an invalid file name before training, not after
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        parser.error(f"out must be a file that can be written, got {shown(str(out))} "
                     f"({getattr(error, 'strerror', None) or error})")
    trackers = [tracker(log) for log in logs]
    saved = time.monotonic()
    latest: list[Callable[[], Trained]] = []

    def recorded(_: int, make: Callable[[], Trained]) -> None:
        nonlocal saved
        latest[:] = [make]
        if time.monotonic() - saved > SAVE_EVERY:
            save_checkpoint(out, make())
            saved = time.monotonic()

    try:
        with bar(registry.word(type(run.model))) as progress:
            trained = train(run, start=start, progress=progress, recorded=recorded, callbacks=trackers)
    except KeyboardInterrupt:
        if not latest:
            raise
        checkpoint = latest[0]()
        save_checkpoint(out, checkpoint)
        steps = int(checkpoint.steps[-1])
        if steps == run.training.steps:
            raise KeyboardInterrupt(f"all {steps} steps are saved in {out}.") from None
        raise KeyboardInterrupt(f"{steps} steps are saved; continue with `iclab train --resume {out} --out {out}`."
                                ) from None
    save_checkpoint(out, trained)
    final = float(trained.loss[-1])
    if as_json:
        print(to_text({"checkpoint": str(out), "status": trained.status, "steps": int(trained.steps[-1]),
                          "loss": final if np.isfinite(final) else None, "run": to_json(run)}))
    else:
        print(f"{trained.state}, {int(trained.steps[-1])} steps, loss {final:.4g}, saved to {out}")
    if trained.state != "trained":
        print(f"iclab: {trained.status}", file=sys.stderr)
        sys.exit(1)
