"""Claim `cot.icl`: how many examples the same model needs when it answers at once (figure 3), and what training adds.

Rule. As in `cot.examples`, but for the error of the answer given at once, against alpha', tau_o and rho_o (varied
through tau and rho, as in the paper; varying tau_o also changes rho_o). With many matching examples an untrained model
does almost as well, so this alone does not test the training; with few (alpha' = 0.1) and 64 examples the untrained
model's error must exceed the trained one's by at least 0.2.
Cost: 5 s beyond `cot.examples`.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from iclab.core.identity import to_json
from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome, Table
from iclab.lab.powers import HEADER, Counts, fit_law, law_panel, power_row
from iclab.papers.cot.examples import (
    NEEDED,
    NOTE,
    Axis,
    enough,
    falling_checks,
    measure,
    orders,
    prompts_told,
    shares_of_order,
    test_at,
)
from iclab.papers.cot.settings import SHORT, SIZES, a_run, default_test
from iclab.papers.cot.trained import asked, errors, models, untrained
from iclab.probes import UNIT, seed_interval
from iclab.probes.by_length import needed_examples
from iclab.sweeps.store import run_id
from iclab.theory.cot import EXAMPLES as LAWS
from iclab.theory.cot import EXAMPLES_EXPONENT, quality_of, theorem3_conditions

NAMES = {"alpha'": "alpha'", "tau": "tau_o", "rho": "rho_o"}
FRACTIONS = (0.1, 0.4, 0.8)
EXAMPLES, ADDED = 64, 0.2
STATEMENT = "The number of examples that in-context learning needs falls with alpha', tau_o and rho_o."


def varied(by_axis: dict[str, Axis]) -> dict[str, list[float]]:
    """alpha', tau_o and rho_o of the tests along each axis."""
    return {name: [float(test.matching_fraction) if axis == "alpha'" else getattr(quality_of(test), name)
                   for test in by_axis[axis].tests] for axis, name in NAMES.items()}


def counts(by_axis: dict[str, Axis]) -> dict[str, Counts]:
    """Examples that in-context learning needs along each axis."""
    return {NAMES[axis]: needed_examples(part.lengths, part.errors.icl, NEEDED) for axis, part in by_axis.items()}


def few_matching(lab: Lab) -> dict[str, Float[np.ndarray, "seeds fractions"]]:
    """Error of the answer given at once, by alpha', after and before training."""
    tests = [default_test(matching_fraction=value, prompt_length=max(SHORT)) for value in FRACTIONS]
    by_name = {name: errors(lab, name, [asked(lab, tested, tests, SHORT)])[0]
               for name, tested in (("trained", models(lab)), ("untrained", untrained(models(lab))))}
    return {name: values.icl[:, :, SHORT.index(EXAMPLES)] for name, values in by_name.items()}


def checks(by_axis: dict[str, Axis], few: dict[str, Float[np.ndarray, "seeds fractions"]]) -> list[Check]:
    """The rule above."""
    added = (few["untrained"] - few["trained"])[:, 0]
    needed = counts(by_axis)
    return [*falling_checks(needed, shares_of_order(needed, by_axis, "icl"), varied(by_axis)),
            Check.of(f"error of the untrained model less that of the trained, alpha' = {FRACTIONS[0]:g}, {EXAMPLES} "
                     "examples", seed_interval(added), ">=", ADDED)]


def run(lab: Lab) -> Outcome:
    """Judge the claim and draw the laws."""
    by_axis, few, size = measure(lab), few_matching(lab), SIZES[lab.scale]
    needed, x, judged = counts(by_axis), varied(by_axis), checks(by_axis, few)
    law = fit_law(LAWS["icl"], orders(needed, by_axis, "icl"), needed, lab)
    claim = Claim(id="cot.icl", statement=STATEMENT, place="li2024cot, theorem 3 (b), figure 3", checks=judged,
                  conditions=theorem3_conditions(a_run(size.steps), test_at("rho", 0.8)), notes=[NOTE],
                  settings={"training": to_json(a_run(size.steps)), "test": to_json(default_test()),
                            "prompts": prompts_told(lab), "allowed error": NEEDED}, seeds=lab.seeds(size.seeds),
                  runs=[str(run_id(m.run)) for m in models(lab)], scale=lab.scale)
    laws = curve_figure("cot.icl", f"Examples that in-context learning needs for an error of {NEEDED}",
                        f"One setting varied at a time; dashed: {law.words}",
                        [law_panel(axis, x[axis], {"softmax": values}, law.line(axis))
                         for axis, values in needed.items()], "", "examples needed", log_x=True, log_y=True)
    trained = curve_figure("cot.icl.training", "What training adds to in-context learning",
                           f"Error of the answer given at once with {EXAMPLES} examples, before and after training.",
                           [Panel("default tau and rho", FRACTIONS, [Curve(name, rows) for name, rows in few.items()])],
                           "alpha', fraction of matching examples", "error", log_x=True, within=UNIT)
    rows = [power_row(axis, x[axis], values, EXAMPLES_EXPONENT) for axis, values in needed.items()]
    shares, rho_o = shares_of_order(needed, by_axis, "icl"), [quality_of(test).rho_o for test in by_axis["tau"].tests]
    mean = {name: values.mean(axis=0) for name, values in few.items()}
    return Outcome(
        shown=f"How many examples bring the error of the answer given at once down to {NEEDED}, and the error of the "
              "same model before training.",
        paper="With Condition 1, (alpha' tau_o rho_o)^-2 log M examples are enough.",
        measured=f"Verdict: {claim.verdict}. Exponents: " + ", ".join(
            f"{axis} {value} {interval}" for axis, _, value, interval in rows)
        + f" (theorem -2 each); {enough(shares)}. Varying tau_o also changes rho_o, from {rho_o[0]:.2f} to "
          f"{rho_o[-1]:.2f}, which steepens that law. At alpha' = {FRACTIONS[-1]:g} the untrained model's error is "
          f"{mean['untrained'][-1]:.3f}, the trained one's {mean['trained'][-1]:.3f}: the majority of all examples is "
          "then nearly that of the matching ones, and says nothing about training. At alpha' = "
          f"{FRACTIONS[0]:g} they are {mean['untrained'][0]:.3f} and {mean['trained'][0]:.3f}. As in cot.examples, the "
          "rule was changed after a first look.",
        plots=[laws, trained], claim=claim, seeds=claim.seeds, settings=claim.settings, constants=law.constants,
        tables=[Table("cot.icl", "Exponents, with bootstrap intervals over seeds", HEADER, rows)])


ENTRY = Entry("cot.icl", "claim", "Examples that in-context learning needs", "li2024cot, theorem 3 (b), figure 3", run)
