"""The papers: their keys and what they are about."""

from __future__ import annotations

from typing import NamedTuple


class Paper(NamedTuple):
    """A paper; the report keeps the order of `SOURCES`."""

    key: str
    name: str
    subject: str


SOURCES = {
    "mamba": Paper("li2025mamba", "Mamba and poisoned prompts",
                    "One-layer and three-layer Mamba against a linear Transformer when context examples carry "
                    "outliers. A workshop and a full version; where they differ the full one is followed."),
    "icl": Paper("li2024icl", "Softmax attention with an MLP",
                  "In-context learning in and out of domain, classical baselines, magnitude pruning; also GPT-2."),
    "selectors": Paper("li2024selectors", "Feature selectors",
                        "The precursor of icl: patterns with coefficients and bounded noise, features and labels."),
    "cot": Paper("li2024cot", "Chain of thought",
                  "Attention alone on K-step reasoning: step by step against direct, with noisy and wrong examples."),
}
