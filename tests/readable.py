"""What makes a figure hard to read: axes without a name, legends on data or over the edge, labels on each other."""

from __future__ import annotations


def complaints(figure, thorough=False):
    """What is wrong with a drawn figure, in words; `thorough` also looks for labels that are cut or under a legend."""
    found, renderer = [], figure._get_renderer()
    legends = [*figure.legends, *(axis.get_legend() for axis in figure.axes if axis.get_legend())]
    boxes = [legend.get_window_extent(renderer) for legend in legends]
    page = figure.bbox.padded(2)
    for i, axis in enumerate(figure.axes):
        bar = axis.get_label() == "<colorbar>"
        if not bar and not axis.get_xlabel() and axis.xaxis.get_tick_params()["labelbottom"]:
            found.append(f"axes {i} have no name along x")
        if not axis.get_ylabel() and (bar or axis.yaxis.get_tick_params()["labelleft"]):
            found.append(f"axes {i} have no name along y")
        parts = [axis.get_window_extent(renderer)]
        if thorough:
            parts += [part.get_tightbbox(renderer) for part in (axis.xaxis, axis.yaxis)] + [
                axis.title.get_window_extent(renderer)]
        for part in filter(None, parts):
            if part.width and part.height and any(box.overlaps(part) for box in boxes):
                found.append(f"a legend lies on axes {i}")
            if not (page.containsx(part.x0) and page.containsx(part.x1) and page.containsy(part.y0)
                    and page.containsy(part.y1)):
                found.append(f"axes {i} are cut")
    for box in boxes:
        if not (page.containsx(box.x0) and page.containsx(box.x1) and page.containsy(box.y0)):
            found.append("a legend is cut")
        if sum(box.overlaps(other) for other in boxes) > 1:
            found.append("legends lie on each other")
    return found
