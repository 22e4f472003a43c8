"""Element-wise combination of several tensors, of one shape or with axes of length 1 that are repeated."""

from n2d2py.operators.elemwise.op import ElemWise

__all__ = ["ElemWise"]
