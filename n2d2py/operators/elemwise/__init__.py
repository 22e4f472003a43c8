"""Element-wise combination of several tensors; axes of length 1 are broadcast."""

from n2d2py.operators.elemwise.op import ElemWise
