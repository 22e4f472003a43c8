"""The operators that networks of tests are built from."""

from n2d2py.operators.activation import Activation
from n2d2py.operators.add_constants import AddConstants
from n2d2py.operators.affine import Affine
from n2d2py.operators.arrays.conv_pool import ArrayConvPool
from n2d2py.operators.arrays.gather import ArrayGather, ArrayScatter
from n2d2py.operators.arrays.interpolate import ArrayInterpolate
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.arrays.non_max_suppression import ArrayNonMaxSuppression
from n2d2py.operators.arrays.recurrent import ArrayRecurrent
from n2d2py.operators.arrays.reduce import ArrayCumSum, ArrayReduce
from n2d2py.operators.arrays.topk import ArrayTopK
from n2d2py.operators.batchnorm import BatchNorm
from n2d2py.operators.columns import Columns, SideBySide
from n2d2py.operators.concat import Concat
from n2d2py.operators.conv import Conv
from n2d2py.operators.convert import Convert
from n2d2py.operators.deconv import Deconv
from n2d2py.operators.depth_to_space import DepthToSpace, SpaceToDepth
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.fc import Fc
from n2d2py.operators.identity import Dropout, Identity
from n2d2py.operators.index_select import IndexSelect
from n2d2py.operators.lrn import LRN
from n2d2py.operators.normalize import Normalize
from n2d2py.operators.packed_channels import PackChannels, UnpackChannels
from n2d2py.operators.padding import Padding
from n2d2py.operators.pool import Pool
from n2d2py.operators.pool_sum import PoolSum
from n2d2py.operators.quantize import Quantize
from n2d2py.operators.reshape import Reshape
from n2d2py.operators.resize import Resize
from n2d2py.operators.softmax import MaskedSoftmax, Softmax
from n2d2py.operators.transpose import Transpose
from n2d2py.operators.unpool import Unpool
from n2d2py.operators.view import MemoryView
