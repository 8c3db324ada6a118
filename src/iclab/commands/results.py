"""`iclab results`: what a store has measured, as a table or a file."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path
from typing import TextIO

import polars as pl

from iclab.commands.options import Parser
from iclab.commands.output import say_damage
from iclab.core.errors import IclabError, did_you_mean
from iclab.core.files import write_whole
from iclab.sweeps.results import stored_over_seeds, stored_results
from iclab.sweeps.store import Store

HELP = """Show what the sweeps in a store have measured. Columns are the fields in which its trials differ.

With --over-seeds each row is a mean over the `seeds` that trained (stuck ones included), `of` all that were tried.
Conditions on settings (a field, seed, test_prompts) select trials before averaging; conditions on measured values
(error<0.1, error_high<0.1) and on counts (diverged=0) select rows afterwards, so that no seed is left out of a mean
because of its result."""
ROW = "#"
"""Name of the column that numbers the rows of a table in parts."""
HIDDEN = ("run", "sweep", "seconds", "reason")


def main(arguments: list[str]) -> None:
    """Print or write the results in a store."""
    parser = Parser("results", HELP)
    parser.add_argument("store", metavar="STORE", help="a folder or fsspec URL")
    parser.add_argument("--where", action="append", default=[], metavar="CONDITION",
                        help="such as model.member=mamba, error<0.1 or 'seed in 0,1'; may be repeated, and all must "
                             "hold")
    parser.add_argument("--columns", metavar="NAMES", help="only these columns, in this order: training.steps,error")
    parser.add_argument("--sort", metavar="NAMES", help="sort by these columns, such as error or 'model.member, "
                                                        "error desc' [default: by the settings]")
    parser.add_argument("--over-seeds", action="store_true", help="means and 95 %% intervals over seeds")
    parser.add_argument("--all-fields", action="store_true", help="every field, not only those that differ")
    parser.add_argument("--csv", metavar="FILE", help="write a CSV file (- for standard output)")
    parser.add_argument("--parquet", metavar="FILE", help="write a Parquet file")
    parser.add_argument("--limit", type=int, default=40, metavar="INT", help="rows to print, 0 for all [default: 40]")
    options = parser.parse_args(arguments)
    store = Store(options.store)
    if options.over_seeds:
        frame = stored_over_seeds(store, options.where, options.all_fields)
    else:
        frame = stored_results(store, options.where, options.all_fields).frame
    say_damage(store)
    store.tidy()
    frame = arranged(frame, options.sort, options.columns)
    if options.parquet:
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        write(options.parquet, buffer.getvalue(), frame, sys.stderr if options.csv == "-" else sys.stdout)
    if options.csv == "-":
        print(frame.write_csv(), end="")
    elif options.csv:
        write(options.csv, frame.write_csv().encode(), frame, sys.stdout)
    if options.csv or options.parquet:
        return
    reasons = "reason" in frame.columns and frame["reason"].cast(pl.String).str.len_chars().sum()
    narrow = frame if options.columns else frame.drop(
        [name for name in HIDDEN if name in frame.columns and not (name == "reason" and reasons)])
    shown = narrow if options.limit < 1 else narrow.head(options.limit)
    print("\n\n".join(tables(shown, shutil.get_terminal_size().columns if sys.stdout.isatty() else None)))
    if len(shown) < len(narrow):
        print(f"... {len(narrow) - len(shown)} more rows (--limit 0 shows all)")


def tables(frame: pl.DataFrame, width: int | None) -> list[str]:
    """The rows as one table; if it is wider than `width`, as several below each other, whose rows are numbered."""
    def drawn(columns: list[str], table: pl.DataFrame = frame) -> str:
        with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True,
                       tbl_formatting="ASCII_MARKDOWN", tbl_width_chars=10_000, fmt_str_lengths=60):
            return str(table.select(columns))

    def fits(text: str) -> bool:
        return width is None or max(map(len, text.splitlines())) <= width

    whole = drawn(frame.columns)
    if fits(whole):
        return [whole]
    numbered, blocks = frame.with_row_index(ROW, offset=1), list[list[str]]()
    for name in frame.columns:
        if blocks and fits(drawn([*blocks[-1], name], numbered)):
            blocks[-1].append(name)
        else:
            blocks.append([ROW, name])
    return [drawn(block, numbered) for block in blocks]


def arranged(frame: pl.DataFrame, sort: str | None, columns: str | None) -> pl.DataFrame:
    """The table sorted, by its settings unless told otherwise, with the columns asked for."""
    if sort is None:
        fields = [name for name in frame.columns
                  if ("." in name or name == "seed") and not frame[name].dtype.is_nested()]
        frame = frame.sort(fields, maintain_order=True) if fields else frame
    else:
        keys = [key.strip() for key in sort.split(",")]
        names = [key.removesuffix(" desc").strip() for key in keys]
        known("sort", names, frame)
        frame = frame.sort(names, nulls_last=True, maintain_order=True,
                           descending=[key.endswith(" desc") for key in keys])
    if columns is None:
        return frame
    known("columns", columns.split(","), frame)
    return frame.select(columns.split(","))


def known(option: str, names: list[str], frame: pl.DataFrame) -> None:
    """Refuse the name of a column that the table does not have."""
    for name in names:
        if name not in frame.columns:
            raise IclabError(f"{option} must name columns of the table ({', '.join(frame.columns)}), got {name!r}"
                             f"{did_you_mean(name, frame.columns)}")


def write(path: str, content: bytes, frame: pl.DataFrame, out: TextIO) -> None:
    """Write a file, and say so."""
    write_whole(Path(path), content)
    print(f"{path}: {len(frame)} rows, {len(frame.columns)} columns", file=out)
