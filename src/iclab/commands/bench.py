"""`iclab bench`: training speed compared with PyTorch."""

from __future__ import annotations

import sys

from iclab.bench.compare import compare
from iclab.commands.options import Parser
from iclab.commands.output import to_text

MOST_ROUNDS = 1000


def main(arguments: list[str]) -> None:
    """Print the time per model-step and the speedups."""
    parser = Parser("bench", "Train the same one-layer Mamba (d 30, l 20, B 128, fresh prompts every step) in iclab, "
                             "in eager PyTorch and with torch.compile, interleaved, on equal threads.")
    parser.add_argument("--rounds", type=int, default=5, metavar="INT", help="[default: 5]")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args(arguments)
    if not 1 <= options.rounds <= MOST_ROUNDS:
        parser.error(f"rounds must be in [1, {MOST_ROUNDS}], got {options.rounds}")
    result = compare(options.rounds, lambda text: print(text, file=sys.stderr, flush=True))
    if options.json:
        print(to_text(result))
        return
    times = result["microseconds_per_model_step"]
    print(f"{'':16}{'us/model-step':>14}{'x eager':>10}{'x compile':>11}{'of peak':>9}")
    for name, value in times.items():
        row = f"{name:16}{value:14.1f}"
        if name in result["peak_share"]:
            row += (f"{result['speedup_vs_eager'][name]:10.1f}{result['speedup_vs_compile'][name]:11.1f}"
                    f"{result['peak_share'][name]:9.1%}")
        print(row)
    print(f"{result['threads']} threads, matrix-multiply peak {result['peak_gflops']} GFLOP/s, median of "
          f"{result['rounds']} interleaved rounds")
