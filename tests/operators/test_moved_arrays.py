"""Elements of arrays in another order, joined, chosen, written at positions, resampled, against ONNX Runtime.

Those of `n2d2py.operators.index_select`, `n2d2py.operators.arrays.gather`, `n2d2py.operators.arrays.interpolate` and
`n2d2py.operators.arrays`. The first axis is no batch.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from support.single_array_nodes import F, node, weights
from support.tables import every

from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Graph, Tensor
from n2d2py.operators.arrays.emitting import emit_take
from n2d2py.operators.arrays.interpolate import ArrayInterpolate
from n2d2py.reference.contract import OnnxWriter
from n2d2py.reference.executor import run_graph

X = (2, 3, 4, 5)


def ints(*values) -> np.ndarray:
    return np.array(values, np.int64)


MOVED = {
    "reshape": node("y = Reshape (x, s)", x=X, s=ints(4, -1, 6), kinds=""),
    "reshape, copied": node("y = Reshape (x, s)", x=X, s=ints(0, 0, -1), kinds=""),
    "reshape, rest in front": node("y = Reshape (x, s)", x=X, s=ints(-1, 10), kinds=""),
    "reshape, one rest": node("y = Reshape (x, s)", x=X, s=ints(6, -1, 20), kinds=""),
    "reshape to one axis": node("y = Reshape (x, s)", x=X, s=ints(-1), kinds=""),
    "zero is zero": node("y = Reshape <allowzero = 1> (x, s)", x=X, s=ints(5, 24), kinds=""),
    **{f"flatten {axis}": node(f"y = Flatten <axis = {axis}> (x)", x=X, kinds="") for axis in (-4, -1, 0, 1, 2, 3, 4)},
    "flatten": node("y = Flatten (x)", x=X, kinds=""),
    "squeeze": node("y = Squeeze (x)", x=(2, 1, 3, 1), kinds=""),
    "squeeze one": node("y = Squeeze (x, a)", x=(2, 1, 3, 1), a=ints(-1), kinds=""),
    "squeeze both": node("y = Squeeze (x, a)", x=(1, 2, 1, 3), a=ints(2, 0), kinds=""),
    "unsqueeze": node("y = Unsqueeze (x, a)", x=(2, 3), a=ints(0, -1, 2), kinds=""),
    "transpose": node("y = Transpose <perm = [2, 0, 3, 1]> (x)", x=X, kinds="IndexSelect"),
    "transpose, reversed": node("y = Transpose (x)", x=X, kinds="IndexSelect"),
    "transpose to the same": node("y = Transpose <perm = [0, 1, 2, 3]> (x)", x=X, kinds=""),
    "transpose of ones": node("y = Transpose <perm = [1, 0, 3, 2]> (x)", x=(1, 3, 1, 4), kinds=""),
    "transpose of a one that moves": node("y = Transpose <perm = [0, 2, 1]> (x)", x=(2, 3, 1), kinds=""),
    "transpose of equal sizes": node("y = Transpose <perm = [1, 0]> (x)", x=(3, 3), kinds="IndexSelect"),
    "slice": node(
        "y = Slice (x, s, e, a, t)", x=X, s=ints(1, -1), e=ints(9, -9), a=ints(1, -1), t=ints(1, -2), kinds="IndexSelect"
    ),
    "slice of the first axes": node("y = Slice (x, s, e)", x=X, s=ints(1, 0), e=ints(2, 2)),
    "slice of axes": node("y = Slice (x, s, e, a)", x=X, s=ints(-3, 0), e=ints(-1, 1), a=ints(3, 0)),
    "slice of all": node("y = Slice (x, s, e, a)", x=X, s=ints(0), e=ints(2**31 - 1), a=ints(2), kinds=""),
    "slice of a part that begins in front": node(
        "y = Slice (x, s, e, a)", x=X, s=ints(0), e=ints(3), a=ints(2), kinds="IndexSelect"
    ),
    "slice of one element": node("y = Slice (x, s, e, a)", x=(2, 3, 1), s=ints(1, 2), e=ints(2, 3), a=ints(0, 1)),
    "split": node("y, z, w = Split <axis = 1> (x, p)", outputs="y z w", x=(2, 6, 3), p=ints(1, 3, 2)),
    "split in equal parts": node("y, z = Split <axis = -1, num_outputs = 2> (x)", outputs="y z", x=(2, 3, 6)),
    "split with a rest": node("y, z, w = Split <axis = 1, num_outputs = 3> (x)", outputs="y z w", x=(2, 7, 3)),
    "split of the first axis": node("y, z = Split (x, p)", outputs="y z", x=(4, 3), p=ints(1, 3)),
    "split, one part read": node(
        "y, z, w = Split <axis = 1> (x, p)", outputs="z", x=(2, 6, 3), p=ints(1, 3, 2), kinds="IndexSelect"
    ),
    "split by equal parts of old": node("y, z = Split <axis = 1> (x)", 13, outputs="y z", x=(2, 6, 3)),
    "expand": node("y = Expand (x, s)", x=(2, 1, 3), s=ints(4, 1, 5, 1)),
    "expand by ranks": node("y = Expand (x, s)", x=(3, 1), s=ints(2, 1, 4)),
    "expand to the same": node("y = Expand (x, s)", x=(2, 3), s=ints(1, 3), kinds=""),
    "expand one in front": node("y = Expand (x, s)", x=(2, 3), s=ints(1, 1, 1), kinds=""),
    "tile": node("y = Tile (x, r)", x=(2, 3, 2), r=ints(2, 1, 3)),
    "tile once": node("y = Tile (x, r)", x=(2, 3), r=ints(1, 1), kinds=""),
    "pad": node("y = Pad (x, p, v)", x=(2, 3, 4), p=ints(1, 0, 2, 0, 3, 1), v=np.array(1.5, F)),
    "pad and crop": node("y = Pad (x, p, v)", x=(3, 4, 5), p=ints(-1, 2, 0, 1, -3, -2), v=np.array(-2.5, F)),
    "crop": node("y = Pad (x, p)", x=(3, 4, 5), p=ints(-1, 0, -2, 0, -3, 0)),
    "pad by 0": node("y = Pad (x, p)", x=(3, 4), p=ints(0, 1, 2, 0)),
    "pad of axes": node("y = Pad (x, p, v, a)", x=(2, 3, 4), p=ints(1, 2, 0, 3), v=np.array(0.5, F), a=ints(-1, 0)),
    "pad by none": node("y = Pad (x, p)", x=(3, 4), p=ints(0, 0, 0, 0), kinds=""),
    **{
        f"pad, {mode}": node(f'y = Pad <mode = "{mode}"> (x, p)', 19, x=(3, 4, 5), p=ints(1, 0, 2, 2, 3, 1))
        for mode in ("reflect", "edge", "wrap", "constant")
    },
    "crop and reflect": node('y = Pad <mode = "edge"> (x, p)', x=(4, 5), p=ints(-1, 2, 2, 0)),
    "pad of whole numbers": node("y = Pad (x, p, v)", x=("int32", 2, 3), p=ints(1, 0, 0, 2), v=np.array(7, np.int32)),
    "pad by an attribute": node("y = Pad <pads = [1, 0, 0, 2], value = 1.25> (x)", 10, x=(2, 3)),
    **{
        f"depth to space {mode}": node(
            f'y = DepthToSpace <blocksize = 2, mode = "{mode}"> (x)', x=(2, 12, 3, 2), kinds="IndexSelect"
        )
        for mode in ("DCR", "CRD")
    },
    "depth to space": node("y = DepthToSpace <blocksize = 3> (x)", x=(2, 18, 1, 2)),
    "space to depth": node("y = SpaceToDepth <blocksize = 2> (x)", x=(2, 3, 4, 6)),
    "space to depth by 3": node("y = SpaceToDepth <blocksize = 3> (x)", x=(2, 2, 3, 6)),
    **{
        f"triangle {upper} {k}": node(f"y = Trilu <upper = {upper}> (x, k)", x=(2, 3, 4), k=ints(k).reshape(()))
        for upper in (0, 1)
        for k in (-2, -1, 0, 1, 3)
    },
    "triangle": node("y = Trilu (x)", x=(3, 4)),
    "triangle of whole numbers": node("y = Trilu <upper = 0> (x)", x=("int64", 3, 3)),
    "join": node("y = Concat <axis = 1> (x, z, w)", x=(2, 3, 4), z=(2, 1, 4), w=(2, 2, 4), kinds="Concat"),
    "join the last axis": node("y = Concat <axis = -1> (x, z)", x=(2, 3, 4), z=(2, 3, 2)),
    "join the first axis": node("y = Concat <axis = 0> (x, z)", x=(2, 3), z=(1, 3), kinds="Concat"),
    "join behind a one": node("y = Concat <axis = 1> (x, z)", x=(1, 3, 2), z=(1, 4, 2), kinds="Concat"),
    "join constants": node("y = Concat <axis = 1> (c, x, d)", x=(2, 3), c=weights(2, 1), d=weights(2, 4), kinds="Concat"),
    "join a constant in front": node("y = Concat <axis = 0> (c, x)", x=(2, 3), c=weights(2, 3), kinds="Concat"),
    "join whole numbers": node(
        "y = Concat <axis = 0> (x, z)", x=("int32", 2, 3), z=("int32", 1, 3), kinds="ArrayMap ArrayMap Concat"
    ),
    "join a constant twice": node("y = Concat <axis = 1> (c, c, x)", x=(2, 3), c=weights(2, 2)),
    "join with an empty one": node("y = Concat <axis = 1> (c, x)", x=(2, 3), c=np.zeros((2, 0), F), kinds=""),
    "join one": node("y = Concat <axis = 1> (x)", x=(2, 3), kinds=""),
}
CHOSEN = {
    "matrix of lines": node("y = Gather <axis = 1> (x, i)", x=(2, 4, 3), i=ints([0, -1], [3, 1], [-4, 2])),
    "one line": node("y = Gather <axis = -1> (x, i)", x=(2, 4, 3), i=np.array(-2)),
    "lines of the first axis": node("y = Gather (x, i)", x=(3, 4), i=ints(2, 0)),
    "lines in order": node("y = Gather (x, i)", x=(3, 4), i=ints(0, 1, 2), kinds=""),
    "computed lines": node("y = Gather <axis = 1> (x, i)", x=(2, 10, 3), i=("int64", 2, 2), kinds="ArrayMap ArrayGather"),
    "computed lines of a constant": node("y = Gather (c, i)", i=("int32", 3), c=weights(10, 2), kinds="ArrayMap ArrayGather"),
    "computed lines of the last axis": node(
        "y = Gather <axis = -1> (x, i)", x=(2, 3, 10), i=("int64", 4), kinds="ArrayMap ArrayGather"
    ),
    "elements": node(
        "y = GatherElements <axis = 1> (x, i)", x=(2, 10, 4), i=("int64", 2, 5, 3), kinds="ArrayMap IndexSelect ArrayGather"
    ),
    "elements of as many": node(
        "y = GatherElements <axis = -1> (x, i)", x=(2, 3, 10), i=("int32", 2, 3, 2), kinds="ArrayMap ArrayGather"
    ),
    "elements of fewer lines": node("y = GatherElements (x, i)", x=(10, 4, 3), i=("int64", 2, 3, 3)),
    "elements by constants": node("y = GatherElements <axis = 1> (x, i)", x=(2, 3), i=ints([2, -1], [0, 1])),
    "parts": node("y = GatherND (x, i)", x=(10, 11, 3), i=("int64", 2, 2)),
    "parts of one axis": node("y = GatherND (x, i)", x=(10, 2, 3), i=("int64", 4, 1)),
    "parts of all axes": node("y = GatherND (x, i)", x=(10, 12), i=("int64", 4, 2)),
    "parts by constants": node("y = GatherND (x, i)", x=(3, 4, 2), i=ints([[0, 1], [2, -1]], [[-3, 3], [1, 0]])),
    "parts in batches": node("y = GatherND <batch_dims = 1> (x, i)", x=(2, 10, 3), i=("int64", 2, 4, 1)),
    "parts in batches of all": node("y = GatherND <batch_dims = 1> (x, i)", x=(2, 10, 11), i=("int64", 2, 4, 2)),
    "parts in batches of two axes": node("y = GatherND <batch_dims = 2> (x, i)", x=(2, 3, 10, 2), i=("int64", 2, 3, 1)),
    **{
        f"written elements, {how}": node(
            f'y = ScatterElements <axis = 1, reduction = "{how}"> (x, i, u)',
            x=(3, 4, 2),
            u=(2, 3, 2),
            i=ints(*np.array([0, 1, -1, 2, 3, 0, 0, 1, 2, -4, 1, 1]).reshape(2, 3, 2)),
        )
        for how in ("add", "mul", "max", "min")
    },
    "written elements": node(
        "y = ScatterElements <axis = 1> (x, i, u)",
        x=(3, 4, 2),
        u=(2, 3, 2),
        i=ints([[0, 1], [-1, 2], [3, 0]], [[0, 1], [2, -1], [1, 2]]),
    ),
    "written elements of the last axis": node(
        "y = ScatterElements <axis = -1> (x, i, u)", x=(3, 2, 4), u=(2, 2, 2), i=ints([[0, 1], [-1, 2]], [[3, 0], [1, 2]])
    ),
    "written elements of the first axis": node("y = ScatterElements (x, i, u)", x=(3, 2), u=(2, 2), i=ints([0, 1], [2, -1])),
    "written at computed positions": node(
        'y = ScatterElements <axis = 1, reduction = "add"> (x, i, u)', x=(2, 10), u=(2, 3), i=("int64", 2, 3)
    ),
    "written into a constant": node(
        'y = ScatterElements <axis = 0, reduction = "add"> (c, i, u)', c=weights(10, 2), u=(3, 2), i=("int64", 3, 2)
    ),
    **{
        f"written parts, {how}": node(
            f'y = ScatterND <reduction = "{how}"> (x, i, u)', x=(3, 4, 2), u=(3, 2), i=ints([0, 1], [2, -1], [0, 1])
        )
        for how in ("add", "mul", "max", "min")
    },
    "written parts": node("y = ScatterND (x, i, u)", x=(5, 4, 2), u=(2, 2, 4, 2), i=ints([[0], [2]], [[1], [-1]])),
    "written single elements": node("y = ScatterND (x, i, u)", x=(3, 4), u=(3,), i=ints([0, 1], [2, -1], [-3, 3])),
    "written block": node(
        "y = ScatterND (x, i, u)", x=(6, 2), u=(2, 2), i=ints([2], [3]), kinds="IndexSelect IndexSelect Concat"
    ),
    "written line in front": node("y = ScatterND (x, i, u)", x=(2, 3, 2), u=(1, 3, 2), i=ints([0])),
    "written whole": node("y = ScatterND (x, i, u)", x=(2, 3), u=(2, 3), i=ints([0], [1]), kinds=""),
    "written again": node("y = ScatterND (x, i, u)", x=(4, 2), u=(3, 2), i=ints([1], [2], [1])),
    "one hot": node("y = OneHot (i, d, v)", i=("int64", 2, 3), d=np.array(10), v=np.array([-1, 2], F)),
    "one hot in front": node("y = OneHot <axis = 0> (i, d, v)", i=("int64", 2, 3), d=np.array(10), v=np.array([3, -1], F)),
    "one hot in the middle": node("y = OneHot <axis = 1> (i, d, v)", i=("int64", 2, 3), d=np.array(4), v=np.array([3, -1], F)),
    **{
        f"top {largest} {axis}": node(
            f"y, i = TopK <axis = {axis}, largest = {largest}> (x, k)",
            outputs="y i",
            x=(2, 4, 3),
            k=ints(k),
            kinds="ArrayTopK ArrayGather",
        )
        for largest in (0, 1)
        for axis, k in ((1, 3), (-1, 2), (0, 1), (-2, 4))
    },
    "top of the last axis": node("y, i = TopK (x, k)", outputs="y i", x=(2, 4, 3), k=ints(2)),
    "top, positions alone": node("t, i = TopK (x, k)", outputs="i", x=(2, 4, 3), k=ints(2)),
    "top by an attribute": node("y, i = TopK <k = 2, axis = 1> (x)", 9, outputs="y i", x=(2, 4, 3)),
}
S3 = (2, 3, 4)
COORDINATES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")
RESIZED = {
    **{
        f"{mode}, {way}, {name}": node(
            f'y = Resize <mode = "{mode}", coordinate_transformation_mode = "{way}"> (x, , , s)',
            19,
            x=S3,
            s=ints(*sizes),
            tolerance=2e-5,
        )
        for mode in ("nearest", "linear")
        for way in COORDINATES
        for name, sizes in (("larger", (2, 5, 7)), ("smaller", (2, 2, 3)))
    },
    **{
        f"cubic, {way}": node(
            f'y = Resize <mode = "cubic", coordinate_transformation_mode = "{way}"> (x, , , s)',
            19,
            x=(1, 1, 4, 5),
            s=ints(1, 1, 7, 3),
            tolerance=2e-5,
            reference=True,
        )
        for way in COORDINATES
    },
    **{
        f"cubic, {more}": node(
            f'y = Resize <mode = "cubic", {more}> (x, , s)',
            19,
            x=(2, 3, 4, 5),
            s=np.array([1, 1, 1.5, 0.6], F),
            tolerance=2e-5,
            reference=True,
        )
        for more in ("cubic_coeff_a = -0.5", "exclude_outside = 1", "cubic_coeff_a = -1.0, exclude_outside = 1")
    },
    **{
        f"antialias, {mode}": node(
            f'y = Resize <mode = "{mode}", antialias = 1> (x, , s)',
            18,
            x=(2, 3, 8, 9),
            s=np.array([1, 1, 0.5, 0.34], F),
            tolerance=2e-5,
        )
        for mode in ("linear", "cubic")
    },
    "antialias, larger": node(
        'y = Resize <mode = "linear", antialias = 1> (x, , s)',
        18,
        x=(2, 3, 4, 5),
        s=np.array([1, 1, 1.5, 2], F),
        tolerance=2e-5,
    ),
    **{
        f"nearest, {rule}, {scale}": node(
            f'y = Resize <mode = "nearest", nearest_mode = "{rule}"> (x, , s)', x=(2, 3, 5), s=np.array([1, 1, scale], F)
        )
        for rule in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
        for scale in (0.4, 0.5, 1.5, 2)
    },
    "one line": node(
        'y = Resize <mode = "linear", coordinate_transformation_mode = "align_corners"> (x, , , s)',
        x=(2, 3, 5),
        s=ints(2, 3, 1),
    ),
    "one line, half": node(
        'y = Resize <mode = "linear", coordinate_transformation_mode = "pytorch_half_pixel"> (x, , , s)',
        x=(2, 3, 5),
        s=ints(2, 3, 1),
    ),
    "the first axis": node('y = Resize <mode = "linear"> (x, , , s)', x=(2, 3), s=ints(3, 3)),
    "two axes": node('y = Resize <mode = "linear", axes = [2, 1]> (x, , , s)', x=(2, 3, 4), s=ints(6, 5)),
    "two axes by scales": node('y = Resize <mode = "linear", axes = [-1, 1]> (x, , s)', x=(2, 3, 4), s=np.array([1.5, 2.5], F)),
    "not larger": node(
        'y = Resize <keep_aspect_ratio_policy = "not_larger", axes = [1, 2]> (x, , , s)', x=(2, 3, 4), s=ints(7, 8)
    ),
    "not smaller": node(
        'y = Resize <keep_aspect_ratio_policy = "not_smaller", axes = [1, 2]> (x, , , s)', x=(2, 3, 4), s=ints(7, 8)
    ),
    "cut out": node(
        'y = Resize <mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize", extrapolation_value = 9.5> (x, r, , s)',
        x=(2, 3, 4, 5),
        r=np.array([0, 0, 0.25, -0.3, 1, 1, 0.75, 1.25], F),
        s=ints(2, 3, 3, 7),
    ),
    "cut out, one line": node(
        'y = Resize <mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize"> (x, r, , s)',
        x=(2, 3, 4, 5),
        r=np.array([0, 0, 0.25, 0.1, 1, 1, 0.5, 0.6], F),
        s=ints(2, 3, 1, 2),
    ),
    "cut out of axes": node(
        'y = Resize <mode = "nearest", axes = [3, 2], coordinate_transformation_mode = "tf_crop_and_resize"> (x, r, , s)',
        x=(2, 3, 4, 5),
        r=np.array([0.2, 0.1, 0.9, 1.0], F),
        s=ints(4, 3),
    ),
    "cut out beyond, filled with 0": node(
        'y = Resize <mode = "nearest", axes = [1], coordinate_transformation_mode = "tf_crop_and_resize"> (x, r, , s)',
        x=(2, 4),
        r=np.array([-0.5, 1.5], F),
        s=ints(6),
    ),
    "the same size": node('y = Resize <mode = "linear"> (x, , , s)', x=(2, 3, 4), s=ints(2, 3, 4), kinds=""),
    "a scale and the same size": node(
        'y = Resize <mode = "linear"> (x, , s)', reference=True, x=(1, 1, 4, 4), s=np.array([1, 1, 1.2, 1.0], F)
    ),
    **{
        f"{policy} {sizes}": node(
            f'y = Resize <keep_aspect_ratio_policy = "{policy}", axes = [1, 2]> (x, , , s)', x=(2, 3, 4), s=ints(*sizes)
        )
        for policy in ("not_larger", "not_smaller")
        for sizes in ((5, 6), (4, 5), (2, 3), (7, 9))
    },
    "old resize, larger": node('y = Resize <mode = "nearest"> (x, s)', 10, x=(2, 3, 5), s=np.array([1, 1, 1.4], F)),
    "old resize, axes of either": node('y = Resize <mode = "nearest"> (x, s)', 10, x=(2, 5, 8), s=np.array([1, 1.4, 0.4], F)),
    "old": node('y = Upsample <mode = "linear"> (x, s)', 9, x=(1, 2, 3, 4), s=np.array([1, 1, 2, 3], F)),
    "old, a third axis": node('y = Upsample <mode = "nearest"> (x, s)', 9, x=(2, 3, 4), s=np.array([1, 2, 1.5], F)),
    "old resize, smaller": node('y = Resize <mode = "nearest"> (x, s)', 10, x=(2, 3, 8), s=np.array([1, 1, 0.4], F)),
}


@every("name", MOVED)
def test_moved(name):
    MOVED[name].check()


@every("name", CHOSEN)
def test_chosen_and_written(name):
    CHOSEN[name].check()


@every("name", RESIZED)
def test_resampled(name):
    RESIZED[name].check()


HALF = (0.125, 0.375, 0.375, 0.125)
LINES: dict[str, tuple] = {
    "linear": ('mode = "linear"', 4, 2, ((0, 1), (2, 3)), ((0.5, 0.5), (0.5, 0.5))),
    "linear, beyond the ends": (
        'mode = "linear"',
        2,
        4,
        ((0, 0), (0, 1), (0, 1), (1, 1)),
        ((0.25, 0.75), (0.75, 0.25), (0.25, 0.75), (0.75, 0.25)),
    ),
    "linear, filtered": (
        'mode = "linear", antialias = 1',
        8,
        4,
        ((0, 0, 1, 2), (1, 2, 3, 4), (3, 4, 5, 6), (5, 6, 7, 7)),
        (HALF,) * 4,
    ),
    "cubic at whole positions": (
        'mode = "cubic", coordinate_transformation_mode = "align_corners"',
        3,
        5,
        ((0, 0, 1, 2), (0, 0, 1, 2), (0, 1, 2, 2), (0, 1, 2, 2), (1, 2, 2, 2)),
        (
            (0, 1, 0, 0),
            (-0.09375, 0.59375, 0.59375, -0.09375),
            (0, 1, 0, 0),
            (-0.09375, 0.59375, 0.59375, -0.09375),
            (0, 1, 0, 0),
        ),
    ),
}


@every("name", LINES)
def test_lines_and_their_weights(name):
    """As few lines as have weights; no weight is minus 0."""
    attributes, size, wanted, positions, weights_of = LINES[name]
    graph = import_onnx(node(f"y = Resize <{attributes}> (x, , , s)", 19, x=(2, size), s=ints(2, wanted)).model()[0])
    (op,) = [each.op for each in graph.nodes if isinstance(each.op, ArrayInterpolate)]
    assert (op.outer, op.size, op.inner, op.positions) == (2, size, 1, positions)
    np.testing.assert_allclose(op.weights, weights_of, atol=1e-12)
    assert all(np.copysign(1, weight) == 1 for line in op.weights for weight in line if weight == 0)


@pytest.mark.parametrize(
    ("mode", "positions"),
    [
        ("linear", ((0, 0, 1, 1), (1, 2, 3, 3), (2, 3, 4, 5), (4, 5, 6, 6), (6, 7, 7, 7))),
        (
            "cubic",
            ((0, 0, 0, 1, 2, 3, 3), (0, 0, 1, 2, 3, 4, 5), (1, 2, 3, 4, 5, 6, 6), (2, 3, 4, 5, 6, 7, 7), (4, 5, 6, 7, 7, 7, 7)),
        ),
    ],
)
def test_lines_of_a_filter_are_filled_up_with_the_last(mode, positions):
    """Eight lines become five: they are at 0.3, 1.9, 3.5, 5.1 and 6.7, and each takes those up to 1.6 or 3.2 away."""
    graph = import_onnx(node(f'y = Resize <mode = "{mode}", antialias = 1> (x, , , s)', x=(2, 8), s=ints(2, 5)).model()[0])
    (op,) = [each.op for each in graph.nodes if isinstance(each.op, ArrayInterpolate)]
    assert op.positions == positions
    np.testing.assert_allclose(np.sum(op.weights, 1), 1)


def test_an_upsample_that_makes_smaller_takes_the_line_before():
    """Other than the first Resize; ONNX Runtime refuses it."""
    model, feeds = node('y = Upsample <mode = "nearest"> (x, s)', 9, x=(2, 3, 8), s=np.array([1, 1, 0.4], F)).model()
    (found,) = run_graph(import_onnx(model), feeds).values()
    np.testing.assert_array_equal(found.reshape(2, 2, 3, 3), feeds["x_in"].reshape(2, 2, 3, 8)[..., [0, 2, 5]])


@every("seed", range(40))
def test_places_at_sums_of_offsets_as_onnx_runtime_takes_them(seed):
    """Axes in any order, with gaps, repetitions and reversals; each third case has steps that are not nested."""
    rng = np.random.default_rng(seed)
    dims = rng.integers(1, 5, 3)
    steps, size = [int(dims[1] * dims[2]), int(dims[2]), 1 + (seed % 3 == 0)], int(dims.prod()) + 3
    axes = [rng.integers(0, max(1, n - 1), rng.integers(1, 6)) * step for n, step in zip(dims, steps, strict=True)]
    axes += [np.arange(dims[0]) * steps[0], np.zeros(2, np.int64), np.array([seed % 2])]
    axes = [axes[index] for index in rng.permutation(6) if index != seed % 2 * 3]
    while sum(int(axis.max()) for axis in axes) >= size:
        size *= 2
    graph = Graph("moved")
    graph.tensors["x"] = Tensor("x", (1, size))
    writer = OnnxWriter(graph)
    emit_take(writer, "x", size, axes, "y")
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", None])] for name in "xy"]
    model = helper.make_model(
        helper.make_graph(writer.nodes, "moved", *ends, writer.initializers),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    x = rng.normal(size=(2, size)).astype(np.float32)
    (found,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    np.testing.assert_array_equal(found, x[:, reduce(np.add.outer, axes).reshape(-1)])
