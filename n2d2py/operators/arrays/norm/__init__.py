"""Normalisation and softmax of lines of an array."""

from n2d2py.operators.arrays.norm.op import ArrayNorm, ArraySoftmax

__all__ = ["ArrayNorm", "ArraySoftmax"]
