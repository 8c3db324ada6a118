"""What queries and keys of the one-layer Transformer have along which patterns; for `icl.norms`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from iclab.core.spec import replace
from iclab.papers.icl.growing import outside as outside_of
from iclab.papers.icl.mechanism import DECISIVE, WATCHED
from iclab.papers.icl.settings import in_domain, one_layer_run, out_of_domain
from iclab.probes.watched import watched_prompts
from iclab.prompts import Classification
from iclab.prompts.tasks import parse_tasks
from iclab.theory.icl import ITERATIONS
from iclab.training import Run, Trained

VECTORS = ("query", "key")
OWN, RELEVANT, IRRELEVANT, REST, PARTNERS, ADDED, LABEL = QUANTITIES = (
    "own", "other relevant", "irrelevant", "1 - share^2", "change along partners", "added along irrelevant",
    "label column")
"""What is measured: the part along the token's pattern, and others relative to it, or to its change."""


def a_run(M1: int, steps: int, tasks: str = "cyclic:1") -> Run:
    """Training with as many irrelevant as relevant patterns, as many neurons and steps as the theorem asks for."""
    base = one_layer_run(DECISIVE, steps)
    neurons = 2 * round(base.model.neurons * M1**2 * np.log(M1) / (2 * 36 * np.log(6)))
    run = replace(base, model=replace(base.model, neurons=neurons),
                  prompts=replace(base.prompts, relevant_patterns=M1, irrelevant_patterns=M1, dimension=2 * M1,
                                  tasks=tasks))
    longer = ITERATIONS.order(run, None) / ITERATIONS.order(base, None)
    return replace(run, training=replace(run.training, steps=max(1, int(steps * longer))))


def test_of(M1: int) -> Classification:
    """In-domain prompts of these patterns."""
    return in_domain(DECISIVE, relevant_patterns=M1, irrelevant_patterns=M1, dimension=2 * M1)


def relative_parts(models: Sequence[Trained], outside: bool) -> Float[np.ndarray, "models vectors quantities"]:
    """What `QUANTITIES` names, ratios of means over the tokens of in-domain prompts (or outside); parts are the largest
    among their kind."""
    values = []
    for trained in models:
        prompts, size = trained.run.prompts, trained.run.model.init_scale
        M1, dimension = prompts.relevant_patterns, prompts.dimension
        test = (outside_of(M1, irrelevant_patterns=prompts.irrelevant_patterns, dimension=dimension) if outside
                else test_of(M1))
        # Prompts are drawn among the paper's patterns, so that one program draws those of every M1 out of domain.
        batch = watched_prompts(out_of_domain(DECISIVE) if outside else test, WATCHED).numpy()
        inputs = among(np.asarray(batch.x), M1, prompts.irrelevant_patterns) if outside else np.asarray(batch.x)
        # Irrelevant patterns lie along the axes behind the relevant ones; label coordinates come after the inputs.
        units = test.patterns() / np.linalg.norm(test.patterns(), axis=1, keepdims=True)
        labels = np.zeros((*batch.y.shape, trained.run.model.embedding.size))
        labels[..., 0] = batch.y * trained.run.model.embedding.norm
        columns = np.concatenate([inputs, labels], axis=-1)
        for weights, tokens in ((trained.params.W_Q, slice(-1, None)), (trained.params.W_K, slice(None, -1))):
            W = np.asarray(weights, float)
            start = size * np.eye(*W.shape) * (np.arange(W.shape[1]) < dimension)
            projected, change = columns[:, tokens] @ W.T, columns[:, tokens] @ (W - start).T
            along_relevant, gained = (array[..., :dimension] @ units.T for array in (projected, change))
            mine = batch.truth.pattern[:, tokens]
            same = mine[..., None] == np.arange(len(units))
            own, added = (np.abs(np.where(same, array, 0).sum(-1)).mean() for array in (along_relevant, gained))
            partners = 0.0 if outside else np.where(partners_of(prompts)[mine], gained, 0).sum(-1).mean()
            irrelevant, irrelevant_added = (np.abs(array[..., M1:dimension]).max(-1).mean()
                                            for array in (projected, change))
            values.append([
                own, np.abs(np.where(same, 0, along_relevant)).max(-1).mean() / own, irrelevant / own,
                1 - (own / np.linalg.norm(projected, axis=-1).mean()) ** 2, partners / added, irrelevant_added / added,
                np.linalg.norm(W[:, dimension]) / np.diag(W)[:M1].mean()])
    return np.array(values).reshape(len(models), len(VECTORS), len(QUANTITIES))


def among(x: Float[np.ndarray, "*tokens dimension"], M1: int, M2: int) -> Float[np.ndarray, "*tokens more"]:
    """Tokens of the paper's new patterns among this many training patterns: those behind the first six are in none of
    them, and the 24 irrelevant patterns take the places of M2 in turn."""
    first = out_of_domain().relevant_patterns
    moved = np.zeros((*x.shape[:-1], M1 + M2))
    moved[..., :first] = x[..., :first]
    for i in range(x.shape[-1] - first):
        moved[..., M1 + i % M2] += x[..., first + i]
    return moved


def partners_of(prompts: Classification) -> Bool[np.ndarray, "patterns patterns"]:
    """Which patterns form a training task with which."""
    together = np.zeros((prompts.relevant_patterns,) * 2, bool)
    for a, b in parse_tasks(prompts.tasks, prompts.relevant_patterns):
        together[a, b] = together[b, a] = True
    return together
