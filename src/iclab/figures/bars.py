"""Bars of gate values by position, clean and poisoned, with a fitted decay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.figures.plots import Plot, to_csv, to_svg
from iclab.figures.style import CLEAN, POISONED, style
from iclab.probes.error_rate import UNIT, seed_interval


@dataclass(frozen=True)
class Bars:
    """One pair of axes: gates of clean and of poisoned examples, nearest to the query first, one row per seed."""

    title: str
    clean: Float[np.ndarray, "seeds examples"]
    poisoned: Float[np.ndarray, "seeds examples"]
    fit: Float[np.ndarray, " examples"]
    """The decay fitted to the clean gates."""
    fit_label: str


def gate_figure(name: str, title: str, caption: str, panels: Sequence[Bars]) -> Plot:
    """Bars side by side, the query to the right of the last; whiskers are 95 % intervals over seeds."""
    import matplotlib.pyplot as plt

    rows = []
    with style():
        figure, grid = plt.subplots(1, len(panels), figsize=(max(4.6, 3.7 * len(panels)), 2.9), squeeze=False)
        for axis, panel in zip(grid[0], panels, strict=True):
            examples = panel.clean.shape[1]
            position = examples - np.arange(examples)
            for label, values, colour, shift in (("without outlier", panel.clean, CLEAN, -0.2),
                                                 ("with outlier", panel.poisoned, POISONED, 0.2)):
                ends = np.array([seed_interval(column[np.isfinite(column)], within=UNIT) if np.isfinite(column).any()
                                 else (np.nan,) * 3 for column in values.T])
                mean, spread = ends[:, 0], np.abs(ends[:, 1:].T - ends[:, 0])
                axis.bar(position + shift, mean, 0.4, color=colour, label=label, yerr=spread,
                         error_kw={"elinewidth": 0.7, "ecolor": "#555555"})
                rows += [(panel.title, label, int(p), *(f"{v:.6g}" for v in end), len(values))
                         for p, end in zip(position, ends, strict=True)]
            axis.plot(position, panel.fit, color="#0b3954", linewidth=1.3, linestyle=(0, (4, 2)), label=panel.fit_label)
            rows += [(panel.title, panel.fit_label, int(p), f"{v:.6g}", "", "", "")
                     for p, v in zip(position, panel.fit, strict=True)]
            axis.set(title=panel.title, xlabel="context example (the query follows the last)", ylim=(0, None))
            axis.legend(loc="upper left", fontsize=7.5)
        grid[0, 0].set_ylabel("gate value")
        figure.tight_layout()
        text = to_svg(figure)
        plt.close(figure)
    return Plot(name, title, caption, text, to_csv(("panel", "series", "x", "mean", "low", "high", "seeds"), rows))
