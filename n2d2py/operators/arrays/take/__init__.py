"""Elements of an array in another order, repeated, left out, with a fill value around them."""

from n2d2py.operators.arrays.take.op import ArrayTake

__all__ = ["ArrayTake"]
