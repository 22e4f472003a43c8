"""What the operators are: attributes, shape rule, cost, float arithmetic, integer arithmetic. One room each."""

from n2d2py.operators.activation import Activation
from n2d2py.operators.affine import Affine
from n2d2py.operators.arrays import (
    ArrayGather,
    ArrayInterpolate,
    ArrayJoin,
    ArrayMap,
    ArrayNorm,
    ArrayOp,
    ArrayOrder,
    ArrayProduct,
    ArrayReduce,
    ArrayScan,
    ArrayScatter,
    ArraySoftmax,
    ArrayTake,
    ArrayWindow,
)
from n2d2py.operators.base import Op, operator_kinds, register
from n2d2py.operators.batchnorm import BatchNorm
from n2d2py.operators.concat import Concat
from n2d2py.operators.conv import Conv
from n2d2py.operators.convert import Convert
from n2d2py.operators.deconv import Deconv
from n2d2py.operators.depth_to_space import DepthToSpace, SpaceToDepth
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.fc import Fc
from n2d2py.operators.functions import (
    FUNCTIONS,
    ONNX_FUNCTIONS,
    Abs,
    ChannelClip,
    Clip,
    Function,
    Functor,
    LeakyRectifier,
    Log,
    Sqrt,
    Step,
    Tanh,
    ini_functions,
    rectifier,
)
from n2d2py.operators.identity import Dropout, Identity
from n2d2py.operators.lrn import LRN
from n2d2py.operators.normalize import Normalize
from n2d2py.operators.padding import Padding
from n2d2py.operators.pool import Pool
from n2d2py.operators.pool_sum import PoolSum
from n2d2py.operators.quantize import Quantize, grid_of, is_quantized, moved_from
from n2d2py.operators.reshape import Reshape
from n2d2py.operators.resize import Resize
from n2d2py.operators.softmax import Softmax
from n2d2py.operators.take import Take
from n2d2py.operators.transpose import Transpose
from n2d2py.operators.unpool import Unpool

for _op in (
    Conv,
    Fc,
    Pool,
    PoolSum,
    BatchNorm,
    Affine,
    ElemWise,
    Activation,
    Concat,
    Softmax,
    Padding,
    Reshape,
    Transpose,
    Dropout,
    Identity,
    Deconv,
    Resize,
    Unpool,
    LRN,
    Normalize,
    Take,
    DepthToSpace,
    SpaceToDepth,
    Convert,
    Quantize,
    ArrayGather,
    ArrayInterpolate,
    ArrayJoin,
    ArrayMap,
    ArrayNorm,
    ArrayOrder,
    ArrayProduct,
    ArrayReduce,
    ArrayScan,
    ArrayScatter,
    ArraySoftmax,
    ArrayTake,
    ArrayWindow,
):
    register(_op)

__all__ = [
    "FUNCTIONS",
    "LRN",
    "ONNX_FUNCTIONS",
    "Abs",
    "Activation",
    "Affine",
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
    "BatchNorm",
    "ChannelClip",
    "Clip",
    "Concat",
    "Conv",
    "Convert",
    "Deconv",
    "DepthToSpace",
    "Dropout",
    "ElemWise",
    "Fc",
    "Function",
    "Functor",
    "Identity",
    "LeakyRectifier",
    "Log",
    "Normalize",
    "Op",
    "Padding",
    "Pool",
    "PoolSum",
    "Quantize",
    "Reshape",
    "Resize",
    "Softmax",
    "SpaceToDepth",
    "Sqrt",
    "Step",
    "Take",
    "Tanh",
    "Transpose",
    "Unpool",
    "grid_of",
    "ini_functions",
    "is_quantized",
    "moved_from",
    "operator_kinds",
    "rectifier",
    "register",
]
