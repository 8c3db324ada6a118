"""Trainings in experiment trackers: a callback for each, whose package is imported when it is made.

    train(run, callbacks=[TensorBoard("logs")])
"""

from __future__ import annotations

from iclab.core.errors import IclabError, did_you_mean
from iclab.tracking.mlflow import MLflow
from iclab.tracking.tensorboard import TensorBoard
from iclab.tracking.tracker import Tracker
from iclab.tracking.trackio import Trackio
from iclab.tracking.wandb import WandB

__all__ = ["TRACKERS", "MLflow", "TensorBoard", "Tracker", "Trackio", "WandB", "tracker"]

TRACKERS: dict[str, tuple[type[TensorBoard | WandB | MLflow | Trackio], str]] = {
    "tensorboard": (TensorBoard, "DIR"), "wandb": (WandB, "PROJECT"), "mlflow": (MLflow, "DIR"),
    "trackio": (Trackio, "PROJECT")}
"""How options name a tracker, and what each wants to know."""


def tracker(text: str) -> Tracker:
    """The tracker that an option such as `tensorboard:DIR` names."""
    name, _, where = text.partition(":")
    if name not in TRACKERS or not where:
        forms = ", ".join(f"{name}:{wanted}" for name, (_, wanted) in TRACKERS.items())
        raise IclabError(f"log must be one of {forms}, got {text!r}{did_you_mean(name, set(TRACKERS) - {name})}")
    return TRACKERS[name][0](where)
