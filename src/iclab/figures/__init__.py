"""Figures: one visual language for all plots."""
