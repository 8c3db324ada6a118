"""Prompts: what a model reads, and the truth about it."""

from iclab.prompts.arrays import ArrayPrompts, from_labelled
from iclab.prompts.attacks import LABEL_RULES, PLACEMENTS
from iclab.prompts.chain import Chain, ChainPrompt, chain_test
from iclab.prompts.classification import Classification
from iclab.prompts.context import Prompt
from iclab.prompts.tasks import all_tasks, cyclic_tasks

__all__ = ["LABEL_RULES", "PLACEMENTS", "ArrayPrompts", "Chain", "ChainPrompt", "Classification", "Prompt", "all_tasks",
           "chain_test", "cyclic_tasks", "from_labelled"]
