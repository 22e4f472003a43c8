"""Searches for the layers and tensors where more bits pay, by the error of their rounding at the outputs."""
