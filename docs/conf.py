"""The documentation site: `sphinx-build -W docs site`."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

project = "iclab"
author = "The iclab authors"
project_copyright = author
extensions = ["myst_parser", "sphinx.ext.autodoc", "made"]
navigation = {
    "Start": ("tutorial", "playground", "contents"),
    "Your own": ("your_own_model", "your_own_data", "your_own_attack",
                 "add_a_claim", "add_a_prompt_family", "regression", "token_prompts", "log_your_training",
                 "share_a_model"),
    "Work": ("sweeps", "cluster", "look_inside_in_a_notebook", "interventions", "weights_in_pytorch", "store", "speed"),
    "Understand": ("real_mamba", "dynamics", "verdicts", "claims", "theory", "findings", "notation"),
    "Reference": ("api",),
}

html_theme = "furo"
html_title = "iclab"
html_static_path = ["static"]
html_css_files = ["wide.css"]
html_copy_source = False
html_show_sphinx = False

myst_heading_anchors = 3
default_role = "literal"  # docstrings put code between single backticks
add_module_names = False
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
python_maximum_signature_line_length = 88
