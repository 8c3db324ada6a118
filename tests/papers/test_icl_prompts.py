"""The prompts of the icl paper's entries."""

from __future__ import annotations

import numpy as np

from iclab.papers.icl.settings import LARGEST_SUM, in_domain, new_patterns, one_layer_run, out_of_domain


def test_new_patterns_have_unit_length_and_their_sum():
    for total in (-1.0, 0.0, 0.8, 1.0, LARGEST_SUM):
        rows = np.array(new_patterns(total))
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-6)
        np.testing.assert_allclose(rows.sum(axis=1), [total, np.sqrt(2), np.sqrt(2)], atol=1e-6)
        np.testing.assert_allclose(rows @ rows.T, np.eye(3), atol=1e-6)


def test_in_domain_prompts_are_those_of_training():
    assert in_domain(0.8).irrelevant_scale == one_layer_run(0.8, 1).prompts.irrelevant_scale == 0.5
    assert out_of_domain(0.8).irrelevant_scale == 5.0
