"""Claim `icl.norms`: queries and keys grow along the relevant patterns until these dominate (figure 2 A).

Rules, written before the run. Proposition 4.1 (17), in and out of domain: during training the part of W_Q p and of
W_K p along the token's pattern at least doubles. (18) and (19) say that the parts along any other relevant pattern and
along any irrelevant one are smaller by the order 1 / M1 + 1 / M2. That is an order, so it is judged as one: with
M2 = M1 from 4 to 12, the largest of these parts divided by the one along the pattern falls like M1^-1, with an exponent
of at most -0.65. Remark 4.2, by which queries and keys lie mainly along their pattern: 1 - share^2, of which the
bounds make M1^-1, falls as fast. In domain, K = 0.5. The first rule for (18) and (19) was a share of at least 0.9 at
M1 = 6. Figure 2 (A): growth and that share, out of domain (K' = 5). Cost: 40 trainings of 1,000 steps, about 5 s.
Settled after a look: axes and steps were shortened for their cost after a full run; no verdict changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from iclab.core.spec import replace
from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.claims import Check
from iclab.lab.entries import Checks, Entry, Findings, Part, Rule, Size
from iclab.lab.estimates import Mean, power
from iclab.lab.laboratory import Lab, per_seed
from iclab.lab.powers import in_words
from iclab.papers.icl import settings
from iclab.papers.icl.mechanism import DECISIVE, PLACES, WATCHED, along, watched_specs
from iclab.papers.icl.settings import IN_DOMAIN_CONSTANT, OUT_OF_DOMAIN_CONSTANT, in_domain, one_layer_run
from iclab.papers.icl.trained import one_layer_models
from iclab.probes import UNIT
from iclab.probes.watched import watched_prompts
from iclab.prompts import Classification
from iclab.training import Run, Trained

LEAST = {"growth along its pattern": 2.0, "part along its pattern": 0.9}
VECTORS = ("query", "key")
OTHERS = ("other relevant", "irrelevant", "1 - share^2")
"""What is measured against M1, relative to the part along the pattern."""
STEEPEST, FALLS = -1.0, -0.65
AXES = {"tiny": ((4, 6), 100), "quick": ((4, 6, 8), 1_000), "full": ((4, 6, 8, 10, 12), 1_000)}
SIZES = {scale: Size(**vars(size), patterns=AXES[scale][0], longer=AXES[scale][1])
         for scale, size in settings.SIZES.items()}

Norms = Float[np.ndarray, "seeds records"]


class Measured(NamedTuple):
    """Growth and share at the paper's sizes, and the parts along other patterns against M1."""

    norms: Mapping[tuple[str, str], Mapping[str, Mean]]
    patterns: Sequence[int]
    parts: Mapping[tuple[str, str], Float[np.ndarray, "seeds patterns"]]


def estimates(whole: Norms, part: Norms) -> dict[str, Mean]:
    """Growth and final share of the part along the pattern."""
    return dict(zip(LEAST, (Mean(part[:, -1] / part[:, 0]), Mean(part[:, -1] / whole[:, -1], UNIT)), strict=True))


def a_run(M1: int, steps: int) -> Run:
    """Training with as many irrelevant as relevant patterns."""
    run = one_layer_run(DECISIVE, steps)
    return replace(run, prompts=replace(run.prompts, relevant_patterns=M1, irrelevant_patterns=M1, dimension=2 * M1))


def test_of(M1: int) -> Classification:
    """In-domain prompts of these patterns."""
    return in_domain(DECISIVE, relevant_patterns=M1, irrelevant_patterns=M1, dimension=2 * M1)


def relative_parts(models: Sequence[Trained]) -> Float[np.ndarray, "models vectors others"]:
    """The largest part of W p along another relevant pattern and along an irrelevant one, over that along the token's
    pattern, and 1 - share^2; means over the tokens."""
    values = []
    for trained in models:
        prompts = trained.run.prompts
        M1, batch = prompts.relevant_patterns, watched_prompts(test_of(prompts.relevant_patterns), WATCHED)
        columns = np.asarray(jax.vmap(trained.run.model.embedding.columns)(batch))
        patterns = np.asarray(batch.truth.pattern)
        for weights, tokens in ((trained.params.W_Q, slice(-1, None)), (trained.params.W_K, slice(None, -1))):
            projected = columns[:, tokens] @ np.asarray(weights).T
            # Patterns lie along the axes: relevant ones first, then irrelevant ones.
            same = patterns[:, tokens, None] == np.arange(M1)
            sizes = np.abs(projected[..., :2 * M1])
            along_pattern = np.where(same, sizes[..., :M1], 0).sum(-1)
            relevant = np.where(same, 0, sizes[..., :M1]).max(-1)
            share = along_pattern / np.linalg.norm(projected, axis=-1)
            values.append([float(value.mean()) for value in (relevant / along_pattern, sizes[..., M1:].max(-1)
                                                             / along_pattern, 1 - share**2)])
    return np.array(values).reshape(len(models), len(VECTORS), len(OTHERS))


def rule(*names: str, places: tuple[str, ...] = tuple(PLACES)) -> Checks:
    """Queries and keys grow, or lie, along their pattern."""
    return lambda measured: [Check(f"{vector}, {place}: {name}", values[name], ">=", LEAST[name]) for name in names
                             for (vector, place), values in measured.norms.items() if place in places]


def falls(other: str) -> Checks:
    """This part falls like 1 / M1."""
    return lambda measured: [
        Check(f"{vector}: exponent of M1 in {other} (theorem {STEEPEST:g})",
              power(measured.patterns, measured.parts[vector, other]), "<=", FALLS) for vector in VECTORS]


def run(lab: Lab) -> Findings:
    """Follow the norms during training, and compare the parts as M1 grows."""
    models, patterns = one_layer_models(lab, DECISIVE), lab.size.patterns
    norms = {(vector, place): [along(models, f"{vector} {what}/{place}") for what in ("norm", "along its pattern")]
             for vector in VECTORS for place in PLACES}
    runs = [a_run(M1, lab.size.longer) for M1 in patterns]
    larger = lab.train([seeded for run in runs for seeded in per_seed(run, lab.seeds())])
    parts = lab.remember(relative_parts, larger).reshape(len(patterns), lab.size.seeds, len(VECTORS), len(OTHERS))
    by_name: dict[tuple[str, str], Any] = {(vector, other): parts[:, :, i, j].T for i, vector in enumerate(VECTORS)
                                           for j, other in enumerate(OTHERS)}
    plot = curve_figure("icl.norms", "Parts of queries and keys along other patterns, as M1 grows",
                        "Largest part along another relevant and along an irrelevant pattern, divided by the part "
                        "along the token's own, and 1 - share^2; in domain, M2 = M1.",
                        [Panel(vector, patterns, [Curve(other, by_name[vector, other]) for other in OTHERS])
                         for vector in VECTORS], "M1", "", log_x=True, log_y=True)
    whole, part = norms["query", "in domain"]
    at_paper, grown = watched_specs(models), [(run, test_of(run.prompts.relevant_patterns)) for run in runs]
    return Findings(
        shown="How large queries and keys are along other patterns than the token's, against M1; figure 2 shows the "
              "norms during training.", plots=[plot],
        specs={place: at_paper if place == GROWTH else grown for place in (GROWTH, RELEVANT, IRRELEVANT)},
        measured=Measured({key: estimates(*values) for key, values in norms.items()}, patterns, by_name),
        numbers=f"In domain at M1 = 6 a query's part along its pattern grows from {part[:, 0].mean():.2f} to "
                f"{part[:, -1].mean():.2f} of a norm of {whole[:, -1].mean():.2f}. Exponents of M1: " + "; ".join(
                    f"{vector}, {other} {in_words(power(patterns, values))}"
                    for (vector, other), values in by_name.items()) + ".")


GROWTH, RELEVANT, IRRELEVANT = (f"proposition 4.1 ({number})" for number in (17, 18, 19))
SHARE = Rule(rule("part along its pattern"), "The bounds are orders; with all constants 1 the share at M1 = 6 is 0.91, "
                                             "and that of an untrained model is above 0.9.")
ENTRY = Entry(
    "icl.norms", "Queries and keys grow along the relevant patterns", "li2024icl, proposition 4.1, figure 2 (A)", run,
    says="Queries and keys grow along the relevant patterns until these dominate.", sizes=SIZES, parts=(
        Part("theorem", GROWTH, "Queries and keys grow along the token's relevant pattern.",
             rule("growth along its pattern"), theory=("Proposition 4.1",), constant=OUT_OF_DOMAIN_CONSTANT),
        Part("theorem", RELEVANT, "Along other relevant patterns queries and keys are smaller by the order "
             "1 / M1 + 1 / M2.", falls(OTHERS[0]), theory=("Proposition 4.1",), constant=IN_DOMAIN_CONSTANT,
             earlier=(SHARE,)),
        Part("theorem", IRRELEVANT, "Along irrelevant patterns too.", falls(OTHERS[1]), theory=("Proposition 4.1",),
             constant=IN_DOMAIN_CONSTANT, earlier=(SHARE,)),
        Part("remark", "remark 4.2", "Queries and keys lie mainly along their pattern, the more so the larger M1.",
             falls(OTHERS[2])),
        Part("figure", "figure 2 (A)", "Out of domain the norms grow during training, and the part along the relevant "
             "pattern is close to the whole.", rule(*LEAST, places=("out of domain",)))))
