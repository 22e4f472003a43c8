"""Quantization of weights: scales, rounding, and weighted layers."""
