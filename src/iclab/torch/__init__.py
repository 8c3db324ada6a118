"""PyTorch both ways: the papers' models as `nn.Module`s with the same weights, and iclab's prompts as a dataset.

    module = to_torch(trained)                    # or of a Run: its starting weights
    for batch in PromptDataset.of(run):           # the very prompts that iclab trains on
        loss = hinge(module(*batch.inputs), batch.label)
        ...
    trained = from_torch(module)                  # a Trained again: attacks, probes, checkpoints
    measure_error(predictor(your_module), attack) # or any module of your own

Nothing else in iclab imports this package; it needs the extra `torch`.
"""

from __future__ import annotations

try:
    import torch  # noqa: F401
except ImportError:
    raise ImportError("iclab.torch needs PyTorch: pip install '.[torch]' in a clone of iclab") from None

from iclab.torch.chain_module import ChainAttentionModule
from iclab.torch.convert import from_torch, to_torch
from iclab.torch.datasets import PromptBatch, PromptDataset, prompt_loader
from iclab.torch.gated_module import GatedAttentionModule
from iclab.torch.gpt2_module import GPT2Module
from iclab.torch.module import PromptModule
from iclab.torch.objectives import cross_entropy, hinge, logistic, objective, squared
from iclab.torch.predicting import predictor
from iclab.torch.softmax_module import SoftmaxMLPModule

__all__ = ["ChainAttentionModule", "GPT2Module", "GatedAttentionModule", "PromptBatch", "PromptDataset",
           "PromptModule", "SoftmaxMLPModule", "cross_entropy", "from_torch", "hinge", "logistic", "objective",
           "predictor", "prompt_loader", "squared", "to_torch"]
