"""Transposed two-dimensional convolution: dense, grouped, depthwise."""

from n2d2py.operators.deconv.op import Deconv

__all__ = ["Deconv"]
