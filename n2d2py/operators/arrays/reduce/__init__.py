"""Sums, means, extremes and their positions over axes; running sums along one."""

from n2d2py.operators.arrays.reduce.op import ArrayCumSum, ArrayReduce

__all__ = ["ArrayCumSum", "ArrayReduce"]
