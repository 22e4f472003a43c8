"""Element-wise functions with NumPy's broadcasting."""

from n2d2py.operators.arrays.map.op import ArrayMap, affine_form, gains_and_shifts, scale_and_shift

__all__ = ["ArrayMap", "affine_form", "gains_and_shifts", "scale_and_shift"]
