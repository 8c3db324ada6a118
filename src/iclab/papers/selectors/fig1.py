"""Figure 1: norms of patterns in queries and keys (a), feature and label part of the neurons (b), during training.

The paper gives no settings for it. It is drawn at ours, where patterns are longer than the theorems allow, and inside
the premises of propositions 1 and 2. Cost: none beyond `selectors.features`.
"""

from __future__ import annotations

from collections.abc import Sequence

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.entries import Entry, Findings
from iclab.lab.laboratory import Lab
from iclab.papers.selectors.mechanism import along, pattern_norms
from iclab.papers.selectors.settings import SIZES
from iclab.papers.selectors.trained import theorem_models, trained_models
from iclab.training import Trained

SPLITS = {"after W_V, as printed": " after values", "before W_V": ""}


def panels(where: str, models: Sequence[Trained]) -> list[Panel]:
    """(a) and (b) for these models."""
    steps = [0, *models[0].steps.tolist()]
    read = [Curve(f"{part} part, split {how}", along(models, f"{part}s{cut}")) for how, cut in SPLITS.items()
            for part in ("feature", "label")]
    norms = [Curve(name, values) for name, values in pattern_norms(models).items()]
    return [Panel(f"(a) norms of patterns, {where}", steps, norms, y_label="norm"),
            Panel(f"(b) neurons before their ReLU, {where}", steps, read, y_label="input of a neuron")]


def run(lab: Lab) -> Findings:
    """Draw the figure."""
    models = {"our settings": trained_models(lab), "inside the premises": theorem_models(lab)}
    plot = curve_figure(
        "selectors.fig1", "Patterns in queries and keys, and what the neurons read, during training",
        "(a) mean norms of W_Q mu, W_K mu (relevant) and W_Q nu, W_K nu (irrelevant); (b) mean input of the neurons "
        "that vote for the truth, split into what comes from features and from labels: after W_V, as printed, "
        "or before, where training has not mixed them.",
        [panel for where, trained in models.items() for panel in panels(where, trained)],
        "training step", "", share_y=False)
    text = []
    for where, trained in models.items():
        norms = ", ".join(f"{name} {values[:, 0].mean():.2f} to {values[:, -1].mean():.2f}"
                          for name, values in pattern_norms(trained).items())
        parts = ", ".join(f"{along(trained, f'features{cut}')[:, -1].mean():.2f} and "
                          f"{along(trained, f'labels{cut}')[:, -1].mean():.2f} (split {how})"
                          for how, cut in SPLITS.items())
        text.append(f"With {where}, norms from before training to its end: {norms}; feature and label part reach "
                    f"{parts}." if where == "our settings" else
                    f"Inside the premises: {norms}; {parts}.")
    return Findings(
        shown="How patterns grow in queries and keys, and which part of the attended columns the neurons read.",
        numbers=" ".join(text), plots=[plot],
        specs=[(trained[0].run, trained[0].run.prompts) for trained in models.values()])


ENTRY = Entry("selectors.fig1", "Patterns and neurons during training", "li2024selectors, figure 1", run,
              kind="figure", sizes=SIZES,
              says="Relevant patterns grow, irrelevant ones stay; the label part outgrows the feature part.")
