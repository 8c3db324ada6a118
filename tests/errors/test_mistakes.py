"""What is easily got wrong in Python: the error names it in one line and says what to write."""

from __future__ import annotations

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iclab import (
    Classification,
    GatedAttention,
    LabelEmbedding,
    Run,
    SpecError,
    Training,
    from_labelled,
    part,
    spec,
    train,
    train_many,
)


class Mine:
    """A model without the decorator."""

    embedding: LabelEmbedding = part(default_factory=LabelEmbedding)

    def init(self, key, dimension):
        return jax.random.normal(key, (self.embedding.width(dimension),))

    def apply(self, params, columns):
        return (columns @ params).mean(), ()


@spec
class ScoreOnly(Mine):
    embedding: LabelEmbedding = part(default_factory=LabelEmbedding)

    def apply(self, params, columns):
        return (columns @ params).mean()


@spec
class Narrow(Mine):
    embedding: LabelEmbedding = part(default_factory=LabelEmbedding)

    def init(self, key, dimension):
        return jnp.ones(dimension)


@spec
class Swapped(Mine):
    embedding: LabelEmbedding = part(default_factory=LabelEmbedding)

    def init(self, dimension, key):
        return jax.random.normal(key, (dimension + 1,))


@spec
class Bare:
    def init(self, key, dimension):
        return ()


@pytest.mark.parametrize(("do", "message"), [
    (lambda: Run(model=Mine()), "model must be a model, .*, got a Mine; write @iclab.spec before its class"),
    (lambda: Run(model=Bare()), "model must be a spec with .*, got a Bare; it has no embedding"),
    (lambda: Run(model=GatedAttention), r"got the class GatedAttention; write GatedAttention\(\)"),
    (lambda: Run(model=Classification(), prompts=GatedAttention()), "got a Classification; it has no embedding"),
    (lambda: Run(prompts=from_labelled(np.eye(8), [0, 1] * 4, holdout=0.5)), "got a tuple; unpack the pair: training"),
    (lambda: Run(prompts=Classification), r"got the class Classification; write Classification\(\)"),
    (lambda: Run(training=100), "training must be a Training, .*, got an int"),
    (lambda: train(GatedAttention()), r"run must be a Run, got a GatedAttention; write Run\(model=...\)"),
    (lambda: train([Run()]), "run must be a Run, got a list; train_many takes a list of runs"),
    (lambda: train_many(Run()), "runs must be a list of runs, got a Run; train takes a single one"),
    (lambda: train(Run(model=ScoreOnly())), r"ScoreOnly.apply must return a pair, .* such as `return score, \(\)`"),
    (lambda: train(Run(model=Narrow())),
     r"Narrow.apply\(params, columns\), for columns of shape \(21, 31\) \(embedding.width\(30\) = 31\), failed: "),
    (lambda: train(Run(model=Swapped())), r"Swapped.init\(key, dimension=30\) failed: TypeError"),
    (lambda: Classification(outlier_fractions=0.6), "no field 'outlier_fractions'; did you mean outlier_fraction"),
    (lambda: Classification(0.6), "Classification takes its fields by name, got 0.6 without one; it has dimension"),
    (lambda: Run(steps=5), "Run has no field 'steps'; it is a field of its training: training.steps"),
])
def test_a_mistake_is_one_line_that_says_what_to_write(do, message):
    with pytest.raises(SpecError, match=message) as error:
        do()
    assert "\n" not in str(error.value)


def test_an_error_inside_a_constructor_stays_what_it_is():
    with pytest.raises(TypeError, match="not supported between"):
        Training(learning_rate=1.0, clip_norm=Training())
    assert pickle.loads(pickle.dumps(Training(steps=7))) == Training(steps=7)
