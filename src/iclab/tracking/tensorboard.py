"""TensorBoard: an event file per run. Look at them with `tensorboard --logdir FOLDER`."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from iclab.tracking.tracker import Tracker, need

WRITER = "tensorboard.summary.writer.event_file_writer"
FLUSH = 5
"""Seconds after which the page sees a record at the latest."""


class TensorBoard(Tracker):
    """Logs every run to a folder of its own in `folder`: scalars, the spec as text and as hyperparameters."""

    def __init__(self, folder: str | Path):
        need("tensorboard", WRITER)
        super().__init__()
        self.folder = Path(folder)

    def open(self, name: str, settings: dict[str, Any]) -> Any:
        """The writer of a new event file that begins with the spec."""
        from tensorboard.plugins.hparams.summary_v2 import hparams_pb
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        writer = EventFileWriter(str(_new_folder(self.folder, name)), flush_secs=FLUSH)
        _add(writer, hparams_pb(settings, start_time_secs=time.time()))
        _add(writer, _text("spec", f"```json\n{json.dumps(settings, indent=2)}\n```"))
        return writer

    def write(self, log: Any, step: int, values: Mapping[str, float]) -> None:
        """One scalar for every value."""
        from tensorboard.compat.proto.summary_pb2 import Summary

        _add(log, Summary(value=[Summary.Value(tag=name, simple_value=value) for name, value in values.items()]), step)

    def close(self, log: Any, status: str, error: BaseException | None) -> None:
        """The last event says how training ended."""
        _add(log, _text("status", status))
        log.close()


def _add(writer: Any, summary: Any, step: int = 0) -> None:
    from tensorboard.compat.proto.event_pb2 import Event

    writer.add_event(Event(wall_time=time.time(), step=step, summary=summary))


def _text(name: str, content: str) -> Any:
    from tensorboard.plugins.text.summary_v2 import text_pb

    return text_pb(name, content)


def _new_folder(folder: Path, name: str) -> Path:
    """A folder that was not there: TensorBoard would draw the runs of a folder as one line."""
    number = 1
    while True:
        path = folder / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir(parents=True)
            return path
        except FileExistsError:
            if not path.exists():  # it is `folder` that is no folder
                raise
            number += 1
