"""The one-layer Transformer at other sizes, and what is measured of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.core.spec import replace
from iclab.lab.laboratory import Lab
from iclab.papers.icl.settings import in_domain, one_layer_run
from iclab.probes import model_errors
from iclab.probes.inside import score_masses
from iclab.probes.scaling import iterations_to
from iclab.prompts import Classification
from iclab.theory.icl import ITERATIONS
from iclab.training import Run, Trained

DECISIVE, STEPS, LOSS = 0.8, 1_000, 0.2
USUAL = one_layer_run(DECISIVE, STEPS)
SETTINGS = {"softmax, where not varied": {
    "decisive fraction alpha": DECISIVE, "l_tr": USUAL.prompts.prompt_length, "m": USUAL.model.neurons,
    "M1": USUAL.prompts.relevant_patterns, "M2": USUAL.prompts.irrelevant_patterns,
    "delta": USUAL.model.init_scale, "steps at these sizes; others by theorem 3.3's law": STEPS}}
"""What the entries print."""
SMALL = 0.3
"""A neuron is small if its row of W_O W_V is below this share of the median row of the larger half."""
WATCHED = 500
"""Prompts on which attention is measured."""
ANGLES = (0.0, 2.0)
"""Where 1 - cosine lies."""


class Seen(NamedTuple):
    """What is measured of trained models, one number per seed."""

    hinge: Float[np.ndarray, " seeds"]
    """On in-domain tasks outside the training family."""
    scattered: Float[np.ndarray, " seeds"]
    """1 - attention on the query's pattern."""
    pattern_angle: Float[np.ndarray, " seeds"]
    """1 - the median cosine of a large neuron's input part with the mean pattern."""
    label_angle: Float[np.ndarray, " seeds"]
    """1 - the median cosine of its label part with +-q."""
    small: Float[np.ndarray, " seeds"]
    """The share of small neurons."""
    iterations: Float[np.ndarray, " seeds"]
    """Steps to a training loss of 0.2."""


def a_run(steps: int = STEPS, *, neurons: int = 100, length: int = 20, decisive: float = DECISIVE, room: int = 0,
          **prompts: Any) -> Run:
    """The usual run with other sizes, its steps by the theorem's law: `steps` are those of the usual sizes.

    The space is as large as the patterns ask for, and at least `room`: equal spaces share a compiled program.
    """
    changes = prompts | {"prompt_length": length}
    relevant = changes.get("relevant_patterns", USUAL.prompts.relevant_patterns)
    irrelevant = changes.get("irrelevant_patterns", USUAL.prompts.irrelevant_patterns)
    base = one_layer_run(decisive, steps)
    run = replace(base, model=replace(base.model, neurons=neurons),
                  prompts=replace(base.prompts, dimension=max(relevant + irrelevant, room), **changes))
    longer = ITERATIONS.order(run, None) / ITERATIONS.order(base, None)
    every = min(base.training.record_every, max(steps // 20, 1))
    return replace(run, training=replace(run.training, steps=every * max(round(longer * steps / every), 1),
                                         record_every=every))


def test_of(run: Run) -> Classification:
    """In-domain prompts of the sizes of a run, of tasks outside its family."""
    sizes = {name: getattr(run.prompts, name) for name in ("dimension", "relevant_patterns", "irrelevant_patterns",
                                                           "prompt_length", "decisive_fraction")}
    return replace(in_domain(), **sizes)


def neurons(trained: Trained) -> tuple[float, float, float]:
    """1 - both median cosines of the larger half of the neurons, and the share of small ones.

    Patterns lie along the axes, the relevant ones first; q along the first axis of the labels.
    """
    prompts, (_, _, W_V, W_O) = trained.run.prompts, trained.params
    rows = np.asarray(W_O, float) @ np.asarray(W_V, float)
    r_x, r_y = rows[:, :prompts.dimension], rows[:, prompts.dimension:]
    M1, sign = prompts.relevant_patterns, np.where(np.arange(len(rows)) < len(rows) // 2, 1.0, -1.0)
    size = np.linalg.norm(rows, axis=1)
    large = size >= np.median(size)
    pattern = r_x[:, :M1].sum(axis=1) / np.sqrt(M1) / np.linalg.norm(r_x, axis=1)
    label = sign * r_y[:, 0] / np.linalg.norm(r_y, axis=1)
    return (1 - float(np.median(pattern[large])), 1 - float(np.median(label[large])),
            float((size < SMALL * np.median(size[large])).mean()))


def look(models: Sequence[Trained], test: Classification, *, count: int, seeds: Sequence[int]
         ) -> Float[np.ndarray, "numbers seeds"]:
    """The fields of `Seen`, in order."""
    hinge = model_errors(models, [test], count=count, seeds=seeds, measure="hinge")[:, 0]
    masses = score_masses(models, test, count=min(count, WATCHED), seeds=seeds).same.reshape(len(models))
    angles = np.array([neurons(trained) for trained in models]).T
    return np.stack([hinge, 1 - masses, *angles, [iterations_to(trained, LOSS) for trained in models]])


def seen(lab: Lab, runs: Sequence[Run]) -> Seen:
    """What is measured of every run; the fields are (seeds, runs)."""
    columns = [lab.remember(look, lab.train_seeds(run), test_of(run), count=lab.size.prompts, seeds=lab.seeds())
               for run in runs]
    return Seen(*np.stack(columns, axis=-1))
