"""Prompts: what a model reads, and the truth about it."""

from iclab.prompts.arrays import ArrayPrompts, from_labelled
from iclab.prompts.attacks import LABEL_RULES, PLACEMENTS
from iclab.prompts.chain import Chain, ChainTruth, chain_test
from iclab.prompts.classification import Classification
from iclab.prompts.labels import CLASS, REAL, SIGN, STEP, VECTOR, LabelKind
from iclab.prompts.prompt import Family, Prompt, Truth
from iclab.prompts.regression import Regression, RegressionTruth
from iclab.prompts.tasks import all_tasks, cyclic_tasks

__all__ = ["CLASS", "LABEL_RULES", "PLACEMENTS", "REAL", "SIGN", "STEP", "VECTOR", "ArrayPrompts", "Chain",
           "ChainTruth", "Classification", "Family", "LabelKind", "Prompt", "Regression", "RegressionTruth", "Truth",
           "all_tasks", "chain_test", "cyclic_tasks", "from_labelled"]
