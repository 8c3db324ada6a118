"""Figure 2: error of one-layer Mamba and the linear Transformer against the outlier fraction, three label rules.

Cost: 32 trainings of 10,000 steps and 15 million test prompts, about a minute and a half on 2 cores.
Expect (full scale): Mamba at 0.8 about .012 / .006 / .006 (flip / target / random), floor .0058; the linear Transformer
.19 / .50 / .81 at 0.4 / 0.5 / 0.6 under flip.
"""

from __future__ import annotations

from iclab.figures.plots import Curve, Panel, error_figure
from iclab.papers.entries import Entry, Lab, Outcome
from iclab.papers.mamba.robustness import MODELS, SIZES, VARIANTS, Robustness, measure
from iclab.papers.mamba.settings import FRACTIONS, RULES, attacked_prompts, one_layer_run
from iclab.probes import seed_interval
from iclab.specs import to_json

NAMES = {"flip": "label flipping", "target": "targeted labelling", "random": "random labelling"}


def panels(result: Robustness, variant: str) -> list[Panel]:
    """One panel a label rule."""
    return [Panel(f"({letter}) {NAMES[rule]}", FRACTIONS,
                  [Curve(model, result.errors[variant][model][:, index]) for model in MODELS],
                  floor=result.floor, bayes=result.bayes)
            for index, (letter, rule) in enumerate(zip("ABC", RULES, strict=True))]


def run(lab: Lab) -> Outcome:
    """Draw the figure as the paper has it, then the two questions it leaves open."""
    result = measure(lab)
    size = SIZES[lab.scale]
    captions = {
        "paper": "As in the paper's figure 2; test outliers are three times as large as in training (it does not say).",
        "same_scale": "The same models when test outliers are only as large as in training: one of the three unseen "
                      "directions barely moves the gate, and flipped examples get through.",
        "few_tasks": "Trained on U = 1 shift (6 of 30 tasks), tested on all tasks: unseen tasks keep an error even "
                     "without outliers.",
    }
    plots = [error_figure(f"mamba.fig2.{variant}", f"{VARIANTS[variant]}", captions[variant],
                          panels(result, variant), x_label="outlier fraction at test")
             for variant in VARIANTS]

    def said(variant: str, model: str, rule: str, fraction: float) -> str:
        interval = seed_interval(result.at(variant, model, rule, fraction))
        return f"{interval.mean:.4f} [{max(interval.low, 0):.4f}, {min(interval.high, 1):.4f}]"

    floor = result.floor[FRACTIONS.index(0.8)]
    measured = (
        f"At outlier fraction 0.8 Mamba errs {said('paper', 'mamba', 'flip', 0.8)} (flip), "
        f"{said('paper', 'mamba', 'target', 0.8)} (target), {said('paper', 'mamba', 'random', 0.8)} (random); no blind "
        f"learner can do better than {floor:.4f}. Under flip that is "
        f"{'above' if result.at('paper', 'mamba', 'flip', 0.8).mean() > 0.01 else 'below'} the paper's 0.01, at 0.7 it "
        f"is {said('paper', 'mamba', 'flip', 0.7)}. The linear Transformer errs {said('paper', 'linear', 'flip', 0.6)} "
        f"at 0.6 under flip, {said('paper', 'linear', 'random', 0.6)} under random labels: only flipping breaks it. "
        f"With test outliers no larger than in training Mamba errs {said('same_scale', 'mamba', 'flip', 0.8)} at 0.8 "
        f"under flip; trained on 6 tasks it errs {said('few_tasks', 'mamba', 'flip', 0.0)} without any outlier.")
    return Outcome(
        shown="Error on fresh prompts against the fraction of poisoned examples; bands are 95 % intervals over seeds, "
              "the dotted line is the information floor and the dashed one the Bayes predictor.",
        paper="Mamba's error stays below 0.01 up to a fraction close to 0.8 under all three rules; the linear "
              "Transformer's is large beyond 1/2.",
        measured=measured, plots=plots, seeds=result.seeds,
        settings={"training (Mamba)": to_json(one_layer_run("mamba", size.steps)),
                  "training (linear)": to_json(one_layer_run("linear", size.steps)),
                  "test": to_json(attacked_prompts("flip", 0.8)), "test prompts a point and seed": size.prompts})


ENTRY = Entry("mamba.fig2", "figure", "Error against outlier fraction: Mamba and linear Transformer",
              "li2025mamba, figure 2", run)
