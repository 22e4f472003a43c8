"""Rounding to the integers of a type, in networks that come quantized."""

from n2d2py.operators.quantize.op import Quantize, grid_of, is_quantized, moved_from

__all__ = ["Quantize", "grid_of", "is_quantized", "moved_from"]
