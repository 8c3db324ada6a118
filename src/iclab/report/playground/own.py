"""A page of the user's own models: which can be shown together, their names, and what tells them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import jax
import numpy as np

from iclab.core.errors import SpecError, require
from iclab.core.files import write_whole
from iclab.core.identity import to_json
from iclab.core.limits import size_words
from iclab.figures.style import COLOURS, NAMES, SPARE
from iclab.models import ChainEmbedding, GatedAttention, LabelEmbedding
from iclab.prompts import Chain, Classification, Regression
from iclab.report.playground.own_prompts import SAME, chain_data, label_data, own_number_data
from iclab.report.playground.page import about, page_of
from iclab.report.playground.ported import PORTS, Arrays, described, read_weights
from iclab.training import Run, Trained
from iclab.training.naming import differences, fields_of, value_text

LARGEST_PAGE = 32 * 2**20
"""Bytes of weights as text that one page may hold: browsers and notebooks take it without delay."""
FAMILIES = {Classification: "poison", Regression: "regression", Chain: "chain"}
"""Families of prompts that the page can draw, and the tab in which it shows their models."""
DATA = {"poison": label_data, "regression": own_number_data, "chain": chain_data}
"""What the page reads of the prompts of each tab."""
SAID = ("model.member", "model.layers", "model.gate_per_channel", "model.form", "model.chunk")
"""Fields that a note need not name: it tells them in words, or they do not change what a model computes."""


@dataclass(frozen=True)
class Playground:
    """A page in which trained models run; it shows itself in a notebook."""

    models: tuple[str, ...]
    """Names of the models."""
    html: str = field(repr=False)
    """The whole page: one file that needs no network."""

    def save(self, path: str | Path) -> None:
        """Write the page to a file, to be opened in any browser."""
        write_whole(Path(path), self.html.encode())

    def _repr_html_(self) -> str:
        """In a notebook: the page in a frame of its own."""
        return (f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts" title="iclab playground" '
                'style="width:100%;height:960px;border:1px solid #8884;border-radius:8px"></iframe>')


def playground(models: Trained | Sequence[Trained] | Mapping[str, Trained]) -> Playground:
    """A page in which these trained models read prompts that you poison, mix and break by hand.

    Models of labelled prompts share one prompt, those of regression and of chains others, so each kind must have been
    trained on prompts of one structure (`SAME`); the other fields of the prompts may differ, and the page begins with
    those of the first model. GatedAttention, SoftmaxMLP and ChainAttention can be shown.
    """
    shown = _named(models)
    tabs: dict[str, dict[str, Trained]] = {}
    for name, trained in shown.items():
        _check(name, trained)
        tabs.setdefault(FAMILIES[type(trained.run.prompts)], {})[name] = trained
    for group in tabs.values():
        _check_same(group)
    weights = {name: read_weights(trained.run, trained.params) for name, trained in shown.items()}
    _check_size(weights)
    data: dict[str, Any] = {"about": about(own=True)}
    colours = _colours([trained.run for trained in shown.values()])
    keys = {name: f"m{number}" for number, name in enumerate(shown)}
    for tab, group in tabs.items():
        runs = [trained.run for trained in group.values()]
        notes = [_note(run, runs) for run in runs]
        data[tab] = {"prompts": DATA[tab](runs), "models": [
            {"key": keys[name], "name": name, "note": note, "colour": colours[list(shown).index(name)], "run": None,
             "spec": to_json(trained.run), **described(trained.run, [int(trained.steps[-1])], [weights[name]])}
            for (name, trained), note in zip(group.items(), notes, strict=True)]}
    return Playground(tuple(shown), page_of(data))


def _named(models: Any) -> dict[str, Trained]:
    """The models by name; without names, by what they are and what tells them apart."""
    rule = "be a trained model, a list of them, or a dict from names to them"
    if isinstance(models, Trained):
        models = [models]
    require(isinstance(models, (Mapping, list, tuple)), "models", type(models).__name__, rule)
    require(len(models) > 0, "models", "none", "hold at least one trained model")
    listed = list(models.values() if isinstance(models, Mapping) else models)
    for one in listed:
        require(isinstance(one, Trained), "models", type(one).__name__, rule)
    names = list(models) if isinstance(models, Mapping) else _names([one.run for one in listed])
    for name in names:
        require(isinstance(name, str) and bool(name.strip()), "names of models", name, "be words")
    return dict(zip(names, listed, strict=True))


def _check(name: str, trained: Trained) -> None:
    """The page must have a port of the model, draw its prompts, and find numbers in its weights."""
    model, prompts = trained.run.model, trained.run.prompts
    for value, kinds, what in ((model, PORTS, "a"), (prompts, FAMILIES, "trained on"),
                               (model.embedding, (LabelEmbedding, ChainEmbedding), "one with a")):
        if type(value) not in kinds:
            words = [cls.__name__ for cls in kinds]
            raise SpecError(f"model {name!r} must be {what} {', '.join(words[:-1])} or {words[-1]} to run in the page, "
                            f"got {type(value).__name__}")
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(trained.params)):
        raise SpecError(f"model {name!r} must have finite weights to run in the page, got one that {trained.status}")


def _check_same(group: Mapping[str, Trained]) -> None:
    """All models of a tab read one prompt, so what its vectors mean must be the same for all."""
    (first, reference), *others = group.items()
    for name, trained in others:
        for field_name in SAME[type(trained.run.prompts)]:
            ours, theirs = (getattr(one.run.prompts, field_name) for one in (reference, trained))
            if ours != theirs:
                raise SpecError(f"models must have the same prompts.{field_name} to read one prompt, got "
                                f"{value_text(ours)} for {first!r} and {value_text(theirs)} for {name!r}; "
                                "show them on two pages")


def _check_size(weights: Mapping[str, list[Arrays]]) -> None:
    sizes = {name: sum(array.nbytes for layer in layers for array in layer.values()) * 4 // 3
             for name, layers in weights.items()}
    if sum(sizes.values()) > LARGEST_PAGE:
        largest = max(sizes, key=lambda name: sizes[name])
        raise SpecError(f"models must fit into a page of {size_words(LARGEST_PAGE)}, got "
                        f"{size_words(sum(sizes.values()))}, of which {largest!r} takes {size_words(sizes[largest])}")


def _names(runs: Sequence[Run]) -> list[str]:
    """What each run is, and where that is not enough, the fields that tell it from those of its name; then a number."""
    names = []
    for run in runs:
        member = getattr(run.model, "member", "softmax")
        kind = NAMES[member] if type(run.prompts) is not Chain or isinstance(run.model, GatedAttention) else None
        names.append(", ".join([kind or type(run.model).__name__, *_form(run.model)]))
    alike = {name: [run for run, other in zip(runs, names, strict=True) if other == name] for name in names}
    names = [", ".join([name, *_differences(run, alike[name])]) for name, run in zip(names, runs, strict=True)]
    counts, seen = Counter(names), Counter[str]()
    for i, name in enumerate(names):
        seen[name] += 1
        if counts[name] > 1:
            names[i] = f"{name} ({seen[name]})"
    return names


def _form(model: Any) -> list[str]:
    """Depth and kind of gate, where they are not the usual ones."""
    layers = getattr(model, "layers", 1)
    return [f"{layers} layers"] * (layers > 1) + ["a gate per channel"] * getattr(model, "gate_per_channel", False)


def _note(run: Run, runs: Sequence[Run]) -> str:
    """What is to be known of a model beside its name."""
    alike = [other for other in runs if type(other.model) is type(run.model)]
    prompts = ", ".join(_differences(run, runs, ("prompts.",)))
    return "; ".join([*_form(run.model), *_differences(run, alike, ("model.",), SAID),
                      *([f"trained with {prompts}"] if prompts else [])])


def _differences(run: Run, runs: Sequence[Run], parts: tuple[str, ...] = ("",), skip: Sequence[str] = ()) -> list[str]:
    """The fields of a run that are not the same in all these runs, with its values."""
    changed = differences(fields_of(run), [fields_of(other) for other in runs], parts, skip)
    return [f"{name} {value}" for name, value in changed]


def _colours(runs: Sequence[Run]) -> list[str]:
    """A colour per model: its member's, and for the next ones of a member others."""
    colours: list[str] = []
    for run in runs:
        usual = COLOURS[getattr(run.model, "member", "softmax")]
        free = [colour for colour in (usual, *SPARE, *COLOURS.values()) if colour not in colours]
        colours.append(free[0] if free else usual)
    return colours
