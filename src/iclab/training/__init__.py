"""Training: one compiled loop, ensembles of it, checkpoints."""

from iclab.training.ensemble import Trained, train, train_many
from iclab.training.run import Run, Training

__all__ = ["Run", "Trained", "Training", "train", "train_many"]
