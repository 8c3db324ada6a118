"""Paths: where single things go during training, in the plane of two numbers, coloured by the step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.figures.plots import Plot, to_csv, to_svg
from iclab.figures.style import style


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
    import matplotlib.pyplot as plt

    rows = []
    with style():
        figure, axes = plt.subplots(1, len(panels), figsize=(0.9 + 4.2 * len(panels), 3.6), squeeze=False,
                                    layout="constrained")
        for axis, panel in zip(axes[0], panels, strict=True):
            for i, thing in enumerate(panel.names):
                dashed = bool(panel.dashed) and panel.dashed[i]
                axis.plot(panel.x[i], panel.y[i], color="#bbbbbb", linewidth=0.9, linestyle="--" if dashed else "-")
                points = axis.scatter(panel.x[i], panel.y[i], c=steps, cmap="viridis", s=14, zorder=2,
                                      marker="s" if dashed else "o")
                rows += [(panel.title, thing, step, f"{x:.6g}", f"{y:.6g}")
                         for step, x, y in zip(steps, panel.x[i], panel.y[i], strict=True)]
            axis.set(title=panel.title, xlabel=x_label)
        axes[0][0].set_ylabel(y_label)
        figure.colorbar(points, ax=axes[0].tolist(), label="training step", shrink=0.85, pad=0.02)
        text = to_svg(figure)
        plt.close(figure)
    return Plot(name, title, caption, text, to_csv(("panel", "thing", "step", "x", "y"), rows))
