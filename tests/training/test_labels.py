"""Labels and losses of any kind: a family says what its label is, and training and probes follow it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iclab import (
    GatedAttention,
    Run,
    SpecError,
    Sweep,
    Training,
    load_checkpoint,
    measure_error,
    model_errors,
    replace,
    save_checkpoint,
    train,
    train_many,
)
from iclab.commands.eval import label_rates
from iclab.conformance import ConformanceError, check_model, check_prompts
from iclab.core.spec import spec
from iclab.models import VectorEmbedding
from iclab.prompts import CLASS, REAL, VECTOR, Family, Prompt
from iclab.prompts.labels import SIGN
from iclab.training import Trained
from iclab.training.losses import LOSSES
from iclab.training.sgd import begin

TRAINING = Training(steps=300, batch_size=32, learning_rate=0.02, loss="squared", record_every=100)


@spec
class Regression(Family):
    """y = w . x, w drawn for every prompt."""

    labels = REAL
    dimension: int = 3
    prompt_length: int = 12

    def draw(self, key):
        w_key, x_key = jax.random.split(key)
        x = jax.random.normal(x_key, (self.prompt_length + 1, self.dimension))
        y = x @ jax.random.normal(w_key, (self.dimension,)) / jnp.sqrt(self.dimension)
        return Prompt(x, y.at[-1].set(0.0), y[-1])


@spec
class Maps(Regression):
    """y = W x, a vector."""

    labels = VECTOR

    def draw(self, key):
        w_key, x_key = jax.random.split(key)
        x = jax.random.normal(x_key, (self.prompt_length + 1, self.dimension))
        y = x @ jax.random.normal(w_key, (self.dimension, 2)) / jnp.sqrt(self.dimension)
        return Prompt(x, y.at[-1].set(0.0), y[-1])


@spec
class Clusters(Regression):
    """Three random points per prompt; the class of an input is the point it is close to."""

    labels = CLASS

    def draw(self, key):
        centre_key, noise_key, class_key = jax.random.split(key, 3)
        tokens = self.prompt_length + 1
        centres = 3 * jnp.linalg.qr(jax.random.normal(centre_key, (self.dimension, self.dimension)))[0]
        classes = jax.random.randint(class_key, (tokens,), 0, 3)
        x = centres[classes] + 0.1 * jax.random.normal(noise_key, (tokens, self.dimension))
        return Prompt(x, jax.nn.one_hot(classes, 3).at[-1].set(0.0), classes[-1])


LINEAR = GatedAttention(member="linear", normalise=True)
CASES = {"number": (LINEAR, Regression(), TRAINING),
         "vector": (replace(LINEAR, embedding=VectorEmbedding(size=2)), Maps(), TRAINING),
         "class": (replace(LINEAR, embedding=VectorEmbedding(size=3)), Clusters(),
                   replace(TRAINING, loss="cross_entropy", learning_rate=0.1))}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CASES))
def test_every_kind_of_label_trains_and_is_measured(name, tmp_path):
    model, prompts, training = CASES[name]
    run = Run(model=model, prompts=prompts, training=training)
    trained = train(run)
    start = train(replace(run, training=replace(training, steps=1)))
    assert trained.loss[-1] < 0.7 * start.loss[0]
    measured = measure_error(trained, prompts, count=2000)
    assert measured.low < measured.error < measured.high
    assert np.isnan(measured.hinge)
    # The compiled probe and the one for any predictor agree.
    assert model_errors([trained], [prompts], count=2000, seeds=[0])[0, 0] == pytest.approx(measured.error, rel=1e-4)
    save_checkpoint(tmp_path / "model", trained)
    again = load_checkpoint(tmp_path / "model", run)
    np.testing.assert_array_equal(again.predict(prompts.sample(0, 5)), trained.predict(prompts.sample(0, 5)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vector", "class"])
def test_every_kind_of_label_keeps_the_rules(name):
    """Those that no registered family has; numbers are among the conformance tests."""
    model, prompts, _ = CASES[name]
    check_model(model, prompts)
    check_prompts(prompts)


def test_a_sweep_measures_what_labels_allow():
    model, prompts, training = CASES["number"]
    base = Run(model=model, prompts=prompts, training=replace(training, steps=20))
    frame = Sweep(base=base, seeds=2, prompts=500, measure=("squared_error", "loss")).run().frame
    assert (frame["squared_error"] > 0).all()
    with pytest.raises(SpecError, match="for labels of kind number one of squared_error, loss"):
        Sweep(base=base, seeds=2, measure=("error",)).run()


def test_a_loss_must_suit_the_labels():
    model, prompts, training = CASES["number"]
    with pytest.raises(SpecError, match=r"training\.loss must be squared \(or a function\) for labels of kind number"):
        Run(model=model, prompts=prompts, training=replace(training, loss="hinge"))
    with pytest.raises(SpecError, match=r"embedding must read labels of kind class"):
        Run(model=model, prompts=Clusters(), training=replace(training, loss="cross_entropy"))


def test_a_users_loss_trains_as_the_named_one(tiny_run):
    def hinge(output, label):
        return jnp.maximum(0.0, 1.0 - label * output)

    runs = [replace(tiny_run, training=replace(tiny_run.training, loss=loss)) for loss in ("hinge", hinge)]
    named, custom = train_many(runs)
    np.testing.assert_allclose(named.loss, custom.loss, rtol=1e-5)
    logistic = train(replace(tiny_run, training=replace(tiny_run.training, loss="logistic")))
    assert logistic.state == "trained"
    assert logistic.loss[-1] < np.log(2)


@pytest.mark.parametrize(("name", "output", "label", "expected"), [
    ("hinge", 0.25, -1.0, 1.25), ("hinge", 2.0, 1.0, 0.0), ("squared", 0.5, 1.0, 0.125),
    ("squared", np.array([3.0, 4.0]), np.zeros(2), 12.5), ("logistic", 0.0, 1.0, np.log(2)),
    ("cross_entropy", np.array([0.0, np.log(3.0)]), 1, np.log(4 / 3))])
def test_losses_are_their_formulas(name, output, label, expected):
    assert float(LOSSES[name](jnp.asarray(output), label)) == pytest.approx(expected, rel=1e-6)


@spec
class ColumnOfOne(GatedAttention):
    """A model whose answer is a vector of one number."""

    def apply(self, params, columns):
        answer, shown = super().apply(params, columns)
        return answer[None], shown


def test_an_answer_that_would_be_broadcast_is_not_trained(tiny_run):
    """In the loss itself: `z F` and `F - z` have values for it, too."""
    with pytest.raises(SpecError, match=r"^model must return one score per prompt, shape \(\), got 'shape \(1,\)'"):
        train(replace(tiny_run, model=ColumnOfOne()))
    own = replace(tiny_run.training, loss=lambda output, label: jnp.maximum(0.0, 1.0 - label * output))
    with pytest.raises(SpecError, match=r"^training.loss must return one number per prompt, .* got 'shape \(1,\)'"):
        train(replace(tiny_run, model=ColumnOfOne(), training=own))
    with pytest.raises(SpecError, match=r"must return an answer like the label, shape \(2,\), got 'shape \(\)'$"):
        LOSSES["squared"](jnp.zeros(()), jnp.zeros(2))


@spec
class RealSigns(Regression):
    """Real numbers in a family that says that its labels are signs."""

    labels = SIGN


@spec
class RealClasses(Clusters):
    """Real numbers in a family that says that its labels are classes."""

    def draw(self, key):
        prompt = super().draw(key)
        return prompt._replace(label=prompt.label + 0.5)


@spec
class ManyClasses(Clusters):
    """More classes than a model of three has scores for."""

    def draw(self, key):
        prompt = super().draw(key)
        return prompt._replace(label=prompt.label + 1)


def untrained(run):
    """A run that looks finished, at its starting weights."""
    return Trained(run, begin(run).params, None, np.array([1]), np.array([0.5]))


@pytest.mark.parametrize(("prompts", "rule"), [
    (RealSigns(), r"^label must be \+1 or -1 where labels are signs; .* `labels = REAL`, .* got \[[-\d.]+\]$"),
    pytest.param(RealClasses(), r"^label must be a whole number where labels are classes; .* got \[[-\d.]+\]$",
                 marks=pytest.mark.slow)])
def test_an_error_rate_of_real_numbers_is_refused(prompts, rule):
    """By every way to measure one."""
    embedding = {"embedding": VectorEmbedding(size=3)} if prompts.labels == CLASS else {}
    run = Run(model=replace(LINEAR, **embedding), prompts=prompts,
              training=replace(TRAINING, steps=1, loss=prompts.labels.losses[0]))
    trained = untrained(run)
    with pytest.raises(SpecError, match=rule):
        label_rates(trained, prompts, 500, 0)
    with pytest.raises(SpecError, match=rule):
        measure_error(lambda batch: batch.label, prompts, count=10)
    with pytest.raises(SpecError, match=rule):
        model_errors([trained], [prompts], count=500)
    with pytest.raises(ConformanceError, match=rule):
        check_prompts(prompts)
    with pytest.raises(ConformanceError, match=rule):
        check_model(run.model, prompts)


@pytest.mark.slow
def test_answers_that_choose_no_class_are_refused():
    model, prompts, training = CASES["class"]
    with pytest.raises(SpecError, match=r"predictor must return a score for every class and prompt, got 'shape"):
        measure_error(lambda batch: batch.label, prompts, count=10)
    trained = untrained(Run(model=model, prompts=prompts, training=training))
    rule = r"must return a score for every class and prompt: labels go up to 3, got '3 per prompt'"
    with pytest.raises(SpecError, match=f"predictor {rule}"):
        measure_error(trained, ManyClasses(), count=100)
    with pytest.raises(SpecError, match=f"model {rule}"):
        model_errors([trained], [ManyClasses()], count=500)


def test_only_signs_have_a_hinge_loss_and_a_squared_error_is_no_error_rate():
    model, prompts, training = CASES["number"]
    trained = untrained(Run(model=model, prompts=prompts, training=training))
    with pytest.raises(SpecError, match="measure must be error for labels of kind number, got 'hinge'"):
        model_errors([trained], [prompts], measure="hinge")
    with pytest.raises(SpecError, match="measure must be error or hinge"):
        model_errors([trained], [prompts], measure="squared_error")
    assert set(label_rates(trained, prompts, 100, 0)) == {"squared_error", "low", "high", "prompts"}
