"""The model card: what was trained, on what, how it ended, and how to load it, for a reader who knows none of it."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any

from iclab.core import registry
from iclab.core.errors import CheckpointError
from iclab.core.identity import to_json
from iclab.core.spec import field_help
from iclab.probes.error_rate import ErrorRate
from iclab.training import Run, Trained
from iclab.training.checkpoint import from_bytes

LIBRARY = "library_name: iclab"
"""The line by which a card is known for one of ours."""
LONGEST = 80
"""Characters of a value in the summary; the tables have longer ones."""

CARD = """---
{library}
tags:
- in-context-learning
- {tag}
---

# {model} trained on {prompts} prompts

{about}

| steps | last training loss | status |
| --- | --- | --- |
| {steps} | {loss} | {status} |

## Error

{errors}

## Load it

With iclab installed:

```python
{load}
```

`model(batch)` answers a batch of prompts. The file `model.safetensors` is a checkpoint of iclab, with the weights, the
optimizer's state and the training loss at every record; `config.json` holds the spec.

## Spec

Everything that determines the weights:

{spec}
"""


def model_card(trained: Trained, where: str, errors: Mapping[str, ErrorRate | float], checkpoint: bytes) -> str:
    """The card of a model as Markdown; `where` is the address to load it from."""
    run = trained.run
    return CARD.format(
        library=LIBRARY, tag=registry.word(type(run.model)).replace("_", "-"), model=type(run.model).__name__,
        prompts=type(run.prompts).__name__, about=_about(run), steps=int(trained.steps[-1]),
        loss=f"{trained.loss[-1]:.4g}", status=trained.status, errors=_errors(errors),
        load=_load(run, where, checkpoint), spec="\n\n".join(_tables("run", run)))


def _about(run: Run) -> str:
    """What each part is, and which of its settings are not the defaults of its class; how much poison training had."""
    lines = [f"- {title}: {_described(part)}" for title, part in
             (("Model", run.model), ("Prompts", run.prompts), ("Training", run.training))]
    lines.insert(2, f"- Poison in training: {_poison(run.prompts)}")
    return "\n".join(lines)


def _described(part: Any) -> str:
    """The class, the first line of its docstring if its author wrote one, and the settings that differ."""
    kind = type(part)
    told = inspect.getdoc(kind) or ""
    first = "" if told.startswith(f"{kind.__name__}(") else told.partition("\n")[0]  # dataclasses make such a docstring
    differing = [f"`{name}` = {value}" for name, value in _differing(part)]
    settings = (f"Not the defaults: {', '.join(differing)}." if differing else
                "All settings are the defaults, listed below.")
    return " ".join(words for words in (f"`{kind.__name__}`.", first, settings) if words)


def _differing(part: Any) -> Iterator[tuple[str, str]]:
    """The fields of a spec that are not the defaults of its class."""
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        if default is dataclasses.MISSING or to_json(value) != to_json(default):
            text = type(value).__name__ if dataclasses.is_dataclass(value) else json.dumps(to_json(value))
            yield field.name, f"`{text}`" if len(text) <= LONGEST else "see below"


def _poison(prompts: Any) -> str:
    """The share of poisoned examples and their labels, for prompts that have such fields."""
    fraction, rule = (getattr(prompts, name, None) for name in ("outlier_fraction", "label_rule"))
    if fraction is None:
        return "these prompts have no setting for it."
    if fraction == 0:
        return "none."
    labels = "" if rule is None else f"; rule for their labels: {rule if isinstance(rule, str) else 'a function'}"
    return f"{100 * fraction:.3g} % of the examples in a prompt{labels}."


def _errors(errors: Mapping[str, ErrorRate | float]) -> str:
    if not errors:
        return "Not measured."
    rows: list[tuple[str, ...]]
    rows = [(name, f"{rate.error:.4f}", f"[{rate.low:.4f}, {rate.high:.4f}]", str(rate.prompts))
            if isinstance(rate, ErrorRate) else (name, f"{rate:.4f}", "", "") for name, rate in errors.items()]
    return _table(("on", "error", "95 % interval", "prompts"), rows)


def _load(run: Run, where: str, checkpoint: bytes) -> str:
    lines = ["import iclab", ""]
    modules = sorted({type(part).__module__ for part in (run.model, run.prompts, run.model.embedding)})
    lines += [f"import {module}  # defines parts of its spec" for module in modules if not module.startswith("iclab.")]
    try:
        from_bytes(checkpoint)
        return "\n".join([*lines, f'model = iclab.pull("{where}")'])
    except CheckpointError:  # the spec holds what no file can
        return "\n".join([*lines, "run = ...  # the Run below: it holds a function or data that a file cannot",
                          f'model = iclab.pull("{where}", run)'])


def _tables(path: str, spec: Any) -> Iterator[str]:
    """A table of the fields of a spec, and of each spec in it."""
    kind: Any = type(spec)
    explained = field_help(kind)
    rows: list[tuple[str, ...]] = []
    parts = []
    for field in dataclasses.fields(spec):
        value = getattr(spec, field.name)
        if dataclasses.is_dataclass(value):
            parts.append((field.name if path == "run" else f"{path}.{field.name}", value))
        else:
            rows.append((f"`{field.name}`", f"`{json.dumps(to_json(value))}`", explained.get(field.name, "")))
    yield f"### {path}: {kind.__name__}\n\n" + _table(("field", "value", "meaning"), rows)
    for name, part in parts:
        yield from _tables(name, part)


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join("| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in line) + " |"
                     for line in lines)
