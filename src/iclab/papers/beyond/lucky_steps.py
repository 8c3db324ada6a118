"""What single neurons, and single patterns in W_Q and W_K, do along training; measured for `icl.lucky`.

Weights are recorded along training and read at multiples of T, the step at which the loss is 0.2, between two records
by a line. Patterns lie along the axes, so that growth along a pattern is an entry of the weights. W_V's gradient is a
sum over neurons, dW_V = sum_i V_i W_O(i,.)^T, where for a prompt n of label z, output F and attended column c_n
V_i . p = 1/B sum_n z_n 1[z_n F_n < 1] a_i 1[neuron i is active] (c_n . p).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from iclab.core.parallel import each
from iclab.core.spec import replace
from iclab.papers.icl.directions import a_run as width_run
from iclab.papers.icl.directions import partners_of
from iclab.probes.scaling import iterations_to
from iclab.probes.watched import watched_prompts
from iclab.training import Run, Setup, Trained, begin

TARGET = 0.2
RECORDS = 48
GRID = 16
"""Times up to T at which activity, and the sum in (27), are read."""
STAGES = (0.25, 0.5, 0.75, 1.0)
"""Multiples of T at which growth is read."""
TAUGHT = len(STAGES) - 1
"""At as many stages nearly all prompts still have a loss, so that W_V is still taught."""
BATCHES = (64, 128, 256, 512, 1024, 2048, 4096)
USUAL = 6, 128
"""M1 and the batch size there."""


def a_run(M1: int, steps: int) -> Run:
    """One shift of tasks with M2 = M1; neurons, steps and batch grow as theorem 3.3 asks."""
    run = width_run(M1, steps)
    batch = round(USUAL[1] * M1 * np.log(M1) / (USUAL[0] * np.log(USUAL[0])))
    return replace(run, training=replace(run.training, batch_size=batch,
                                         record_every=max(1, run.training.steps // RECORDS)))


class Weights(NamedTuple):
    """All weights, on the columns that are not always 0: inputs, then the label's coordinate along q."""

    W_Q: Float[np.ndarray, "m_a width"]
    W_K: Float[np.ndarray, "m_a width"]
    W_V: Float[np.ndarray, "m_b width"]
    W_O: Float[np.ndarray, "m m_b"]


def weights_probe(setup: Setup, params: Any) -> dict[str, Any]:
    """All weights as they are."""
    return dict(params._asdict())


class Read(NamedTuple):
    """What the model makes of some prompts."""

    attended: Float[np.ndarray, "prompts width"]
    own: Float[np.ndarray, " prompts"]
    """Attention on examples with the query's pattern: 1 - gamma."""
    hidden: Float[np.ndarray, "prompts m"]


class Drawn(NamedTuple):
    """Training prompts."""

    columns: Float[np.ndarray, "prompts tokens width"]
    same: Bool[np.ndarray, "prompts examples"]
    pattern: Any
    """Of the query."""
    z: Float[np.ndarray, " prompts"]

    def first(self, count: int) -> Drawn:
        """The first of them."""
        return Drawn(*(field[:count] for field in self))


class Lucky(NamedTuple):
    """Who is lucky at the start."""

    written: Bool[np.ndarray, "prompts m"]
    """By (52) and (53): both parts of the neuron agree with those of V_n(0)."""
    pairs: Bool[np.ndarray, "prompts m"]
    """The input part agrees with that of V_n(0), the label part with the query's label, a_i too."""
    either: Bool[np.ndarray, " m"]
    """In W or in U."""
    of_class: Float[np.ndarray, "classes m"]
    """Share of the prompts of a class, (mu_a, q) for every a and then (mu_a, -q), for which the neuron is lucky."""

    def mean(self, values: Float[np.ndarray, "classes m"]) -> float:
        """Over prompts and their lucky neurons."""
        return float((values * self.of_class).sum() / self.of_class.sum())


def draw(run: Run, count: int) -> Drawn:
    """Prompts of the training distribution, in an order in which any that follow each other have every pattern for a
    query equally often, as batches have."""
    batch = watched_prompts(run.prompts, count).numpy()
    labels = np.asarray(batch.y)[..., None] * run.model.embedding.norm
    pattern, shuffled = np.asarray(batch.truth.pattern), np.random.default_rng(0).permutation(count)
    rank = np.zeros(count)
    for a in range(run.prompts.relevant_patterns):
        mine = shuffled[pattern[shuffled, -1] == a]
        rank[mine] = np.arange(len(mine))
    order = np.argsort(rank, kind="stable")
    drawn = Drawn(np.concatenate([np.asarray(batch.x), labels], axis=-1), pattern[:, :-1] == pattern[:, -1:],
                  pattern[:, -1], np.asarray(batch.label))
    return Drawn(*(field[order] for field in drawn))


def read(weights: Weights, drawn: Drawn) -> Read:
    """One forward pass."""
    context, query = drawn.columns[:, :-1], drawn.columns[:, -1]
    scores = np.matmul(context, (query @ (weights.W_Q.T @ weights.W_K))[..., None])[..., 0]
    attention = np.exp(scores - scores.max(axis=1, keepdims=True))
    attention /= attention.sum(axis=1, keepdims=True)
    attended = np.matmul(attention[:, None], context)[:, 0]
    return Read(attended, (attention * drawn.same).sum(axis=1), attended @ (weights.W_O @ weights.W_V).T)


def second_layer(m: int) -> Float[np.ndarray, " m"]:
    """The signs of a."""
    return np.where(np.arange(m) < m // 2, 1.0, -1.0)


def label_column(columns: Float[np.ndarray, "*tokens width"]) -> int:
    """Where labels stand."""
    return columns.shape[-1] - 1


def lucky(weights: Weights, drawn: Drawn, M1: int) -> Lucky:
    """Who is lucky with these starting weights."""
    d, signs = label_column(drawn.columns), second_layer(len(weights.W_O))
    start = read(weights, drawn).attended
    inputs = start[:, :d] @ weights.W_O[:, :d].T > 0
    label = weights.W_O[:, d]
    pairs = inputs & (drawn.z[:, None] * label > 0) & (drawn.z[:, None] == signs)
    of_class = np.stack([pairs[members].mean(axis=0) for members in classes(drawn, M1)])
    return Lucky(inputs & (start[:, d:] * label > 0), pairs, pairs.any(axis=0), of_class)


def classes(drawn: Drawn, M1: int) -> Bool[np.ndarray, "classes prompts"]:
    """Whose query has pattern a and label +1, for every a, and then those of label -1."""
    return np.stack([(drawn.pattern == a) & (drawn.z == z) for z in (1, -1) for a in range(M1)])


class History:
    """A trained model's weights at every time."""

    def __init__(self, trained: Trained):
        width = trained.run.prompts.dimension + 1
        records = trained.probes or {}
        start = begin(trained.run).params._asdict()
        self.steps = np.concatenate([[0], trained.steps])
        self.values = [np.concatenate([np.asarray(start[name])[None], records[name]])[
            :, :, slice(None) if name == "W_O" else slice(width)] for name in Weights._fields]
        self.T = iterations_to(trained, TARGET)

    def at(self, step: float) -> Weights:
        """Between two records by a line."""
        after = int(np.clip(np.searchsorted(self.steps, step), 1, len(self.steps) - 1))
        share = (step - self.steps[after - 1]) / (self.steps[after] - self.steps[after - 1])
        return Weights(*((1 - share) * values[after - 1] + share * values[after] for values in self.values))


def attention_growth(start: Weights, now: Weights, run: Run) -> dict[str, float]:
    """Growth of W_Q and W_K along patterns, between tokens of the same or another pattern: (27) to (34)."""
    M1, d, beta = run.prompts.relevant_patterns, run.prompts.dimension, float(run.prompts.pattern_norm)
    same, partners = np.eye(M1, dtype=bool), partners_of(run.prompts)
    grown: dict[str, Any] = {}
    for name in ("W_Q", "W_K"):
        change = (getattr(now, name) - getattr(start, name))[:d]
        along = beta**2 * change[:, :M1]
        # Keys have a label of either sign.
        labels = beta * run.model.embedding.norm * np.abs(change[:, d:]) if name == "W_K" else np.zeros((d, 1))
        relevant, outward = along[:M1], np.abs(along) + labels
        grown |= {f"{name} own": (np.diag(relevant) - labels[:M1, 0]).mean(),
                  f"{name} partner": outward[:M1][partners].mean(),
                  f"{name} other": outward[:M1][~(same | partners)].mean(),
                  f"{name} irrelevant": outward[M1:].mean()}
    return {name: float(value) for name, value in grown.items()}


def pattern_columns(run: Run) -> tuple[Float[np.ndarray, "classes width"], Float[np.ndarray, "M2 width"]]:
    """(mu_a, q) for every a and then (mu_a, -q); (nu_k, 0)."""
    M1, d, beta = run.prompts.relevant_patterns, run.prompts.dimension, float(run.prompts.pattern_norm)
    along = beta * np.eye(d, d + 1)
    signed = [along[:M1] + z * run.model.embedding.norm * np.eye(d + 1)[d] for z in (1, -1)]
    return np.concatenate(signed), along[M1:]


def taught(seen: Read, z: Float[np.ndarray, " prompts"]) -> Float[np.ndarray, "prompts m"]:
    """m z 1[z F < 1] a_i 1[active]: what W_V's gradient has for every neuron, before the attended column."""
    m = seen.hidden.shape[1]
    signs = second_layer(m)
    F = np.maximum(seen.hidden, 0) @ signs / m
    return (z * (z * F < 1))[:, None] * (seen.hidden > 0) * signs


def value_gradient(seen: Read, drawn: Drawn, run: Run, of: Lucky) -> dict[str, Any]:
    """Coefficients m V_i of W_V's gradient, (36) to (43)."""
    toward, irrelevant = pattern_columns(run)
    M1, batch, each = len(toward) // 2, run.training.batch_size, taught(seen, drawn.z)
    coefficients = (seen.attended @ toward.T).T @ each / len(each)
    positive, negative = of.of_class[:M1].any(axis=0), of.of_class[M1:].any(axis=0)
    opposite = np.concatenate([coefficients[:M1, negative].ravel(), coefficients[M1:, positive].ravel()])
    whole = len(each) // batch * batch
    rows = each[:whole, of.either].reshape(-1, batch, of.either.sum()).swapaxes(1, 2)
    mine, along = (np.abs(rows @ (seen.attended[:whole] @ columns.T).reshape(-1, batch, len(columns))).mean() / batch
                   for columns in (toward, irrelevant))
    return {"lucky value": of.mean(coefficients), "opposite value": opposite.mean(), "value": mine,
            "irrelevant value": along, "mass": seen.own.mean()}


def idle_values(seen: Read, drawn: Drawn, run: Run, of: Lucky) -> Float[np.ndarray, " batches"]:
    """Mean m |V_i| of neurons outside W and U, by batch size."""
    rows, columns = taught(seen, drawn.z)[:, ~of.either], seen.attended @ pattern_columns(run)[0].T
    sizes = [size for size in BATCHES if size <= len(rows)]
    blocks = rows.reshape(-1, sizes[0], rows.shape[1]).swapaxes(1, 2) @ columns.reshape(-1, sizes[0], columns.shape[1])
    means = []
    for size in sizes:
        means.append(float(np.abs(blocks).mean() / size))
        blocks = blocks[::2] + blocks[1::2] if len(blocks) > 1 else blocks
    return np.array(means)


def row_growth(start: Weights, now: Weights, seen: Read, drawn: Drawn, run: Run, of: Lucky, step: float
               ) -> dict[str, float]:
    """Growth of the rows of W_O, and the lemma's bounds without their constants: (44) to (50)."""
    toward, irrelevant = pattern_columns(run)
    M1, m, width = len(toward) // 2, len(now.W_O), toward.shape[1]
    eta, alpha, delta = (float(value) for value in (run.training.learning_rate, run.prompts.decisive_fraction,
                                                    run.model.init_scale))
    square = float(run.prompts.pattern_norm) ** 2 + 1
    change = (now.W_O - start.W_O)[:, :width]
    along = toward @ change.T
    carried = (seen.attended @ now.W_V.T)[:, :width] @ toward.T
    each = taught(seen, drawn.z)
    steps = np.stack([carried[members, a] @ each[members] / members.sum()
                      for a, members in enumerate(classes(drawn, M1))])
    bound = delta * square * alpha * eta / (2 * m)
    batch = run.training.batch_size
    return {"row": of.mean(along), "row bound": bound * step,
            "row norm": np.linalg.norm(now.W_O, axis=1)[of.either].mean(),
            "norm bound": np.sqrt(M1) * bound * step / np.sqrt(square),
            "irrelevant row": float(np.abs(change @ irrelevant.T)[of.either].mean()),
            "idle row": float(np.abs(along[:, ~of.either]).mean()),
            "idle bound": eta * step * np.sqrt(np.log(batch) / batch) / m,
            "one step": eta / m * of.mean(steps), "one step bound": bound * (1 + eta**2 / m) ** step}


def who_stays(history: History, drawn: Drawn, of: Lucky) -> tuple[dict[str, Any], Float[np.ndarray, "times two"]]:
    """Which lucky neurons are active for their prompts, always and at the end; and zeta gamma at every time up to T,
    with the least and with the mean zeta."""
    mine = drawn.z[:, None] == second_layer(of.pairs.shape[1])
    written = of.written & mine
    pull, active = [], np.ones_like(of.pairs)
    for step in [*np.linspace(0, history.T, GRID + 1), history.steps[-1]]:
        seen = read(history.at(step), drawn)
        active &= seen.hidden > 0
        zeta = seen.hidden[of.pairs & (seen.hidden > 0)]
        pull.append(np.array([zeta.min(), zeta.mean()]) * (1 - seen.own.mean()))
    return {"always active": active[of.pairs].mean(), "always active, as written": active[written].mean(),
            "active at the end": (seen.hidden > 0)[mine & of.either].mean()}, np.array(pull[:-1])


def at_start(of: Lucky, drawn: Drawn, right: Bool[np.ndarray, " prompts"]) -> dict[str, Any]:
    """How many are lucky."""
    positive = second_layer(of.pairs.shape[1]) > 0
    shares = {"W": (of.written & positive).mean(axis=1), "U": (of.written & ~positive).mean(axis=1)}
    return {**{f"share of {name}": by_prompt.mean() for name, by_prompt in shares.items()},
            **{f"least share of {name}": by_prompt.min() for name, by_prompt in shares.items()},
            "lucky": of.either.mean(), "same sign at the start": right.mean(),
            "in W as written": of.written[drawn.z > 0][:, positive].any(axis=0).mean()}


def follow(trained: Trained, prompts: int) -> dict[str, Any]:
    """Everything that is measured of a model, by name; what changes has an entry per stage."""
    run, history, drawn = trained.run, History(trained), draw(trained.run, prompts)
    M1, start, few = run.prompts.relevant_patterns, history.at(0), drawn.first(min(prompts, 1_000))
    of = lucky(start, drawn, M1)
    stay, pull = who_stays(history, few, lucky(start, few, M1))
    scale = float(run.training.learning_rate) * float(run.prompts.pattern_norm) ** 4 / M1 * history.T / GRID
    stages: dict[str, list[float]] = {}
    for stage in STAGES:
        step = stage * history.T
        now = history.at(step)
        seen = read(now, drawn)
        values = {**attention_growth(start, now, run), **value_gradient(seen, drawn, run, of),
                  **row_growth(start, now, seen, drawn, run, of, step),
                  **dict(zip(("pull", "mean pull"), scale * np.trapezoid(pull[:round(stage * GRID) + 1], axis=0),
                             strict=True))}
        for name, value in values.items():
            stages.setdefault(name, []).append(float(value))
    before = read(history.at(STAGES[TAUGHT - 1] * history.T), drawn)
    end = history.at(history.steps[-1])
    norms = np.linalg.norm(end.W_O @ end.W_V, axis=1)
    at_first = read(start, drawn).attended[:, -1] * drawn.z > 0
    return {**{name: np.array(values) for name, values in stages.items()}, **stay, **at_start(of, drawn, at_first),
            "idle value": idle_values(before, drawn, run, of), "T": history.T,
            "lucky among large": of.either[norms >= np.median(norms)].mean()}


def followed(models: Sequence[Trained], prompts: int) -> list[dict[str, Any]]:
    """`follow` of every model."""
    by_index = dict(each(lambda i: follow(models[i], prompts), range(len(models))))
    return [by_index[i] for i in range(len(models))]
