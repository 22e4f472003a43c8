"""Elements of an array in another order, repeated, left out, with a fill value around them."""

from n2d2py.operators.arrays.index_select.op import ArrayIndexSelect

__all__ = ["ArrayIndexSelect"]
