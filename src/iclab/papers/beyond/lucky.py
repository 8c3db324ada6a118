"""Claim `icl.lucky`: the steps of li2024icl's proof, lemmas B.5, B.6, B.7, B.9 and B.10, along training.

In domain, one shift of tasks, alpha 0.6, |q| = 1; M1 from 4 to 10 with M2 = M1, m ~ M1^2 log M1 and B ~ M1 log M1.
T is the step at which the loss is 0.2. Gradients are read as updates, which the lemmas' signs ask for.

What the lemmas leave open. By (52) and (53) a neuron is lucky for a prompt if V_n(0) has the sign of its label part,
which at the start is that of the query's label in three prompts of five; over all prompts nearly every neuron is
lucky, and (38), (50) are about nobody. The proofs take the label's sign, and so do we, except for B.9: i in W_n for
label +1 if a_i > 0, O_1 . V_n1(0) > 0 and O_2 . q > 0; U_n accordingly. gamma is a mean over prompts: one prompt
without an example of the query's pattern makes the maximum 1, and (36) empty. zeta is the least positive value over
lucky neurons and prompts (definition B.4).

Rules. Constants are open: what contradicts an order is a ratio, measured over bound, that grows (falls) with a power of
M1, t or B beyond 0.35. It is judged at T/4, T/2, 3T/4 and T, the worst counts; for W_V and single steps up to 3T/4,
since later there is no loss left. (27), (31): growth along the pattern over eta / M1 sum zeta gamma beta^4. (28), (32):
along partners over it at T at most half of that at T/4, as exp(-(eta t / M1)^2) vanishes. (29), (30), (33), (34):
along other patterns over it, times M1 (M2). (36), (39): V_i of lucky neurons over beta^2 (1 - gamma) / a, at T/2 and
3T/4. (37), (40), read literally: those of the other set are negative, and at least 1 / (beta^2 + 1) of it. (38), (41):
|V_i| of all others over sqrt(log B / B), as B grows. (43): M2 |V'_i| over |V_i| in batches of training. (44), (46), an
equality: both sides, in t and M1. (45), (47), (48), (50): over their bounds. (49) without +-q, which would count the
label's growth as that of the irrelevant pattern: M2 times growth along nu over that along (mu, q). B.9: the mean share
does not fall with m, and is at least 1/16, half of chance, in the worst prompt at the largest m. B.10: at the largest m
at least 0.95 of the pairs of prompt and lucky neuron are active at all times up to the end of training; and at its end
of the pairs of a prompt and any neuron in W (U). Ours: chance gives each set 1/8 of all neurons (a quarter of those
with its sign), within a tenth; at least three in four of the larger half of the rows after training were lucky.

Rules, stages and readings were settled after a look at search seeds (500 to 503, M1 4 to 12), before the first judging
run. After it one rule was changed, with its earlier version beside it: in (27), (31) zeta was a mean. `icl.norms`
judges (18), (19), what queries and keys have at the end: with their starting values, the largest part, with every task
too. Here it is what training adds, per token without irrelevant part, along time.
Cost: 24 trainings of up to 2,200 steps and 24 times 20 looks at 1,000 to 4,096 prompts, 33 s of one core.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.claims import Check, between, worst
from iclab.lab.entries import Checks, Entry, Findings, Part, Rule, Size, Table
from iclab.lab.estimates import Mean, power
from iclab.lab.laboratory import Lab, per_seed
from iclab.lab.powers import TOLERANCE
from iclab.papers.beyond.lucky_steps import BATCHES, STAGES, TAUGHT, a_run, followed, weights_probe
from iclab.papers.icl.directions import test_of
from iclab.papers.icl.settings import IN_DOMAIN_CONSTANT
from iclab.probes import UNIT

VANISHED, SMALLEST, STAYS, MOSTLY = 0.5, 1 / 16, 0.95, 0.75
CHANCE, NEAR_CHANCE = 1 / 8, 0.1
WEIGHTS = ("W_Q", "W_K")
LATE = STAGES.index(0.5)
Numbers = Float[np.ndarray, "seeds sizes"]
OverTime = Float[np.ndarray, "seeds sizes stages"]


class Measured(NamedTuple):
    """What `lucky_steps.follow` returns, by name, at every M1."""

    patterns: Sequence[int]
    square: float
    """beta^2."""
    neurons: Sequence[int]
    values: Mapping[str, Float[np.ndarray, "seeds sizes *stages"]]

    def over(self, name: str, bound: str, power: float = 0.0) -> OverTime:
        """One number over another, times this power of M1 (which is M2, too)."""
        scale = np.array(self.patterns, float)[None, :, None] ** power
        return scale * self.values[name] / self.values[bound]

    def in_patterns(self, ratio: OverTime, stages: Sequence[int]) -> list[tuple[str, Any]]:
        """Exponents of M1 at these stages."""
        return [(f"{STAGES[k]:g} T", power(list(self.patterns), ratio[:, :, k])) for k in stages]

    def in_time(self, ratio: OverTime, stages: int = len(STAGES)) -> list[tuple[str, Any]]:
        """Exponents of t at every M1, over the first stages."""
        return [(f"M1 {M1}", power(STAGES[:stages], ratio[:, i, :stages])) for i, M1 in enumerate(self.patterns)]

    def means(self, ratio: OverTime, stages: Sequence[int]) -> list[tuple[str, Any]]:
        """Means at every M1 and these stages."""
        return [(f"M1 {M1}, {STAGES[k]:g} T", Mean(ratio[:, i, k])) for i, M1 in enumerate(self.patterns)
                for k in stages]

    def largest(self, name: str) -> Mean:
        """A share, at the largest size."""
        return Mean(self.values[name][:, -1], UNIT)


ALL = range(len(STAGES))
EARLY = range(TAUGHT)


def _grows(name: str, measured: Measured, ratio: OverTime, growth: OverTime) -> list[Check]:
    """At least of the order of a bound, in M1 and in t, and positive."""
    return [worst(f"{name}: exponent of M1, over the bound (at {{}})", measured.in_patterns(ratio, ALL), ">=",
                  -TOLERANCE),
            worst(f"{name}: exponent of t, over the bound (at {{}})", measured.in_time(ratio), ">=", -TOLERANCE),
            worst(f"{name}: least growth (at {{}})", measured.means(growth, ALL), ">", 0.0)]


def own_pattern(pull: str) -> Checks:
    """(27), (31), with the least or the mean zeta."""
    return lambda measured: [check for W in WEIGHTS for check in _grows(
        W, measured, measured.over(f"{W} own", pull), measured.values[f"{W} own"])]


def partners(measured: Measured) -> list[Check]:
    """(28), (32)."""
    checks = []
    for W in WEIGHTS:
        ratio = measured.over(f"{W} partner", f"{W} own")
        fall = [(f"M1 {M1}", Mean(ratio[:, i, -1] / ratio[:, i, 0])) for i, M1 in enumerate(measured.patterns)]
        checks.append(worst(f"{W}: growth along partners over that along the pattern, at T over at T/4 (at {{}})", fall,
                            "<=", VANISHED))
    return checks


def other_patterns(measured: Measured) -> list[Check]:
    """(29), (30), (33), (34)."""
    return [worst(f"{W}: exponent of M1 in growth along {words} over that along its own, times {count} (at {{}})",
                  measured.in_patterns(measured.over(f"{W} {kind}", f"{W} own", 1.0), ALL), "<=", TOLERANCE)
            for W in WEIGHTS for kind, words, count in (("other", "other relevant patterns", "M1"),
                                                        ("irrelevant", "irrelevant patterns", "M2"))]


def lucky_values(measured: Measured) -> list[Check]:
    """(36), (39)."""
    stages = range(LATE, TAUGHT)
    return [worst("exponent of M1 in V_i of lucky neurons over beta^2 (1 - gamma) / a (at {})",
                  measured.in_patterns(measured.over("lucky value", "mass"), stages), ">=", -TOLERANCE),
            worst("least a V_i of lucky neurons (at {})", measured.means(measured.values["lucky value"], stages), ">",
                  0.0)]


def opposite_values(measured: Measured) -> list[Check]:
    """(37), (40)."""
    ratio = -(measured.square + 1) * measured.over("opposite value", "lucky value")
    return [worst("-(beta^2 + 1) V_i of the other set over V_i of lucky neurons (at {})",
                  measured.means(ratio, range(LATE, TAUGHT)), ">=", 1.0)]


def idle_values(measured: Measured) -> list[Check]:
    """(38), (41)."""
    values = measured.values["idle value"]
    batches = np.array(BATCHES[:values.shape[-1]], float)
    ratio = values / np.sqrt(np.log(batches) / batches)
    return [worst("exponent of B in |V_i| of all other neurons over sqrt(log B / B) (at {})",
                  [(f"M1 {M1}", power(batches.tolist(), ratio[:, i])) for i, M1 in enumerate(measured.patterns)],
                  "<=", TOLERANCE)]


def irrelevant_values(measured: Measured) -> list[Check]:
    """(43)."""
    return [worst("exponent of M1 in M2 |V'_i| over |V_i| (at {})",
                  measured.in_patterns(measured.over("irrelevant value", "value", 1.0), EARLY), "<=", TOLERANCE)]


def one_step(measured: Measured) -> list[Check]:
    """(44), (46)."""
    ratio = measured.over("one step", "one step bound")
    name = "one step of lucky rows over the lemma's: exponent of"
    return [check for words, exponents in (("t", measured.in_time(ratio, TAUGHT)),
                                           ("M1", measured.in_patterns(ratio, EARLY)))
            for check in (worst(f"{name} {words}, where least ({{}})", exponents, ">=", -TOLERANCE),
                          worst(f"{name} {words}, where largest ({{}})", exponents, "<=", TOLERANCE))]


def lucky_rows(measured: Measured) -> list[Check]:
    """(45), (47)."""
    return _grows("lucky rows", measured, measured.over("row", "row bound"), measured.values["row"])


def row_norms(measured: Measured) -> list[Check]:
    """(48)."""
    return [Check("exponent of M1 in norms of lucky rows over the bound, at T",
                  power(list(measured.patterns), measured.over("row norm", "norm bound")[:, :, -1]), ">=", -TOLERANCE)]


def irrelevant_rows(measured: Measured) -> list[Check]:
    """(49)."""
    return [worst("exponent of M1 in M2 times growth of lucky rows along nu over that along (mu, q) (at {})",
                  measured.in_patterns(measured.over("irrelevant row", "row", 1.0), ALL), "<=", TOLERANCE)]


def idle_rows(measured: Measured) -> list[Check]:
    """(50)."""
    ratio = measured.over("idle row", "idle bound")
    return [worst("exponent of t in growth of all other rows over eta t sqrt(log B / B) / a (at {})",
                  measured.in_time(ratio), "<=", TOLERANCE),
            worst("exponent of M1 in it (at {})", measured.in_patterns(ratio, ALL), "<=", TOLERANCE)]


def enough(measured: Measured) -> list[Check]:
    """(57), (58)."""
    return [check for W in ("W", "U") for check in (
        Check(f"exponent of m in |{W}_n| / m", power(list(measured.neurons), measured.values[f"share of {W}"]), ">=",
              -TOLERANCE),
        Check(f"least |{W}_n| / m over prompts, at the largest m", measured.largest(f"least share of {W}"), ">=",
              SMALLEST))]


def by_chance(measured: Measured) -> list[Check]:
    """As many as a coin for each of three signs gives."""
    return [check for W in ("W", "U") for check in between(
        f"|{W}_n| / m at the largest m", measured.largest(f"share of {W}"), CHANCE * (1 - NEAR_CHANCE),
        CHANCE * (1 + NEAR_CHANCE))]


def stays(name: str, words: str, least: float) -> Checks:
    """A share at the largest size."""
    return lambda measured: [Check(words, measured.largest(name), ">=", least)]


def measure(lab: Lab) -> tuple[Measured, list[Any]]:
    """Train at every M1, and follow the weights."""
    patterns, seeds = lab.size.patterns, lab.seeds()
    runs = [a_run(M1, lab.size.steps) for M1 in patterns]
    models = lab.train([seeded for run in runs for seeded in per_seed(run, seeds)], weights_probe)
    found = lab.remember(followed, models, lab.size.prompts)
    values = {name: np.stack([np.stack([np.asarray(found[i * len(seeds) + k][name]) for i in range(len(runs))])
                              for k in range(len(seeds))]) for name in found[0]}
    square = float(runs[0].prompts.pattern_norm) ** 2
    return Measured(patterns, square, [run.model.neurons for run in runs], values), runs


def panels(measured: Measured) -> list[Panel]:
    """What decides, against M1."""
    last, taught = -1, TAUGHT - 1
    idle = measured.values["idle value"][:, :, -1]

    def panel(title: str, curves: Mapping[str, Numbers]) -> Panel:
        return Panel(title, list(measured.patterns), [Curve(name, values) for name, values in curves.items()])

    return [panel("W_Q: growth over that along the pattern, at T", {
                name: measured.over(f"W_Q {kind}", "W_Q own")[:, :, last] for name, kind in
                (("partner", "partner"), ("other relevant", "other"), ("irrelevant", "irrelevant"))}),
            panel("a |V_i| in W_V's gradient, at 3T/4", {
                "lucky": measured.values["lucky value"][:, :, taught], "all others": idle,
                "irrelevant pattern, lucky": measured.values["irrelevant value"][:, :, taught]}),
            panel("W_O: growth over the bound of (45), at T", {
                name: measured.over(kind, "row bound")[:, :, last] for name, kind in
                (("lucky", "row"), ("irrelevant pattern, lucky", "irrelevant row"), ("all others", "idle row"))})]


def shares(measured: Measured) -> Panel:
    """What becomes of the lucky neurons."""
    return Panel("", list(measured.patterns), [Curve(name, measured.values[of]) for name, of in (
        ("lucky ones always active", "always active"), ("ever lucky, active at the end", "active at the end"),
        ("lucky among the larger half", "lucky among large"), ("lucky among all", "lucky"))])


def run(lab: Lab) -> Findings:
    """Follow training, draw, tabulate."""
    measured, runs = measure(lab)
    last = {name: values[:, -1].mean(axis=0) for name, values in measured.values.items()}
    lost = last["W_Q partner"] / last["W_Q own"]
    rows = [(M1, m, *(f"{measured.values[name][:, i].mean():.3f}" for name in (
        "T", "share of W", "share of U", "lucky", "always active", "always active, as written", "active at the end",
        "lucky among large", "same sign at the start", "in W as written")))
            for i, (M1, m) in enumerate(zip(measured.patterns, measured.neurons, strict=True))]
    steps = [(f"{stage:g} T", *(f"{last[name][k]:.3g}" for name in (
        "W_Q own", "W_Q partner", "W_Q other", "W_Q irrelevant", "lucky value", "opposite value", "irrelevant value",
        "row", "row bound", "idle row", "idle bound", "irrelevant row"))) for k, stage in enumerate(STAGES)]
    return Findings(
        shown="Growth of W_Q along patterns, coefficients of W_V's gradient, growth of W_O's rows and how many lucky "
              "neurons stay active, against M1.", measured=measured,
        numbers=f"At M1 = {measured.patterns[-1]}: what W_Q gains along partners is {lost[0]:.2f} of what it "
                f"gains along the pattern at T/4 and {lost[-1]:.2f} at T; rows of lucky neurons grow "
                f"{last['row'][-1] / last['row bound'][-1]:.2f} times the bound of (45) up to T, and those of others "
                f"{last['idle row'][-1] / last['row'][-1]:.2f} times as much as lucky ones; "
                f"{last['always active']:.2f} of the lucky neurons stay active at all times "
                f"({last['always active, as written']:.2f} of those that are lucky as (52) and (53) are written); "
                f"{last['lucky among large']:.2f} of the larger half of the rows were lucky, and {last['lucky']:.2f} "
                "of all. At the start V_n has the sign of the query's label in "
                f"{last['same sign at the start']:.2f} of the prompts.",
        plots=[curve_figure("icl.lucky", "The steps of the proof, as M1 grows", "M2 = M1, m ~ M1^2 log M1, B ~ M1 log "
                            "M1; T is the step at which the loss is 0.2.", panels(measured), "M1", "size",
                            log_x=True, log_y=True, share_y=False),
               curve_figure("icl.lucky.neurons", "What becomes of the lucky neurons", "Shares of neurons, or of pairs "
                            "of a prompt and a neuron that is lucky for it.", [shares(measured)], "M1", "share",
                            within=UNIT)],
        tables=[Table("icl.lucky", "Neurons", ("M1", "m", "T", "W", "U", "lucky", "always active",
                                               "as written", "active at the end", "lucky among large",
                                               "V_n(0) right", "in W as written"), rows),
                Table("icl.lucky.growth", f"Along training at M1 = {measured.patterns[-1]}",
                      ("time", "W_Q own", "partner", "other", "irrelevant", "a V_i lucky", "opposite", "irrelevant",
                       "row", "bound", "other row", "bound", "row along nu"), steps)],
        specs=[(run, test_of(run.prompts.relevant_patterns)) for run in (runs[0], runs[-1])])


OPEN = "An interval crosses its threshold: orders from these sizes are not sharper."


def _lemma(place: str, says: str, checks: Checks, holds: str, fails: str, earlier: tuple[Rule, ...] = ()) -> Part:
    """A lemma, with the premises of theorem 3.3, whose proof it belongs to."""
    return Part("theorem", f"lemma {place}", says, checks, theory=("Theorem 3.3",), constant=IN_DOMAIN_CONSTANT,
                earlier=earlier, replies={"holds": holds, "fails": fails, "inconclusive": OPEN})


COUPLED = ("At the start query's pattern and partner have nearly the same attention and their labels cancel, so that "
           "the first steps are smaller by delta^2 beta^2 and the rest catches up all at once.")
SIZES = {"tiny": Size(seeds=2, patterns=(4, 5), steps=1_000, prompts=512),
         "quick": Size(seeds=3, patterns=(4, 6, 8), steps=1_000, prompts=2_048),
         "full": Size(seeds=6, patterns=(4, 6, 8, 10), steps=1_000, prompts=4_096)}
ENTRY = Entry(
    "icl.lucky", "The steps of the proof: lucky neurons and growth along patterns",
    "ours, after lemmas B.5 to B.10 of li2024icl", run,
    says="Do single weights grow as the lemmas behind theorem 3.3 say: W_Q and W_K along the token's pattern, W_V and "
         "W_O through the neurons that are lucky at the start?", sizes=SIZES, parts=(
        _lemma("B.5 (27), (31)", "W_Q and W_K grow along the token's own pattern, at least like eta / M1 times the sum "
               "of zeta gamma beta^4.", own_pattern("pull"), "Attention learns to find equal patterns as fast as the "
               "proof says.", "At the start neurons of both signs of a_i are active and cancel, which the sum leaves "
               "out.", earlier=(Rule(own_pattern("mean pull"), "Definition B.4 takes the least positive value."),)),
        _lemma("B.5 (28), (32)", "Along partners the growth vanishes beside it, like exp(-(eta t / M1)^2).", partners,
               "Partners drop out.", "The first steps push each partner away half as much as they pull the pattern in, "
               "and the sum over steps keeps that; the proof replaces it by its last term."),
        _lemma("B.5 (29), (30), (33), (34)", "Along other relevant patterns it is at most 1 / M1 of it, along "
               "irrelevant ones 1 / M2.", other_patterns, "The orders are the lemma's.",
               "Noise of batches of the order M1 log M1 is larger than what the lemma bounds."),
        _lemma("B.6 (36), (39)", "Lucky neurons have a coefficient of at least beta^2 (1 - gamma) / a in W_V's "
               "gradient.", lucky_values, "Lucky neurons teach W_V.", "The proof counts prompts with the "
               "query's pattern; a batch has M1 patterns, and of the others only the label's part is left."),
        _lemma("B.6 (37), (40)", "Those of the other set have at least 1 / (beta^2 + 1) of it, with the other sign.",
               opposite_values, "The other label's neurons are pushed the other way.",
               "On prompts of the other label some of the set's gain from the shared pattern outweighs the label's."),
        _lemma("B.6 (38), (41)", "All other neurons have at most sqrt(log B / B) / a.", idle_values,
               "They see noise only.", "They are active on prompts of both labels, and with one sign of a_i that is a "
               "mean, not noise: it stays when B grows."),
        _lemma("B.6 (43)", "Along irrelevant patterns coefficients are 1 / M2 of those.", irrelevant_values,
               "The order is the lemma's.", "What is left along irrelevant patterns is noise, which falls like "
               "(M2 B)^(-1/2), while V_i falls faster with M1 than (36) says."),
        _lemma("B.7 (44), (46)", "A step moves lucky rows along (mu_a, q) by delta (beta^2 + 1) alpha eta / 2a "
               "(1 + eta^2 m / a^2)^t.", one_step, "Steps are of that size.", COUPLED),
        _lemma("B.7 (45), (47)", "So they grow at least like delta (beta^2 + 1) alpha eta t / 2a.", lucky_rows,
               "The lower bound has the right powers.", "Rows hardly grow before T, the less the larger M1, and "
               "catch up at T."),
        _lemma("B.7 (48)", "Their norms are at least sqrt(M1) delta (beta^2 + 1)^(1/2) alpha eta t / 2a.", row_norms,
               "The lower bound has the right power.", "The bound grows with t, and T grows faster with M1 than "
               "theorem 3.3 (iv) says; norms stop where the loss does."),
        _lemma("B.7 (49)", "Along irrelevant patterns they grow 1 / M2 of that.", irrelevant_rows,
               "The order is the lemma's.", "A row that starts along an irrelevant pattern is active where prompts "
               "carry it, and grows along it."),
        _lemma("B.7 (50)", "All other rows grow at most like eta t sqrt(log B / B) / a.", idle_rows,
               "They do not learn.", "They grow as soon as the others do: the sign of a_i decides which label they "
               "learn to read."),
        _lemma("B.9 (57), (58)", "A constant share of the neurons is lucky for every prompt.", enough,
               "The share does not fall as m grows.", "Some prompts have fewer."),
        _lemma("B.10 (59), (60)", "A neuron that is lucky for a prompt stays active for it.",
               stays("always active", "share of lucky neurons that are active at all times, largest m", STAYS),
               "Lucky neurons stay active.", "Before attention has learned, others' gradients shut some of them."),
        _lemma("B.10 (61), (62)", "After a constant time all neurons in W are active for all prompts of label +1, "
               "those in U for -1.", stays("active at the end", "share of active neurons in W (U), largest m", STAYS),
               "They all read their label.", "Some neurons that were lucky learned nothing, or to read the pattern "
               "only."),
        Part("ours", "chance", "Each set has an eighth of all neurons, a quarter of those with its sign.", by_chance,
             replies={"holds": "Luck is three fair coins.", "fails": "The signs depend on each other.",
                      "inconclusive": OPEN}),
        Part("ours", "luck decides", "Of the larger half of the rows after training, three in four were lucky.",
             stays("lucky among large", "share of lucky neurons in the larger half, largest m", MOSTLY), replies={
                 "holds": "Luck at the start decides which neurons carry the answer.", "inconclusive": OPEN,
                 "fails": "Which neurons become large is hardly decided by their luck at the start."})))
