"""Operators on arrays of any rank, in row-major order.

The tensors of these operators are vectors (1, E) that hold the elements of an array in row-major order; the array's
dimensions are attributes. So tensors of any rank, with or without a batch axis, pass through a network whose memory
holds images (C, H, W) only; a Reshape stands where images and arrays meet.

Values are real, or integers and truth values of a fixed type (`Tensor.kind`).
"""

from n2d2py.operators.arrays.base import ArrayOp, kind_dtype
from n2d2py.operators.arrays.gather import ArrayGather, ArrayScatter
from n2d2py.operators.arrays.interpolate import ArrayInterpolate
from n2d2py.operators.arrays.join import ArrayJoin
from n2d2py.operators.arrays.map import MAP_FUNCTIONS, ArrayMap
from n2d2py.operators.arrays.norm import ArrayNorm, ArraySoftmax
from n2d2py.operators.arrays.order import ArrayOrder
from n2d2py.operators.arrays.product import ArrayProduct
from n2d2py.operators.arrays.reduce import ArrayReduce, ArrayScan
from n2d2py.operators.arrays.take import ArrayTake
from n2d2py.operators.arrays.window import ArrayWindow

__all__ = [
    "MAP_FUNCTIONS",
    "ArrayGather",
    "ArrayInterpolate",
    "ArrayJoin",
    "ArrayMap",
    "ArrayNorm",
    "ArrayOp",
    "ArrayOrder",
    "ArrayProduct",
    "ArrayReduce",
    "ArrayScan",
    "ArrayScatter",
    "ArraySoftmax",
    "ArrayTake",
    "ArrayWindow",
    "kind_dtype",
]
