"""Theory as code: one file a paper; conditions, thresholds and scalings, each constant fitted once."""

from iclab.theory.all import theory_of
from iclab.theory.statements import Condition, Constant, Law, Statement, read_constants, shipped_constants

__all__ = ["Condition", "Constant", "Law", "Statement", "read_constants", "shipped_constants", "theory_of"]
