"""Operators on the axes of the file, of integers without a scale and of blocks of a batch, as LiteRT computes them.

They look at `n2d2py.frontend.tflite.array_operators` and `n2d2py.frontend.tflite.control_flow`.
"""

from collections.abc import Callable

import numpy as np
import pytest
from support.tables import every

pytest.importorskip("ai_edge_litert", reason="the referee, ai-edge-litert, is not installed")

from support.tflite_files import Small, compare, kinds, litert, network_outputs, written

from n2d2py.frontend.models import load_model
from n2d2py.frontend.onnx.importer import import_onnx

INT, F = np.int32, np.float32


def ints(m: Small, *values) -> int:
    return m.constant(f"i{len(m.file._tensors)}", np.array(values[0] if len(values) == 1 else values, INT))


def reals(m: Small, values) -> int:
    return m.tensor(f"r{len(m.file._tensors)}", np.shape(values), values=np.asarray(values, F))


def plain(m: Small, code: str, inputs: list[int], shapes, options: str = "", **fields) -> list[int]:
    """An operator whose results are (shape, type) of floats, truth values or integers without a scale."""
    made = [m.file.tensor(f"y{len(m.file._tensors) + n}", shape, kind, None, None) for n, (shape, kind) in enumerate(shapes)]
    m.file.operator(code, inputs, made[0], options, **fields)
    m.file._operators[-1].outputs = made
    return made


def one(code: str, shape, made, *constants: Callable[[Small], int], kind=F, options: str = "", **fields):
    """(shape of x, function of a file that adds the operator)."""
    return shape, lambda m: plain(m, code, [m.x, *(constant(m) for constant in constants)], [(made, kind)], options, **fields)


def numbers_of(*values):
    return lambda m: ints(m, *values)


def floats_of(values):
    return lambda m: reals(m, values)


def positions(m: Small, limit: int, shape) -> int:
    """Integers below `limit`, from the input."""
    (whole,) = plain(m, "CAST", [m.x], [(shape, INT)], "CastOptions", inDataType=0, outDataType=2)
    return plain(m, "FLOOR_MOD", [whole, ints(m, limit)], [(shape, INT)], "FloorModOptions")[0]


def of_integers(code: str, *factors: int, options: str = "", made=(4, 6)):
    def add(m: Small) -> list[int]:
        x = plain(m, "CAST", [m.x], [((4, 6), INT)], "CastOptions", inDataType=0, outDataType=2)[0]
        return plain(m, code, [x, *(ints(m, factor) for factor in factors)], [(made, INT)], options)

    return (4, 6), add


def at_positions(code: str, table, limit: int, made, options: str = "", first: bool = True, **fields):
    """A table read at computed positions of the shape (5, 1)."""

    def add(m: Small) -> list[int]:
        read = [reals(m, table), positions(m, limit, (5, 1))]
        return plain(m, code, read if first else read[::-1], [(made, F)], options, **fields)

    return (5, 1), add


def spectrum(code: str, shape, lengths):
    def add(m: Small) -> list[int]:
        made = (*shape[:-1], shape[-1] // 2 + 1)
        (x,) = plain(m, "RFFT2D", [m.x, ints(m, lengths)], [(made, np.complex64)], "Rfft2dOptions")
        return plain(m, code, [x], [(made, F)])

    return shape, add


def truths(code: str, shape, made, axes, kept: bool):
    def add(m: Small) -> list[int]:
        (x,) = plain(m, "GREATER", [m.x, reals(m, 0.3)], [(shape, np.bool_)], "GreaterOptions")
        (y,) = plain(m, code, [x, ints(m, axes)], [(made, np.bool_)], "ReducerOptions", keepDims=kept)
        return plain(m, "CAST", [y], [(made, F)], "CastOptions", inDataType=6, outDataType=0)

    return shape, add


def blocks(shape, block, pads, made):
    def add(m: Small) -> list[int]:
        (x,) = plain(m, "SPACE_TO_BATCH_ND", [m.x, ints(m, block), ints(m, pads)], [(made, F)], "SpaceToBatchNDOptions")
        return plain(m, "BATCH_TO_SPACE_ND", [x, ints(m, block), ints(m, pads)], [(shape, F)], "BatchToSpaceNDOptions") + [x]

    return shape, add


def dilated(block, pads, crops, depthwise: bool, bias: bool = False):
    """A convolution of 3 x 3 of blocks."""
    shape = (1, 8, 12, 3)

    def add(m: Small) -> list[int]:
        padded = [size + sum(ends) for size, ends in zip(shape[1:3], pads, strict=True)]
        steps, count = [size // step for size, step in zip(padded, block, strict=True)], block[0] * block[1]
        made, after = (count, *steps, 3), (count, steps[0] - 2, steps[1] - 2, 3)
        (x,) = plain(m, "SPACE_TO_BATCH_ND", [m.x, ints(m, block), ints(m, pads)], [(made, F)], "SpaceToBatchNDOptions")
        fields, code, kind = (
            {"padding": 1, "strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1},
            "CONV_2D",
            "Conv2D",
        )
        if depthwise:
            code, kind, fields = "DEPTHWISE_CONV_2D", "DepthwiseConv2D", {**fields, "depthMultiplier": 1}
        weights = reals(m, m.rng.normal(size=(1 if depthwise else 3, 3, 3, 3)))
        (x,) = plain(m, code, [x, weights, reals(m, [0.5, -1, 2])], [(after, F)], f"{kind}Options", **fields)
        if bias:
            (x,) = plain(m, "ADD", [x, reals(m, [1.5, 0, -2])], [(after, F)], "AddOptions", fusedActivationFunction=1)
        whole = [step * (size - 2) - sum(ends) for step, size, ends in zip(block, steps, crops, strict=True)]
        result = [((1, *whole, 3), F)]
        return plain(m, "BATCH_TO_SPACE_ND", [x, ints(m, block), ints(m, crops)], result, "BatchToSpaceNDOptions")

    return shape, add


def top(shape, count: int):
    made = (*shape[:-1], count)
    return shape, lambda m: plain(m, "TOPK_V2", [m.x, ints(m, count)], [(made, F), (made, INT)], "TopKV2Options")


def suppressed(scores: bool, most: int):
    """Boxes of which some overlap."""

    def add(m: Small) -> list[int]:
        corners = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3], [0, 2, 1, 3.2], [4, 4, 5, 5]], F)
        inputs = [reals(m, corners), m.x, ints(m, most), reals(m, 0.5), reals(m, -1.0)]
        results, code = [((most,), INT), ((), INT)], "NON_MAX_SUPPRESSION_V4"
        if scores:
            inputs, results, code = (
                [*inputs, reals(m, 0.0)],
                [((most,), INT), ((most,), F), ((), INT)],
                "NON_MAX_SUPPRESSION_V5",
            )
        return plain(m, code, inputs, results, f"NonMaxSuppressionV{code[-1]}Options")

    return (5,), add


TABLE = np.random.default_rng(3).normal(size=(7, 4))
CUBE = np.random.default_rng(3).normal(size=(4, 3, 2, 5))
ROWS = {
    "GATHER_ND of an image": one("GATHER_ND", (1, 4, 3, 5), (2, 5), numbers_of([[0, 3, 1], [0, 0, 2]]), options="GatherNdOptions"),
    "GATHER_ND of whole rows": one("GATHER_ND", (4, 3), (2, 1, 3), numbers_of([[[2]], [[0]]]), options="GatherNdOptions"),
    "GATHER_ND at computed positions": at_positions("GATHER_ND", TABLE, 7, (5, 4), "GatherNdOptions"),
    "GATHER at computed positions of an image": at_positions("GATHER", CUBE, 2, (4, 3, 5, 1, 5), "GatherOptions", axis=2),
    "GATHER at constants of two axes": one("GATHER", (4, 3), (2, 2, 3), numbers_of([[3, 1], [0, 0]]), options="GatherOptions", axis=0),
    "EMBEDDING_LOOKUP": ((5,), lambda m: plain(m, "EMBEDDING_LOOKUP", [positions(m, 7, (5,)), reals(m, TABLE)], [((5, 4), F)])),
    "SCATTER_ND": ((2, 4), lambda m: plain(
        m, "SCATTER_ND", [ints(m, [[3], [1]]), m.x, ints(m, 5, 4)], [((5, 4), F)], "ScatterNdOptions")),
    "ONE_HOT": ((5, 1), lambda m: plain(
        m, "ONE_HOT", [positions(m, 3, (5, 1)), ints(m, 3), reals(m, 2.0), reals(m, -1.0)], [((5, 1, 3), F)], "OneHotOptions", axis=-1)),
    "TOPK_V2": top((3, 7), 4),
    "TOPK_V2 of an image": top((1, 2, 3, 6), 2),
    "FLOOR_DIV of integers": of_integers("FLOOR_DIV", -3, options="FloorDivOptions"),
    "FLOOR_MOD of integers": of_integers("FLOOR_MOD", -3, options="FloorModOptions"),
    "MUL of integers": of_integers("MUL", 7, options="MulOptions"),
    "SUB of integers": of_integers("SUB", 7, options="SubOptions"),
    "MAXIMUM of integers": of_integers("MAXIMUM", 1, options="MaximumMinimumOptions"),
    "FLOOR_DIV": one("FLOOR_DIV", (4, 6), (4, 6), floats_of(-0.7), options="FloorDivOptions"),
    "FLOOR_MOD": one("FLOOR_MOD", (4, 6), (4, 6), floats_of(-0.7), options="FloorModOptions"),
    "ADD_N": ((4, 6), lambda m: plain(m, "ADD_N", [m.x, m.x, reals(m, np.ones((4, 6)))], [((4, 6), F)], "AddNOptions")),
    "REVERSE_SEQUENCE": one("REVERSE_SEQUENCE", (2, 5, 3), (2, 5, 3), numbers_of(4, 2), options="ReverseSequenceOptions", seqDim=1, batchDim=0),
    "REVERSE_SEQUENCE of an image": one("REVERSE_SEQUENCE", (2, 5, 3, 4), (2, 5, 3, 4), numbers_of(1, 2, 3), options="ReverseSequenceOptions", seqDim=3, batchDim=2),
    "REDUCE_ANY": truths("REDUCE_ANY", (2, 3, 4, 5), (2, 3, 5), [2], False),
    "REDUCE_ALL": truths("REDUCE_ALL", (2, 6), (2, 1), [1], True),
    "REDUCE_PROD": one("REDUCE_PROD", (2, 3, 4), (2, 4), numbers_of(np.array([1])), options="ReducerOptions", keepDims=False),
    "ZEROS_LIKE": ((2, 3), lambda m: plain(
        m, "ADD", [m.x, *plain(m, "ZEROS_LIKE", [m.x], [((2, 3), F)], "ZerosLikeOptions")], [((2, 3), F)], "AddOptions")),
    "COMPLEX_ABS": spectrum("COMPLEX_ABS", (3, 1, 16), (1, 16)),
    "REAL": spectrum("REAL", (2, 8, 16), (8, 16)),
    "IMAG": spectrum("IMAG", (2, 4, 8), (4, 8)),
    "LOCAL_RESPONSE_NORMALIZATION": one(
        "LOCAL_RESPONSE_NORMALIZATION", (1, 3, 2, 7), (1, 3, 2, 7), options="LocalResponseNormalizationOptions",
        radius=2, bias=1.5, alpha=0.3, beta=0.75),
    "L2_POOL_2D": one(
        "L2_POOL_2D", (1, 7, 6, 3), (1, 4, 3, 3), options="Pool2DOptions",
        padding=0, strideH=2, strideW=2, filterHeight=3, filterWidth=3),
    "CONV_3D": one(
        "CONV_3D", (1, 4, 6, 5, 3), (1, 4, 3, 5, 2), floats_of(np.random.default_rng(3).normal(size=(3, 3, 2, 3, 2))),
        floats_of([0.5, -1]), options="Conv3DOptions", padding=0, strideD=1, strideH=2, strideW=1,
        dilationDFactor=1, dilationHFactor=1, dilationWFactor=1),
    "NON_MAX_SUPPRESSION_V4": suppressed(False, 3),
    "NON_MAX_SUPPRESSION_V5": suppressed(True, 7),
    "blocks of two axes": blocks((1, 4, 6, 3), (2, 3), [[1, 1], [0, 3]], (6, 3, 3, 3)),
    "blocks of one axis": blocks((2, 6, 4), (3,), [[0, 3]], (6, 3, 4)),
    "dilation": dilated((2, 3), [[2, 2], [3, 3]], [[0, 0], [0, 0]], False),
    "dilation of channels, cropped": dilated((2, 2), [[2, 4], [2, 2]], [[0, 2], [0, 0]], True, bias=True),
}  # fmt: skip


@every("name", ROWS)
def test_as_litert(name, tmp_path):
    """The translation, and the network that is made of it."""
    shape, add = ROWS[name]
    m = Small(shape, None)
    x = (3 * m.rng.normal(size=shape)).astype(F)
    path = written(m, tmp_path, add(m))
    if "SUPPRESSION" not in name:
        compare(path, [x], real=True)
    else:  # ONNX Runtime does not fill up the boxes
        for mine, theirs in zip(network_outputs(path, [x]), litert(path, [x], real=True), strict=True):
            np.testing.assert_allclose(mine.reshape(-1), theirs.reshape(-1), rtol=2e-5, atol=2e-5)


@every("name", ["dilation", "dilation of channels, cropped"])
def test_a_dilated_convolution_is_one(name, tmp_path):
    shape, add = ROWS[name]
    m = Small(shape, None)
    path = written(m, tmp_path, add(m))
    assert set(kinds(path)) <= {"Pad", "Transpose", "Conv", "Add", "Relu", "Slice"}
    assert sum(node.op.kind == "Conv" for node in import_onnx(load_model(path)).nodes) == 1
