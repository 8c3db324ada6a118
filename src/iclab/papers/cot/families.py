"""Ours: the gated family on chains. Mamba and its relatives trained on chain prompts, compared with softmax attention.

Step sizes were found by search: linear .1, Gated Retention .3, Mamba 1 (with delta .5; with .2 it takes twice as long).
Cost: 9 trainings in 3 programs, about 6 s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from iclab.core.spec import replace
from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.figures.style import NAMES
from iclab.lab.entries import Entry, Findings, Note, Size, Table
from iclab.lab.laboratory import Lab, per_seed
from iclab.models import ChainEmbedding, GatedAttention
from iclab.papers.cot.needs import at_default
from iclab.papers.cot.settings import a_run, default_test
from iclab.papers.cot.trained import asked, errors
from iclab.probes import UNIT
from iclab.training import Run, Trained

RATES = {"linear": (0.1, 0.2), "gated_retention": (0.3, 0.2), "mamba": (1.0, 0.5)}
"""Step size and initial scale of each member."""
LENGTHS = (4, 8, 16, 32)
NEAREST, EXAMPLES = 5, 20
SIZES = {"tiny": Size(seeds=2, steps=50, members=("mamba",)), "quick": Size(seeds=4, steps=500, members=("mamba",)),
         "full": Size(seeds=3, steps=2_000, members=("linear", "gated_retention", "mamba"))}


def member_run(member: str, steps: int) -> Run:
    """Training of one member on chain prompts."""
    rate, init_scale = RATES[member]
    run = a_run(steps)
    embedding = ChainEmbedding(steps=run.prompts.reasoning_steps)
    model = GatedAttention(member=member, init_scale=init_scale, embedding=embedding)
    return replace(run, model=model, training=replace(run.training, learning_rate=rate))


def weight_of_nearest(models: Sequence[Trained]) -> float:
    """The nearest examples' share of the gates, averaged over prompts and models."""
    prompts = default_test(prompt_length=EXAMPLES).sample(0, 100)
    gates = np.stack([model.look(prompts)[1].gates[:, 0, :-1] for model in models])
    near = gates[..., -NEAREST * a_run(1).prompts.reasoning_steps:]
    return float((near.sum(axis=-1) / gates.sum(axis=-1)).mean())


def run(lab: Lab) -> Findings:
    """Draw the errors of all members."""
    members, seeds = lab.size.members, lab.seeds()
    runs = {member: member_run(member, lab.size.steps) for member in members}
    trained = lab.train([seeded for run in runs.values() for seeded in per_seed(run, seeds)])
    by_member = {member: trained[i * len(seeds):(i + 1) * len(seeds)] for i, member in enumerate(members)}
    test, softmax = default_test(prompt_length=max(LENGTHS)), at_default(lab, LENGTHS)
    measured = errors(lab, [asked(lab, models, [test], LENGTHS) for models in by_member.values()])
    by_model = {"softmax": (softmax.cot, softmax.icl)}
    by_model |= {name: (part.cot[:, 0], part.icl[:, 0]) for name, part in zip(members, measured, strict=True)}
    votes = softmax.vote.mean(axis=0), softmax.vote_icl.mean(axis=0)
    panels = [Panel(name, LENGTHS, [Curve(model, values[i]) for model, values in by_model.items()],
                    lines=[("ideal vote", votes[i])]) for i, name in enumerate(("CoT", "ICL"))]
    plot = curve_figure("cot.families", "Other models on chain prompts",
                        "Error against the number of test examples, at the default setting. Softmax is the model of "
                        "figures 2 to 5; the others were trained with prompts of 20 examples and batches of 60.",
                        panels,
                        "test examples", "error", log_x=True, within=UNIT)
    rows = [(NAMES[model], *(f"{value:.3f}" for part in values for value in part.mean(axis=0)))
            for model, values in by_model.items()]
    broken = Counter(model.state for model in trained if model.state != "trained")
    return Findings(
        shown="Other models trained on chains of the same kind, with shorter prompts, reasoning with the same "
              "algorithm.",
        numbers=f"CoT error with {LENGTHS[-1]} examples: " + ", ".join(f"{row[0]} {row[len(LENGTHS)]}" for row in rows)
        + f" (vote {votes[0][-1]:.3f}). In Mamba, the last {NEAREST} of {EXAMPLES} examples have "
          f"{weight_of_nearest(by_member['mamba']):.2f} of the gates' weight."
        + (f" Of {len(trained)} runs {', '.join(f'{count} {state}' for state, count in broken.items())}."
           if broken else ""),
        plots=[plot], specs=[(run, test) for run in runs.values()],
        tables=[Table("cot.families", "Errors by the number of test examples",
                      ("model", *(f"{name}, {n}" for name in ("CoT", "ICL") for n in LENGTHS)), rows)])


ENTRY = Entry("cot.families", "Other models on chain prompts", "ours", run, kind="figure", sizes=SIZES,
              says="Nothing: the paper covers softmax attention only.",
              notes=(Note("2026-11-18", "Models that do not forget count all matching examples; Mamba's gate forgets "
                          "half the state at every column when training begins. Its training prompts also have fewer "
                          "examples than the longest tests, and what of its error comes from that was not measured."),))
