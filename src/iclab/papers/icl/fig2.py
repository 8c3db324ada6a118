"""Figure 2: inside the one-layer Transformer during training: norms (A), attention (B), neurons (C, D).

Cost: no extra training.
"""

from __future__ import annotations

import numpy as np

from iclab.figures.paths import Paths, path_figure
from iclab.figures.plots import Curve, Panel, Plot, curve_figure
from iclab.lab.entries import Entry, Findings
from iclab.lab.laboratory import Lab
from iclab.papers.icl.mechanism import NEURONS, PLACES, along, signs, watched_specs
from iclab.papers.icl.settings import SIZES
from iclab.papers.icl.trained import one_layer_models
from iclab.probes import UNIT

BUCKETS = 10
EACH = 5
"""Neurons of either sign of the output weight whose paths are drawn, as in the paper: the first ones, not chosen."""


def neuron_paths(history: dict[str, np.ndarray], steps: list[int]) -> Plot:
    """Magnitude against angle of single neurons of the first seed: (C) input parts, a_i > 0; (D) label parts."""
    norms_x, norms_y, cosine_x, cosine_y = (history[name][0] for name in NEURONS)
    half = norms_x.shape[1] // 2
    positive, both = np.arange(EACH), np.concatenate([np.arange(EACH), half + np.arange(EACH)])

    def paths(title: str, chosen: np.ndarray, cosines: np.ndarray, norms: np.ndarray) -> Paths:
        angles = np.degrees(np.arccos(np.clip(cosines[:, chosen], -1, 1)))
        return Paths(title, [f"neuron {i}, a_i {'>' if i < half else '<'} 0" for i in chosen], angles.T,
                     norms[:, chosen].T, [bool(i >= half) for i in chosen])

    return path_figure("icl.fig2.paths", "Single neurons during training",
                       f"The first {EACH} neurons of either sign of a_i, one seed. (C) the part that reads inputs, its "
                       "norm against its angle to the mean pattern, a_i > 0; (D) the part that reads labels, its norm "
                       "against its angle to q; squares: a_i < 0.",
                       [paths("(C) inputs", positive, cosine_x, norms_x), paths("(D) labels", both, cosine_y, norms_y)],
                       steps, "angle in degrees", "norm")


def run(lab: Lab) -> Findings:
    """Draw the figure."""
    models = one_layer_models(lab, 0.8)
    steps = [0, *models[0].steps.tolist()]
    norms = [Panel(f"(A) {vector}, out of domain", steps, [
        Curve("whole", along(models, f"{vector} norm/out of domain")),
        Curve("along its pattern", along(models, f"{vector} along its pattern/out of domain"))], y_label="norm")
        for vector in ("query", "key")]
    shares = {name: along(models, f"attention/{name}") for name in PLACES}
    attention = Panel("(B) attention on the query's pattern", steps, [Curve(name, values)
                                                                      for name, values in shares.items()], within=UNIT,
                      y_label="attention")
    training_plot = curve_figure("icl.fig2.training", "Norms and attention during training",
                                 "Decisive fraction 0.8 in training, 0.6 at test; (A) mean norms of W_Q p_query and "
                                 "W_K p_i and of their parts along the token's pattern; (B) the query's attention on "
                                 "examples with its pattern.",
                                 [*norms, attention], "training step", "", share_y=False)
    history = {name: along(models, name) for name in NEURONS}
    neurons = {name: values[:, -1] for name, values in history.items()}
    order = np.argsort(np.hypot(neurons["norm x"], neurons["norm y"]), axis=1)

    def bucketed(values: np.ndarray) -> np.ndarray:
        return np.take_along_axis(values, order, axis=1).reshape(len(values), BUCKETS, -1).mean(axis=2)

    cosines = bucketed(neurons["cosine x"])
    tenths = [100 * (i + 0.5) / BUCKETS for i in range(BUCKETS)]
    neuron_plot = curve_figure("icl.fig2.neurons", "Neurons after training, from the smallest to the largest",
                               "Means over tenths of the neurons, sorted by the norm of their row of W_O W_V: (C) the "
                               "part that reads inputs, (D) the part that reads labels, with the sign of the output "
                               "weight.",
                               [Panel("(C) inputs", tenths, [
                                   Curve("norm", bucketed(neurons["norm x"])),
                                   Curve("cosine with the mean pattern", cosines)]),
                                Panel("(D) labels", tenths, [
                                    Curve("norm", bucketed(neurons["norm y"])),
                                    Curve("cosine with +-q", bucketed(neurons["cosine y"] * signs(neurons)))])],
                               "percentile of the neurons' norms", "norm, cosine")
    return Findings(
        shown="How queries and keys grow during training, where attention goes, and what the neurons of the MLP read.",
        numbers=f"Attention on the query's pattern rises from {shares['in domain'][:, 0].mean():.2f} to "
                f"{shares['in domain'][:, -1].mean():.3f} in domain and {shares['out of domain'][:, -1].mean():.3f} "
                f"out of domain. The smallest tenth of the neurons has a cosine of {cosines[:, 0].mean():.2f} with "
                f"the mean pattern, the largest {cosines[:, -1].mean():.2f}.",
        plots=[training_plot, neuron_paths(history, steps), neuron_plot], specs=watched_specs(models))


ENTRY = Entry("icl.fig2", "Inside the one-layer Transformer during training", "li2024icl, figure 2", run, kind="figure",
              says="Norms grow along the relevant patterns, attention concentrates on the query's pattern, and all but "
                   "a few neurons turn towards the mean pattern and towards q or -q.", sizes=SIZES)
