"""What the five papers leave open: causes, regression, tokens, the real Mamba block, the dynamics of training."""
