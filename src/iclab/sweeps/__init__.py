"""Runs: what is finished stays, and is found again."""
