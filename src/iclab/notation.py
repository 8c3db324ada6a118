"""One table: the papers' symbols, the public fields that hold them, what they mean."""

from __future__ import annotations

from typing import NamedTuple


class Symbol(NamedTuple):
    """A symbol of the papers."""

    symbol: str
    fields: tuple[str, ...]
    meaning: str
    paper: str


NOTATION = (
    Symbol("d, d_X", ("Classification.dimension",), "length of an input vector", "mamba, icl"),
    Symbol("M1", ("Classification.relevant_patterns",), "relevant patterns mu", "mamba, icl"),
    Symbol("M2", ("Classification.irrelevant_patterns",), "irrelevant patterns nu", "mamba, icl"),
    Symbol("V", ("Classification.outlier_patterns",), "outlier directions v", "mamba"),
    Symbol("l_tr, l_ts", ("Classification.prompt_length",), "context examples, in training and at test", "all"),
    Symbol("beta", ("Classification.pattern_norm",), "norm of every pattern", "mamba, icl"),
    Symbol("K, K'", ("Classification.irrelevant_scale",), "bound of the irrelevant coefficient kappa", "mamba, icl"),
    Symbol("alpha", ("Classification.decisive_fraction",), "fraction of decisive context examples", "icl, selectors"),
    Symbol("p_a, alpha", ("Classification.outlier_fraction",), "fraction of poisoned examples, training and test",
           "mamba"),
    Symbol("kappa_a, kappa_a'", ("Classification.outlier_scale",), "size of an outlier", "mamba"),
    Symbol("lambda", ("Classification.coefficient_low", "Classification.coefficient_high"),
           "coefficient of the relevant pattern", "selectors"),
    Symbol("tau", ("Classification.noise_norm",), "bound of the noise", "selectors"),
    Symbol("v'", ("Classification.outlier_mixtures",), "unseen outlier directions", "mamba"),
    Symbol("mu'", ("Classification.pattern_mixtures",), "out-of-domain patterns", "icl, selectors"),
    Symbol("U", ("Classification.tasks",), "shifts of the cyclic task family", "icl, mamba"),
    Symbol("q", ("LabelEmbedding.norm", "LabelEmbedding.size"), "vector that stands for the label +1", "icl"),
    Symbol("m", ("SoftmaxMLP.neurons",), "neurons of the MLP", "icl, selectors"),
    Symbol("m_a, m_b", ("SoftmaxMLP.attention_size",), "rows of W_Q, W_K and of W_V", "icl, selectors"),
    Symbol("delta", ("GatedAttention.init_scale", "SoftmaxMLP.init_scale"), "starting value of the diagonals",
           "mamba, icl"),
    Symbol("d_X", ("Chain.dimension",), "length of an input vector", "cot"),
    Symbol("M, M'", ("Chain.patterns",), "patterns of training and of a test", "cot"),
    Symbol("mu'", ("Chain.pattern_mixtures",), "test patterns, in the span of the training ones", "cot"),
    Symbol("K", ("Chain.reasoning_steps", "ChainEmbedding.steps"), "steps of a chain", "cot"),
    Symbol("l_tr, l_ts", ("Chain.prompt_length",), "context examples, of K columns each", "cot"),
    Symbol("alpha, alpha'", ("Chain.matching_fraction",), "fraction of examples that start at the query's pattern",
           "cot"),
    Symbol("delta", ("Chain.noise_norm",), "noise on the tokens of test examples", "cot"),
    Symbol("A_k", ("Chain.transitions",), "transition matrices of erroneous examples", "cot"),
    Symbol("c_k", ("ChainEmbedding.norm",), "position code of a step", "cot"),
    Symbol("xi", ("ChainAttention.init_scale",), "standard deviation of W before training", "cot"),
    Symbol("eta", ("Training.learning_rate",), "step size", "all"),
    Symbol("B", ("Training.batch_size",), "prompts in a batch", "all"),
    Symbol("T", ("Training.steps",), "gradient steps", "all"),
)
