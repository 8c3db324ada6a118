"""What changes as the problem grows: asymptotic statements of the papers, and ours, along one size at a time."""
