"""Element by element, with NumPy's broadcasting."""

from n2d2py.operators.arrays.map.op import ArrayMap

__all__ = ["ArrayMap"]
