"""What the five papers raise and leave open: causes, regression, the real Mamba block, the dynamics of training."""
