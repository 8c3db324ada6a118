"""`python -m iclab`."""

from __future__ import annotations

import sys

from iclab.cli import main

sys.exit(main())
