"""Training: one compiled loop, ensembles of it, checkpoints."""

from iclab.training.callbacks import Callback
from iclab.training.checkpoint import load_checkpoint, save_checkpoint
from iclab.training.run import Run, Training
from iclab.training.sgd import Setup, begin, probed
from iclab.training.trained import Trained
from iclab.training.trainer import train, train_many

__all__ = ["Callback", "Run", "Setup", "Trained", "Training", "begin", "load_checkpoint", "probed", "save_checkpoint",
           "train", "train_many"]
