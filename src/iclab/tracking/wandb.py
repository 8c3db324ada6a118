"""Weights & Biases, offline: nothing leaves the machine until `wandb sync` sends it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from iclab.tracking.tracker import Tracker, need


class WandB(Tracker):
    """Logs every run to `project`, in files in `folder`/wandb (the working directory unless WANDB_DIR says otherwise).

    `mode`, or else WANDB_MODE, may be `online`: then the logs are sent to the account that is logged in.
    """

    def __init__(self, project: str, folder: str | Path | None = None, mode: str | None = None):
        need("wandb", "wandb")
        super().__init__()
        self.project, self.folder = project, folder
        self.mode: Any = mode or os.environ.get("WANDB_MODE") or "offline"

    def open(self, name: str, settings: dict[str, Any]) -> Any:
        """A new run beside those that are open."""
        import wandb

        if self.folder is not None:
            Path(self.folder).mkdir(parents=True, exist_ok=True)
        return wandb.init(project=self.project, name=name, config=settings, dir=self.folder, mode=self.mode,
                          reinit="create_new", settings=wandb.Settings(silent=True, console="off"))

    def write(self, log: Any, step: int, values: Mapping[str, float]) -> None:
        """One row of its history."""
        log.log(dict(values), step=step)

    def close(self, log: Any, status: str, error: BaseException | None) -> None:
        """Finish the run, with its status in the summary."""
        log.summary["status"] = status
        log.finish(exit_code=0 if error is None else 1)
