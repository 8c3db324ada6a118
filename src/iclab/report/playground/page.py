"""The page `playground.html`: a self-contained file with program, style and trained weights."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata, resources
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from iclab.core.identity import to_json
from iclab.core.spec import lower
from iclab.figures.style import COLOURS, NAMES
from iclab.papers.beyond.regression_outliers import PROMPTS as REGRESSION_PROMPTS
from iclab.papers.cot.settings import default_test
from iclab.papers.icl.settings import TRAINING_SCALE, out_of_domain
from iclab.papers.mamba.settings import attacked_prompts
from iclab.prompts.patterns import unit_rows
from iclab.report.playground.exhibits import REGRESSION, Exhibit, at_step, exhibits, weights
from iclab.report.playground.order_curves import MODEL, order_curves
from iclab.report.playground.own_prompts import number_data
from iclab.report.playground.ported import described, packed, read_weights, used_inputs
from iclab.sweeps.store import run_id
from iclab.training import Trained

Predicted = Mapping[str, Sequence[float]]
HERE = resources.files("iclab.report.playground")
OTHER_NAMES = {"softmax_usual": "softmax Transformer, usual start", "softmax_small": "softmax Transformer, small start",
               "chain": "attention that reads chains"}
"""Names of the exhibits that figures do not show under these keys."""


def render(models: Sequence[Trained], *, report: bool = False, predicted: Predicted | None = None) -> str:
    """The page of the papers' models as text; `report` says whether `report.html` lies beside it, `predicted` are
    Mamba's order parameters by the population dynamics."""
    return page_of(contents(models, report=report, predicted=predicted))


def page_of(data: dict[str, Any]) -> str:
    """A page that shows these data."""
    script = HERE.joinpath("app.js").read_text()
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(HERE.joinpath("playground.html.jinja").read_text())
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return template.render(script=Markup(script), digest=digest, style=Markup(HERE.joinpath("app.css").read_text()),
                           data=Markup(as_script(data)))


def contents(models: Sequence[Trained], *, report: bool = False, predicted: Predicted | None = None
             ) -> dict[str, Any]:
    """What the page's program reads: settings of the prompts, and every model with its weights during training."""
    pairs = {exhibit.name: (exhibit, model) for exhibit, model in zip(exhibits(), models, strict=True)}
    shown = {name: _shown(exhibit, model) for name, (exhibit, model) in pairs.items()}
    chain = shown.pop("chain")
    numbers = [shown.pop(name) for name in list(shown) if name.startswith(REGRESSION)]
    softmax = {name: shown.pop(name) for name in list(shown) if name.startswith("softmax")}
    return {"about": about(int(models[0].run.init_seed), report=report),
            "poison": {"prompts": _attacked(), "models": list(shown.values()),
                       "order": order_curves(*pairs[MODEL], predicted or {})},
            "regression": {"prompts": number_data([REGRESSION_PROMPTS]), "models": numbers},
            "softmax": {"prompts": _mixed(), "models": list(softmax.values())},
            "chain": {"prompts": _chains(), "models": [chain]}}


def about(seed: int = 0, *, report: bool = False, own: bool = False) -> dict[str, Any]:
    """When and by what a page was made, and whether it shows the user's own models."""
    return {"version": metadata.version("iclab"), "date": f"{datetime.now(UTC):%Y-%m-%d}", "seed": seed,
            "report": report, "own": own}


def as_script(data: Any) -> str:
    """JSON that is safe inside a script element."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _shown(exhibit: Exhibit, trained: Trained) -> dict[str, Any]:
    """An exhibit as the page's program reads it."""
    run = trained.run
    layers = [read_weights(run, at_step(trained, step)) for step in exhibit.steps]
    member = exhibit.name.removeprefix(REGRESSION)
    return {"key": exhibit.name, "name": NAMES.get(member) or OTHER_NAMES[member],
            "colour": COLOURS.get(member, COLOURS["softmax"]), "run": run_id(run, weights), "spec": to_json(run),
            **described(run, list(exhibit.steps), layers)}


def _attacked() -> dict[str, Any]:
    """The test prompts of figure 2 of the mamba paper; the page chooses fraction, scale, direction and rule."""
    test = attacked_prompts("flip", 0.0, 1.0)
    return _inputs(test) | {"irrelevantScale": float(test.irrelevant_scale), "outliers": test.outlier_patterns,
                            "trainingScale": float(test.outlier_scale),
                            "directions": np.asarray(unit_rows(test.outlier_mixtures), float).tolist()}


def _mixed() -> dict[str, Any]:
    """The out-of-domain prompts of the icl paper; the page chooses S1, K' and how many examples decide."""
    return _inputs(out_of_domain()) | {"trainingIrrelevantScale": TRAINING_SCALE}


def _inputs(test: Any) -> dict[str, Any]:
    return {"dimension": used_inputs(test), "patterns": test.relevant_patterns, "irrelevant": test.irrelevant_patterns,
            "patternNorm": float(test.pattern_norm)}


def _chains() -> dict[str, Any]:
    """The test prompts of the cot paper; the page chooses how many examples there are and how their steps go wrong."""
    test = default_test()
    basis = np.asarray(lower(test).pattern_mixtures)
    return {"dimension": test.dimension, "patterns": test.patterns, "steps": test.reasoning_steps,
            "noise": float(test.noise_norm or 0.0), "basis": packed(basis)}
