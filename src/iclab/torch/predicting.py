"""Any PyTorch module as a predictor, so that iclab's attacks and probes can measure it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from iclab.core.errors import SpecError
from iclab.prompts.prompt import Prompt
from iclab.torch.datasets import as_tensors


def predictor(module: Callable[..., Tensor]) -> Callable[[Prompt], np.ndarray]:
    """`prompts -> outputs` of a module that is called as `module(x, y)`, or `module(x, y, step)` for chains.

    It is called without gradients and in evaluation mode, on the device and in the precision of its first parameter,
    and is put back into its mode afterwards. A function on tensors will do, too.
    """
    def predict(prompts: Prompt) -> np.ndarray:
        with torch.inference_mode(), _evaluating(module):
            inputs = [_like(module, part) for part in as_tensors(prompts).inputs]
            _require_takes(module, inputs)
            outputs = module(*inputs)
        if not isinstance(outputs, Tensor):
            raise SpecError(f"module must return a tensor of outputs, got {type(outputs).__name__}")
        return outputs.to("cpu", torch.float64).numpy()

    return predict


def _require_takes(module: Callable[..., Any], inputs: Sequence[Tensor]) -> None:
    """Refuse a module that does not take as many inputs, where Python can tell."""
    try:
        signature = inspect.signature(module.forward if isinstance(module, nn.Module) else module)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*inputs)
    except TypeError as error:
        call = "module(x, y)" if len(inputs) == 2 else "module(x, y, step)"
        raise SpecError(f"module must be callable as {call}, got {type(module).__name__}{signature} ({error})"
                        ) from None


@contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """A module in evaluation mode, and every part of it back in its own mode afterwards."""
    modes = [(part, part.training) for part in module.modules()] if isinstance(module, nn.Module) else []
    for part, _ in modes:
        part.training = False
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def _like(module: Any, part: Tensor) -> Tensor:
    """A tensor on the module's device, numbers in its precision."""
    if not isinstance(module, nn.Module):
        return part
    weights = (weight for weight in chain(module.parameters(), module.buffers()) if weight.is_floating_point())
    first = next(weights, part)
    return part.to(first) if part.is_floating_point() else part.to(first.device)
