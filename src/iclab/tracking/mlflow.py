"""MLflow, in a local SQLite file. Look at it with `mlflow ui --backend-store-uri sqlite:///FOLDER/mlflow.db`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from iclab.core.errors import IclabError
from iclab.tracking.tracker import Tracker, need

EXPERIMENT = "iclab"
PARAMETERS, VALUES = 100, 1000
"""Most parameters and values that MLflow takes in one call."""
EVERY = 1.0
"""Seconds between two calls: each is a transaction of the database, far slower than a record is made."""


class MLflow(Tracker):
    """Logs every run to the experiment `iclab` of a database in a folder, or of the tracking server at a URL."""

    def __init__(self, where: str | Path):
        need("mlflow", "mlflow", "sqlalchemy", "alembic")
        from mlflow import MlflowClient

        super().__init__()
        self.folder = None if "://" in str(where) else Path(where).absolute()
        try:
            if self.folder is not None:
                self.folder.mkdir(parents=True, exist_ok=True)
            self.client = MlflowClient(str(where) if self.folder is None else f"sqlite:///{self.folder}/mlflow.db")
        except Exception as error:  # of this system, of MLflow or of the database
            raise IclabError(f"an MLflow log must be a folder that can be written or the URL of a server, got "
                             f"{str(where)!r} ({' '.join(str(error).split())})") from None

    def open(self, name: str, settings: dict[str, Any]) -> RunLog:
        """A new run whose parameters are the spec."""
        experiment = self.client.get_experiment_by_name(EXPERIMENT)
        place = None if self.folder is None else (self.folder / "artifacts").as_uri()
        known = experiment.experiment_id if experiment else self.client.create_experiment(EXPERIMENT, place)
        return RunLog(self.client, self.client.create_run(known, run_name=name).info.run_id, settings)

    def write(self, log: RunLog, step: int, values: Mapping[str, float]) -> None:
        """Values wait until enough of them make a call."""
        log.add(step, values)

    def close(self, log: RunLog, status: str, error: BaseException | None) -> None:
        """Write what waits, and how training ended."""
        log.flush()
        self.client.set_tag(log.run_id, "status", status)
        how = "FINISHED" if error is None else "KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED"
        self.client.set_terminated(log.run_id, how)


class RunLog:
    """A run in MLflow's database."""

    def __init__(self, client: Any, run_id: str, settings: dict[str, Any]):
        from mlflow.entities import Param

        self.client, self.run_id = client, run_id
        self.waiting: list[Any] = []
        self.flushed = time.monotonic()
        parameters = [Param(name, str(value)) for name, value in settings.items()]
        for first in range(0, len(parameters), PARAMETERS):
            client.log_batch(run_id, params=parameters[first:first + PARAMETERS])

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Take in a record."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self.waiting += [Metric(name, value, now, step) for name, value in values.items()]
        if time.monotonic() - self.flushed > EVERY:
            self.flush()

    def flush(self) -> None:
        """Write all values that wait."""
        for first in range(0, len(self.waiting), VALUES):
            self.client.log_batch(self.run_id, metrics=self.waiting[first:first + VALUES])
        self.waiting, self.flushed = [], time.monotonic()
