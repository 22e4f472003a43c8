"""Matrix products of two arrays."""

from n2d2py.operators.arrays.matmul.op import ArrayMatMul

__all__ = ["ArrayMatMul"]
