"""What a theorem is here: premises that a spec meets or not, laws with one fitted constant, and where it is silent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from iclab.errors import require
from iclab.fields import is_number
from iclab.inputs import read_json

WORDS = {"<=": "at most", ">=": "at least", "<": "below", ">": "above"}


class Condition(NamedTuple):
    """One premise of a theorem, and whether the settings meet it."""

    name: str
    required: str
    actual: str
    met: bool | None
    """None: the theorem states an order, its constant is open, and the lab has not measured it."""

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
    """Measured over predicted, times `value`, in the setting where it is least."""
    high: float
    settings: int
    seeds: int
    scale: str

    def to_json(self) -> dict[str, Any]:
        """As it stands in constants.json."""
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
    """What the specs have in its place."""
    entry: str
    """The entry that measures it and fits the constant."""
    measured_at: str
    """What counts as reached there."""
    level: float = 0.0
    """The loss or error that counts as reached: to a smaller one the constant does not speak."""

    def predict(self, run: Any, test: Any, constants: Mapping[str, Constant] | None = None) -> float | None:
        """The number; None where no constant has been fitted."""
        known = (shipped_constants() if constants is None else constants).get(self.key)
        return None if known is None else known.value * self.order(run, test)


@dataclass(frozen=True)
class Statement:
    """A theorem, corollary, proposition or condition, evaluated for a spec."""

    paper: str
    place: str
    subject: str
    """The model of which it speaks."""
    promise: str
    premises: tuple[Condition, ...]
    laws: tuple[Law, ...] = ()
    silent: str = ""
    """What it does not cover, or where measurement says otherwise."""

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
    """The constants that a full `iclab reproduce` fitted before this version was released."""
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
    """A number as a premise shows it: whole ones in full."""
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.4g}"


def at_least(name: str, value: float, bound: float, formula: str = "") -> Condition:
    """A premise `value >= bound`."""
    return Condition(name, f">= {bound:.3g}{_of(formula)}", number(value), bool(value >= bound))


def at_most(name: str, value: float, bound: float, formula: str = "") -> Condition:
    """A premise `value <= bound`."""
    return Condition(name, f"<= {bound:.3g}{_of(formula)}", number(value), bool(value <= bound))


def below(name: str, value: float, bound: float, formula: str = "") -> Condition:
    """A premise `value < bound`."""
    return Condition(name, f"< {bound:.3g}{_of(formula)}", number(value), bool(value < bound))


def above(name: str, value: float, bound: float, formula: str = "") -> Condition:
    """A premise `value > bound`."""
    return Condition(name, f"> {bound:.3g}{_of(formula)}", number(value), bool(value > bound))


def is_so(name: str, truth: bool) -> Condition:
    """A premise that is a fact, not a number."""
    return Condition(name, "yes", "yes" if truth else "no", bool(truth))


def order(name: str, relation: str, value: float, bound: float, formula: str) -> Condition:
    """A premise up to a constant that nobody has measured: open, unless no constant could change the answer."""
    least, most = (bound, value) if relation == ">=" else (value, bound)
    met = True if least <= 0 or most == float("inf") else False if most <= 0 or least == float("inf") else None
    return Condition(name, f"{relation} c * {bound:.3g}{_of(formula)}, c unknown", number(value), met)


def by_law(name: str, law: Law, run: Any, test: Any, accuracy: float,
           constants: Mapping[str, Constant] | None = None) -> Condition:
    """A premise `yours >= constant * order` of a law, with its fitted constant if there is one.

    Met if even the setting that asks for most would be content, not met if not even the one that asks for least is;
    between the two it is open, and so it is when an accuracy is asked for that the fit does not speak of.
    """
    found = (shipped_constants() if constants is None else constants).get(law.key)
    bound, yours = law.order(run, test), law.yours(run, test)
    if found is None or not bound < float("inf"):
        return order(name, ">=", yours, bound, law.formula)
    met = False if yours < found.low * bound else True if yours >= found.high * bound else None
    told = f">= {found.value * bound:.3g} (constant fitted in {law.entry} for {law.measured_at}; single settings: " \
           f"{found.low * bound:.3g} to {found.high * bound:.3g})"
    return Condition(name, told, number(yours), None if met and accuracy < law.level else met)


def _of(formula: str) -> str:
    return f" [{formula}]" if formula else ""
