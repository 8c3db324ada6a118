"""Ours: chains read by the gated family. Mamba and its relatives trained on chain prompts, beside softmax attention.

Step sizes were searched: linear .1, Gated Retention .3, Mamba 1 (from delta .5; from .2 it takes twice as long), all
without divergence over the seeds. Cost: about 25 s in 3 programs, and 3 for tests. Expect: the linear Transformer
reasons nearly as well as softmax attention; Mamba forgets, and still errs .1 with 32 examples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.figures.style import NAMES
from iclab.models import ChainEmbedding, GatedAttention
from iclab.papers.cot.examples import at_default
from iclab.papers.cot.settings import a_run, default_test
from iclab.papers.cot.trained import asked, errors
from iclab.papers.entries import Entry, Lab, Outcome, Table, per_seed
from iclab.probes import UNIT
from iclab.specs import replace, to_json
from iclab.training import Run, Trained

RATES = {"linear": (0.1, 0.2), "gated_retention": (0.3, 0.2), "mamba": (1.0, 0.5)}
"""Step size and starting value of each member."""
MEMBERS = {"quick": ("mamba",), "full": ("linear", "gated_retention", "mamba")}
LENGTHS = (4, 8, 16, 32)
NEAREST, TOLD = 5, 20
SEEDS, STEPS = 4, {"quick": 500, "full": 2_000}


def member_run(member: str, steps: int) -> Run:
    """Training of one member on chain prompts."""
    rate, start = RATES[member]
    run = a_run(steps)
    model = GatedAttention(member=member, init_scale=start, embedding=ChainEmbedding(steps=run.prompts.reasoning_steps))
    return replace(run, model=model, training=replace(run.training, learning_rate=rate))


def weight_of_nearest(models: Sequence[Trained]) -> float:
    """The share of the gates that the nearest examples have, a mean over prompts and models."""
    prompts = default_test(prompt_length=TOLD).sample(0, 100)
    gates = np.stack([model.look(prompts)[1].gates[:, 0, :-1] for model in models])
    near = gates[..., -NEAREST * a_run(1).prompts.reasoning_steps:]
    return float((near.sum(axis=-1) / gates.sum(axis=-1)).mean())


def run(lab: Lab) -> Outcome:
    """Draw the errors of all members."""
    members, steps = MEMBERS[lab.scale], STEPS[lab.scale]
    trained = lab.train([one for member in members for one in per_seed(member_run(member, steps), lab.seeds(SEEDS))])
    packs = [trained[i * SEEDS:(i + 1) * SEEDS] for i in range(len(members))]
    test, softmax = default_test(prompt_length=max(LENGTHS)), at_default(lab, LENGTHS)
    measured = errors(lab, "families", [asked(lab, some, [test], LENGTHS) for some in packs])
    found = {"softmax": (softmax.cot, softmax.icl)}
    found |= {name: (one.cot[:, 0], one.icl[:, 0]) for name, one in zip(members, measured, strict=True)}
    votes = softmax.vote.mean(axis=0), softmax.vote_icl.mean(axis=0)
    panels = [Panel(name, LENGTHS, [Curve(model, values[i]) for model, values in found.items()],
                    lines=[("ideal vote", votes[i])]) for i, name in enumerate(("CoT", "ICL"))]
    plot = curve_figure("cot.families", "Chains read by other models",
                        "Error against the number of test examples, at the default setting.", panels,
                        "test examples", "error", log_x=True, within=UNIT)
    rows = [(NAMES[model], *(f"{value:.3f}" for value in values[0].mean(axis=0)),
             *(f"{value:.3f}" for value in values[1].mean(axis=0))) for model, values in found.items()]
    fading = weight_of_nearest(packs[members.index("mamba")])
    broken = Counter(m.state for m in trained if m.state != "trained")
    return Outcome(
        shown="Other models trained on the same chains, reasoning with the same algorithm.",
        paper="Nothing: the paper has softmax attention only.",
        measured=f"With {LENGTHS[-1]} examples CoT errs: " + ", ".join(
            f"{row[0]} {row[len(LENGTHS)]}" for row in rows)
        + f" (vote {votes[0][-1]:.3f}). Sums without forgetting count all matching examples. Mamba's gate, which lets "
          f"go of half the state with every column when training begins, learns to keep more, but the last {NEAREST} "
          f"of {TOLD} examples still have {fading:.2f} of its weight, and they decide."
        + (f" Of {len(trained)} runs {', '.join(f'{count} {state}' for state, count in broken.items())}."
           if broken else ""),
        plots=[plot], seeds=lab.seeds(SEEDS), settings={m: to_json(member_run(m, steps)) for m in members},
        tables=[Table("cot.families", "Errors by the number of test examples",
                      ("model", *(f"CoT, {n}" for n in LENGTHS), *(f"ICL, {n}" for n in LENGTHS)), rows)])


ENTRY = Entry("cot.families", "figure", "Chains read by other models", "ours", run)
