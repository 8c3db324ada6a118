"""Interventions on trained runs, one line each: clamp, scale, ablate, patch and graft the sites of a forward pass.

    measure_error(intervene(mamba, clamp("gates", 1.0, where="poisoned")), attack)
    graft(linear, mamba, "gates")                          # linear attention with Mamba's gates
    patched(trained, "scores", "clean_labels")             # with the scores it has for another prompt

`clamp`, `scale`, `ablate` and `patch` also make models to train: `clamp("gates", 1.0)(GatedAttention())`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from iclab.core.errors import require
from iclab.core.spec import lower, replace
from iclab.models.intervened import Clamped, Grafted, Patched, Scaled, recording, sites_of
from iclab.models.sites import Site
from iclab.prompts.prompt import Family, Prompt
from iclab.training.trained import Trained

Change = Callable[[Any], Any]
"""`model -> model with an intervention`."""


def _change(kind: Any, fields: dict[str, Any]) -> Change:
    return lambda model: kind(model=model, **fields)


def clamp(site: str, value: float, **selected: Any) -> Change:
    """Hold a site at a constant; `layer`, `where` and `units` select a part of it (`Clamped`)."""
    return _change(Clamped, {"site": site, "value": value, **selected})


def ablate(site: str, **selected: Any) -> Change:
    """Hold a site, or the selected part of it, at 0."""
    return clamp(site, 0.0, **selected)


def scale(site: str, factor: float, **selected: Any) -> Change:
    """Multiply the value at a site by a factor (`Scaled`)."""
    return _change(Scaled, {"site": site, "factor": factor, **selected})


def patch(site: str, source: str | Callable[[Prompt], Prompt], **selected: Any) -> Change:
    """Give a site the value that it has for another prompt (`Patched`)."""
    return _change(Patched, {"site": site, "source": source, **selected})


def intervene(trained: Trained, *changes: Change) -> Trained:
    """The same weights in a model with these interventions, the first one done first."""
    model = trained.run.model
    for change in changes:
        model = change(model)
    return dataclasses.replace(trained, run=replace(trained.run, model=model))


def graft(trained: Trained, donor: Trained, site: str, **selected: Any) -> Trained:
    """A trained run with a site as another trained run has it for the same prompt."""
    model = Grafted(model=trained.run.model, donor=donor.run.model, site=site, **selected)
    both = dataclasses.replace(trained, params=(trained.params, donor.params))
    return dataclasses.replace(both, run=replace(trained.run, model=model))


class Pair(NamedTuple):
    """The truth about a prompt, and the prompt that it is compared with."""

    truth: Any
    source: Prompt

    def __getattr__(self, name: str) -> Any:
        return getattr(self.truth, name)


def _source(prompt: Prompt) -> Prompt:
    return prompt.truth.source


def patched(trained: Trained, site: str, source: Trained | Prompt | str | Callable[[Prompt], Prompt], **selected: Any
            ) -> Any:
    """A trained run with a site as it is elsewhere: in another trained run on the same prompt (`graft`), or in the same
    run on another prompt (`patch`).

    The source may also be a batch of prompts: then a predictor of batches as large, whose n-th prompt is patched from
    the n-th of the source.
    """
    if isinstance(source, Trained):
        return graft(trained, source, site, **selected)
    if not isinstance(source, Prompt):
        return intervene(trained, patch(site, source, **selected))
    changed = intervene(trained, patch(site, _source, **selected))

    def predict(prompts: Prompt) -> np.ndarray:
        require(np.shape(prompts.x) == np.shape(source.x), "source", np.shape(source.x),
                f"be prompts as many and as long as those that are patched, {np.shape(prompts.x)}")
        return changed.predict(prompts._replace(truth=Pair(prompts.truth, source)))

    return predict


def sites(model: Any, prompts: Family | Prompt) -> list[Site]:
    """The sites of a model or a trained run for a prompt of this family, with their axes and shapes."""
    batch = prompts if isinstance(prompts, Prompt) else prompts.sample(0, 1)
    *_, tokens, dimension = np.shape(batch.x)
    return sites_of(model.run.model if isinstance(model, Trained) else model, dimension, tokens)


def site_values(trained: Trained, prompts: Prompt) -> dict[str, np.ndarray]:
    """The values at all sites for a batch of prompts, by `site/layer`."""
    return jax.tree.map(np.asarray, _values(lower(trained.run.model), trained.params, prompts))


@jax.jit
def _values(model: Any, params: Any, prompts: Prompt) -> dict[str, Any]:
    def one(prompt: Prompt) -> dict[str, Any]:
        recorded = recording(model, params, model.embedding.columns(prompt))[1]
        return {f"{name}/{layer}": value for (name, layer), (_, value) in recorded.items()}

    return jax.vmap(one)(prompts)
