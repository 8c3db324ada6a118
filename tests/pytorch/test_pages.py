"""The programs in the documentation run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the torch extra is not installed")
torch.set_num_threads(1)

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("page", "last"), [("weights_in_pytorch.md", "attack"),
                                           ("your_own_pytorch_model.md", "nearest")])
def test_a_page_runs_from_top_to_bottom(page, last):
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.S):
        if not block.startswith("--8<--"):  # an example has its own test
            exec(compile(block, page, "exec"), names)
    assert last in names
    if "trained" in names:
        assert names["measure_error"](names["trained"], names["attack"], count=500).error < 0.2
