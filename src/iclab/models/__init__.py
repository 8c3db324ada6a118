"""Models: `init(key, dimension) -> params`, `apply(params, columns) -> (output, intermediates)`, for one prompt."""

from iclab.models.chain_attention import ChainAttention
from iclab.models.embedding import ChainEmbedding, LabelEmbedding, TokenEmbedding, VectorEmbedding
from iclab.models.forward import forward, forward_batch
from iclab.models.gated_attention import GatedAttention, Intermediates
from iclab.models.gates import MEMBERS
from iclab.models.gpt2 import GPT2
from iclab.models.intervened import Clamped, Grafted, Patched, Scaled
from iclab.models.mamba2_block import Mamba2Block
from iclab.models.mamba_block import MambaBlock
from iclab.models.sites import site
from iclab.models.softmax_attention import SoftmaxAttention
from iclab.models.softmax_mlp import SoftmaxMLP

__all__ = ["GPT2", "MEMBERS", "ChainAttention", "ChainEmbedding", "Clamped", "GatedAttention", "Grafted",
           "Intermediates", "LabelEmbedding", "Mamba2Block", "MambaBlock", "Patched", "Scaled", "SoftmaxAttention",
           "SoftmaxMLP", "TokenEmbedding", "VectorEmbedding", "forward", "forward_batch", "site"]
