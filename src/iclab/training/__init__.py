"""Training: one compiled loop, ensembles of it, checkpoints."""

from iclab.training.checkpoint import load_checkpoint, save_checkpoint
from iclab.training.ensemble import train, train_many
from iclab.training.run import Run, Training
from iclab.training.trained import Trained

__all__ = ["Run", "Trained", "Training", "load_checkpoint", "save_checkpoint", "train", "train_many"]
