"""Resampling of images: nearest neighbour and bilinear."""

from n2d2py.operators.resize.op import Resize

__all__ = ["Resize"]
