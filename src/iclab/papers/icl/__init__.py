"""The icl paper (li2024icl): softmax attention with an MLP, in and out of domain."""
