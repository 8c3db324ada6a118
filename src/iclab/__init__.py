"""iclab: a laboratory for the theory of in-context learning."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iclab.core.errors import CheckpointError, IclabError, SpecError
    from iclab.core.spec import number, part, replace, require_range, spec
    from iclab.figures.lines import line_plot
    from iclab.figures.phase import phase_diagram
    from iclab.hub import pull, push
    from iclab.models import (
        GPT2,
        ChainAttention,
        ChainEmbedding,
        Clamped,
        GatedAttention,
        Grafted,
        LabelEmbedding,
        Mamba2Block,
        MambaBlock,
        Patched,
        Scaled,
        SoftmaxAttention,
        SoftmaxMLP,
        TokenEmbedding,
        VectorEmbedding,
        site,
    )
    from iclab.papers.cot.compare import compare_reasoning
    from iclab.papers.reproducing import reproduce
    from iclab.probes import (
        bayes_predictor,
        gate_profile,
        information_floor,
        measure_error,
        model_errors,
        score_mass,
        seed_interval,
    )
    from iclab.probes.attack_search import Attack, Budget, attack_error, worst_attack
    from iclab.probes.baselines import baselines, classifier_predictor
    from iclab.probes.chains import chain_errors
    from iclab.probes.influence import label_weights
    from iclab.probes.interventions import (
        ablate,
        clamp,
        graft,
        intervene,
        patch,
        patched,
        scale,
        site_values,
        sites,
    )
    from iclab.probes.pruning import neuron_norms, prune
    from iclab.probes.reasoning import reason
    from iclab.probes.regressors import descent_predictor, huber_predictor, pool_predictor, ridge_predictor
    from iclab.probes.token_floors import dirichlet_predictor, errors_by_token, token_floor
    from iclab.prompts import (
        Chain,
        Classification,
        Family,
        MarkovChain,
        Parity,
        Prompt,
        Recall,
        Regression,
        TokenFamily,
        chain_test,
        from_labelled,
    )
    from iclab.prompts.tables import from_csv
    from iclab.report.playground.own import playground
    from iclab.sweeps.results import stored_results
    from iclab.sweeps.store import Store
    from iclab.sweeps.sweep import Draws, Sweep
    from iclab.sweeps.sweep_file import read_sweep
    from iclab.theory import theory_of
    from iclab.tracking import MLflow, TensorBoard, Trackio, WandB
    from iclab.training import Callback, Run, Trained, Training, load_checkpoint, save_checkpoint, train, train_many
    from iclab.training.order import PatternWeights, order_parameters, order_probe
    from iclab.training.population import Population, population_dynamics

__version__ = "0.1.0"

_HOME = {
    "iclab.core.errors": ("CheckpointError", "IclabError", "SpecError"),
    "iclab.hub": ("pull", "push"),
    "iclab.models": ("GPT2", "ChainAttention", "ChainEmbedding", "Clamped", "GatedAttention", "Grafted",
                     "LabelEmbedding", "Mamba2Block", "MambaBlock", "Patched", "Scaled", "SoftmaxAttention",
                     "SoftmaxMLP", "TokenEmbedding", "VectorEmbedding", "site"),
    "iclab.probes": ("bayes_predictor", "gate_profile", "information_floor", "measure_error", "model_errors",
                     "score_mass", "seed_interval"),
    "iclab.probes.baselines": ("baselines", "classifier_predictor"),
    "iclab.probes.interventions": ("ablate", "clamp", "graft", "intervene", "patch", "patched", "scale", "site_values",
                                   "sites"),
    "iclab.probes.pruning": ("neuron_norms", "prune"),
    "iclab.probes.attack_search": ("Attack", "Budget", "attack_error", "worst_attack"),
    "iclab.probes.chains": ("chain_errors",),
    "iclab.probes.influence": ("label_weights",),
    "iclab.probes.reasoning": ("reason",),
    "iclab.probes.regressors": ("descent_predictor", "huber_predictor", "pool_predictor", "ridge_predictor"),
    "iclab.papers.cot.compare": ("compare_reasoning",),
    "iclab.papers.reproducing": ("reproduce",),
    "iclab.probes.token_floors": ("dirichlet_predictor", "errors_by_token", "token_floor"),
    "iclab.prompts": ("Chain", "Classification", "Family", "MarkovChain", "Parity", "Prompt", "Recall", "Regression",
                      "TokenFamily", "chain_test", "from_labelled"),
    "iclab.prompts.tables": ("from_csv",),
    "iclab.figures.lines": ("line_plot",),
    "iclab.figures.phase": ("phase_diagram",),
    "iclab.report.playground.own": ("playground",),
    "iclab.sweeps.results": ("stored_results",),
    "iclab.sweeps.store": ("Store",),
    "iclab.sweeps.sweep": ("Draws", "Sweep"),
    "iclab.sweeps.sweep_file": ("read_sweep",),
    "iclab.core.spec": ("number", "part", "replace", "require_range", "spec"),
    "iclab.theory": ("theory_of",),
    "iclab.training.order": ("PatternWeights", "order_parameters", "order_probe"),
    "iclab.training.population": ("Population", "population_dynamics"),
    "iclab.tracking": ("MLflow", "TensorBoard", "Trackio", "WandB"),
    "iclab.training": ("Callback", "Run", "Trained", "Training", "load_checkpoint", "save_checkpoint", "train",
                       "train_many"),
}
_MODULES = ("conformance", "torch")
"""Modules that are imported when they are first used; torch needs the extra of that name."""
__all__ = [
    "GPT2",
    "Attack",
    "Budget",
    "Callback",
    "Chain",
    "ChainAttention",
    "ChainEmbedding",
    "CheckpointError",
    "Clamped",
    "Classification",
    "Draws",
    "Family",
    "GatedAttention",
    "Grafted",
    "IclabError",
    "LabelEmbedding",
    "MLflow",
    "Mamba2Block",
    "MambaBlock",
    "MarkovChain",
    "Parity",
    "Patched",
    "PatternWeights",
    "Population",
    "Prompt",
    "Recall",
    "Regression",
    "Run",
    "Scaled",
    "SoftmaxAttention",
    "SoftmaxMLP",
    "SpecError",
    "Store",
    "Sweep",
    "TensorBoard",
    "TokenEmbedding",
    "TokenFamily",
    "Trackio",
    "Trained",
    "Training",
    "VectorEmbedding",
    "WandB",
    "ablate",
    "attack_error",
    "baselines",
    "bayes_predictor",
    "chain_errors",
    "chain_test",
    "clamp",
    "classifier_predictor",
    "compare_reasoning",
    "descent_predictor",
    "dirichlet_predictor",
    "errors_by_token",
    "from_csv",
    "from_labelled",
    "gate_profile",
    "graft",
    "huber_predictor",
    "information_floor",
    "intervene",
    "label_weights",
    "line_plot",
    "load_checkpoint",
    "measure_error",
    "model_errors",
    "neuron_norms",
    "number",
    "order_parameters",
    "order_probe",
    "part",
    "patch",
    "patched",
    "phase_diagram",
    "playground",
    "pool_predictor",
    "population_dynamics",
    "prune",
    "pull",
    "push",
    "read_sweep",
    "reason",
    "replace",
    "reproduce",
    "require_range",
    "ridge_predictor",
    "save_checkpoint",
    "scale",
    "score_mass",
    "seed_interval",
    "site",
    "site_values",
    "sites",
    "spec",
    "stored_results",
    "theory_of",
    "token_floor",
    "train",
    "train_many",
    "worst_attack",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `iclab --help` must not wait for JAX."""
    if name in _MODULES:
        return importlib.import_module(f"iclab.{name}")
    for module, names in _HOME.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'iclab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
