"""Measurements of networks: histograms and moments of tensors, integers against float values, decisions of outputs."""
