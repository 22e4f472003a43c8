"""Resampling along one axis."""

from n2d2py.operators.arrays.interpolate.op import ArrayInterpolate

__all__ = ["ArrayInterpolate"]
