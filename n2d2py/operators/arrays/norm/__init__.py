"""Normalisation and softmax of lines of an array."""

from n2d2py.operators.arrays.norm.op import ArrayMaskedSoftmax, ArrayNorm, ArraySoftmax

__all__ = ["ArrayMaskedSoftmax", "ArrayNorm", "ArraySoftmax"]
