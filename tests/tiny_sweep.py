"""The prompts of a sweep file that runs in seconds, for the tests."""

TINY_PROMPTS = """
[base]
prompts.dimension = 9
prompts.relevant_patterns = 3
prompts.irrelevant_patterns = 3
prompts.outlier_patterns = 2
prompts.prompt_length = 6
prompts.tasks = "all"
training.batch_size = 16
"""
