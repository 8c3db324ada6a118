"""Models and prompts that go together: a model reads some kinds of labels, a family of prompts has one."""

from __future__ import annotations

from typing import Any

from iclab.core import registry
from iclab.core.errors import IclabError
from iclab.core.parse import of_kind
from iclab.models.protocol import HasUsualTraining, Model
from iclab.prompts.prompt import Family
from iclab.training.run import Run, Training


def reads(model: Model, prompts: Family) -> bool:
    """Whether a model reads the labels of these prompts."""
    return prompts.labels.name in model.embedding.reads


def prompts_for(model: Model) -> Any:
    """The default prompts if the model reads them, else the first registered family that it reads."""
    candidates = (of_kind("prompts", cls.__name__, "prompts") for cls in registry.kinds("prompts"))
    for prompts in (Run().prompts, *candidates):
        if reads(model, prompts):
            return prompts
    raise IclabError(f"prompts must be named: {type(model).__name__} reads no registered family")


def model_for(prompts: Family) -> Any:
    """The default model if it reads the prompts, else the first registered model that does."""
    candidates = (of_kind("model", cls.__name__, "model") for cls in registry.kinds("model"))
    for model in (Run().model, *candidates):
        if reads(model, prompts):
            return model
    raise IclabError(f"model must be named: no registered model reads {type(prompts).__name__} as it is")


def training_for(model: Model, prompts: Family) -> Training:
    """The usual training of a model, with a loss that suits the labels of the prompts."""
    usual = dict(model.usual_training) if isinstance(model, HasUsualTraining) else {}
    losses = prompts.labels.losses
    if usual.get("loss", Training().loss) not in losses:
        usual["loss"] = losses[0]
    return Training(**usual)
