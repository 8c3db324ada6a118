"""Paths: where single things go during training, in the plane of two numbers, coloured by the step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.figures.axes import new_axes, put_labels
from iclab.figures.recipes import Plot, recipe, to_csv


@dataclass(frozen=True)
class Paths:
    """One pair of axes: a path per thing."""

    title: str
    names: Sequence[str]
    x: Float[np.ndarray, "things steps"]
    y: Float[np.ndarray, "things steps"]
    dashed: Sequence[bool] = ()
    """Which paths are dashed; none if not given."""


def path_figure(name: str, title: str, caption: str, panels: Sequence[Paths], steps: Sequence[int], x_label: str,
                y_label: str) -> Plot:
    """Paths side by side; the colour of a point is the step, on one scale for all."""
    rows = [(panel.title, thing, step, f"{x:.6g}", f"{y:.6g}") for panel in panels
            for i, thing in enumerate(panel.names)
            for step, x, y in zip(steps, panel.x[i], panel.y[i], strict=True)]
    return recipe(name, title, caption, "paths",
                  {"panels": panels, "steps": steps, "x_label": x_label, "y_label": y_label},
                  to_csv(("panel", "thing", "step", "x", "y"), rows))


def draw_paths(_: str, panels: Sequence[Mapping[str, Any]], steps: Sequence[int], x_label: str, y_label: str) -> Any:
    """Panels side by side, and a bar of the steps."""
    figure, (axes,) = new_axes(1, len(panels), 4.5, 3.6)
    for axis, panel in zip(axes, panels, strict=True):
        dashed = panel["dashed"] or [False] * len(panel["names"])
        for x, y, other in zip(panel["x"], panel["y"], dashed, strict=True):
            axis.plot(x, y, color="#bbbbbb", linewidth=0.9, linestyle="--" if other else "-")
            points = axis.scatter(x, y, c=steps, cmap="viridis", s=14, zorder=2, marker="s" if other else "o")
        put_labels(axis, panel["title"], x_label, y_label, 3.6, 2.8)
    figure.colorbar(points, ax=list(axes), label="training step", shrink=0.85, pad=0.02)
    return figure
