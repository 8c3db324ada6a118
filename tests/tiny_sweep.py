"""The prompts of a sweep file that runs in seconds, for the tests, and a measure that fails."""

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


def refuse_large_scale(trained, test, seed):
    """A measure that fails where the outliers of training are large."""
    if trained.run.prompts.outlier_scale > 2:
        raise ValueError("too large for me")
    return 1.0
