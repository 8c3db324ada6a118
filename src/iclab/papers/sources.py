"""The papers: their keys and what they are about."""

from __future__ import annotations

from typing import NamedTuple


class Source(NamedTuple):
    """A paper; the report keeps the order of `SOURCES`."""

    key: str
    name: str
    subject: str


SOURCES = {
    "mamba": Source("li2025mamba", "Mamba and poisoned prompts",
                    "One-layer and three-layer Mamba against a linear Transformer when context examples carry "
                    "outliers. A workshop and a full version; where they differ the full one is followed."),
    "icl": Source("li2024icl", "Softmax attention with an MLP",
                  "In-context learning in and out of domain, classical baselines, magnitude pruning; also GPT-2."),
    "selectors": Source("li2024selectors", "Feature selectors",
                        "The precursor of icl: patterns with coefficients and bounded noise, features and labels."),
    "cot": Source("li2024cot", "Chain of thought",
                  "Attention alone on K-step reasoning: step by step against direct, with noisy and wrong examples."),
}
