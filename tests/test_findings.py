"""The intervals in the words of docs/findings.md are those of checks in the reference runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from iclab.lab.verify import shipped_beyond, shipped_reference

WORDS = (Path(__file__).parents[1] / "docs" / "findings.md").read_text().partition("## Every statement")[0]
INTERVAL = re.compile(r"(-?[\d.]+)( %)? \[(-?[\d.]+), (-?[\d.]+)\]")


def judged():
    """Measured numbers with their intervals, of every rule that judges."""
    return [(check["measured"], *check["interval"]) for run in (shipped_reference("full"), shipped_beyond())
            for claim in run["claims"] for part in claim["parts"] for check in part["checks"]
            if None not in (check["measured"], *check["interval"])]


def agrees(numbers, printed, percent):
    """Whether numbers are the printed ones, rounded as these are."""
    return all(abs(number * (100 if percent else 1) - float(text)) <= 0.5001 * 10.0 ** -len(text.partition(".")[2])
               for number, text in zip(numbers, printed, strict=True))


@pytest.mark.parametrize("printed", list(INTERVAL.finditer(WORDS)), ids=lambda printed: printed[0])
def test_an_interval_is_that_of_a_check(printed):
    value, percent, low, high = printed.groups()
    assert any(agrees(numbers, (value, low, high), percent) for numbers in judged())


def test_another_number_is_noticed():
    assert agrees((0.1034, 0.088, 0.119), ("10", "9", "12"), " %")
    assert not agrees((0.1034, 0.088, 0.119), ("10", "9", "13"), " %")
    assert len(list(INTERVAL.finditer(WORDS))) >= 8
