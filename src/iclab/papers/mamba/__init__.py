"""li2025mamba: Mamba against the linear Transformer when examples are poisoned."""
