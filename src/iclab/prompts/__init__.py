"""Prompts: what a model reads, and the truth about it."""

from iclab.prompts.arrays import ArrayPrompts, from_labelled
from iclab.prompts.attacks import LABEL_RULES, PLACEMENTS
from iclab.prompts.chain import Chain, ChainTruth, chain_test
from iclab.prompts.classification import Classification
from iclab.prompts.labels import CLASS, REAL, SIGN, STEP, TOKENS, VECTOR, LabelKind
from iclab.prompts.markov import MarkovChain, MarkovTruth
from iclab.prompts.parity import Parity, ParityTruth
from iclab.prompts.prompt import Family, Prompt, Truth
from iclab.prompts.recall import Recall, RecallTruth
from iclab.prompts.regression import Regression, RegressionTruth
from iclab.prompts.tasks import all_tasks, cyclic_tasks
from iclab.prompts.token_family import TokenFamily

__all__ = ["CLASS", "LABEL_RULES", "PLACEMENTS", "REAL", "SIGN", "STEP", "TOKENS", "VECTOR", "ArrayPrompts", "Chain",
           "ChainTruth", "Classification", "Family", "LabelKind", "MarkovChain", "MarkovTruth", "Parity", "ParityTruth",
           "Prompt", "Recall", "RecallTruth", "Regression", "RegressionTruth", "TokenFamily", "Truth", "all_tasks",
           "chain_test", "cyclic_tasks", "from_labelled"]
