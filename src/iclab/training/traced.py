"""A model of one's own is traced before it is trained, so that an error names the method and what it was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from iclab.core.errors import IclabError, SpecError, require, shown
from iclab.core.spec import lower
from iclab.training.run import Run
from iclab.training.sgd import init_key


def check_model(run: Run) -> None:
    """Refuse a model of one's own whose methods do not keep to the protocol; nothing is computed."""
    if type(run.model).__module__.startswith("iclab."):
        return
    model, dimension = lower(run.model), run.prompts.dimension
    prompt = _one_prompt(run.prompts)
    columns = _traced(model, "embedding.columns(prompt)", model.embedding.columns, prompt)
    width = model.embedding.width(dimension)
    require(columns.shape[-1] == width, "embedding.width", width, f"be that of its columns, {columns.shape[-1]}")
    params = _traced(model, f"init(key, dimension={dimension})", lambda: model.init(init_key(0), dimension))
    answer = _traced(model, f"apply(params, columns), for columns of shape {columns.shape} "
                     f"(embedding.width({dimension}) = {width}),", model.apply, params, columns)
    require(isinstance(answer, tuple) and len(answer) == 2, f"{type(run.model).__name__}.apply", shown(answer),
            "return a pair, the output and the intermediates, such as `return score, ()`")


def _one_prompt(prompts: Any) -> Any:
    """The shapes of one prompt."""
    batch = jax.eval_shape(lambda family: family.prompts(family.bits(0, 1)), lower(prompts))
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), batch)


def _traced(model: Any, call: str, method: Callable[..., Any], *args: Any) -> Any:
    try:
        return jax.eval_shape(method, *args)
    except IclabError:
        raise
    except Exception as error:  # a user's method may fail in any way
        reason = str(error).partition("\n")[0]
        raise SpecError(f"{type(model).__name__}.{call} failed: {type(error).__name__}: {reason}") from error
