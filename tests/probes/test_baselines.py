"""scikit-learn classifiers are predictors, fitted on each prompt's context."""

from __future__ import annotations

import numpy as np
import pytest

from iclab import Classification, baselines, classifier_predictor, measure_error

EASY = Classification(irrelevant_scale=0.05, outlier_patterns=0)


@pytest.mark.parametrize("name", list(baselines()))
def test_the_papers_five_learn_an_easy_context(name):
    rate = measure_error(classifier_predictor(baselines()[name]), EASY, count=60)
    assert rate.error < 0.05
    shuffled = classifier_predictor(baselines()[name])
    random = np.random.default_rng(0)

    def coins(batch):
        return shuffled(batch._replace(y=random.choice([-1.0, 1.0], size=batch.y.shape)))

    assert measure_error(coins, EASY, count=60).error > 0.2


def test_any_classifier_and_any_context_will_do():
    from sklearn.linear_model import RidgeClassifier
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    for classifier in (GaussianNB(), DecisionTreeClassifier(random_state=0), RidgeClassifier()):
        assert measure_error(classifier_predictor(classifier), EASY, count=40).error < 0.3
    batch = EASY.sample(0, 4).numpy()
    agreed = batch._replace(y=np.where(batch.y == 0, 0.0, -1.0))
    assert (classifier_predictor(GaussianNB())(agreed) == -1).all()
