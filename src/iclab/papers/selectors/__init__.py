"""li2024selectors: the precursor of the icl paper, inputs with coefficients and bounded noise. One file per entry."""
