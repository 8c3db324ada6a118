"""Speed, measured as ratios in one run: iclab against PyTorch on the same training."""
