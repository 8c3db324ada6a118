"""The papers' models fused for speed: prompts drawn, read, differentiated and updated in one loop, compiled by Numba.

A token of the papers is sparse in the dictionary of patterns: a relevant pattern, an irrelevant one, perhaps an
outlier, and a label, each with one coefficient. So products of tokens with weights are a few look-ups in small tables,
and gradients a few additions; no column is ever written to memory, and no batch leaves the cache.

Each kernel is a second way to compute a model of `iclab.models`, never a second definition: the tests hold values and
gradients to the model, and the drawn prompts to their family.
"""
