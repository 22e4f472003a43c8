"""Matrix products of two arrays."""

from n2d2py.operators.arrays.product.op import ArrayProduct

__all__ = ["ArrayProduct"]
