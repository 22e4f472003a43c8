"""The operators that networks of tests are built from."""

from n2d2py.operators.arrays.gather import ArrayGather, ArrayScatter
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.arrays.recurrent import ArrayRecurrent
from n2d2py.operators.arrays.reduce import ArrayCumSum, ArrayReduce
from n2d2py.operators.arrays.selection import ArrayNonMaxSuppression, ArrayTopK
from n2d2py.operators.arrays.windows import Conv3D, Pool3D
from n2d2py.operators.batchnorm import BatchNorm
from n2d2py.operators.concat import Concat
from n2d2py.operators.conv import Conv, Deconv, Fc
from n2d2py.operators.depth_to_space import DepthToSpace, SpaceToDepth
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.index_select import IndexSelect
from n2d2py.operators.lrn import LRN
from n2d2py.operators.normalize import Normalize
from n2d2py.operators.packed_channels import PackChannels, UnpackChannels
from n2d2py.operators.padding import Padding
from n2d2py.operators.pointwise import Activation, AddConstants, Affine
from n2d2py.operators.pool import Pool
from n2d2py.operators.pool_sum import PoolSum
from n2d2py.operators.quantize import Convert, Quantize
from n2d2py.operators.reshape import Columns, Dropout, Identity, MemoryView, Reshape, SideBySide, Transpose
from n2d2py.operators.resize import ArrayInterpolate, Resize
from n2d2py.operators.softmax import MaskedSoftmax, Softmax
from n2d2py.operators.unpool import Unpool
