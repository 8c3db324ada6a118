"""`iclab results`: what a store has measured, as a table or a file."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from iclab.commands.options import Parser
from iclab.commands.output import say_damage
from iclab.core.files import write_whole
from iclab.sweeps.results import stored_over_seeds, stored_results
from iclab.sweeps.store import Store

HELP = """Show what the sweeps in a store have measured. Columns are the fields in which its trials differ.

With --over-seeds each row is a mean over the `seeds` that trained (stuck ones included), `of` all that were tried.
Conditions on settings (a field, seed, test_prompts) select trials before averaging; conditions on measured values
(error<0.1, error_high<0.1) and on counts (diverged=0) select rows afterwards, so that no seed is left out of a mean
because of its result."""
HIDDEN = ("run", "sweep", "seconds", "reason")


def main(arguments: list[str]) -> None:
    """Print or write the results in a store."""
    parser = Parser("results", HELP)
    parser.add_argument("store", metavar="STORE", help="a folder or fsspec URL")
    parser.add_argument("--where", action="append", default=[], metavar="CONDITION",
                        help="such as model.member=mamba or error<0.1; may be repeated, and all must hold")
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
    if options.parquet:
        import io

        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        write_whole(Path(options.parquet), buffer.getvalue())
    if options.csv == "-":
        print(frame.write_csv(), end="")
    elif options.csv:
        write_whole(Path(options.csv), frame.write_csv().encode())
    if options.csv or options.parquet:
        return
    narrow = frame.drop([name for name in HIDDEN if name in frame.columns and (name != "reason" or not
                        frame["reason"].cast(pl.String).str.len_chars().sum())])
    shown = narrow if options.limit < 1 else narrow.head(options.limit)
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True,
                   tbl_formatting="ASCII_MARKDOWN", tbl_width_chars=10_000, fmt_str_lengths=60):
        print(shown)
    if len(shown) < len(narrow):
        print(f"... {len(narrow) - len(shown)} more rows (--limit 0 shows all)")
