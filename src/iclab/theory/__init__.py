"""Theory as code: one file a paper; conditions, thresholds and exponents."""
