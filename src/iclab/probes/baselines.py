"""Classical learners as predictors: a scikit-learn classifier fitted on the context of each prompt.

Reference: li2024icl, figure 4.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.prompts.prompt import Prompt


def classifier_predictor(classifier: Any) -> Callable[[Prompt], Float[np.ndarray, " batch"]]:
    """A predictor that fits a copy of `classifier` on each prompt's examples and asks it for the query.

    Its score is the decision function, or the difference of two probabilities, or the label. A context with one label
    only gets that label.
    """
    from sklearn.base import clone
    from threadpoolctl import threadpool_limits

    def score(x: np.ndarray, y: np.ndarray) -> float:
        examples, labels, query = x[:-1], y[:-1], x[-1:]
        if (labels == labels[0]).all():
            return float(labels[0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # contexts are short: not every fit converges to the last digit
            fitted = clone(classifier).fit(examples, labels)
        if hasattr(fitted, "decision_function"):
            return float(fitted.decision_function(query)[0])
        if hasattr(fitted, "predict_proba"):
            shares = fitted.predict_proba(query)[0]
            return float(shares[1] - shares[0])
        return float(fitted.predict(query)[0])

    def predict(batch: Prompt) -> Float[np.ndarray, " batch"]:
        x, y = np.asarray(batch.x, float), np.asarray(batch.y)
        with threadpool_limits(1):  # fits are tiny: several threads would only wait for each other
            return np.array([score(x[i], y[i]) for i in range(len(y))])

    return predict


def baselines() -> dict[str, Any]:
    """The paper's five, by name."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC

    return {"logistic regression": LogisticRegression(solver="liblinear"), "linear SVM": SVC(kernel="linear"),
            "RBF SVM": SVC(kernel="rbf"), "1-NN": KNeighborsClassifier(1), "3-NN": KNeighborsClassifier(3)}
