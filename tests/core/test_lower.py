"""A spec always holds words and numbers; programs read its lowered form, which users cannot make or change."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iclab import Chain, Classification, GatedAttention, Run, SpecError, Training, chain_test, replace
from iclab.core.spec import lower, number, spec

SPECS = [Classification(label_rule="flip", tasks=((0, 1),)), chain_test(Chain()), GatedAttention(), Run()]


@pytest.mark.parametrize("value", SPECS, ids=lambda value: type(value).__name__)
def test_a_spec_is_one_leaf(value):
    assert jax.tree.leaves(value) == [value]
    assert jax.tree.map(lambda leaf: leaf, value) is value


@pytest.mark.parametrize("value", SPECS, ids=lambda value: type(value).__name__)
def test_a_lowered_spec_holds_arrays_and_structure(value):
    lowered = lower(value)
    assert all(isinstance(leaf, (int, float, np.ndarray, np.generic)) for leaf in jax.tree.leaves(lowered))
    assert lower(lowered) is not value
    assert jax.tree.structure(lower(lowered)) == jax.tree.structure(lowered)
    again = jax.jit(lambda tree: tree)(lowered)
    assert type(again) is type(lowered) is not type(value)


def test_words_are_codes_only_inside_a_program():
    family = Classification(label_rule="flip", placement="close", tasks="cyclic:2")
    assert (family.label_rule, family.placement, family.tasks) == ("flip", "close", "cyclic:2")
    lowered = lower(family)
    assert lowered.label_rule == 0
    assert lowered.placement == 2
    assert lowered.tasks.shape == (2 * 6 * 5, 5)


def test_a_lowered_spec_cannot_be_made_or_changed():
    lowered = lower(Classification())
    for change in (lambda: replace(lowered, outlier_fraction=2.0), lambda: dataclasses.replace(lowered, dimension=40),
                   lambda: type(lowered)()):
        with pytest.raises(SpecError, match="a Classification inside a program cannot be made or changed"):
            change()


def test_a_traced_number_is_refused():
    with pytest.raises(SpecError, match="outlier_fraction must be one number, known when the spec is made"):
        jax.jit(lambda share: replace(Classification(), outlier_fraction=share).dimension)(0.5)
    with pytest.raises(SpecError, match="outlier_fraction must be one number"):
        Classification(outlier_fraction=np.array([0.1, 0.2]))
    assert type(Classification(outlier_fraction=jnp.float32(0.5)).outlier_fraction) is float


def test_the_schedule_is_not_read_by_programs():
    short, long = (lower(Training(steps=steps, record_every=steps)) for steps in (10, 1000))
    assert jax.tree.structure(short) == jax.tree.structure(long)
    with pytest.raises(AttributeError, match=r"Training\.steps is not known inside a program"):
        _ = short.steps


def test_a_subclass_keeps_its_own_methods():
    @spec
    class Base:
        scale: float = number(default=1.0)

        def value(self):
            return self.scale

    class Doubled(Base):
        def value(self):
            return 2 * super().value()

    doubled = spec(Doubled)(scale=3.0)
    assert float(jax.jit(lambda tree: tree.value())(lower(doubled))) == 6.0
