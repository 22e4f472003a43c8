"""Elements chosen by indices that are computed in the network."""

from n2d2py.operators.arrays.gather.op import ArrayGather, ArrayScatter

__all__ = ["ArrayGather", "ArrayScatter"]
