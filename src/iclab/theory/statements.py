"""A theorem as data: premises that a spec meets or not, laws with one fitted constant, and what is not covered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from iclab.core.errors import require
from iclab.core.files import read_json
from iclab.core.parse import is_number

WORDS = {"<=": "at most", ">=": "at least", "<": "below", ">": "above"}


class Condition(NamedTuple):
    """One premise of a theorem, and whether the settings meet it."""

    name: str
    required: str
    actual: str
    met: bool | None
    """None: the theorem states only an order, and no measured constant decides."""
    room: float | None = None
    """Of a premise with an open constant: how many times over it is met with the fitted constant, or if there is none
    with the constant 1."""
    fitted: bool = False
    """Whether a constant was fitted."""
    margin: float = 0.0
    """Of a premise without an open constant: how far its number lies inside the bound, negative outside; 0 if it is
    not about a number."""

    @property
    def sentence(self) -> str:
        """The premise in words, such as `Theorem 2 (c) needs the outlier fraction below 0.6; yours is 0.7`."""
        place, _, what = self.name.partition(": ")
        relation, _, value = self.required.partition(" ")
        if relation not in WORDS:
            return f"{place} {'holds' if self.met else 'does not hold'}: {what}"
        return f"{place} needs the {what} {WORDS[relation]} {value}; yours is {self.actual}"


@dataclass(frozen=True)
class Constant:
    """The constant of a law, fitted to all settings of one entry."""

    law: str
    value: float
    low: float
    """The constant fitted to a single setting, smallest over the settings."""
    high: float
    """The same, largest over the settings."""
    settings: int
    seeds: int
    scale: str

    def to_json(self) -> dict[str, Any]:
        """The entry of constants.json."""
        return {key: round(value, 6) if isinstance(value, float) else value for key, value in asdict(self).items()}


@dataclass(frozen=True)
class Law:
    """A number that a theorem states up to a constant: `constant * order(run, test)`."""

    key: str
    quantity: str
    formula: str
    order: Callable[[Any, Any], float]
    """The formula's value for a training run and a test."""
    yours: Callable[[Any, Any], float]
    """The value that the specs have."""
    entry: str
    """The entry that measures it and fits the constant."""
    measured_at: str
    """The criterion of that measurement, in words."""
    level: float = 0.0
    """The loss or error of the criterion; the constant says nothing about smaller ones."""

    def predict(self, run: Any, test: Any, constants: Mapping[str, Constant] | None = None) -> float | None:
        """The predicted number; None if no constant has been fitted."""
        constant = (shipped_constants() if constants is None else constants).get(self.key)
        return None if constant is None else constant.value * self.order(run, test)


@dataclass(frozen=True)
class Statement:
    """A theorem, corollary, proposition or condition, evaluated for a spec."""

    paper: str
    place: str
    subject: str
    """The model that it is about."""
    promise: str
    premises: tuple[Condition, ...]
    laws: tuple[Law, ...] = ()
    silent: str = ""
    """What it does not cover, or where measurements disagree."""

    @property
    def unmet(self) -> list[Condition]:
        """The premises that the settings do not meet."""
        return [premise for premise in self.premises if premise.met is False]

    @property
    def verdict(self) -> str:
        """Whether the premises hold: `covered`, `not covered`, or `covered up to constants`."""
        if self.unmet:
            return "not covered"
        return "covered up to constants" if any(premise.met is None for premise in self.premises) else "covered"


@cache
def shipped_constants() -> dict[str, Constant]:
    """The constants that a full `iclab reproduce` fitted for this release."""
    return read_constants(resources.files("iclab.theory").joinpath("constants.json").read_text())


def read_constants(text: str) -> dict[str, Constant]:
    """Constants by law, from the text of a `constants.json`."""
    constants = {entry["law"]: Constant(**entry) for entry in read_json(text)}
    for law, constant in constants.items():
        for name in ("value", "low", "high"):
            value = getattr(constant, name)
            require(is_number(value) and 0 <= value < float("inf"), f"{law}: {name}", value, "be a number >= 0")
    return constants


def number(value: float) -> str:
    """A number as premises show it: integers in full."""
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.4g}"


def at_least(name: str, value: float, bound: float, formula: str = "") -> Condition:
    """A premise `value >= bound`."""
    return Condition(name, f">= {bound:.3g}{_bracketed(formula)}", number(value), bool(value >= bound),
                     margin=float(value - bound))


def at_most(name: str, value: float, bound: float, formula: str = "") -> Condition:
    """A premise `value <= bound`."""
    return Condition(name, f"<= {bound:.3g}{_bracketed(formula)}", number(value), bool(value <= bound),
                     margin=float(bound - value))


def below(name: str, value: float, bound: float, formula: str = "") -> Condition:
    """A premise `value < bound`."""
    return Condition(name, f"< {bound:.3g}{_bracketed(formula)}", number(value), bool(value < bound),
                     margin=float(bound - value))


def above(name: str, value: float, bound: float, formula: str = "") -> Condition:
    """A premise `value > bound`."""
    return Condition(name, f"> {bound:.3g}{_bracketed(formula)}", number(value), bool(value > bound),
                     margin=float(value - bound))


def is_so(name: str, truth: bool) -> Condition:
    """A premise that is a fact, not a number."""
    return Condition(name, "yes", "yes" if truth else "no", bool(truth))


def order(name: str, relation: str, value: float, bound: float, formula: str) -> Condition:
    """A premise up to an unmeasured constant: open, unless every constant gives the same answer."""
    least, most = (bound, value) if relation == ">=" else (value, bound)
    met = True if least <= 0 or most == float("inf") else False if most <= 0 or least == float("inf") else None
    room = float("inf") if least <= 0 or most == float("inf") else 0.0 if most <= 0 else most / least
    return Condition(name, f"{relation} c * {bound:.3g}{_bracketed(formula)}, c unknown", number(value), met, room)


def by_law(name: str, law: Law, run: Any, test: Any, accuracy: float,
           constants: Mapping[str, Constant] | None = None) -> Condition:
    """A premise `yours >= constant * order` of a law, with its fitted constant if there is one.

    Met if `yours` reaches the bound of the most demanding fitted setting, not met if it misses that of the least
    demanding one, open in between. Open instead of met if `accuracy` is finer than the level at which the constant was
    fitted.
    """
    constant = (shipped_constants() if constants is None else constants).get(law.key)
    bound, yours = law.order(run, test), law.yours(run, test)
    if constant is None or not bound < float("inf"):
        return order(name, ">=", yours, bound, law.formula)
    met = False if yours < constant.low * bound else True if yours >= constant.high * bound else None
    required = f">= {constant.value * bound:.3g} (constant fitted in {law.entry} for {law.measured_at}; single " \
               f"settings: {constant.low * bound:.3g} to {constant.high * bound:.3g})"
    room = yours / (constant.value * bound) if constant.value * bound > 0 else float("inf")
    return Condition(name, required, number(yours), None if met and accuracy < law.level else met, room, True)


def _bracketed(formula: str) -> str:
    return f" [{formula}]" if formula else ""
