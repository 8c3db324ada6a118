"""Probes: errors of predictors, what the prompt allows, and what happens inside a model."""

from iclab.probes.error_rate import (
           UNIT,
           ErrorRate,
           Interval,
           measure_error,
           median_interval,
           model_errors,
           seed_interval,
)
from iclab.probes.inside import gate_profile, score_mass
from iclab.probes.reference import bayes_predictor, information_floor

__all__ = ["UNIT", "ErrorRate", "Interval", "bayes_predictor", "gate_profile", "information_floor", "measure_error",
           "median_interval", "model_errors", "score_mass", "seed_interval"]
