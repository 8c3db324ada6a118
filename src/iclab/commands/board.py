"""The live table of `iclab reproduce`, with progress, verdicts and time of each entry, and the last list of claims.

Both fit 80 columns: ids are never cut, verdicts are counted by their symbols, titles take what is left.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from iclab.commands.output import console
from iclab.commands.progress import LINE_EVERY
from iclab.core.words import duration
from iclab.lab.claims import Claim
from iclab.lab.entries import Entry
from iclab.lab.outcomes import Finished
from iclab.report.summary import GROUPS, SYMBOLS, columns, label, totals_by_group

COLOURS = {"holds": "green", "fails": "red", "inconclusive": "yellow", "outside": "bright_black", "tight": "green",
           "not tight": "bright_black"}


WIDEST = max(map(len, SYMBOLS)) + 5
"""Columns of a verdict behind its symbol."""


class Board:
    """The contents of the table: redrawn a few times per second on a terminal, printed as lines elsewhere."""

    def __init__(self, entries: Sequence[Entry], screen: Console, expected: Mapping[str, float] | None = None):
        """`expected` is how many seconds each entry takes on some machine; entries without a number count as one."""
        self.entries, self.screen = entries, screen
        self.expected = {entry.id: (expected or {}).get(entry.id, 1.0) for entry in entries}
        self.finished: dict[str, Finished] = {}
        self.running: str | None = None
        self.share, self.began, self.entry_began = 0.0, time.monotonic(), time.monotonic()
        self._last_line = time.monotonic()

    @contextmanager
    def entry(self, entry: Entry) -> Iterator[Callable[[int, int], None]]:
        """Mark an entry as running; yields `show(done, total)`."""
        self.running, self.share, self.entry_began = entry.id, 0.0, time.monotonic()
        yield self._progress
        self.running = None

    def _progress(self, done: int, total: int) -> None:
        self.share = done / max(total, 1)
        now = time.monotonic()
        if not self.screen.is_terminal and now - self._last_line >= LINE_EVERY:
            self._last_line = now
            print(f"{self.running}: {self.share:.0%} of this training, {now - self.entry_began:.0f} s; "
                  f"{len(self.finished)}/{len(self.entries)} entries done", file=sys.stderr, flush=True)

    def done(self, item: Finished) -> None:
        """Record a finished entry."""
        self.finished[item.entry.id] = item
        if not self.screen.is_terminal:
            took = " cached " if item.kept else f"{item.seconds:6.1f} s"
            print(f"{item.entry.id:18} {took}  {item.entry.title}: {headline(item)}", flush=True)

    def left(self, now: float) -> float | None:
        """Seconds left, if what is left takes as much longer than expected as what is done; None before there is
        something to go by. Stored outcomes tell nothing."""
        computed = {name for name, item in self.finished.items() if not item.kept}
        done = sum(self.expected[name] for name in computed)
        if self.running in self.expected:
            done += self.share * self.expected[self.running]
        rest = sum(seconds for name, seconds in self.expected.items() if name not in self.finished)
        rest -= self.share * self.expected.get(self.running or "", 0.0)
        return (now - self.began) * rest / done if done > 0 else None

    def __rich__(self) -> Table:
        """The part of the table around the running entry that fits the screen."""
        now = time.monotonic()
        left = self.left(now)
        table = Table(box=SIMPLE_HEAD, title_justify="left", expand=True,
                      title=f"{len(self.finished)} of {len(self.entries)} entries, {duration(now - self.began)}"
                            + ("" if left is None else f", about {duration(left)} left"))
        widest = max((len(entry.id) for entry in self.entries), default=0)
        for name, width in (("entry", widest), ("what", None), ("verdicts", 16), ("time", 7)):
            table.add_column(name, no_wrap=True, justify="right" if name == "time" else "left", min_width=width,
                             ratio=1 if name == "what" else None)
        room = max(self.screen.height - 7, 3)
        at = next((i for i, entry in enumerate(self.entries) if entry.id == self.running), len(self.finished))
        first = max(0, min(at - room * 2 // 3, len(self.entries) - room))
        for entry in self.entries[first:first + room]:
            table.add_row(*self._row(entry, now))
        return table

    def _row(self, entry: Entry, now: float) -> list[Any]:
        item = self.finished.get(entry.id)
        if item is not None:
            return [Text(entry.id), Text(entry.title), counted(item), "cached" if item.kept else duration(item.seconds)]
        if entry.id == self.running:
            bar = ProgressBar(total=1.0, completed=self.share, width=14) if self.share else "working"
            return [Text(entry.id, "bold"), Text(entry.title), bar, duration(now - self.entry_began)]
        return [Text(entry.id, "dim"), Text(entry.title, "dim"), "", ""]


@contextmanager
def board(entries: Sequence[Entry], expected: Mapping[str, float] | None = None) -> Iterator[Board]:
    """The table, live on standard error if that is a terminal."""
    screen = Console(stderr=True)
    live_board = Board(entries, screen, expected)
    if not screen.is_terminal:
        yield live_board
        return
    with Live(live_board, console=screen, refresh_per_second=4, transient=True):
        yield live_board


def headline(item: Finished) -> str:
    """A claim's parts side by side (`theorem holds, figure fails`), or `shown` for a figure or table."""
    return item.outcome.claim.headline if item.outcome.claim else "shown"


def counted(item: Finished) -> Text:
    """How many parts have which verdict, as symbols in their colours: `✓ 3  ✗ 1`; `shown` for a figure or table."""
    if item.outcome.claim is None:
        return Text("shown", "cyan")
    verdicts = Counter(part.verdict for part in item.outcome.claim.parts)
    return Text("  ").join(Text(f"{symbol} {verdicts[verdict]}", COLOURS[verdict])
                           for verdict, symbol in SYMBOLS.items() if verdicts[verdict])


def claims_list(claims: Sequence[Claim]) -> None:
    """The last screen: every claim, its parts by verdict and the number that decides, and totals by kind."""
    out = console()
    for claim in claims:
        out.print(Text.assemble((claim.id, "bold"), "  ", claim.statement))
        for verdict, symbol in SYMBOLS.items():
            places = [label(part) for part in claim.parts if part.verdict == verdict]
            if places:
                marked = Table.grid(padding=(0, 1), pad_edge=False)
                marked.add_column(no_wrap=True, min_width=WIDEST)
                marked.add_row(Text(f"  {symbol} {verdict}", COLOURS[verdict]), Text("; ".join(places)))
                out.print(marked)
        out.print(Padding(Text(claim.summary), (0, 0, 1, 4)))
    out.print(_totals(claims))


def _totals(claims: Sequence[Claim]) -> Table:
    """How many parts of each kind have which verdict."""
    totals = totals_by_group(claims)
    verdicts = columns(totals)
    table = Table(box=SIMPLE_HEAD)
    table.add_column("parts", no_wrap=True)
    for verdict in verdicts:  # on two lines: all of them, whole, take 74 of 80 columns
        table.add_column(Text(f"{SYMBOLS[verdict]}\n{verdict}", COLOURS[verdict]), justify="right", no_wrap=True)
    for group, counts in totals.items():
        table.add_row(GROUPS[group], *(str(counts[verdict] or "-") for verdict in verdicts))
    return table
