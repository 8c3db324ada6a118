"""Claim `icl.context`: how many test examples are needed as fewer of them are decisive (figure 3, B).

Rules, written before the run. Theorem 3.3 (iii) in domain and theorem 3.4 out of domain, one layer, K' = 5: n is the
number of examples at which the error falls to 0.05; log n is regressed on log alpha', and the exponent must lie within
0.5 of the theorem's -1. Figure 3 (B), which shows only that GPT-2 requires more examples when fewer are decisive: with
six examples its error at alpha' = 0.4 exceeds that at 1 by at least 0.05, in and out of domain, at K' = K = 0.5 (at
K' = 5 its error never falls to 0.05, so n does not exist).
Cost: no extra training, about 4 s.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.figures.plots import curve_figure
from iclab.lab.claims import Check, between
from iclab.lab.entries import Checks, Entry, Findings, Part, Size
from iclab.lab.estimates import Difference, power
from iclab.lab.laboratory import Lab
from iclab.lab.powers import fit_law, in_words, law_panel
from iclab.papers.icl.iterations import exists
from iclab.papers.icl.settings import GPT2_TASKS, SIZES, TRAINING_SCALE, in_domain, out_of_domain
from iclab.papers.icl.trained import gpt2_models, one_layer_models
from iclab.probes.by_length import context_errors, needed_examples
from iclab.prompts import Classification
from iclab.theory.icl import EXAMPLES, LENGTH_EXPONENT
from iclab.training import Trained

WHERE = ("in domain", "out of domain")
PAPER_SCALE = 5.0
"""K' in the paper."""
NEEDED, TOLERANCE = 0.05, 0.5
FEW, MORE = 6, 0.05


class Grid(NamedTuple):
    """Tests of a model."""

    fractions: tuple[float, ...]
    lengths: tuple[int, ...]
    prompts: int


class Errors(NamedTuple):
    """Errors of a model on its grid, by domain."""

    grid: Grid
    values: dict[str, Float[np.ndarray, "seeds fractions lengths"]]

    def needed(self, where: str) -> Float[np.ndarray, "seeds fractions"]:
        """Examples at which the error falls to 0.05."""
        return needed_examples(self.grid.lengths, self.values[where], NEEDED)


ONE_LAYER = ((0.2, 0.3, 0.4, 0.6, 0.8, 1.0), (2, 3, 5, 8, 12, 20, 32, 64))
GPT2 = ((0.4, 0.6, 0.8, 1.0), (3, 6, 10, 20))
"""GPT-2 has no trained positions beyond 20 examples."""
GRIDS = {"tiny": {"softmax": Grid((0.4, 1.0), (4, 64), 500), "gpt2": Grid((0.4, 1.0), (6, 20), 500)},
         "quick": {"softmax": Grid(*ONE_LAYER, 1_000), "gpt2": Grid(*GPT2, 500)},
         "full": {"softmax": Grid(*ONE_LAYER, 2_000), "gpt2": Grid(*GPT2, 1_000)}}


def models_of(lab: Lab, model: str) -> list[Trained]:
    """The models judged."""
    return one_layer_models(lab, 0.8) if model == "softmax" else gpt2_models(lab)


def test_of(model: str, where: str, fraction: float, scale: float, length: int) -> Classification:
    """Test prompts of this number of examples."""
    changes = {"prompt_length": length, "irrelevant_scale": scale}
    if where == "out of domain":
        return out_of_domain(fraction, **changes)
    return in_domain(fraction, **changes, tasks=f"unseen:{GPT2_TASKS if model == 'gpt2' else 1}")


def measure(lab: Lab, model: str, scale: float) -> Errors:
    """Errors of a model for every domain, decisive fraction and number of examples."""
    grid, models = GRIDS[lab.scale][model], models_of(lab, model)
    longest, seeds = max(grid.lengths), lab.seeds(len(models))
    tests = [test_of(model, where, fraction, scale, longest) for where in WHERE for fraction in grid.fractions]
    errors = lab.remember(context_errors, models, tests, grid.lengths, count=grid.prompts, seeds=seeds)
    return Errors(grid, dict(zip(WHERE, np.split(errors, len(WHERE), axis=1), strict=True)))


def law(where: str) -> Checks:
    """The one-layer Transformer's exponent in a domain."""
    def checks(errors: dict[str, Errors]) -> list[Check]:
        needed = errors["softmax"].needed(where)
        return [exists(f"share of seeds whose error falls to {NEEDED} in every setting", needed),
                *between(f"exponent of alpha' {where}", power(errors["softmax"].grid.fractions, needed),
                         LENGTH_EXPONENT - TOLERANCE, LENGTH_EXPONENT + TOLERANCE)]

    return checks


def fewer_need_more(errors: dict[str, Errors]) -> list[Check]:
    """GPT-2's error with few examples, by how many are decisive."""
    (fractions, lengths, prompts), by_domain = errors["gpt2"]
    few = {where: values[:, :, lengths.index(FEW)] for where, values in by_domain.items()}
    return [Check(f"{where}: error with {FEW} examples at alpha' = {fractions[0]:g} less that at 1",
                  Difference(values[:, 0], values[:, -1], prompts), ">=", MORE) for where, values in few.items()]


def run(lab: Lab) -> Findings:
    """Count the examples needed and draw the law."""
    errors = {"softmax": measure(lab, "softmax", PAPER_SCALE), "gpt2": measure(lab, "gpt2", TRAINING_SCALE)}
    grid, run = errors["softmax"].grid, models_of(lab, "softmax")[0].run
    needed = {where: errors["softmax"].needed(where) for where in WHERE}
    fitted = fit_law(EXAMPLES, {WHERE[0]: [1 / fraction for fraction in grid.fractions]}, needed, lab)
    plot = curve_figure("icl.context", "Test examples needed for an error of 0.05",
                        "One-layer Transformer, K' = 5, against the fraction of decisive examples alpha'; dashed, "
                        f"fitted in domain: {fitted.words}",
                        [law_panel("one layer", grid.fractions, needed, fitted.line(WHERE[0]))],
                        "alpha', fraction of decisive test examples", "examples needed", log_x=True, log_y=True)
    exponents = "; ".join(f"{where} {in_words(power(grid.fractions, values))}" for where, values in needed.items())
    few = "; ".join(f"{where} {check.estimate.first.mean():.3f} and {check.estimate.second.mean():.3f}"
                    for where, check in zip(WHERE, fewer_need_more(errors), strict=True))
    specs = {where: [(run, test_of("softmax", where, fraction, PAPER_SCALE, max(grid.lengths)))
                     for fraction in (grid.fractions[0], grid.fractions[-1])] for where in WHERE}
    return Findings(
        shown="How many examples bring the error down to 0.05, against the fraction of them that are decisive; figure "
              "3 shows GPT-2's curves.",
        measured=errors, plots=[plot], constants=fitted.constants, specs=dict(zip(LAWS, specs.values(), strict=True)),
        numbers=f"One layer, exponent of alpha': {exponents}. GPT-2 with {FEW} examples at alpha' = 0.4 and 1 "
                f"(K' = 0.5): {few}.")


LAWS = ("theorem 3.3 (iii)", "theorem 3.4 with (iii)")
ENTRY = Entry(
    "icl.context", "Test examples needed as fewer of them are decisive", "li2024icl, theorems 3.3, 3.4, figure 3 (B)",
    run, says="The number of test examples needed grows like 1 / alpha', in and out of domain.",
    sizes={scale: Size(**vars(size), grids=GRIDS[scale]) for scale, size in SIZES.items()}, parts=(
        Part("theorem", LAWS[0], "In domain the required number of test examples grows like 1 / alpha'.",
             law(WHERE[0]), theory=("Theorem 3.3",), measured=("number of test examples",)),
        Part("theorem", LAWS[1], "Out of domain the required number of test examples grows like 1 / alpha'.",
             law(WHERE[1]), theory=("Theorem 3.4",), measured=("number of test examples",)),
        Part("figure", "figure 3 (B)", "GPT-2 needs more test examples when fewer of them are decisive, in and out of "
             "domain.", fewer_need_more)))
