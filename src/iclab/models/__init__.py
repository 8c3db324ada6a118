"""Models: `init(key, dimension) -> params`, `model(params, prompt) -> (output, intermediates)`, for one prompt."""

from iclab.models.embedding import LabelEmbedding
from iclab.models.gated_attention import GatedAttention, Intermediates
from iclab.models.gates import MEMBERS
from iclab.models.gpt2 import GPT2
from iclab.models.softmax_mlp import SoftmaxMLP

__all__ = ["GPT2", "MEMBERS", "GatedAttention", "Intermediates", "LabelEmbedding", "SoftmaxMLP"]
