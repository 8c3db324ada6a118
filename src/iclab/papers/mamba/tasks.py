"""Claim `mamba.tasks`: trained on a subset of the tasks, Mamba solves the others.

Rules. Training tasks are a cyclic family: shift k pairs every pattern with the k-th next one, and U shifts are trained.
Theorem 1: the hinge loss on training prompts, the mean over all tasks as in eq. 10, is at most 0.1, the accuracy for
which the premises are computed, for U = 1 at every M1 (T grows with M1) and for U = 1..4 at M1 6. The same for every
accuracy: at M1 6, U = 1 the loss falls as B grows like eps^-2 (exponent of B at most -0.5 plus 0.35). Theorem 2: the
error on test prompts without outliers is at most 0.1; the same for every accuracy, as above; and with outliers at M1 6,
U = 1, fraction 0.5 under flip, at kappa_a and 3 kappa_a, the error with B = 1,024 is at most 0.05, the accuracy that
this batch is for (an earlier rule asked for 0.1 with B = 128, too near to the measured number). Lemma 3 (workshop
version, eq. 28), for pairs that no training task combines, at U = 1: at t = T_M, with eta 0.02, the entries of W_B are
within 0.1 of the diagonal (an earlier rule judged W_B and W_C after hundreds of times T_M). Eq. 47 (full version, eq.
44), the full training: the score, the product of both, is at most 0.1 of its diagonal. Ours: the error of every shift
is at most 0.1 at U = 1, so that every task is solved, not only most; the mean error and the mean hinge loss at U = 1
fall like 1 / M1 (exponents within 0.35); the hinge loss at M1 6, U = 1 is at most 0.1 for some T and delta.
Drawn beside it: the error of shift 2 and the entries of W_B^T W_C by shift. Searched on other seeds: tasks of shift 2
err 0.17 to 0.20 at every M1, others hardly; the rules on B, lemma 3, eq. 47, outliers, T and delta came after that.
The rules at B = 1,024, and lemma 3 at T_M, were written when the numbers of the rules that they replaced were known.
Cost: 200 trainings, about 8 s.
"""

from __future__ import annotations

import numpy as np

from iclab.core.spec import replace
from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.claims import Check, between, worst
from iclab.lab.entries import Entry, Findings, Note, Part, Rule, Table
from iclab.lab.estimates import Mean, Power, Rate, power
from iclab.lab.laboratory import Lab
from iclab.lab.regions import Axis, Region
from iclab.papers.mamba.settings import (
    FEW_TASKS_STEPS,
    FINER,
    sizes,
)
from iclab.papers.mamba.shifts import (
    SCALES,
    Family,
    Study,
    a_run,
    attacks,
    entries_by_shift,
    scores_by_shift,
    shifts_of,
    test_of,
    tests_of,
)
from iclab.papers.mamba.trained import one_layer_models
from iclab.theory.mamba import ITERATIONS
from iclab.training import Run

ACCURACY, FINER_ACCURACY, FINER_ERROR = 0.1, 0.05, 0.01
SHORT_RATE = 0.02
"""The learning rate of the trainings that stop at T_M."""
FALL, TOLERANCE = -1.0, 0.35
BATCH_FALL, KEPT = -0.5, 0.1


def theorem1(study: Study) -> list[Check]:
    """The mean hinge loss over all tasks."""
    return [worst("largest mean hinge loss over all tasks ({})",
                  [(of.name, Mean(of.hinge, (0.0, np.inf))) for of in study.families], "<=", ACCURACY)]


def every_accuracy(study: Study) -> list[Check]:
    """The mean hinge loss falls with the batch."""
    losses = np.stack([of.hinge for of in study.batches.values()], axis=1)
    return [Check("M1 6, U 1: exponent of B in the mean hinge loss", power(list(study.batches), losses), "<=",
                  BATCH_FALL + TOLERANCE)]


def theorem2(study: Study) -> list[Check]:
    """The mean error over all tasks."""
    return [worst("largest mean error over all tasks ({})",
                  [(of.name, Rate(of.error, of.prompts)) for of in study.families], "<=", ACCURACY)]


def every_error(study: Study) -> list[Check]:
    """The mean error falls with the batch."""
    errors = np.stack([of.error for of in study.batches.values()], axis=1)
    return [Check("M1 6, U 1: exponent of B in the mean error", power(list(study.batches), errors), "<=",
                  BATCH_FALL + TOLERANCE)]


def finer(study: Study) -> list[Check]:
    """The earlier rule: the error outside the family at M1 6, for every U."""
    return [Check(f"error on tasks outside the family at U {of.U}", Rate(of.unseen, of.prompts), "<=", FINER_ERROR)
            for of in study.families if of.M1 == 6]


def with_outliers(study: Study) -> list[Check]:
    """The mean error over all tasks with outliers, with the largest batch."""
    batch = max(study.batches)
    errors = np.asarray(study.batches[batch].attacked)
    return [worst(f"M1 6, U 1, B {batch}: largest mean error over all tasks with outliers ({{}})", [
        (f"{scale:g} kappa_a", Rate(of, study.batches[batch].prompts)) for scale, of in
        zip(SCALES, errors.T, strict=True)], "<=", FINER_ACCURACY)]


def with_outliers_earlier(study: Study) -> list[Check]:
    """The earlier rule: the same for every family, with the usual batch."""
    return [worst("largest mean error over all tasks with outliers ({})", [
        (f"{of.name}, {scale:g} kappa_a", Rate(errors, of.prompts)) for of in study.families if of.attacked is not None
        for scale, errors in zip(SCALES, of.attacked.T, strict=True)], "<=", ACCURACY)]


def entries_kept(study: Study) -> list[Check]:
    """The earlier rule of lemma 3: entries of both matrices for pairs that never met, after training on one shift."""
    return [worst("U 1: largest entry of a pair that never met, over the diagonal ({})", [
        (f"M1 {of.M1}, {name}, shift {k}", Mean(np.abs(np.asarray(of.entries)[:, i, k - 1]))) for of in study.least
        for i, name in enumerate(("W_B", "W_C")) for k in shifts_of(of.M1) if k > 1], "<=", KEPT)]


def entries_kept_at_first(study: Study) -> list[Check]:
    """Entries of W_B for pairs that never met, after T_M steps."""
    return [worst("U 1, T_M steps: largest entry of W_B of a pair that never met, over the diagonal ({})", [
        (f"M1 {M1}, shift {k}", Mean(np.abs(entries[:, 0, k - 1]))) for M1, entries in study.short.items()
        for k in shifts_of(M1) if k > 1], "<=", KEPT)] if study.short else []


def scores_kept(study: Study) -> list[Check]:
    """Scores of pairs that never met, after training on one shift, from above."""
    return [worst("U 1: largest score of a pair that never met, over the diagonal ({})", [
        (f"M1 {of.M1}, shift {k}", Mean(of.scores[:, k - 1])) for of in study.least
        for k in shifts_of(of.M1) if k > 1], "<=", KEPT)]


def every_task(study: Study) -> list[Check]:
    """The worst shift after training on one."""
    return [worst("U 1: largest error of a shift ({})", [
        (f"M1 {of.M1}, shift {k}", Rate(errors, of.prompts)) for of in study.least
        for k, errors in zip(shifts_of(of.M1), of.shifts.T, strict=True)], "<=", ACCURACY)]


def with_patterns(study: Study, what: str) -> Power:
    """The exponent of M1 in the mean `error` or `hinge` after training on one shift."""
    return power([of.M1 for of in study.least], np.stack([getattr(of, what) for of in study.least], axis=1))


def falls(study: Study) -> list[Check]:
    """The mean error after training on one shift, against M1."""
    return between("exponent of M1 in the mean error at U 1", with_patterns(study, "error"),
                   FALL - TOLERANCE, FALL + TOLERANCE)


def hinge_falls(study: Study) -> list[Check]:
    """The mean hinge loss after training on one shift, against M1."""
    return between("exponent of M1 in the mean hinge loss at U 1", with_patterns(study, "hinge"),
                   FALL - TOLERANCE, FALL + TOLERANCE)


def region(study: Study) -> Region:
    """The mean hinge loss at M1 6, U = 1 over T and delta."""
    steps, deltas = (sorted({key[i] for key in study.starts}) for i in range(2))
    estimates = [[Mean(study.starts[int(T), delta].hinge, (0.0, np.inf)) for T in steps] for delta in deltas]
    return Region("mean hinge loss at U 1", Axis("T", steps), Axis("delta", deltas), estimates, "<=", ACCURACY)


def somewhere(study: Study) -> list[Check]:
    """The least mean hinge loss over T and delta."""
    of = region(study)
    return [worst("M1 6, U 1: least mean hinge loss over T and delta ({})", [
        (f"T {T:g}, delta {delta:g}", of.estimates[i][j]) for i, delta in enumerate(of.y.values)
        for j, T in enumerate(of.x.values)], ">", ACCURACY)]


def measure(lab: Lab, run: Run, U: int) -> Family:
    """Train on a family and test."""
    models, prompts = lab.train_seeds(run), lab.size.prompts
    errors = lab.errors(models, tests_of(run, U))
    hinge = lab.errors(models, [replace(run.prompts, tasks="all")], measure="hinge")[:, 0]
    attacked = lab.errors(models, attacks()) if run.prompts.relevant_patterns == 6 else None
    return Family(run.prompts.relevant_patterns, U, errors[:, 2:], errors[:, 0], errors[:, 1], hinge,
                  np.stack([scores_by_shift(model) for model in models]), prompts,
                  np.stack([entries_by_shift(model) for model in models]), attacked)


def runs_of(lab: Lab) -> dict[tuple[int, int], Run]:
    """The run of every family, by M1 and U; T grows like M1."""
    steps = {M1: FEW_TASKS_STEPS[lab.scale] if M1 == 6 else lab.size.steps_per_pattern * M1
             for M1, _ in lab.size.families}
    return {(M1, U): a_run(M1, U, steps[M1]) for M1, U in lab.size.families}


def short_run(M1: int) -> Run:
    """A training on one shift that stops at T_M, with its fitted constant."""
    def at(steps: int) -> Run:
        run = a_run(M1, 1, steps)
        return replace(run, training=replace(run.training, learning_rate=SHORT_RATE, record_every=steps))

    return at(int(np.ceil(ITERATIONS["mamba"].predict(at(1), None) or np.nan)))


def batch_runs(lab: Lab) -> dict[int, Run]:
    """The runs of M1 6, U = 1 by batch size."""
    return {B: a_run(6, 1, lab.size.start_steps[0], batch=B) for B in lab.size.batches}


def panels(study: Study) -> list[Panel]:
    """Errors, losses and scores of all families."""
    least = study.least
    M1, common = [of.M1 for of in least], range(min(of.shifts.shape[1] for of in least))
    six, widest = [of for of in study.families if of.M1 == 6], shifts_of(max(M1))
    second = [Curve(f"delta {delta:g}", np.stack([study.starts[T, delta].shifts[:, 1] for T in T_values], axis=1))
              for T_values in [sorted({T for T, _ in study.starts})] for delta in sorted({d for _, d in study.starts})]
    return [
        Panel("error by shift, U = 1", M1, [
            *(Curve(f"shift {k + 1}", np.stack([of.shifts[:, k] for of in least], axis=1)) for k in common),
            Curve("all tasks", np.stack([of.error for of in least], axis=1))], x_label="M1", y_label="error"),
        Panel("error outside the family, M1 6", [of.U for of in six],
              [Curve("mamba", np.stack([of.unseen for of in six], axis=1))], x_label="U", y_label="error"),
        Panel("error of shift 2, M1 6, U = 1", sorted({T for T, _ in study.starts}), second, x_label="T",
              y_label="error"),
        Panel("hinge loss, all tasks, U = 1", M1, [Curve("mamba", np.stack([of.hinge for of in least], axis=1))],
              x_label="M1", y_label="hinge loss"),
        Panel("score by shift, U = 1", list(widest), [
            Curve(f"M1 {of.M1}", np.pad(of.scores, ((0, 0), (0, len(widest) - of.scores.shape[1])),
                                        constant_values=np.nan)) for of in least], x_label="shift",
              y_label="entry over the diagonal")]


def run(lab: Lab) -> Findings:
    """Train on every family, test on tasks of every shift."""
    runs, batches = runs_of(lab), batch_runs(lab)
    study = Study([measure(lab, run, U) for (_, U), run in runs.items()],
                  {B: measure(lab, run, 1) for B, run in batches.items()},
                  {(T, delta): measure(lab, a_run(6, 1, T, delta), 1)
                   for T in lab.size.start_steps for delta in lab.size.deltas},
                  {M1: np.stack([entries_by_shift(model) for model in lab.train_seeds(short_run(M1))])
                   for M1 in lab.size.short},
                  lab.errors(one_layer_models(lab, "mamba", lab.size.seeds), attacks()))
    plot = curve_figure(
        "mamba.tasks", "Tasks outside the training family",
        "U = 1 but in the second panel. Errors without outliers; hinge loss on prompts of the training distribution; "
        "right: entries of W_B^T W_C between patterns by shift, over the diagonal.", panels(study), "", "",
        share_y=False)
    least, six = study.least, [of for of in study.families if of.M1 == 6]
    last, over = least[-1], region(study)
    attacked = study.batches[max(study.batches)].attacked
    rows = [(of.M1, of.U, *(f"{values.mean():.3f}" for values in (of.hinge, of.error, of.unseen)),
             " ".join(f"{score:+.2f}" for score in of.scores.mean(axis=0))) for of in study.families]
    return Findings(
        shown="Mamba's error on tasks of every shift after training on one, against the number of patterns, T and "
              "delta; on untrained tasks against the number of trained shifts; and the scores between patterns by "
              "shift.",
        measured=study, numbers="At U = 1 the mean error over all tasks is " + ", ".join(
            f"{of.error.mean():.4f} at M1 {of.M1}" for of in least) + "; of shift 2 it is " + ", ".join(
            f"{of.shifts[:, 1].mean():.3f}" for of in least) + "; the mean hinge loss is " + ", ".join(
            f"{of.hinge.mean():.3f}" for of in least) + ". At M1 6 the error outside the family is " + ", ".join(
            f"{of.unseen.mean():.4f} at U = {of.U}" for of in six)
        + f". At M1 {last.M1}, U = 1 the scores by shift are " + ", ".join(
            f"{score:+.2f}" for score in last.scores.mean(axis=0)) + " of the diagonal. Mean hinge loss of at most "
        f"{ACCURACY:g} at M1 6, U = 1: {over.sentence} With outliers the mean error over all tasks is " + " and ".join(
            f"{one:.3f} at {scale:g} kappa_a (U = 1, B {max(study.batches)}; {every:.3f} with every task "
            "trained, B 128)"
            for scale, one, every in zip(SCALES, np.asarray(attacked).mean(axis=0),
                                         np.asarray(study.all_tasks).mean(axis=0), strict=True)) + ".",
        tables=[Table("mamba.tasks", "Mean hinge loss, mean error, error outside the family, scores by shift",
                      ("M1", "U", "hinge", "error", "outside", "scores"), rows)],
        plots=[plot, over.plot("mamba.tasks.region", "Hinge loss over all tasks by T and delta", "M1 6, U = 1.")],
        specs={"theorem 1": [(run, replace(run.prompts, tasks="all")) for run in runs.values()],
               "theorem 1, every accuracy": [(run, run.prompts) for B, run in batches.items() if B >= 128],
               "lemma 3": [(run, run.prompts) for run in map(short_run, lab.size.short or [6])],
               "eq. 47 of the workshop version": [(runs[of.M1, 1], runs[of.M1, 1].prompts) for of in least],
               "theorem 2, unseen tasks with outliers": [(batches[max(batches)], test) for test in attacks()],
               "theorem 2, every accuracy": [(run, test_of(run, "all")) for B, run in batches.items() if B >= 128],
               "theorem 2": [(run, test_of(run, "all")) for run in runs.values()]})


NEAR = "The number lies too near to the threshold for this many seeds."
ENTRY = Entry(
    "mamba.tasks", "Tasks outside the training family", "li2025mamba, theorems 1, 2", run,
    says="Training on a subset of the tasks that covers every pattern with both labels is enough for all tasks.",
    sizes=sizes(seeds=(2, 4, 8), prompts=(500, 4_000, 10_000), steps_per_pattern=(50, 200, 400),
                batches=((64, 128), (8, 128), (128, 512, 1_024)), start_steps=((600,), (500,), (1_000, 4_000, 16_000)),
                deltas=((0.2,), (0.2,), (0.2, 0.05)), short=((6, 8), (), (6, 12, 20, 40)), families=(
        ((6, 1), (8, 1)), ((6, 1), (6, 4), (12, 1)),
        ((6, 1), (6, 2), (6, 3), (6, 4), (12, 1), (20, 1), (40, 1), (20, 2), (40, 2)))), parts=(
        Part("theorem", "theorem 1", "The expected hinge loss is small over all tasks, trained or not, for every "
             "covering family.", theorem1, theory=("Theorem 1",), accuracy=ACCURACY, replies={
                 "fails": "Scores of pairs that never met do not stay small as eq. 47 of the workshop version says, so "
                          "that a few untrained tasks keep a large loss; they weigh less where M1 is large.",
                 "holds": "The hinge loss is small over all tasks.", "inconclusive": NEAR}),
        Part("theorem", "theorem 1, every accuracy", "As the batch grows like eps^-2 the expected hinge loss over all "
             "tasks falls (at M1 6, U 1).", every_accuracy, theory=("Theorem 1",), accuracy=ACCURACY, replies={
                 "fails": "What is left does not come from noisy gradients but from the tasks that were never "
                          "trained.",
                 "holds": "Larger batches help as the theorem says.", "inconclusive": NEAR}),
        Part("theorem", "lemma 3", "Up to T_M entries of W_B for two patterns that no training task combines stay at "
             "their start (workshop version, eq. 28).", entries_kept_at_first, theory=("Theorem 1",), accuracy=ACCURACY,
             earlier=(Rule(entries_kept, "It judged W_B and W_C after hundreds of times T_M; the lemma is about W_B up "
                                         "to a time of the order of T_M."),), replies={
                 "fails": "Eq. 28 follows one gradient from the start; once neighbours have moved, entries of pairs "
                          "that never met move too.",
                 "holds": "Up to T_M the entries of such pairs stay close to where they started.",
                 "inconclusive": "The entries lie too near to the tenth of the diagonal that is allowed, or were not "
                                 "measured at this scale; that tenth and the constant of T_M are ours."}),
        Part("theorem", "eq. 47 of the workshop version", "Scores between patterns that no training task combines "
             "stay small (full version, eq. 44).", scores_kept, theory=("Theorem 1",), accuracy=ACCURACY, replies={
                 "fails": "The score is a product of two matrices: two negative entries at a common partner make it "
                          "positive, which the proof leaves out.",
                 "holds": "Scores of such pairs stay small.", "inconclusive": NEAR}),
        Part("theorem", "theorem 2", "The expected error is small over all tasks, trained or not, for every covering "
             "family.", theorem2, theory=("Theorem 2",), accuracy=ACCURACY, earlier=(Rule(finer, FINER),), replies={
                 "holds": "The theorem promises the mean over tasks, and the mean error is small.",
                 "fails": "Too many untrained tasks are answered wrongly.", "inconclusive": NEAR}),
        Part("theorem", "theorem 2, every accuracy", "As the batch grows like eps^-2 the expected error over all tasks "
             "falls (at M1 6, U 1).", every_error, theory=("Theorem 2",), accuracy=ACCURACY, replies={
                 "fails": "What is left does not come from noisy gradients but from the tasks that were never "
                          "trained.",
                 "holds": "Larger batches help as the theorem says.",
                 "inconclusive": "The error falls with the batch about as fast as the rule asks."}),
        Part("theorem", "theorem 2, unseen tasks with outliers", "At outlier fraction 0.5 under flip, from the "
             "training scale on, the error is at most 0.05 with the batch that this accuracy asks for (M1 6, U 1).",
             with_outliers, theory=("Theorem 2",), accuracy=FINER_ACCURACY, earlier=(Rule(
                 with_outliers_earlier, "At B = 128 the theorem promises 0.127 with the constant 1, about what was "
                                        "measured; now a finer accuracy with its batch."),), replies={
                 "fails": "Two weak points meet here: tasks that never were trained, and a direction whose coefficient "
                          "sum is small at the training scale.",
                 "holds": "Unseen tasks are solved with outliers as well.", "inconclusive": NEAR}),
        Part("ours", "every task", "The error is small on every single task.", every_task, replies={
            "fails": "The promise is for the mean over tasks; single tasks of shift 2 are not solved.",
            "holds": "Every task is solved.", "inconclusive": NEAR}),
        Part("ours", "as M1 grows", "The mean error falls like 1 / M1.", falls, replies={
            "holds": "Tasks of shift 2, the ones that err, become a smaller share of all tasks.",
            "fails": "The mean error does not fall like 1 / M1.", "inconclusive": NEAR}),
        Part("ours", "the hinge loss as M1 grows", "The mean hinge loss falls like 1 / M1.", hinge_falls, replies={
            "fails": "Pairs that never met have no negative score to help, so that their margin stays smaller than "
                     "that of trained pairs, however many patterns there are.",
            "holds": "The loss falls like the error.", "inconclusive": NEAR}),
        Part("ours", "T and delta", "At M1 6, U = 1 no T and no delta brings the mean hinge loss down to 0.1.",
             somewhere, replies={
                 "holds": "Longer training or a smaller start does not replace the missing tasks.",
                 "fails": "At some T and delta one shift of tasks is enough.", "inconclusive": NEAR})),
    notes=(Note("2026-11-18", "The theorems take the mean over all tasks (eqs. 10, 13). A reversed task counts as "
                "outside the family too: at M1 6, U = 3 trains every pair of patterns in at least one order."),
           Note("2026-11-18", "Entries of W_B^T W_C for two different patterns start at 0: a positive score of a pair "
                "that never met is learnt, not left over from the start.")))
