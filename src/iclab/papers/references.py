"""The five papers: what they are called, who wrote them, where they appeared; two are versions of one work."""

from __future__ import annotations

from typing import NamedTuple


class Reference(NamedTuple):
    """A published text."""

    title: str
    authors: str
    venue: str
    year: int | None = None
    """None for a manuscript that has no date."""
    link: str = ""

    @property
    def words(self) -> str:
        """Authors, venue and year in one line."""
        return f"{self.authors}. {self.where}"

    @property
    def where(self) -> str:
        """Venue and year."""
        separator = ", " if self.venue[-1:].isdigit() else " "
        return self.venue if self.year is None else f"{self.venue}{separator}{self.year}"


class Paper(NamedTuple):
    """A work that entries are about; the report keeps the order of `SOURCES`."""

    key: str
    name: str
    subject: str
    references: tuple[Reference, ...] = ()
    """The version that is followed, then others."""


SOURCES = {
    "mamba": Paper(
        "li2025mamba", "Mamba and poisoned prompts",
        "One-layer and three-layer Mamba against a linear Transformer when context examples carry outliers. A workshop "
        "and a full version; where they differ the full one is followed.",
        (Reference("Can Mamba Learn In Context with Outliers? A Theoretical Generalization Analysis",
                   "Hongkang Li, Songtao Lu, Xiaodong Cui, Pin-Yu Chen, Meng Wang", "arXiv 2510.00399", 2025,
                   "https://arxiv.org/abs/2510.00399"),
         Reference("Understanding Mamba in In-Context Learning with Outliers: A Theoretical Generalization Analysis",
                   "Hongkang Li, Songtao Lu, Xiaodong Cui, Pin-Yu Chen, Meng Wang", "HiLD workshop at ICML", 2025))),
    "icl": Paper(
        "li2024icl", "Softmax attention with an MLP",
        "In-context learning in and out of domain, classical baselines, magnitude pruning; also GPT-2.",
        (Reference("How Do Nonlinear Transformers Learn and Generalize in In-Context Learning?",
                   "Hongkang Li, Meng Wang, Songtao Lu, Xiaodong Cui, Pin-Yu Chen", "ICML", 2024,
                   "https://arxiv.org/abs/2402.15607"),)),
    "selectors": Paper(
        "li2024selectors", "Feature selectors",
        "The precursor of icl: patterns with coefficients and bounded noise, features and labels.",
        (Reference("Transformers as Multi-Task Feature Selectors: Generalization Analysis of In-Context Learning",
                   "Hongkang Li, Meng Wang, Songtao Lu, Hui Wan, Xiaodong Cui, Pin-Yu Chen", "M3L workshop at NeurIPS",
                   2023, "https://openreview.net/forum?id=BMQ4i2RVbE"),)),
    "cot": Paper(
        "li2024cot", "Chain of thought",
        "Attention alone on K-step reasoning: step by step against direct, with noisy and wrong examples.",
        (Reference("How Do Nonlinear Transformers Acquire Generalization-Guaranteed CoT Ability?", "Anonymous authors",
                   "Manuscript under review at ICML"),)),
}
OURS = {
    "scaling": Paper("scaling", "As the problem grows",
                     "Not a paper: what becomes of the papers' statements, and of our own, as patterns, neurons, "
                     "batches and prompts grow and the start becomes small."),
    "beyond": Paper("beyond", "Beyond the five papers",
                    "Not a paper: questions that the papers raise and leave open, about causes, regression, tokens, "
                    "the real Mamba block and the dynamics of training."),
}
"""What entries ask across the papers, by key."""
ASKED_FOR = ("beyond",)
"""Rooms whose entries run only when they are named."""
