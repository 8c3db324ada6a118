"""Models: `init(key, dimension) -> params`, `model(params, prompt) -> (output, intermediates)`, for one prompt."""

from iclab.models.embedding import LabelEmbedding
from iclab.models.gated_attention import GatedAttention, Intermediates
from iclab.models.gates import MEMBERS

__all__ = ["MEMBERS", "GatedAttention", "Intermediates", "LabelEmbedding"]
