"""The C++ form of each operator kind. Adding one: a module with its function, and a line here."""
from n2d2py.export.cpp.code import register_layer
from n2d2py.export.cpp.layers import (activation, affine, arrays, concat, conv, convert, deconv, depth_to_space, elemwise, fc, moves, normalize, pool, pool_sum,
                                      resize, softmax, take, unpool)

for _kind, _function in {
    "Conv": conv.code, "Fc": fc.code, "Pool": pool.code, "PoolSum": pool_sum.code, "Affine": affine.code, "ElemWise": elemwise.code,
    "Activation": activation.code, "Concat": concat.code, "Softmax": softmax.code,
    "Padding": moves.padding_code, "Reshape": moves.reshape_code, "Transpose": moves.transpose_code,
    "Identity": moves.copy_code, "Deconv": deconv.code, "Resize": resize.code, "Unpool": unpool.code,
    "Convert": convert.code,
    "Take": take.code, "DepthToSpace": depth_to_space.code,
    "SpaceToDepth": depth_to_space.code, "LRN": normalize.lrn_code, "Normalize": normalize.normalize_code,
    "ArrayMap": arrays.map_code, "ArrayTake": arrays.take_code, "ArrayJoin": arrays.join_code,
    "ArrayReduce": arrays.reduce_code, "ArrayOrder": arrays.order_code, "ArrayScan": arrays.scan_code, "ArraySoftmax": arrays.softmax_code,
    "ArrayNorm": arrays.norm_code, "ArrayProduct": arrays.product_code, "ArrayWindow": arrays.window_code,
    "ArrayInterpolate": arrays.interpolate_code, "ArrayGather": arrays.gather_code,
    "ArrayScatter": arrays.scatter_code,
}.items():
    register_layer(_kind, _function)
