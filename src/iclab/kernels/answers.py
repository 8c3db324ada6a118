"""What an answer +-1 costs: losses with their slopes."""

from __future__ import annotations

from iclab.kernels.arithmetic import exp, log_between_1_and_2
from iclab.kernels.compiling import inlined
from iclab.kernels.fitting import LOSSES

SQUARED, LOGISTIC = (LOSSES.index(name) for name in ("squared", "logistic"))


@inlined
def loss_and_slope(kind, real, output, label):
    """Loss of one prompt (`iclab.training.losses`), and its slope along the output."""
    zero, one = real(0.0), real(1.0)
    if kind == SQUARED:
        return real(0.5) * (output - label) * (output - label), output - label
    if kind == LOGISTIC:
        z = -label * output
        e = exp(-abs(z))
        return max(z, zero) + log_between_1_and_2(one + e), -label * (one if z > zero else e) / (one + e)
    margin = one - label * output
    # Written so that a margin that is not a number counts.
    return (zero, zero) if margin <= zero else (margin, -label)
