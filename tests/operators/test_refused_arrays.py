"""What the nodes of ONNX on arrays refuse, of `n2d2py.operators.arrays` and its folders, beside what they just take.

`n2d2py.operators.arrays.conv_pool`, `n2d2py.operators.arrays.gather`, `n2d2py.operators.arrays.index_select`,
`n2d2py.operators.arrays.interpolate`, `n2d2py.operators.arrays.map`, `n2d2py.operators.arrays.matmul`, `n2d2py.operators.arrays.norm`,
`n2d2py.operators.arrays.reduce`.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.single_array_nodes import F, SingleNode, node, weights

from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx

X = (2, 3, 4, 5)


def ints(*values) -> np.ndarray:
    return np.array(values, np.int64)


def conv(attributes: str, *kernel: int, x: tuple = (2, 4, 7, 6), operator: str = "Conv") -> SingleNode:
    return node(f"y = {operator} <{attributes}> (x, w)", 22, x=x, w=weights(*kernel))


def pool(attributes: str, operator: str = "MaxPool", x: tuple = (2, 3, 7, 6)) -> SingleNode:
    return node(f"y = {operator} <{attributes}> (x)", 22, x=x)


REFUSED = {
    "strides of other axes": (conv("strides = [1, 2, 1]", 6, 4, 3, 2), "its strides are for 3 axes, not for 2"),
    "strides of 0": (conv("strides = [1, 0]", 6, 4, 3, 2), "its strides are not positive"),
    "large strides": (conv("strides = [1, 1048577]", 6, 4, 3, 2), "its strides are larger than any image"),
    "dilations of 0": (conv("dilations = [0, 1]", 6, 4, 3, 2), "its dilations are not positive"),
    "pads of other axes": (conv("pads = [1, 1, 1]", 6, 4, 3, 2), "its pads are 3 values, not 4"),
    "negative pads": (conv("pads = [0, 0, 0, -1]", 6, 4, 3, 2), "it has negative pads"),
    "large pads": (conv("pads = [0, 0, 0, 4097]", 6, 4, 3, 2), "its pads are larger than any image"),
    "groups": (conv("group = 3", 6, 4, 3, 2), "its weights of [6, 4, 3, 2] do not fit 4 channels in 3 groups"),
    "outputs of groups": (conv("group = 2", 5, 2, 3, 2), "its weights of [5, 2, 3, 2] do not fit 4 channels in 2 groups"),
    "channels": (conv("group = 1", 6, 3, 3, 2), "its weights of [6, 3, 3, 2] do not fit 4 channels in 1 groups"),
    "kernel": (conv("kernel_shape = [2, 3]", 6, 4, 3, 2), "its kernel_shape differs from the shape of its weights"),
    "kernel of transposed": (
        conv("kernel_shape = [2, 3]", 4, 6, 3, 2, operator="ConvTranspose"),
        "its kernel_shape differs from the shape of its weights",
    ),
    "no windows": (conv("dilations = [1, 6]", 6, 4, 3, 2), "its result has no elements"),
    "rank of weights": (conv("group = 1", 6, 4, 3), "its weights have another rank than its input"),
    "rank of transposed weights": (
        conv("group = 1", 4, 6, 3, operator="ConvTranspose"),
        "its weights or its output_padding are for another number of axes than its input has",
    ),
    "output padding": (
        conv("output_padding = [1]", 4, 6, 3, 2, operator="ConvTranspose"),
        "its weights or its output_padding are for another number of axes than its input has",
    ),
    "output shape": (
        conv("output_shape = [9]", 4, 6, 3, 2, operator="ConvTranspose"),
        "its output_shape is for 1 axes, not for 2",
    ),
    "transposed pads": (conv("pads = [1, 1, 1]", 4, 6, 3, 2, operator="ConvTranspose"), "its pads are 3 values, not 4"),
    "everything cropped": (conv("pads = [5, 0, 4, 0]", 4, 6, 3, 2, operator="ConvTranspose"), "its result has no elements"),
    "pool of two axes": (pool("kernel_shape = [2]", x=(4, 6)), "its input has rank 2, only rank 3, 4 or 5 is supported"),
    "pool of six axes": (
        pool("kernel_shape = [1, 1, 1, 2]", x=(2, 1, 2, 2, 2, 2)),
        "its input has rank 6, only rank 3, 4 or 5 is supported",
    ),
    "pool of no windows": (pool("kernel_shape = [8, 2]"), "its result has no elements"),
    "norm of order 0": (pool("kernel_shape = [2, 2], p = 0", "LpPool"), "its p is 0"),
    "norm of a negative order": (node("y = GlobalLpPool <p = -1> (x)", x=(2, 3, 4)), "its p is -1"),
    "windows in front": (pool("kernel_shape = [2, 2], pads = [0, 2, 0, 0]"), "some of its windows lie outside the image"),
    "windows behind": (pool("kernel_shape = [2, 2], pads = [0, 0, 2, 0]"), "some of its windows lie outside the image"),
    "reshape": (node("y = Reshape (x, s)", x=X, s=ints(7, -1)), "its shape [7, -1] does not fit its input of 120 elements"),
    "reshape to less": (
        node("y = Reshape (x, s)", x=X, s=ints(7, 17)),
        "its shape [7, 17] does not fit its input of 120 elements",
    ),
    "copied axes": (
        node("y = Reshape (x, s)", x=(2, 3), s=ints(2, 3, 0)),
        "its shape copies an axis that its input does not have",
    ),
    "negative rest": (node("y = Reshape (x, s)", x=X, s=ints(-1, 0, 1)), "no"),
    "permutation": (node("y = Transpose <perm = [0, 1, 1]> (x)", x=(2, 3, 4)), "its permutation [0, 1, 1] does not fit rank 3"),
    "short permutation": (node("y = Transpose <perm = [1, 0]> (x)", x=(2, 3, 4)), "its permutation [1, 0] does not fit rank 3"),
    "squeeze": (node("y = Squeeze (x, a)", x=(1, 3, 4), a=ints(0, 1)), "it removes an axis whose size is not 1"),
    "step of 0": (
        node("y = Slice (x, s, e, a, t)", x=X, s=ints(0), e=ints(1), a=ints(0), t=ints(0)),
        "its starts, ends, axes and steps differ in number, or a step is 0",
    ),
    "starts and ends": (
        node("y = Slice (x, s, e)", x=X, s=ints(0, 0), e=ints(1)),
        "its starts, ends, axes and steps differ in number, or a step is 0",
    ),
    "axes of a slice": (
        node("y = Slice (x, s, e, a)", x=X, s=ints(0), e=ints(1), a=ints(0, 1)),
        "its starts, ends, axes and steps differ in number, or a step is 0",
    ),
    "steps of a slice": (
        node("y = Slice (x, s, e, a, t)", x=X, s=ints(0), e=ints(1), a=ints(0), t=ints(1, 1)),
        "its starts, ends, axes and steps differ in number, or a step is 0",
    ),
    "sizes of parts": (
        node("y, z = Split <axis = 1> (x, p)", outputs="y z", x=X, p=ints(1, 1)),
        "its sizes [1, 1] do not divide an axis of 3 among 2 outputs",
    ),
    "number of parts": (
        node("y, z = Split <axis = 1> (x, p)", outputs="y z", x=X, p=ints(1, 1, 1)),
        "its sizes [1, 1, 1] do not divide an axis of 3 among 2 outputs",
    ),
    "negative parts": (
        node("y, z = Split <axis = 1> (x, p)", outputs="y z", x=X, p=ints(4, -1)),
        "its sizes [4, -1] do not divide an axis of 3 among 2 outputs",
    ),
    "expand": (node("y = Expand (x, s)", x=(2, 3), s=ints(2, 2)), "its shape [2, 2] does not fit a tensor of (2, 3)"),
    "tile": (node("y = Tile (x, s)", x=(2, 3), s=ints(2)), "its repeats are not one for each axis"),
    "number of pads": (node("y = Pad (x, p)", x=(2, 3), p=ints(1, 1, 1)), "it has 3 pads for 2 axes"),
    "number of pads of axes": (
        node("y = Pad (x, p, , a)", x=(2, 3), p=ints(1, 1, 1, 1), a=ints(1)),
        "it has 4 pads for 1 axes",
    ),
    "mode of pads": (node('y = Pad <mode = "mirror"> (x, p)', x=(2, 3), p=ints(1, 1, 1, 1)), "its mode is mirror"),
    "index behind": (node("y = Gather <axis = 1> (x, i)", x=(2, 3), i=ints(0, 3)), "its indices are outside the axis"),
    "index in front": (node("y = Gather <axis = 1> (x, i)", x=(2, 3), i=ints(0, -4)), "its indices are outside the axis"),
    "blocksize": (node("y = DepthToSpace <blocksize = 0> (x)", x=(2, 4, 3, 2)), "its blocksize is 0"),
    "blocks of space": (node("y = SpaceToDepth <blocksize = -1> (x)", x=(2, 4, 3, 2)), "its blocksize is -1"),
    "rank of elements": (
        node("y = GatherElements (x, i)", x=(2, 3), i=ints(0, 1)),
        "its indices have another rank than its input",
    ),
    "batch axes": (
        node("y = GatherND <batch_dims = 2> (x, i)", x=(2, 3), i=ints([0], [1])),
        "its batch_dims 2 do not fit its inputs",
    ),
    "batch axes of the indices": (
        node("y = GatherND <batch_dims = 1> (x, i)", x=(2, 3), i=ints(0)),
        "its batch_dims 1 do not fit its inputs",
    ),
    "batch axes of more axes": (
        node("y = GatherND <batch_dims = 2> (x, i)", x=(2, 3, 4), i=ints([0], [1])),
        "its batch_dims 2 do not fit its inputs",
    ),
    "batch axes of more indices": (
        node("y = GatherND <batch_dims = 2> (x, i)", x=(2, 3), i=ints([[0]], [[1]])),
        "its batch_dims 2 do not fit its inputs",
    ),
    "indices without axes": (
        node("y = ScatterND (x, i, u)", x=(2, 3), u=(2, 3), i=np.array(0)),
        "its indices choose on 0 axes of 2",
    ),
    "long one hot": (
        node("y = OneHot (i, d, v)", i=("int64", 2), d=np.array(4194305), v=np.array([0, 1], F)),
        "an axis of its result would have 4,194,305 elements, at most 4,194,304 are supported",
    ),
    "long tiles": (
        node("y = Tile (x, r)", x=(2, 1), r=ints(1, 4194305)),
        "an axis of its result would have 4,194,305 elements, at most 4,194,304 are supported",
    ),
    "long pads": (
        node("y = Pad (x, p)", x=(2, 1), p=ints(0, 4194305, 0, 0)),
        "an axis of its result would have 4,194,305 elements, at most 4,194,304 are supported",
    ),
    "long crops": (
        node("y = Pad (x, p)", x=(2, 1), p=ints(0, 0, 0, -4194305)),
        "an axis of its result would have 4,194,305 elements, at most 4,194,304 are supported",
    ),
    "long lines of the nearest": (
        node('y = Resize <mode = "nearest"> (x, , , s)', x=(2, 1), s=ints(2, 4194305)),
        "an axis of its result would have 4,194,305 elements, at most 4,194,304 are supported",
    ),
    "depth": (node("y = GatherND (x, i)", x=(2, 3), i=ints([0, 0, 0])), "its indices choose on 3 axes of 2"),
    "depth behind batches": (
        node("y = GatherND <batch_dims = 1> (x, i)", x=(2, 3), i=ints([0, 1], [1, 0])),
        "its indices choose on 2 axes of 1",
    ),
    "depth of a scatter": (
        node("y = ScatterND (x, i, u)", x=(2, 3), u=(2,), i=ints([0, 0, 0], [1, 1, 1])),
        "its indices choose on 3 axes of 2",
    ),
    "ranks of a scatter": (
        node("y = ScatterElements (x, i, u)", x=(2, 3), u=(2,), i=ints(0, 1)),
        "its data, indices and updates have other ranks or shapes than each other",
    ),
    "shapes of a scatter": (
        node("y = ScatterElements (x, i, u)", x=(2, 3), u=(1, 2), i=ints([0, 1, 1])),
        "its data, indices and updates have other ranks or shapes than each other",
    ),
    "large scatter": (
        node("y = ScatterElements (x, i, u)", x=(2, 3), u=(1, 4), i=ints([0, 1, 1, 0])),
        "its indices are larger than its input",
    ),
    "reduction": (
        node('y = ScatterElements <reduction = "mean"> (x, i, u)', x=(2, 3), u=(1, 2), i=ints([0, 1])),
        "its reduction is mean",
    ),
    "none of the largest": (node("y, i = TopK (x, k)", outputs="y i", x=(2, 3), k=ints(0)), "it takes 0 of 3 elements"),
    "too many of the largest": (node("y, i = TopK (x, k)", outputs="y i", x=(2, 3), k=ints(4)), "it takes 4 of 3 elements"),
    "join": (node("y = Concat <axis = 1> (x, z)", x=(2, 3), z=(3, 3)), "its inputs have shapes that do not fit each other"),
    "join of ranks": (
        node("y = Concat <axis = 1> (x, z)", x=(2, 3), z=(2, 3, 1)),
        "its inputs have shapes that do not fit each other",
    ),
    "number of sizes": (
        node('y = Resize <mode = "linear"> (x, , , s)', x=(2, 3, 4), s=ints(2, 3)),
        "it has 2 sizes for 3 axes",
    ),
    "size of 0": (
        node('y = Resize <mode = "linear"> (x, , , s)', x=(2, 3, 4), s=ints(2, 3, 0)),
        "its sizes [2, 3, 0] are not all above 0",
    ),
    "number of scales": (
        node('y = Resize <mode = "linear"> (x, , s)', x=(2, 3, 4), s=np.array([1, 2], F)),
        "it has 2 scales for 3 axes",
    ),
    "scale of 0": (
        node('y = Resize <mode = "linear"> (x, , s)', x=(2, 3, 4), s=np.array([1, 1, 0], F)),
        "one of its scales is no positive number that an image can be enlarged by",
    ),
    "negative scale": (
        node('y = Resize <mode = "linear"> (x, , s)', x=(2, 3, 4), s=np.array([1, 1, -0.5], F)),
        "one of its scales is no positive number that an image can be enlarged by",
    ),
    "large scale": (
        node('y = Resize <mode = "nearest"> (x, , s)', x=(1, 1), s=np.array([1, 1048577], F)),
        "one of its scales is no positive number that an image can be enlarged by",
    ),
    "coordinates": (
        node('y = Resize <mode = "linear", coordinate_transformation_mode = "other"> (x, , , s)', x=(2, 3, 4), s=ints(2, 3, 6)),
        "its coordinates are other",
    ),
    "mode": (node('y = Resize <mode = "area"> (x, , , s)', x=(2, 3, 4), s=ints(2, 3, 6)), "its mode is area"),
    "rounding": (
        node('y = Resize <mode = "nearest", nearest_mode = "even"> (x, , , s)', x=(2, 3, 4), s=ints(2, 3, 6)),
        "its nearest_mode is even",
    ),
    "lines": (
        node('y = Resize <mode = "linear"> (x, , , s)', x=(2, 3, 4), s=ints(2, 3, 65537)),
        "it computes 65,537 lines, at most 65,536 are supported",
    ),
    "broadcast": (node("y = Add (x, z)", x=(2, 3), z=(4, 3)), "its operands of 2x3 and 4x3 cannot be broadcast"),
    "broadcast of one axis": (node("y = Mul (x, z)", x=(2, 3), z=(2,)), "its operands of 2x3 and 2 cannot be broadcast"),
    "broadcast beside a value": (
        node("y = Where (c, x, z)", x=(2, 3), z=(4, 3), c=np.array(True)),
        "its operands of 1 and 2x3 and 4x3 cannot be broadcast",
    ),
    "two negative sizes": (
        node("y = Reshape (x, s)", x=X, s=ints(-2, -60)),
        "its shape [-2, -60] does not fit its input of 120 elements",
    ),
    "three rests": (
        node("y = Reshape (x, s)", x=X, s=ints(-1, -1, -1)),
        "its shape [120, -1, -1] does not fit its input of 120 elements",
    ),
    "two rests": (node("y = Reshape (x, s)", x=X, s=ints(-1, -1)), "its shape [-1, -1] does not fit its input of 120 elements"),
    "long lines": (
        node("y = Expand (x, s)", x=(2, 1), s=ints(2, 4194305)),
        "an axis of its result would have 4,194,305 elements, at most 4,194,304 are supported",
    ),
    "nothing left": (node("y = Slice (x, s, e)", x=(2, 3), s=ints(1), e=ints(1)), "its result has no elements"),
    "divisor": (node("y = Div (x, c)", x=("int32", 2, 3), c=np.array([1, 0, 2], np.int32)), "it divides by zero"),
    "divisor of reals": (node("y = Div (x, c)", x=(2, 3), c=np.array([1, 0, 2], F)), "it divides by zero"),
    "divisor of a remainder": (node("y = Mod (x, c)", x=("int32", 2, 3), c=np.array(0, np.int32)), "it divides by zero"),
    "cast": (node("y = Cast <to = 14> (x)", x=(2, 3)), "it casts to COMPLEX64"),
    "cast to text": (node("y = Cast <to = 8> (x)", x=(2, 3)), "it casts to STRING"),
    "cast to four bits": (node("t = Cast <to = 22> (x)\n y = Cast <to = 1> (t)", 21, x=(2, 3)), "it casts to INT4"),
    "no infinity": (node("y = IsInf <detect_positive = 0, detect_negative = 0> (x)", x=(2, 3)), "it looks for no infinity"),
    "training": (node("y = Dropout (x, r, t)", x=(2, 3), r=np.array(0.5, F), t=np.array(True)), "it is in training mode"),
    "training by default": (node("y = Dropout (x, , t)", x=(2, 3), t=np.array(True)), "it is in training mode"),
    "value": (node("y = MatMul (x, z)", x=(2, 3), z=()), "one of its operands is a single value"),
    "value in front": (node("y = MatMul (z, x)", x=(2, 3), z=()), "one of its operands is a single value"),
    "depths": (node("y = MatMul (x, z)", x=(2, 3), z=(4, 3)), "its operands of [2, 3] and [4, 3] do not fit each other"),
    "depths of a vector": (node("y = MatMul (x, z)", x=(2, 3), z=(2,)), "its operands of [2, 3] and [2] do not fit each other"),
    "ellipsis": (node('y = Einsum <equation = "...ij->...ji"> (x)', x=(2, 3)), "its equation has an ellipsis"),
    "diagonal": (node('y = Einsum <equation = "ii->i"> (x)', x=(2, 2)), "its equation takes a diagonal"),
    "operands": (
        node('y = Einsum <equation = "ij,jk->ik"> (x)', x=(2, 3)),
        "its equation has other operands, or of other ranks, than it has inputs",
    ),
    "ranks": (
        node('y = Einsum <equation = "ijk->ik"> (x)', x=(2, 3)),
        "its equation has other operands, or of other ranks, than it has inputs",
    ),
    "letters": (
        node('y = Einsum <equation = "ij->ik"> (x)', x=(2, 3)),
        "its equation has letters in its result that no operand has, or twice",
    ),
    "letters twice": (
        node('y = Einsum <equation = "ij->ii"> (x)', x=(2, 3)),
        "its equation has letters in its result that no operand has, or twice",
    ),
    "three operands": (node('y = Einsum <equation = "i,j,k->ijk"> (x, z, w)', x=(2,), z=(3,), w=(4,)), "it has 3 operands"),
    "an operand's sum": (
        node('y = Einsum <equation = "ij,jk->k"> (x, z)', x=(2, 3), z=(3, 4)),
        "its equation sums an operand alone",
    ),
    "the second operand's sum": (
        node('y = Einsum <equation = "ij,jk->i"> (x, z)', x=(2, 3), z=(3, 4)),
        "its equation sums an operand alone",
    ),
    "instance of vectors": (
        node("y = InstanceNormalization (x, g, h)", x=(2, 3), g=weights(3), h=weights(3)),
        "its input has no axes besides batch and channels",
    ),
    "groups of a norm": (
        node("y = GroupNormalization <num_groups = 2> (x, g, h)", 21, x=(2, 3, 4), g=weights(3), h=weights(3)),
        "its 2 groups do not divide the channels of its input",
    ),
    "no groups": (
        node("y = GroupNormalization <num_groups = 0> (x, g, h)", 21, x=(2, 3, 4), g=weights(3), h=weights(3)),
        "its 0 groups do not divide the channels of its input",
    ),
    "groups of a vector": (
        node("y = GroupNormalization <num_groups = 1> (x, g, h)", 21, x=(3,), g=weights(3), h=weights(3)),
        "its 1 groups do not divide the channels of its input",
    ),
    "training of a norm": (
        node("y = BatchNormalization <training_mode = 1> (x, g, g, g, g)", x=(2, 3, 4), g=np.abs(weights(3))),
        "it is in training mode",
    ),
    "variance": (
        node("y = BatchNormalization (x, g, g, g, v)", x=(2, 3, 4), g=weights(3), v=np.array([1, -1, 1], F)),
        "a variance plus epsilon is not positive",
    ),
    "variance of 0": (
        node("y = BatchNormalization <epsilon = 0.0> (x, g, g, g, v)", x=(2, 3, 4), g=weights(3), v=np.array([1, 0, 1], F)),
        "a variance plus epsilon is not positive",
    ),
    "order of a length": (node("y = LpNormalization <p = 3> (x)", x=(2, 3)), "its p is 3"),
    "scale of steps": (
        node("y = QuantizeLinear (x, s)", x=(2, 3, 4), s=np.array([0.1, 0, 0.2], F)),
        "its scale is not a positive number",
    ),
    "number of steps": (
        node("y = QuantizeLinear (x, s)", x=(2, 3, 4), s=np.array([0.1, 0.2], F)),
        "it has 2 scales for an axis of 3",
    ),
    "blocks": (
        node("y = QuantizeLinear <block_size = 2> (x, s)", 21, x=(2, 5), s=np.abs(weights(2, 2)) + F(0.1)),
        "its scales do not fit blocks of 2",
    ),
    "rank of blocks": (
        node("y = QuantizeLinear <block_size = 2> (x, s)", 21, x=(2, 5), s=np.abs(weights(3)) + F(0.1)),
        "its scales do not fit blocks of 2",
    ),
    "type of steps": (
        node("y = QuantizeLinear <output_dtype = 22> (x, s)", 21, x=(2, 5), s=np.array(0.1, F)),
        "its integers are of type int4",
    ),
}
REFUSED["negative rest"] = (
    node("y = Reshape <allowzero = 1> (x, s)", x=X, s=ints(-1, 0, 1)),
    "its shape [-1, 0, 1] does not fit its input of 120 elements",
)
TAKEN = {
    "window of the whole": conv("strides = [1, 1]", 6, 4, 7, 6),
    "window of the whole, dilated": conv("dilations = [3, 5]", 6, 4, 3, 2),
    "large stride": conv("strides = [1, 1048576]", 6, 4, 3, 2),
    "large pads": conv("pads = [0, 4096, 0, 4096], strides = [1, 4096]", 1, 4, 3, 2),
    "pool of the whole": pool("kernel_shape = [7, 6]"),
    "windows that begin before the image": pool("kernel_shape = [2, 2], pads = [0, 1, 1, 0]"),
    "norm of order 1": pool("kernel_shape = [2, 2], p = 1", "LpPool"),
    "one element left": conv("pads = [4, 0, 4, 0]", 4, 6, 3, 2, operator="ConvTranspose"),
}
LONG = {
    "the last lines": node('y = Resize <mode = "linear"> (x, , , s)', x=(1, 2), s=ints(1, 65536)),
    "more lines of the nearest": node('y = Resize <mode = "nearest"> (x, , , s)', x=(1, 2), s=ints(1, 65537)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    case, reason = REFUSED[name]
    with pytest.raises((N2D2Error, ErrorList)) as caught:
        import_onnx(case.model()[0])
    (error,) = getattr(caught.value, "errors", [caught.value])
    assert error.code == "E310"
    assert f"cannot be imported: {reason}" in error.line()
    assert error.line().partition(f": {reason}")[2][:1] in ("", ",", ";")


@pytest.mark.parametrize("name", TAKEN)
def test_just_taken(name):
    TAKEN[name].check()


@pytest.mark.parametrize("name", LONG)
def test_long_lines_just_taken(name):
    graph = import_onnx(LONG[name].model()[0])
    assert graph.shape(graph.outputs[0])[-1] in (65536, 65537)
