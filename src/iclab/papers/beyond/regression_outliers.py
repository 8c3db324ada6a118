"""Claim `regression.outliers`: Mamba, linear and softmax attention on regression with poisoned examples.

Trained on prompts in which 40 % of the examples carry an outlier direction and a label of +-3, tested with more of
them and with labels turned around. Rules: at the training fraction Mamba's squared error is at most 1.1 times that of
one step of gradient descent on the clean examples alone (a gate that is open for clean examples and shut for poisoned
ones makes one layer such a step) and the linear Transformer's at least 1.5 times; under flip at 0.6 Mamba stays below
the variance of the labels, the error of the answer 0, and the linear Transformer does not; ridge, which sees every
example, errs more than Mamba, and ridge on the clean examples less. Softmax attention is shown, not judged.
The settings were chosen, and the rules written, after a look at one seed of each model, of base seed 0.
Cost: 15 trainings of 192,000 prompts, about 20 seconds. With eight seeds all parts held as well.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.core.spec import replace
from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.claims import Check
from iclab.lab.entries import Entry, Findings, Part, Size
from iclab.lab.estimates import Difference, Mean
from iclab.lab.laboratory import Lab, per_seed
from iclab.models import GatedAttention, SoftmaxMLP
from iclab.probes import measure_error
from iclab.probes.regressors import clean_step_rate, descent_predictor, huber_predictor, ridge_predictor
from iclab.prompts.regression import Regression
from iclab.training import Run, Training

PROMPTS = Regression(dimension=8, constant=True, outlier_patterns=2, prompt_length=40, noise=0.3, outlier_fraction=0.4,
                     label_rule="random", outlier_label=3.0)
MODELS = {"mamba": (GatedAttention(member="mamba"), 0.01),
          "linear": (GatedAttention(member="linear", normalise=True, init_scale=0.5), 0.01),
          "softmax": (SoftmaxMLP(), 0.003)}
"""And Adam's rate."""
FRACTIONS = (0.0, 0.2, 0.4, 0.6, 0.8)
TRAINED_ON, JUDGED = FRACTIONS.index(0.4), FRACTIONS.index(0.6)
RULES = ("random", "flip")
NEAR_FLOOR, FAR = 1.1, 1.5
LABELS_VARIANCE = 1 + float(PROMPTS.noise) ** 2


class Errors(NamedTuple):
    """Squared errors under both rules, at every fraction."""

    models: dict[str, Float[np.ndarray, "seeds rules fractions"]]
    references: dict[str, Float[np.ndarray, "rules fractions"]]


def a_run(name: str, steps: int) -> Run:
    """A model trained on poisoned regression prompts."""
    model, rate = MODELS[name]
    return Run(model=model, prompts=PROMPTS, training=Training(steps=steps, batch_size=64, learning_rate=rate,
                                                               optimizer="adam", loss="squared", record_every=500))


def tests() -> list[Regression]:
    """Tests by rule, then fraction."""
    return [replace(PROMPTS, label_rule=rule, outlier_fraction=fraction) for rule in RULES for fraction in FRACTIONS]


def reference_errors(prompts: int) -> dict[str, list[float]]:
    """Squared errors of the estimators on every test."""
    estimators = {"ridge": ridge_predictor, "ridge, clean only": lambda test: ridge_predictor(test, sees="clean"),
                  "Huber": huber_predictor,
                  "step, clean only": lambda test: descent_predictor(clean_step_rate(test), sees="clean")}
    return {name: [measure_error(make(test), test, count=prompts).error for test in tests()]
            for name, make in estimators.items()}


def floor(errors: Errors) -> list[Check]:
    """At the training fraction."""
    at = errors.references["step, clean only"][0, TRAINED_ON]
    return [Check("Mamba's error, relative to the step on clean examples",
                  Mean(errors.models["mamba"][:, 0, TRAINED_ON] / at), "<=", NEAR_FLOOR),
            Check("the linear Transformer's", Mean(errors.models["linear"][:, 0, TRAINED_ON] / at), ">=", FAR)]


def unseen(errors: Errors) -> list[Check]:
    """More outliers, with labels turned around."""
    return [Check("Mamba's error under flip at 0.6", Mean(errors.models["mamba"][:, 1, JUDGED]), "<=", LABELS_VARIANCE),
            Check("the linear Transformer's", Mean(errors.models["linear"][:, 1, JUDGED]), ">=", LABELS_VARIANCE)]


def between_estimators(errors: Errors) -> list[Check]:
    """Between ridge on all examples and ridge on the clean ones."""
    mamba = errors.models["mamba"][:, 0, TRAINED_ON]
    ridge, clean = (np.full(len(mamba), errors.references[name][0, TRAINED_ON])
                    for name in ("ridge", "ridge, clean only"))
    return [Check("Mamba's error, less that of ridge on all examples", Difference(mamba, ridge), "<=", 0.0),
            Check("Mamba's error, less that of ridge on the clean ones", Difference(mamba, clean), ">=", 0.0)]


def run(lab: Lab) -> Findings:
    """Train the three models, test them and the estimators under both rules."""
    size, shape = lab.size, (len(RULES), len(FRACTIONS))
    runs = {name: per_seed(a_run(name, size.steps), lab.seeds()) for name in MODELS}
    trained = iter(lab.train([run for of in runs.values() for run in of]))  # side by side
    models = {name: lab.errors([next(trained) for _ in of], tests()).reshape(-1, *shape) for name, of in runs.items()}
    references = {name: np.reshape(values, shape)
                  for name, values in lab.remember(reference_errors, size.prompts).items()}
    errors = Errors(models, references)
    plot = curve_figure("regression.outliers", "Poisoned examples in regression",
                        "Squared error against the fraction of poisoned examples; trained at 0.4 with random labels.",
                        [Panel(f"labels of poisoned examples: {rule}", FRACTIONS,
                               [Curve(name, values[:, i]) for name, values in models.items()],
                               lines=[(name, values[i]) for name, values in references.items()])
                         for i, rule in enumerate(RULES)], "outlier fraction at test", "squared error", log_y=True)
    at = {name: values[:, 0, TRAINED_ON].mean() for name, values in models.items()}
    return Findings(
        shown="Mamba, linear and softmax attention on regression with poisoned examples, beside ridge, Huber's "
              "estimator and one step of gradient descent, the last and ridge also told which examples are clean.",
        measured=errors,
        numbers=f"At the training fraction the squared error is {at['mamba']:.3f} for Mamba, {at['linear']:.3f} for "
                f"the linear Transformer, {at['softmax']:.3f} for softmax attention; one step on the clean examples "
                f"alone has {references['step, clean only'][0, TRAINED_ON]:.3f}, ridge on all of them "
                f"{references['ridge'][0, TRAINED_ON]:.3f}, on the clean ones "
                f"{references['ridge, clean only'][0, TRAINED_ON]:.3f}.",
        plots=[plot], specs=[(a_run(name, size.steps), PROMPTS) for name in MODELS])


ENTRY = Entry(
    "regression.outliers", "Regression with poisoned examples", "ours; li2025mamba, related work", run,
    says="What the paper proves for classification, others saw in regression: Mamba's gate leaves poisoned examples "
         "out, up to the error of one step of gradient descent on the clean ones, where the linear Transformer uses "
         "them all.",
    sizes={"tiny": Size(seeds=2, steps=50, prompts=500), "quick": Size(seeds=4, steps=3_000, prompts=4_000),
           "full": Size(seeds=5, steps=3_000, prompts=10_000)},
    parts=(Part("ours", "the floor of one step", "Mamba reaches the error of one step on the clean examples, the "
                "linear Transformer does not.", floor, replies={
                    "holds": "The gate costs next to nothing.", "inconclusive": "Seeds differ too much.",
                    "fails": "Either the gate lets poison in, or its fading loses clean examples."}),
           Part("ours", "more poison, labels turned around", "Mamba stays below the error of the answer 0 under flip "
                "at 0.6, the linear Transformer does not.", unseen, replies={
                    "holds": "The gate does not depend on the label.", "inconclusive": "Seeds differ too much.",
                    "fails": "The gate was closed for the training labels only."}),
           Part("ours", "between the estimators", "Mamba errs less than ridge on all examples and more than ridge on "
                "the clean ones.", between_estimators, replies={
                    "holds": "One layer takes one step; ridge takes all.", "inconclusive": "Seeds differ too much.",
                    "fails": "Mamba is outside the two estimators that should bound it."})))
