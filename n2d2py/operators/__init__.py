"""The operators: attributes, shape inference, cost, float and integer arithmetic, file formats and C++ in one module each.

The door has those that passes and quantization know by name.
"""

from n2d2py.operators.arrays.base import ArrayOp
from n2d2py.operators.arrays.gather import ArrayGather
from n2d2py.operators.arrays.map import ArrayMap, divisor_tensor, row_constant, scalar_factor
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.arrays.recurrent import ArrayRecurrent
from n2d2py.operators.arrays.reduce import ArrayReduce
from n2d2py.operators.arrays.selection import ArrayTopK
from n2d2py.operators.batchnorm import BatchNorm
from n2d2py.operators.concat import Concat, is_real_concat
from n2d2py.operators.conv import Conv, Deconv, Fc
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.index_select import IndexSelect
from n2d2py.operators.normalize import Normalize
from n2d2py.operators.padding import Padding
from n2d2py.operators.pointwise import Activation, AddConstants, Affine
from n2d2py.operators.pool import Pool
from n2d2py.operators.quantize import Convert, Quantize, grid_type, is_quantized, values_source
from n2d2py.operators.reshape import Identity, MemoryView, Reshape, Transpose
from n2d2py.operators.resize import Resize
from n2d2py.operators.softmax import MaskedSoftmax, Softmax
