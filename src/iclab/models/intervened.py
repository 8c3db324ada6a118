"""Models with an intervention: one site of the forward pass is clamped, scaled, or patched from elsewhere.

| model     | what it puts at the site                                      |
| --------- | ------------------------------------------------------------- |
| `Clamped` | a constant                                                    |
| `Scaled`  | the value times a factor                                      |
| `Patched` | the value that the same model has there for another prompt    |
| `Grafted` | the value that another model has there for the same prompt    |

Each is a model like any other, in training too, and the model that it changes may be one of them. What an intervention
must know and a model does not read (which examples are poisoned, the columns of the other prompt) stands beside the
columns of the prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from iclab.core.errors import SpecError, did_you_mean, require, shown
from iclab.core.spec import encoded, lower, number, part, require_count, require_range, spec
from iclab.models.gated_attention import GatedAttention
from iclab.models.protocol import CountsWeights, HasUsualTraining, HoldsScores
from iclab.models.sites import READER, TOKEN, UNITS, Recorded, Site, watching
from iclab.prompts.prompt import Prompt


def _examples(tokens: int) -> Bool[Array, " tokens"]:
    return jnp.arange(tokens) < tokens - 1


BY_PLACE: dict[str, Callable[[int], Bool[Array, " tokens"]]] = {
    "all": lambda tokens: jnp.ones(tokens, bool), "examples": _examples, "query": lambda tokens: ~_examples(tokens)}
BY_TRUTH: dict[str, Callable[[Prompt], Bool[Array, " tokens"]]] = {
    "poisoned": lambda prompt: prompt.truth.outlier,
    "clean": lambda prompt: ~prompt.truth.outlier & _examples(len(prompt.x)),
    "same": lambda prompt: (prompt.truth.pattern == prompt.truth.pattern[-1]) & _examples(len(prompt.x)),
    "other": lambda prompt: prompt.truth.pattern != prompt.truth.pattern[-1]}
WHERE = (*BY_PLACE, *BY_TRUTH)


def clean_labels(prompt: Prompt) -> Prompt:
    """The prompt with the labels that its examples would carry without poison."""
    return prompt._replace(y=jnp.where(_examples(len(prompt.y)), prompt.truth.clean, 0.0))


SOURCES: dict[str, Callable[[Prompt], Prompt]] = {"clean_labels": clean_labels}
"""Other prompts that have a name."""


@partial(jax.tree_util.register_dataclass, data_fields=["embedding"], meta_fields=["where", "source"])
@dataclass(frozen=True)
class Beside:
    """Columns of an embedding, and beside them whether each token is meant, and the columns of the other prompt."""

    embedding: Any
    where: str | Callable[..., Any]
    source: Callable[[Prompt], Prompt] | None

    @property
    def reads(self) -> tuple[str, ...]:
        """The kinds of labels that can enter its columns."""
        return self.embedding.reads

    @property
    def steps(self) -> int:
        """Steps of a chain, of an embedding that has them."""
        return self.embedding.steps

    def width(self, dimension: int) -> int:
        """Coordinates of a column."""
        width = self.embedding.width(dimension)
        return width + (self.where not in BY_PLACE) + (0 if self.source is None else width)

    def columns(self, prompt: Prompt) -> Float[Array, "tokens width"]:
        """The prompt as the model with its intervention reads it."""
        if prompt.truth is None:
            raise SpecError("an intervention that needs the truth about a prompt (where is not one of "
                            f"{', '.join(BY_PLACE)}, or values come from another prompt) cannot be used here, where "
                            "only a part of each prompt is read")
        parts = [self.embedding.columns(prompt)]
        if self.where not in BY_PLACE:
            parts.append(self._meant(prompt)[:, None].astype(parts[0].dtype))
        if self.source is not None:
            parts.append(self.embedding.columns(self.source(prompt)))
        return jnp.concatenate(parts, axis=1)

    def _meant(self, prompt: Prompt) -> Bool[Array, " tokens"]:
        try:
            meant = BY_TRUTH[self.where](prompt) if isinstance(self.where, str) else self.where(prompt)
        except AttributeError as error:
            raise SpecError(f"where must be something that the truth about these prompts tells, got "
                            f"{shown(self.where)} ({error})") from None
        require(jnp.shape(meant) == prompt.x.shape[:1], "where", jnp.shape(meant), "tell of every token if it is meant")
        return meant


@spec
class Intervention:
    """What all models with an intervention have in common."""

    model: Any = part(default_factory=GatedAttention)
    """The model that is changed."""
    site: str = "gates"
    """Name of the value: `iclab.sites` lists those of a model."""
    layer: int | None = None
    """In which layer, from 0; none: in all that have the site."""
    where: str | Callable[..., Any] = "all"
    """At which tokens: all, examples, query, poisoned, clean, same (examples with the query's pattern), other, or a
    function of the prompt that tells for each. Tokens that are read where the site has such an axis, else those that
    read."""
    units: tuple[int, ...] | None = encoded(lambda _, units: None if units is None else np.asarray(units, np.int32),
                                            default=None)
    """Which heads or neurons; none: all."""

    def check(self) -> None:
        if not callable(self.where):
            require(self.where in WHERE, "where", self.where,
                    f"be one of {', '.join(WHERE)}, or a function of a prompt")
        if self.layer is not None:
            require_count(self, "layer", 0)
        if self.units is not None:
            whole = isinstance(self.units, tuple) and all(isinstance(unit, (int, np.integer)) for unit in self.units)
            require(whole and len(self.units) > 0, "units", self.units, "be whole numbers")
        places = _known_sites(bare(self.model))
        if places is not None:
            self.check_place(places)

    def check_place(self, places: Sequence[Site]) -> None:
        """Refuse what none of these sites of a model has."""
        names = list(dict.fromkeys(place.name for place in places))
        name = type(bare(self.model)).__name__
        if self.site not in names:
            listed = f"be one of {', '.join(names)}, the sites of {name}" if names else f"be a site; {name} has none"
            raise SpecError(f"site must {listed}, got {self.site!r}{did_you_mean(self.site, names)}")
        mine = [place for place in places if place.name == self.site]
        layers = [place.layer for place in mine]
        require(self.layer is None or self.layer in layers, "layer", self.layer,
                f"be one of {', '.join(map(str, layers))} at site {self.site}")
        place = mine[0]
        require(self.where == "all" or place.size(TOKEN, READER) is not None, "where", self.where,
                f"be all at site {self.site}, which has no tokens")
        count = place.size(*UNITS)
        require(self.units is None or count is not None, "units", self.units,
                f"be none at site {self.site}, which has neither heads nor neurons")
        if isinstance(self.units, tuple) and count is not None:
            require(min(self.units) >= 0 and max(self.units) < count, "units", self.units,
                    f"lie in [0, {count}) at site {self.site}")

    @property
    def embedding(self) -> Any:
        """That of the model, or one that puts beside its columns what the intervention must know."""
        inner, source = self.model.embedding, self.other_prompt
        return inner if self.where in BY_PLACE and source is None else Beside(inner, self.where, source)

    @property
    def other_prompt(self) -> Callable[[Prompt], Prompt] | None:
        """The prompt that values come from, as a function of the prompt; none: they come from no other."""
        return None

    @property
    def usual_training(self) -> dict[str, Any]:
        """That of the model."""
        return dict(self.model.usual_training) if isinstance(self.model, HasUsualTraining) else {}

    def weight_count(self, dimension: int) -> int:
        """That of the model; 0 if it does not tell."""
        return self.model.weight_count(dimension) if isinstance(self.model, CountsWeights) else 0

    def score_count(self, tokens: int) -> int:
        """Numbers between pairs of tokens: those of the model, and of the layer whose sites are computed."""
        return tokens**2 + (self.model.score_count(tokens) if isinstance(self.model, HoldsScores) else 0)

    def init(self, key: Array, dimension: int) -> Any:
        """The model's weights before training."""
        return self.model.init(key, dimension)

    def apply(self, params: Any, columns: Float[Array, "tokens width"]) -> tuple[Float[Array, "*answer"], Any]:
        """The model's output for one prompt's query with the intervention, and the intermediates that led to it."""
        mine, meant, other = self._parted(columns)
        recorded, places = self.recorded(params, mine, other), []

        def change(place: Site, value: Array) -> Array:
            places.append(place)
            if place.name != self.site or self.layer not in (None, place.layer):
                return value
            new = jnp.broadcast_to(self.changed(place, value, recorded), value.shape).astype(value.dtype)
            chosen = self._chosen(place, meant)
            return new if chosen is None else jnp.where(chosen, new, value)

        with watching(change):
            result = self.model.apply(self.own(params), mine)
        self.check_place(places)
        return result

    def own(self, params: Any) -> Any:
        """The weights of the model that is changed."""
        return params

    def recorded(self, params: Any, columns: Array, other: Array) -> Recorded:
        """The values that are put at the site, if they come from another forward pass."""
        return Recorded()

    def changed(self, place: Site, value: Array, recorded: Recorded) -> Any:
        """What is put in the place of a value."""
        raise NotImplementedError

    def _parted(self, columns: Array) -> tuple[Array, Array, Array]:
        """The columns of the prompt, which tokens are meant, and the columns of the other prompt."""
        marks = int(self.where not in BY_PLACE)
        width = columns.shape[1] - marks
        width = width if self.other_prompt is None else width // 2
        meant = columns[:, width] != 0 if marks else BY_PLACE[str(self.where)](len(columns))
        return columns[:, :width], meant, columns[:, width + marks:]

    def _chosen(self, place: Site, meant: Bool[Array, " tokens"]) -> Array | None:
        """Where a value is replaced; none: everywhere."""
        def along(mask: Array, axis: str) -> Array:
            return mask.reshape([-1 if name == axis else 1 for name in place.axes])

        chosen: Any = None
        if self.where != "all":
            axis = TOKEN if TOKEN in place.axes else READER
            size = place.size(axis)
            assert size is not None
            chosen = along(meant[:size] if axis == TOKEN else meant[-size:], axis)
        if self.units is not None:
            axis = next(axis for axis in place.axes if axis in UNITS)
            units = along((jnp.arange(place.size(axis))[:, None] == jnp.asarray(self.units)).any(axis=1), axis)
            chosen = units if chosen is None else chosen & units
        return chosen


@spec(part="model")
class Clamped(Intervention):
    """A model with a site held at a constant."""

    value: float = number(default=1.0)
    """The constant."""

    def check(self) -> None:
        super().check()
        require_range(self, "value", -np.inf, np.inf, open_low=True, open_high=True)

    def changed(self, place: Site, value: Array, recorded: Recorded) -> Any:
        """The constant."""
        return jnp.asarray(self.value)


@spec(part="model")
class Scaled(Intervention):
    """A model with the value at a site multiplied by a factor."""

    factor: float = number(default=1.0)
    """The factor."""

    def check(self) -> None:
        super().check()
        require_range(self, "factor", -np.inf, np.inf, open_low=True, open_high=True)

    def changed(self, place: Site, value: Array, recorded: Recorded) -> Any:
        """The value times the factor."""
        return value * self.factor


@spec(part="model")
class Patched(Intervention):
    """A model with a site as it is when the model reads another prompt."""

    source: str | Callable[[Prompt], Prompt] = "clean_labels"
    """The other prompt: the same with the labels it would have without poison (clean_labels), or a function of the
    prompt that gives one with as many tokens."""

    def check(self) -> None:
        super().check()
        require(callable(self.source) or self.source in SOURCES, "source", self.source,
                f"be {', '.join(SOURCES)} or a function of a prompt")

    @property
    def other_prompt(self) -> Callable[[Prompt], Prompt]:
        """The prompt that values come from."""
        return SOURCES[self.source] if isinstance(self.source, str) else self.source

    def recorded(self, params: Any, columns: Array, other: Array) -> Recorded:
        """All values of the other prompt."""
        return recording(self.model, params, other)[1]

    def changed(self, place: Site, value: Array, recorded: Recorded) -> Any:
        """The value of the other prompt."""
        return from_elsewhere(place, recorded)


@spec(part="model")
class Grafted(Intervention):
    """A model with a site as another model has it for the same prompt; weights are a pair, and both are trained."""

    donor: Any = part(default_factory=GatedAttention)
    """The other model, which reads the same columns."""

    def check(self) -> None:
        super().check()
        require(self.donor.embedding == self.model.embedding, "donor.embedding", self.donor.embedding,
                "be that of the model")

    def weight_count(self, dimension: int) -> int:
        """That of both models."""
        donor = self.donor.weight_count(dimension) if isinstance(self.donor, CountsWeights) else 0
        return donor + super().weight_count(dimension)

    def init(self, key: Array, dimension: int) -> tuple[Any, Any]:
        """Both models' weights before training."""
        model, donor = jax.random.split(key)
        return self.model.init(model, dimension), self.donor.init(donor, dimension)

    def own(self, params: tuple[Any, Any]) -> Any:
        """The first of the pair."""
        return params[0]

    def recorded(self, params: tuple[Any, Any], columns: Array, other: Array) -> Recorded:
        """All values of the other model."""
        return recording(self.donor, params[1], columns)[1]

    def changed(self, place: Site, value: Array, recorded: Recorded) -> Any:
        """The value of the other model."""
        return from_elsewhere(place, recorded)


def recording(model: Any, params: Any, columns: Float[Array, "tokens width"]) -> tuple[Any, Recorded]:
    """A model's output, and the values at all of its sites."""
    with watching(recorded := Recorded(), alone=True):
        output, _ = model.apply(params, columns)
    return output, recorded


def from_elsewhere(place: Site, recorded: Recorded) -> Array:
    """The recorded value at a site."""
    names = ", ".join(f"{name} (layer {layer})" for name, layer in recorded)
    require((place.name, place.layer) in recorded, "site", place.name,
            f"be recorded in layer {place.layer} too; the source has {names or 'no sites'}")
    other, value = recorded[place.name, place.layer]
    require(other.shape == place.shape, "source", other.shape,
            f"give site {place.name} in layer {place.layer} the shape {place.shape}")
    return value


def bare(model: Any) -> Any:
    """The model that all interventions of a model act on."""
    return bare(model.model) if isinstance(model, Intervention) else model


def sites_of(model: Any, dimension: int, tokens: int) -> list[Site]:
    """The sites of a forward pass for a prompt of this size, as they follow each other."""
    model = lower(bare(model))

    def visit() -> Any:
        params = model.init(jax.random.key(0), dimension)
        recorded = recording(model, params, jnp.zeros((tokens, model.embedding.width(dimension))))[1]
        places.extend(place for place, _ in recorded.values())

    places: list[Site] = []
    jax.eval_shape(visit)
    return places


@lru_cache(maxsize=256)
def _sites_of(model: Any) -> list[Site] | None:
    try:
        return sites_of(model, dimension=8, tokens=2)
    except (Exception, SystemExit):  # a user's model may read prompts of one size only
        return None


def _known_sites(model: Any) -> list[Site] | None:
    """The sites of a model, as far as a small prompt shows them; none if the model does not read it."""
    try:
        return _sites_of(model)
    except TypeError:  # a spec that holds an array is not hashable
        return _sites_of.__wrapped__(model)
