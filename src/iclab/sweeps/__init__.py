"""Sweeps: many runs, with finished ones stored and reused."""
