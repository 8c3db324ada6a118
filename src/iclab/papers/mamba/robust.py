"""Claim `mamba.robust`: Mamba stays at the floor up to outlier fraction 0.8, the linear Transformer fails past 1/2.

Rules, written before the run, for the models of figure 2. Figure: Mamba's largest excess over the floor at fractions up
to 0.8 is at most 0.01 for each label rule; the linear Transformer's error at 0.6 under flip is above 0.4. Theorem 2:
Mamba's error is at most 0.1, the accuracy for which its premises are computed, at the fractions below its bound of 0.6.
Theorem 4: the same for the linear Transformer at the fractions up to 0.3, for which 20 examples are enough by (d);
`mamba.bounds` judges it closer to 1/2, with more examples.
Ours: Mamba's excess below the bound is at most 0.01, finer than what the theorem promises with this batch size; and the
excess under flip with test outliers only as large as in training.
Written after a look: the linear Transformer's error beyond 1/2 is above 0.01 under every rule, the number that the
same paragraph calls small (an earlier rule asked for 0.1, which the paper does not name). After one on other seeds:
the paper's statement that the error is below 0.01 close to 0.8, at 0.75 and at 0.8 itself; and which settings that asks
for (the worst of the three rules at 0.75): with U = 2 or with twice the training scale the error is above 0.01, with
U = 3 and four times the scale below.
Cost: the runs of figure 2 and `mamba.tasks`, 2 million test prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iclab.lab.claims import Check, worst
from iclab.lab.entries import Entry, Findings, Note, Part, Rule
from iclab.lab.estimates import Rate
from iclab.lab.laboratory import Lab
from iclab.lab.regions import Axis, Region
from iclab.papers.mamba.robustness import Robustness, measure
from iclab.papers.mamba.settings import (
    FEW_TASKS_STEPS,
    FINER,
    FRACTIONS,
    RULES,
    SIZES,
    attacked_prompts,
    one_layer_run,
)
from iclab.papers.mamba.trained import one_layer_models

EXCESS_ALLOWED, LINEAR_BROKEN, ACCURACY = 0.01, 0.4, 0.1
CLOSE, PAPERS_ERROR, PROMPTS = 0.75, 0.01, 2_000
"""A fraction close to 0.8, and the error that the paper states there."""
FACTORS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
SHIFTS = {"tiny": (1, 5), "quick": (1, 5), "full": (1, 2, 3, 4, 5)}
"""Numbers of trained shifts by scale."""
FIGURE, MAMBA, LINEAR = (tuple(f for f in FRACTIONS if f <= largest) for largest in (0.8, 0.5, 0.3))
"""Outlier fractions of the figure, and those inside the premises of theorems 2 and 4."""


def at_the_floor(result: Robustness, fractions: Sequence[float], rules: Sequence[str] = RULES, variant: str = "paper"
                 ) -> list[Check]:
    """Mamba's largest excess over the floor, by label rule."""
    return [worst(f"Mamba, {rule}: largest excess over the floor up to {fractions[-1]:g} (at {{}})",
                  [(f"{f:g}", result.excess(variant, "mamba", rule, f)) for f in fractions], "<=", EXCESS_ALLOWED)
            for rule in rules]


def figure(result: Robustness) -> list[Check]:
    """What figure 2 shows of both models."""
    return [*at_the_floor(result, FIGURE), Check("linear Transformer, flip: error at 0.6", result.error(
        "paper", "linear", "flip", 0.6), ">", LINEAR_BROKEN)]


def promised(result: Robustness, member: str) -> list[Check]:
    """A model where its theorem covers it: the error is at most the theorem's epsilon."""
    name, fractions = {"mamba": ("Mamba", MAMBA), "linear": ("linear Transformer", LINEAR)}[member]
    return [worst(f"{name}, {rule}: largest error up to {fractions[-1]:g} (at {{}})",
                  [(f"{f:g}", result.error("paper", member, rule, f)) for f in fractions], "<=", ACCURACY)
            for rule in RULES]


def broken(result: Robustness, threshold: float = PAPERS_ERROR) -> list[Check]:
    """The linear Transformer's error beyond 1/2, under every rule."""
    return [worst(f"linear Transformer, {rule}: least error beyond 1/2 (at {{}})", [
        (f"{f:g}", result.error("paper", "linear", rule, f)) for f in FRACTIONS if f > 0.5], ">", threshold)
        for rule in RULES]


def below(result: Robustness) -> list[Check]:
    """What the paper states: an error below 0.01 close to 0.8, here at 0.75."""
    of = result.settings[max(result.settings)][..., FACTORS.index(3.0)]
    return [Check(f"Mamba, {rule}: error at {CLOSE:g}", Rate(of[:, i], PROMPTS), "<", PAPERS_ERROR)
            for i, rule in enumerate(RULES)]


def below_at_the_end(result: Robustness) -> list[Check]:
    """The same at 0.8 itself."""
    return [Check(f"Mamba, {rule}: error at 0.8", result.error("paper", "mamba", rule, 0.8), "<", PAPERS_ERROR)
            for rule in RULES]


def worst_rule(result: Robustness, shifts: int, factor: float) -> Rate:
    """The error under the worst label rule at 0.75."""
    of = result.settings[shifts][..., FACTORS.index(factor)]
    return Rate(of[:, of.mean(axis=0).argmax()], PROMPTS)


def region(result: Robustness) -> Region:
    """Where the error is below 0.01 close to 0.8, by the scale of test outliers and the number of trained shifts."""
    return Region(f"error at {CLOSE:g} under the worst rule", Axis("kappa_a' / kappa_a", FACTORS),
                  Axis("U", tuple(sorted(result.settings))), [[worst_rule(result, shifts, factor) for factor in FACTORS]
                                                              for shifts in sorted(result.settings)], "<",
                  PAPERS_ERROR, where="tried")


def asked_for(result: Robustness) -> list[Check]:
    """Two settings that are not enough for an error below 0.01, and one that is."""
    most = max(result.settings)
    return [Check(f"U {shifts}, {factor:g} kappa_a: error at {CLOSE:g} under the worst rule",
                  worst_rule(result, shifts, factor), relation, PAPERS_ERROR)
            for shifts, factor, relation in ((most, 2.0, ">"), (2, 4.0, ">"), (3, 4.0, "<")) if shifts in
            result.settings]


def least(result: Robustness) -> str:
    """The least scale and the least number of shifts, in words."""
    most = max(result.settings)
    factors = [f for f in FACTORS if worst_rule(result, most, f).value < PAPERS_ERROR]
    shifts = [U for U in sorted(result.settings) if worst_rule(result, U, FACTORS[-1]).value < PAPERS_ERROR]
    return (f"an error below {PAPERS_ERROR:g} at {CLOSE:g} under all three rules takes "
            + (f"at least {factors[0]:g} kappa_a (U = {most})" if factors else "more than the scales tried") + " and "
            + (f"U of at least {shifts[0]} ({FACTORS[-1]:g} kappa_a)" if shifts else "more shifts than were tried"))


def with_settings(lab: Lab, result: Robustness) -> Robustness:
    """Add errors at 0.75 for every number of trained shifts and every test scale."""
    tests = [attacked_prompts(rule, CLOSE, factor) for rule in RULES for factor in FACTORS]
    models = {U: one_layer_models(lab, "mamba") if U == 5 else lab.train_seeds(
        one_layer_run("mamba", FEW_TASKS_STEPS[lab.scale], U)) for U in SHIFTS[lab.scale]}
    errors = {U: lab.errors(of, tests, PROMPTS).reshape(len(of), len(RULES), -1) for U, of in models.items()}
    return replace(result, settings=errors)


def run(lab: Lab) -> Findings:
    """Measure as for figure 2, and at other settings."""
    result = with_settings(lab, measure(lab))
    over = region(result)
    runs = {member: one_layer_run(member, SIZES[lab.scale].steps) for member in ("mamba", "linear")}

    def specs(member: str, fractions: Sequence[float]) -> list:
        return [(runs[member], attacked_prompts(rule, f)) for rule in RULES for f in fractions]

    same = result.error("same_scale", "mamba", "flip", 0.8).value
    return Findings(
        shown="Each check, its measured value with an interval over seeds, and the threshold it had to meet; the "
              "curves are those of figure 2.",
        measured=result, numbers="At outlier fraction 0.8 Mamba's error is " + ", ".join(
            f"{result.error('paper', 'mamba', rule, 0.8).value:.4f} ({rule})" for rule in RULES)
        + f"; with kappa_a' = kappa_a it is {same:.3f} under flip. By the mean over seeds {least(result)}.",
        plots=[over.plot("mamba.robust.region", "What figure 2 needs", f"Error at {CLOSE:g} under the "
                         "worst of the three label rules.")],
        specs={"theorem 2": specs("mamba", MAMBA), "theorem 4": specs("linear", LINEAR)})


NEAR = "The number lies too near to the threshold for this many seeds."
ENTRY = Entry(
    "mamba.robust", "Mamba stays at the floor up to 0.8, the linear Transformer breaks at 1/2",
    "li2025mamba, figure 2, theorems 2, 4", run,
    says="Mamba tolerates outlier fractions close to 1, the linear Transformer only those below 1/2.",
    sizes=SIZES, parts=(
        Part("theorem", "theorem 2", "Mamba's error is small at outlier fractions below min(1, p_a l_tr / l_ts), with "
             "every task trained and outliers three times as large as in training.",
             lambda result: promised(result, "mamba"), theory=("Theorem 2",), accuracy=ACCURACY,
             earlier=(Rule(lambda result: at_the_floor(result, MAMBA), FINER),), replies={
                 "holds": "This is the theorem's promise.", "fails": "The constants of the premises are open.",
                 "inconclusive": NEAR}),
        Part("theorem", "theorem 4", "The linear Transformer's error is small at outlier fractions below 1/2, given "
             "enough examples, with every task trained and outliers three times as large as in training.",
             lambda result: promised(result, "linear"), theory=("Theorem 4",), accuracy=ACCURACY,
             replies={"holds": "This is the theorem's promise.", "fails": "The constants of the premises are open.",
                      "inconclusive": NEAR}),
        Part("figure", "figure 2", "Mamba's error stays small as the outlier fraction nears 0.8, under all three label "
             "rules; the linear Transformer's is large beyond 1/2 under flip. Outliers are three times as large as "
             "in training.", figure, replies={
                 "holds": "The figure comes out, with test outliers three times as large as in training.",
                 "fails": "The figure asks for settings that the paper does not give.", "inconclusive": NEAR}),
        Part("figure", "section 4.1, the linear Transformer beyond 1/2", "The linear Transformer's error is large "
             "(here above 0.01, the yardstick of the sentence before) at fractions beyond 1/2, under all three label "
             "rules.", broken, earlier=(Rule(lambda result: broken(result, ACCURACY), "Large was above 0.1, a number "
                                             "of ours."),), replies={
                 "fails": "The text gives no number for a large error and no scale of the test outliers, and random "
                          "labels cancel; at the scale used here the error under some rule is below 0.01.",
                 "holds": "The linear Transformer leaves the error that we call small beyond 1/2, whatever the labels.",
                 "inconclusive": NEAR}),
        Part("figure", "section 4.1, below 0.01 close to 0.8", "Mamba's error is below 0.01 close to 0.8 (here at "
             "0.75) under all three label rules.", below, replies={
                 "holds": "The number that the text gives comes out.",
                 "fails": "The number asks for settings that the paper does not give.", "inconclusive": NEAR}),
        Part("ours", "section 4.1, below 0.01 at 0.8", "The same at 0.8 itself, of which the text says nothing.",
             below_at_the_end, replies={
            "fails": "The text says close to 0.8; at 0.8 itself a fifth of 20 examples is clean, and even a perfect "
                     "filter that breaks ties by what is left errs in 0.0115 of all prompts under flip.",
            "holds": "The number holds even at 0.8.",
            "inconclusive": "A perfect filter that breaks ties by what is left errs in 0.0115 of all prompts under "
                            "flip, and more seeds would be needed to tell that from 0.01."}),
        Part("ours", "what an error below 0.01 asks for", "It takes more than twice the training scale and more than "
             "two shifts of tasks; three shifts are enough.", asked_for, replies={
                 "holds": "The paper gives neither kappa_a' nor U; these are what its figure needs.",
                 "fails": "The figure needs something else than these.", "inconclusive": NEAR}),
        Part("ours", "finer than theorem 2", "Below the theorem's bound Mamba is within 0.01 of the floor, although "
             "B is far below 1 / 0.01^2.", lambda result: at_the_floor(result, MAMBA), replies={
                 "holds": "The theorem's batch size is sufficient, not needed.",
                 "fails": "The batch is too small for that accuracy.", "inconclusive": NEAR}),
        Part("ours", "the training scale", "With kappa_a' = kappa_a Mamba stays at the floor up to 0.8 "
             "under flip.", lambda result: at_the_floor(result, FIGURE, RULES[:1], "same_scale"), replies={
                 "fails": "One of the three directions has a small coefficient sum, so that at the training scale it "
                          "hardly moves the gate; the figure was not drawn there.",
                 "holds": "The training scale is enough.", "inconclusive": NEAR})),
    notes=(Note("2026-11-18", "The paper gives no kappa_a' for figure 2; here it is 3 kappa_a. Fraction 0.8 lies "
                "beyond p_a = 0.6, outside theorem 2 (c)."),
           Note("2026-11-18", "A perfect filter that broke ties by whatever flipped labels get through would err at "
                "twice the floor (an excess of 0.0058) at 0.8 under flip.")))
