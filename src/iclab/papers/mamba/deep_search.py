"""Ours: do all layers of a three-layer Mamba shut poison out, at settings that the paper leaves open?

For each setting: the mean gate of poisoned examples divided by that of clean ones (at the nearest 8 positions, as in
`mamba.gate`) by layer, and the share of seeds in which a layer, some layer and every layer has at most a quarter.
The optimizer, its step size and the scale of the test outliers vary here; the notes have a wider search, with a gate
per channel as well. Settings are looked at on search seeds; the entries' own is measured again on fresh ones. Cost: 8
trainings, about 6 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.core.spec import replace
from iclab.lab.entries import Entry, Findings, Note, Search, Size, Table
from iclab.lab.laboratory import Lab, per_seed
from iclab.papers.mamba.deep import DEEP, TRAINING, deep_models, deep_run, mass_along
from iclab.papers.mamba.gate import FRACTION, NEAREST, SHARE_ALLOWED
from iclab.papers.mamba.settings import attacked_prompts
from iclab.probes.inside import gate_profiles
from iclab.training import Run, Trained


@dataclass(frozen=True)
class Setting:
    """What the paper leaves open about the training of a stack; by default as the entries have it."""

    optimizer: str = TRAINING["mamba"][0]
    rate: float = TRAINING["mamba"][1]
    divided: bool = True

    def run(self, steps: int) -> Run:
        """The training run."""
        run = deep_run("mamba", steps)
        return replace(run, model=replace(run.model, normalise=self.divided),
                       training=replace(run.training, optimizer=self.optimizer, learning_rate=self.rate))

    @property
    def cells(self) -> tuple[str, ...]:
        """Its columns in the table."""
        return self.optimizer, f"{self.rate:g}", "yes" if self.divided else "no"

    @property
    def words(self) -> str:
        """The setting as text."""
        return (f"{self.optimizer} {self.rate:g}, layers "
                f"{'divided by the number of tokens' if self.divided else 'not divided'}")


@dataclass(frozen=True)
class Filters:
    """How much of the poison each layer lets in, at every test scale."""

    shares: Float[np.ndarray, "factors seeds layers"]
    loss: float

    @property
    def shut(self) -> Float[np.ndarray, "factors seeds layers"]:
        """1 where a layer shuts poison out."""
        return (self.shares <= SHARE_ALLOWED).astype(float)

    def rows(self, setting: Setting, factors: Sequence[float]) -> list[tuple[Any, ...]]:
        """A row for every test scale."""
        return [(*setting.cells, f"{factor:g}", " ".join(f"{value:.2f}" for value in shares.mean(axis=0)),
                 " ".join(f"{value:.2f}" for value in shut.mean(axis=0)), f"{shut.max(axis=1).mean():.2f}",
                 f"{shut.min(axis=1).mean():.2f}", f"{self.loss:.1g}")
                for factor, shares, shut in zip(factors, self.shares, self.shut, strict=True)]


HEADER = ("optimizer", "eta", "divided", "kappa_a' / kappa_a", "poisoned / clean gate by layer",
          "share of seeds that shut poison out, by layer", "in some layer", "in every layer", "loss")
SETTINGS = (*(Setting(rate=rate) for rate in (0.1, 0.2, 0.4)), Setting("adam", 1e-3))
LOOKS = {"tiny": ((Setting(),), (3.0,), 2), "quick": ((), (3.0,), 0),
         "full": (SETTINGS, (1.0, 3.0, 10.0), 2)}
SIZES = {scale: Size(**vars(size), **dict(zip(("settings", "factors", "searched"), LOOKS[scale], strict=True)))
         for scale, size in DEEP.items()}
"""Settings, scales of the test outliers in units of the training scale, and search seeds; quick only looks again."""


def filters(lab: Lab, models: Sequence[Trained]) -> Filters:
    """How much poison the layers of models of one setting let in."""
    near, seeds = slice(None, NEAREST), [trained.run.init_seed for trained in models]
    shares = []
    for factor in lab.size.factors:
        gates = lab.remember(gate_profiles, models, attacked_prompts("flip", FRACTION, factor), count=lab.size.prompts,
                             seeds=seeds)
        clean, poisoned = (np.asarray(part)[..., near] for part in gates)
        shares.append(np.nanmean(poisoned, axis=-1) / clean.mean(axis=-1))
    return Filters(np.stack(shares), float(np.mean([trained.loss[-1] for trained in models])))


def run(lab: Lab) -> Findings:
    """Look at every setting on search seeds, and at the entries' own on fresh ones."""
    size, seeds = lab.size, lab.search_seeds(lab.size.searched)
    runs = [run for setting in size.settings for run in per_seed(setting.run(size.steps), seeds)]
    models = lab.train(runs, mass_along)  # recorded with what the entries' models record: one program for both
    looks = {setting: filters(lab, models[i * len(seeds):(i + 1) * len(seeds)])
             for i, setting in enumerate(size.settings)}
    again = filters(lab, deep_models(lab)["mamba"])
    looks = looks or {Setting(): again}
    usual = size.factors.index(3.0)
    best = max(looks, key=lambda setting: looks[setting].shut[usual].mean())
    every = max(looks, key=lambda setting: looks[setting].shut.min(axis=-1).mean(axis=-1).max())
    share = looks[every].shut.min(axis=-1).mean(axis=-1).max()
    return Findings(
        shown="How far poisoned examples are shut out of each layer of a Mamba stack, by how it is trained; mean over "
              "seeds.",
        numbers=f"Of {len(looks)} settings that the paper leaves open, most layers shut poison out under "
                f"{best.words} ({100 * looks[best].shut[usual].mean():.0f} % of layers at three times the training "
                f"scale). The largest share of search seeds in which every layer does, over all test scales, is "
                f"{100 * share:.0f} %. The entries' setting on {again.shares.shape[1]} fresh seeds: layers shut poison "
                f"out in {' / '.join(f'{100 * value:.0f}' for value in again.shut[usual].mean(axis=0))} % of them.",
        tables=[Table("mamba.deep_search", "How a Mamba stack is trained, and which layers shut poison out (outlier "
                      f"fraction {FRACTION:g}, flip), on search seeds", HEADER,
                      [row for setting, look in looks.items() for row in look.rows(setting, size.factors)]),
                Table("mamba.deep_search.again", "The setting of the entries, on fresh seeds", HEADER,
                      again.rows(Setting(), size.factors))],
        searched=Search(("optimizer", "eta", "kappa_a'"), len(looks) * len(size.factors),
                        len(seeds), Setting().words) if size.settings else None,
        specs=[(deep_run("mamba", size.steps), attacked_prompts("flip", FRACTION))])


ENTRY = Entry(
    "mamba.deep_search", "Which layers of a stack filter, by how it is trained", "ours", run, kind="table", sizes=SIZES,
    says="All three layers shut poison out; how the stack is trained is not given.", notes=(
        Note("2026-11-18", "A wider search, of some 30 settings with 6 or 8 search seeds each (Adam 3e-4 to 3e-2, SGD "
             "0.001 to 10, B 8 to 32, T up to 6,000), gave these ratios of poisoned to clean gates by layer, at three "
             "times the training scale. One gate, not divided: Adam 1e-3 0.77, 0.26, 0.30; SGD 0.01 0.94, 0.32, "
             "0.35. One gate, divided: Adam 1e-3 0.69, 0.27, 0.20; Adam 1e-2 0.22, 0.30, 0.69; SGD 0.2 0.73, "
             "0.42, 0.09. A gate per channel, divided: SGD 0.5 0.39, 0.21, 0.28; Adam 2e-3 0.52, 0.12, 0.04, the "
             "least on average. The entries use SGD 0.2, one gate, divided: it is algorithm 1's optimizer, one "
             "gate trains about four times faster, and table 1 comes out as near. Every layer shut poison out in "
             "at most one seed of six in any of them, but in half of the seeds at ten times and in three "
             "quarters at thirty times the training scale (Adam, a gate per channel, divided)."),
        Note("2026-11-18", "What limits a layer seems to be that another one filters already: with SGD 0.2, one gate, "
             "divided, a single layer has a ratio of 0.02 in every seed; of two layers the second has 0.07 and the "
             "first 0.38, of three they have 0.09, 0.42 and 0.73 from the last to the first, with a loss below 0.001. "
             "More outliers in training help little: 0.65, 0.22, 0.06 at p_a 0.6 and 0.60, 0.16, 0.03 at 0.8. Where "
             "large steps keep the first layer moving, the last one stops filtering.")))
