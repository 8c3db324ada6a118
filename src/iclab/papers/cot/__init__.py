"""Figures and claims of li2024cot."""
