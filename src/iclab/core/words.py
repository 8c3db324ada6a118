"""Quantities in words."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """A duration in seconds, minutes or hours, whichever suits it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.1f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
