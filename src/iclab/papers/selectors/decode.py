"""Claim `selectors.decode`: the MLP decides by the labels that attention brings, not by the features (figure 1, b).

Rules, over the neurons that vote for the truth, at the end of training. Proposition 2, as printed, with the coordinates
split after W_V: the label part of a neuron's input exceeds its feature part in at least half of the cases. Figure 1
(b): the same with the columns split before W_V, which tells what is read from labels and from features. Ours: with the
label part alone, split before W_V, the model errs on at most 0.01 of the prompts, with the feature part alone on at
least 0.3. The last two were written before the run, and are judged at the settings of the figure; proposition 2 is
judged inside its premises. Cost: none beyond `selectors.features`.
"""

from __future__ import annotations

from iclab.lab.claims import Check
from iclab.lab.entries import Entry, Findings, Note, Part, Rule
from iclab.lab.estimates import Mean, Rate
from iclab.lab.laboratory import Lab
from iclab.papers.selectors.mechanism import WATCHED, Records, along
from iclab.papers.selectors.settings import CONSTANT, OUTSIDE, SIZES
from iclab.papers.selectors.trained import theorem_models, trained_models
from iclab.probes import UNIT

PROBED = ("share", "error of labels", "error of features", "labels", "features", "share after values",
          "error of features after values")
HALF, RIGHT, WRONG = 0.5, 0.01, 0.3


def labels_exceed(probed: Records, cut: str = "") -> list[Check]:
    """The label part is the larger in half of the neurons."""
    return [Check(f"share of neurons whose label part exceeds the feature part{cut}",
                  Mean(probed[f"share{cut}"][:, -1], UNIT), ">=", HALF)]


def labels_decide(probed: Records) -> list[Check]:
    """The label part alone is right, the feature part alone is not."""
    return [Check("error with the label part alone", Rate(probed["error of labels"][:, -1], WATCHED), "<=", RIGHT),
            Check("error with the feature part alone", Rate(probed["error of features"][:, -1], WATCHED), ">=", WRONG)]


def run(lab: Lab) -> Findings:
    """Train and look at the probes."""
    inside = theorem_models(lab)
    probed = {where: {name: along(models, name) for name in PROBED}
              for where, models in (("figure", trained_models(lab)), ("theorem", inside))}
    end = {name: values[:, -1].mean() for name, values in probed["figure"].items()}
    return Findings(
        shown="The two parts of the neurons' input, and what the model would answer with either one alone.",
        measured=probed,
        numbers=f"On average the label part is {end['labels']:.2f}, the feature part {end['features']:.2f}. Split "
                "after W_V, the feature part alone errs on "
                f"{end['error of features after values']:.2f} of the prompts, split before it on "
                f"{end['error of features']:.2f}. Inside the premises the label part exceeds the feature part in "
                f"{probed['theorem']['share after values'][:, -1].mean():.2f} of the neurons split after W_V, in "
                f"{probed['theorem']['share'][:, -1].mean():.2f} split before it.",
        specs=[(inside[0].run, inside[0].run.prompts)], settings={"prompts watched": WATCHED})


ENTRY = Entry(
    "selectors.decode", "The label part decides the output", "li2024selectors, proposition 2, figure 1 (b)", run,
    says="In a constant fraction of the neurons the label part exceeds the feature part, and it decides the output.",
    sizes=SIZES, parts=(
        Part("theorem", "proposition 2", "Split after W_V, the label part exceeds the feature part in a constant "
             "fraction of the neurons.", lambda probed: labels_exceed(probed["theorem"], " after values"),
             theory=("Proposition 2",), constant=CONSTANT,
             earlier=(Rule(lambda probed: labels_exceed(probed["figure"], " after values"), OUTSIDE),)),
        Part("figure", "figure 1 (b)", "What neurons read from labels outgrows what they read from features.",
             lambda probed: labels_exceed(probed["figure"])),
        Part("ours", "what decides the output", "With the label part alone the model is right, with the feature part "
             "alone it is not.", lambda probed: labels_decide(probed["figure"]))),
    notes=(Note("2026-11-18", "Training mixes the coordinates of W_V, so that after it the feature coordinates contain "
                "the label as well."),))
