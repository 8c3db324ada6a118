"""Follow a training as it happens: the loss drawn by a callback of your own, and TensorBoard if it is installed."""

from __future__ import annotations

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from iclab import Callback, Classification, GatedAttention, Run, TensorBoard, Trained, Training, train_many

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
BARS = "▁▂▃▄▅▆▇█"


class Curves(Callback):
    """Notes the loss and the gate of every run, and draws the loss when the run ends."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.loss: dict[int, list[float]] = {}
        self.gate: dict[int, list[float]] = {}

    def begin(self, index, run):
        self.names[index] = f"rate {run.training.learning_rate}"
        self.loss[index], self.gate[index] = [], []

    def record(self, index, step, values):
        self.loss[index].append(values["loss"])
        self.gate[index].append(values["probes/gate"])

    def end(self, index, trained, error):
        loss, gate = self.loss[index], self.gate[index]
        heights = (int(7.99 * (value / max(loss)) ** 0.25) for value in loss)  # a root shows small losses too
        line = "".join(BARS[height] for height in heights)
        print(f"{self.names[index]:9} {line} {trained.state if trained else f'stopped by {error!r}'}")
        print(f"{'':9} loss {loss[-1]:.5f}, norm of the gate's weights {gate[-1]:.2f}" if loss else "")


def gate_norm(setup, params):
    """A probe, computed inside the compiled program at every record."""
    return {"gate": (params[0].gate.w ** 2).sum() ** 0.5}


def main() -> tuple[Curves, list[Trained], Path | None]:
    curves = Curves()
    folder = Path(tempfile.mkdtemp()) if find_spec("tensorboard") else None
    callbacks = [curves] if folder is None else [curves, TensorBoard(folder)]
    prompts = Classification(outlier_fraction=0.6)
    runs = [Run(model=GatedAttention(member="mamba"), prompts=prompts,
                training=Training(steps=STEPS, learning_rate=rate, record_every=max(STEPS // 30, 1)))
            for rate in (0.1, 1.0)]
    models = train_many(runs, probe=gate_norm, callbacks=callbacks)
    print("pip install '.[tensorboard]' for TensorBoard" if folder is None else f"tensorboard --logdir {folder}")
    return curves, models, folder


if __name__ == "__main__":
    main()
