"""Theory as code, one file per paper: conditions, thresholds, and scaling laws with one fitted constant each."""

from iclab.theory.all import theorems, theory_of
from iclab.theory.statements import Condition, Constant, Law, Statement, read_constants, shipped_constants

__all__ = ["Condition", "Constant", "Law", "Statement", "read_constants", "shipped_constants", "theorems",
           "theory_of"]
