"""Element by element, with NumPy's broadcasting."""

from n2d2py.operators.arrays.map.op import ArrayMap, scale_and_shift

__all__ = ["ArrayMap", "scale_and_shift"]
