"""Measures networks: histograms and moments of tensors, integers next to real values, outputs by their decisions."""
