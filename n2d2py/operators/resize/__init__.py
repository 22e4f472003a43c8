"""Resampling of images and arrays."""

from n2d2py.operators.resize.op import ArrayInterpolate, Resize
