"""Ours: the gated family on chains. Mamba and its relatives trained on chain prompts, compared with softmax attention.

Step sizes were found by search: linear .1, Gated Retention .3, Mamba 1 (with delta .5; with .2 it takes twice as long);
no seed diverges. Cost: about 25 s in 3 programs, and 3 for tests. Expect: the linear Transformer reasons nearly as well
as softmax attention; Mamba forgets, and its error is still .1 with 32 examples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from iclab.core.identity import to_json
from iclab.core.spec import replace
from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.figures.style import NAMES
from iclab.lab.entries import Entry, Lab, Outcome, Table, per_seed
from iclab.models import ChainEmbedding, GatedAttention
from iclab.papers.cot.examples import at_default
from iclab.papers.cot.settings import a_run, default_test
from iclab.papers.cot.trained import asked, errors
from iclab.probes import UNIT
from iclab.training import Run, Trained

RATES = {"linear": (0.1, 0.2), "gated_retention": (0.3, 0.2), "mamba": (1.0, 0.5)}
"""Step size and initial scale of each member."""
MEMBERS = {"quick": ("mamba",), "full": ("linear", "gated_retention", "mamba")}
LENGTHS = (4, 8, 16, 32)
NEAREST, EXAMPLES = 5, 20
SEEDS, STEPS = 4, {"quick": 500, "full": 2_000}


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


def run(lab: Lab) -> Outcome:
    """Draw the errors of all members."""
    members, steps = MEMBERS[lab.scale], STEPS[lab.scale]
    runs = [run for member in members for run in per_seed(member_run(member, steps), lab.seeds(SEEDS))]
    trained = lab.train(runs)
    models_by_member = [trained[i * SEEDS:(i + 1) * SEEDS] for i in range(len(members))]
    test, softmax = default_test(prompt_length=max(LENGTHS)), at_default(lab, LENGTHS)
    measured = errors(lab, "families", [asked(lab, models, [test], LENGTHS) for models in models_by_member])
    by_model = {"softmax": (softmax.cot, softmax.icl)}
    by_model |= {name: (part.cot[:, 0], part.icl[:, 0]) for name, part in zip(members, measured, strict=True)}
    votes = softmax.vote.mean(axis=0), softmax.vote_icl.mean(axis=0)
    panels = [Panel(name, LENGTHS, [Curve(model, values[i]) for model, values in by_model.items()],
                    lines=[("ideal vote", votes[i])]) for i, name in enumerate(("CoT", "ICL"))]
    plot = curve_figure("cot.families", "Other models on chain prompts",
                        "Error against the number of test examples, at the default setting.", panels,
                        "test examples", "error", log_x=True, within=UNIT)
    rows = [(NAMES[model], *(f"{value:.3f}" for value in values[0].mean(axis=0)),
             *(f"{value:.3f}" for value in values[1].mean(axis=0))) for model, values in by_model.items()]
    fading = weight_of_nearest(models_by_member[members.index("mamba")])
    broken = Counter(m.state for m in trained if m.state != "trained")
    return Outcome(
        shown="Other models trained on the same chains, reasoning with the same algorithm.",
        paper="Nothing: the paper covers softmax attention only.",
        measured=f"CoT error with {LENGTHS[-1]} examples: " + ", ".join(
            f"{row[0]} {row[len(LENGTHS)]}" for row in rows)
        + f" (vote {votes[0][-1]:.3f}). Models that do not forget count all matching examples. Mamba's gate "
          "forgets half the state at every column when training begins; it learns to keep more, but the last "
          f"{NEAREST} of {EXAMPLES} examples still have {fading:.2f} of the weight, and they decide."
        + (f" Of {len(trained)} runs {', '.join(f'{count} {state}' for state, count in broken.items())}."
           if broken else ""),
        plots=[plot], seeds=lab.seeds(SEEDS), settings={m: to_json(member_run(m, steps)) for m in members},
        tables=[Table("cot.families", "Errors by the number of test examples",
                      ("model", *(f"CoT, {n}" for n in LENGTHS), *(f"ICL, {n}" for n in LENGTHS)), rows)])


ENTRY = Entry("cot.families", "figure", "Other models on chain prompts", "ours", run)
