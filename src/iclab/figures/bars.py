"""Bars of gate values by position, clean and poisoned, with a fitted decay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.figures.axes import add_legends, new_axes, put_labels
from iclab.figures.lettering import label
from iclab.figures.recipes import Plot, recipe, to_csv
from iclab.figures.style import CLEAN, POISONED, THEORY
from iclab.probes.error_rate import UNIT, seed_interval

WITHOUT, WITH = "without outlier", "with outlier"
"""What the bars are of."""


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
    rows: list[tuple[Any, ...]] = []
    drawn = []
    for panel in panels:
        examples = panel.clean.shape[1]
        position = [int(at) for at in examples - np.arange(examples)]
        series = {}
        for name_of, values in ((WITHOUT, panel.clean), (WITH, panel.poisoned)):
            columns = [column[np.isfinite(column)] for column in values.T]
            ends = np.array([seed_interval(column, within=UNIT) if len(column) else (np.nan,) * 3
                             for column in columns])
            series[name_of] = ends
            rows += [(panel.title, name_of, at, *(f"{v:.6g}" for v in end), len(column))
                     for at, end, column in zip(position, ends, columns, strict=True)]
        rows += [(panel.title, panel.fit_label, at, f"{v:.6g}", "", "", "")
                 for at, v in zip(position, panel.fit, strict=True)]
        drawn.append({"title": panel.title, "position": position, "series": series, "fit": panel.fit,
                      "fit_label": panel.fit_label})
    return recipe(name, title, caption, "gates", {"panels": drawn},
                  to_csv(("panel", "series", "x", "mean", "low", "high", "seeds"), rows))


def draw_gates(_: str, panels: Sequence[Mapping[str, Any]]) -> Any:
    """Panels side by side."""
    width = max(3.7, 4.6 / len(panels))
    figure, (axes,) = new_axes(1, len(panels), width, 2.9)
    for axis, panel in zip(axes, panels, strict=True):
        position = np.array(panel["position"])
        for name, colour, shift in ((WITHOUT, CLEAN, -0.2), (WITH, POISONED, 0.2)):
            mean, low, high = np.array(panel["series"][name], float).T
            axis.bar(position + shift, mean, 0.4, color=colour, label=name, yerr=np.abs([low - mean, high - mean]),
                     error_kw={"elinewidth": 0.7, "ecolor": "#555555"})
        axis.plot(position, np.array(panel["fit"], float), **THEORY, label=label(panel["fit_label"]))
        axis.set_ylim(0, None)
        put_labels(axis, panel["title"], "context example (then the query)", "gate value", width - 0.7, 2.2)
    add_legends(figure, list(axes))
    return figure
