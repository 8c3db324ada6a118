"""The page `playground.html`: a self-contained file with program, style and trained weights."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata, resources
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from iclab.core.identity import to_json
from iclab.core.spec import lower
from iclab.figures.style import COLOURS, NAMES
from iclab.papers.cot.settings import default_test
from iclab.papers.icl.settings import TRAINING_SCALE, out_of_domain
from iclab.papers.mamba.settings import attacked_prompts
from iclab.prompts.patterns import unit_rows
from iclab.report.playground.exhibits import Exhibit, at_step, exhibits, packed, read_weights, weights
from iclab.sweeps.store import run_id
from iclab.training import Trained

HERE = resources.files("iclab.report.playground")
OTHER_NAMES = {"softmax_usual": "softmax Transformer, usual start", "softmax_small": "softmax Transformer, small start",
               "chain": "attention that reads chains"}
"""Names of the exhibits that figures do not show under these keys."""


def render(models: Sequence[Trained], *, report: bool = False) -> str:
    """The whole page as text; `report` says whether `report.html` lies beside it."""
    script = HERE.joinpath("app.js").read_text()
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(HERE.joinpath("playground.html.jinja").read_text())
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return template.render(script=Markup(script), digest=digest, style=Markup(HERE.joinpath("app.css").read_text()),
                           data=Markup(as_script(contents(models, report=report))))


def contents(models: Sequence[Trained], *, report: bool = False) -> dict[str, Any]:
    """What the page's program reads: settings of the prompts, and every model with its weights during training."""
    shown = {exhibit.name: _shown(exhibit, model) for exhibit, model in zip(exhibits(), models, strict=True)}
    chain = shown.pop("chain")
    softmax = {name: shown.pop(name) for name in list(shown) if name.startswith("softmax")}
    about = {"version": metadata.version("iclab"), "date": f"{datetime.now(UTC):%Y-%m-%d}",
             "seed": int(models[0].run.init_seed), "report": report}
    return {"about": about, "poison": {"prompts": _attacked(), "models": list(shown.values())},
            "softmax": {"prompts": _mixed(), "models": list(softmax.values())},
            "chain": {"prompts": _chains(), "model": chain}}


def as_script(data: Any) -> str:
    """JSON that is safe inside a script element."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _shown(exhibit: Exhibit, trained: Trained) -> dict[str, Any]:
    run, model = trained.run, trained.run.model
    values = {"key": exhibit.name, "name": NAMES.get(exhibit.name) or OTHER_NAMES[exhibit.name],
              "colour": COLOURS.get(exhibit.name, COLOURS["softmax"]), "steps": list(exhibit.steps),
              "norm": float(getattr(model.embedding, "norm", 1.0)),
              "retention": float(getattr(model, "retention", 1.0)),
              "temperature": float(getattr(model, "temperature", 1.0)),
              "weights": [{name: packed(array) for name, array in read_weights(run, at_step(trained, step)).items()}
                          for step in exhibit.steps]}
    return values | {"run": run_id(run, weights), "spec": to_json(run)}


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
    used = test.relevant_patterns + test.irrelevant_patterns + test.outlier_patterns
    return {"dimension": used, "patterns": test.relevant_patterns, "irrelevant": test.irrelevant_patterns,
            "patternNorm": float(test.pattern_norm)}


def _chains() -> dict[str, Any]:
    """The test prompts of the cot paper; the page chooses how many examples there are and how their steps go wrong."""
    test = default_test()
    basis = np.asarray(lower(test).pattern_mixtures)
    return {"dimension": test.dimension, "patterns": test.patterns, "steps": test.reasoning_steps,
            "noise": float(test.noise_norm or 0.0), "basis": packed(basis)}
