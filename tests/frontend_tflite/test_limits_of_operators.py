"""What operators of .tflite files are refused for, in the whole sentence, and the neighbours of each limit that are taken.

They look at `n2d2py.frontend.tflite.lowering`, `n2d2py.frontend.tflite.operators` and `n2d2py.frontend.tflite.real_operators`.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert", reason="ai-edge-litert, whose schema writes the files, is not installed")

from support.tflite_files import IN, OUT, Small, rewritten
from support.tflite_results import refusal, written

from n2d2py.exports.tflite.file import ModelFile, need_schema

SHAPE = (2, 5, 7, 3)
UNITS = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
REAL = None


def _const(m: Small, shape, grid=IN, dtype=np.int8, axis: int = 0, name: str = "w") -> int:
    """A constant of real numbers, or of integers with scales for `axis` where `grid` is one."""
    if grid is None:
        return m.tensor(name, shape, values=m.rng.normal(size=shape).astype(np.float32))
    return m.tensor(name, shape, grid, dtype, m.rng.integers(1, 100, shape).astype(dtype), axis)


def _scales(count: int) -> tuple[np.ndarray, int]:
    return np.linspace(0.01, 0.02, count).astype(np.float32), 0


def _conv(weights, made=None, depthwise: bool = False, axis: int = 0, scales: int = 1, shape=SHAPE, kind="CONV_2D", **fields):
    """A convolution of integers."""

    def make(m: Small) -> int:
        x = m.x if shape == SHAPE else m.add("SLICE", [m.x, m.constant("b", [0] * 4), m.constant("s", shape)], shape, IN)
        w = _const(m, weights, _scales(scales), axis=axis)
        code, options = ("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions") if depthwise else ("CONV_2D", "Conv2DOptions")
        outputs = weights[-1] if depthwise else weights[0]
        return m.add(code, [x, w], made or (*shape[:3], outputs), OUT, options, **{"padding": 0, **UNITS, **fields})

    return make


def _turned(weights, made=(2, 10, 14, 4), axis: int = 0, scales: int = 1, stride=(2, 2), **fields):
    def make(m: Small) -> int:
        inputs = [m.constant("shape", made), _const(m, weights, _scales(scales), axis=axis), m.x]
        options = {"strideH": stride[0], "strideW": stride[1], "padding": 0, **fields}
        return m.add("TRANSPOSE_CONV", inputs, made, OUT, "TransposeConvOptions", **options)

    return make


def _dense(weights=(4, 105), made=(2, 4), axis: int = 0, scales: int = 1, **fields):
    return lambda m: m.add(
        "FULLY_CONNECTED", [m.x, _const(m, weights, _scales(scales), axis=axis)], made, OUT, "FullyConnectedOptions", **fields
    )


def _pool(made=(2, 5, 7, 3), **fields):
    given = {"padding": 0, "strideH": 1, "strideW": 1, "filterHeight": 2, "filterWidth": 3, **fields}
    return lambda m: m.add("MAX_POOL_2D", [m.x], made, IN, "Pool2DOptions", **given)


def _with(code: str, *constants, made=SHAPE, options: str = "", real: bool = False, dtype=np.int32, **fields):
    """An operator of x and constants of integers."""

    def make(m: Small) -> int:
        x = m.add("DEQUANTIZE", [m.x], SHAPE, None) if real else m.x
        inputs = [
            x,
            *(m.file.tensor(f"c{at}", np.shape(one), dtype, None, np.array(one, dtype)) for at, one in enumerate(constants)),
        ]
        return m.add(code, inputs, made, None if real else IN, options, **fields)

    return make


def _strided(begins, ends, steps, made=SHAPE, **fields):
    return _with("STRIDED_SLICE", begins, ends, steps, made=made, options="StridedSliceOptions", **fields)


def _parts(sizes, axis, by_sizes: bool = False, shapes=None):
    """SPLIT or SPLIT_V of x; `axis`: numbers of the constant."""

    def make(m: Small) -> int:
        at = int(np.reshape(axis, -1)[0]) % 4 if np.size(axis) else 0
        given = shapes or [tuple(size if one == at else n for one, n in enumerate(SHAPE)) for size in sizes]
        parts = [m.tensor(f"part{number}", shape, IN) for number, shape in enumerate(given)]
        place = m.constant("axis", np.array(axis, np.int32))
        inputs = [m.x, m.constant("sizes", sizes), place] if by_sizes else [place, m.x]
        code = "SPLIT_V" if by_sizes else "SPLIT"
        m.file.operator(code, inputs, parts[0], "SplitVOptions" if by_sizes else "SplitOptions")
        m.file._operators[-1].outputs = np.array(parts, np.int32)
        return parts[0]

    return make


def _biased(values: np.ndarray, grid=None, source=IN, weights=IN, kind=np.int8, code: str = "CONV_2D"):
    """A layer with a constant bias."""

    def make(m: Small) -> int:
        x = m.x if source is not None else m.add("DEQUANTIZE", [m.x], SHAPE, None)
        w = _const(m, (4, 1, 1, 3) if code == "CONV_2D" else (4, 105), weights, kind)
        b = m.file.tensor("b", values.shape, values.dtype, grid, values)
        options = "Conv2DOptions" if code == "CONV_2D" else "FullyConnectedOptions"
        made = (2, 5, 7, 4) if code == "CONV_2D" else (2, 4)
        fields = {"padding": 0, **UNITS} if code == "CONV_2D" else {}
        return m.add(code, [x, w, b], made, OUT if source is not None else None, options, **fields)

    return make


def _slopes(shape, scales: int = 1, real: bool = False):
    def make(m: Small) -> int:
        x = m.add("DEQUANTIZE", [m.x], SHAPE, None) if real else m.x
        grid = None if real else (_scales(scales) if scales > 1 else (0.01, 0))
        return m.add("PRELU", [x, _const(m, shape, grid, axis=len(shape) - 1)], SHAPE, None if real else OUT)

    return make


def _fill(values, grid=IN, dtype=np.int8):
    def make(m: Small) -> int:
        fill = m.file.tensor("v", np.shape(values), dtype, grid and (np.float32(grid[0]), grid[1]), np.array(values, dtype))
        return m.add("PADV2", [m.x, m.constant("p", [[0, 0]] * 4), fill], SHAPE, IN, "PadV2Options")

    return make


def _empty(make_after):
    """An operator behind a slice without elements: x of no channels."""

    def make(m: Small) -> int:
        shape = (2, 5, 7, 0)
        return make_after(m, m.add("SLICE", [m.x, m.constant("b", [0] * 4), m.constant("s", shape)], shape, IN))

    return make


def _joined(*shapes, axis: int, made):
    def make(m: Small) -> int:
        others = [_const(m, shape, IN, name=f"z{at}") for at, shape in enumerate(shapes)]
        return m.add("CONCATENATION", [m.x, *others], made, IN, "ConcatenationOptions", axis=axis)

    return make


def _packed(*shapes, axis: int, made):
    def make(m: Small) -> int:
        x = m.add("DEQUANTIZE", [m.x], SHAPE, None)
        others = [_const(m, shape, REAL, name=f"z{at}") for at, shape in enumerate(shapes)]
        return m.add("PACK", [x, *others], made, None, "PackOptions", axis=axis, valuesCount=1 + len(shapes))

    return make


def _unpacked(axis: int, count: int, made, options: bool = True):
    def make(m: Small) -> int:
        x = m.add("DEQUANTIZE", [m.x], SHAPE, None)
        parts = [m.tensor(f"part{at}", made) for at in range(count)]
        m.file.operator("UNPACK", [x], parts[0], "UnpackOptions", num=count, axis=axis)
        m.file._operators[-1].outputs = np.array(parts, np.int32)
        return parts[0]

    return make


def _two(code: str, options: str, left, right, made, **fields):
    """An operator of two parts of x, as real numbers."""

    def make(m: Small) -> int:
        x = m.add("DEQUANTIZE", [m.x], SHAPE, None)
        ends = [m.add("RESHAPE", [x], shape, None) if np.prod(shape) == 210 else _const(m, shape, REAL, name=f"z{at}")
                for at, shape in enumerate((left, right))]  # fmt: skip
        return m.add(code, ends, made, None, options, **fields)

    return make


def _cast(source, made):
    def make(m: Small) -> int:
        x = m.file.tensor("c", (2, 3), source, None, np.ones((2, 3), source))
        y = m.file.tensor("y", (2, 3), made)
        m.file.operator("CAST", [x], y, "CastOptions")
        return y

    return make


def _select(code: str, shape):
    def make(m: Small) -> int:
        x = m.add("DEQUANTIZE", [m.x], SHAPE, None)
        condition = m.file.tensor("c", shape, np.bool_, None, np.ones(shape, bool))
        return m.add(code, [condition, x, x], SHAPE, None, "SelectOptions" if code == "SELECT" else "SelectV2Options")

    return make


def _last(*inputs: str, code: str = "NEG", made_grid=None):
    """An operator of real numbers with x of integers among its inputs."""

    def make(m: Small) -> int:
        x = m.add("DEQUANTIZE", [m.x], SHAPE, None)
        known = {"x": m.x, "real": x, "none": -1}
        return m.add(code, [known[name] for name in inputs], SHAPE, made_grid)

    return make


RULES = {
    # fused activations
    "no activation": (_pool(fusedActivationFunction=0), ""),
    "the last known activation": (_pool(fusedActivationFunction=3), ""),
    "TANH": (_pool(fusedActivationFunction=4), "its fused activation TANH is not supported"),
    "SIGN_BIT": (_pool(fusedActivationFunction=5), "its fused activation SIGN_BIT is not supported"),
    "an activation behind the last": (_pool(fusedActivationFunction=6), "its fused activation number 6 is not supported"),
    "an activation before the first": (_pool(fusedActivationFunction=-1), "its fused activation number -1 is not supported"),
    # windows
    "a stride of no lines": (_pool(strideH=0), "its kernel (2, 3), stride (0, 1) or dilation (1, 1) is below 1"),
    "a stride of no columns": (_pool(strideW=0), "its kernel (2, 3), stride (1, 0) or dilation (1, 1) is below 1"),
    "a kernel of no columns": (_pool(filterWidth=0), "its kernel (2, 0), stride (1, 1) or dilation (1, 1) is below 1"),
    "a dilation of no lines": (
        _conv((4, 3, 2, 3), dilationHFactor=0),
        "its kernel (3, 2), stride (1, 1) or dilation (0, 1) is below 1",
    ),
    "a dilation of no columns": (
        _conv((4, 3, 2, 3), dilationWFactor=0),
        "its kernel (3, 2), stride (1, 1) or dilation (1, 0) is below 1",
    ),
    "depthwise, a dilation of no lines": (
        _conv((1, 3, 2, 3), depthwise=True, dilationHFactor=0),
        "its kernel (3, 2), stride (1, 1) or dilation (0, 1) is below 1",
    ),
    "depthwise, a dilation of no columns": (
        _conv((1, 3, 2, 3), depthwise=True, dilationWFactor=0),
        "its kernel (3, 2), stride (1, 1) or dilation (1, 0) is below 1",
    ),
    "a padding behind the last": (_pool(padding=2), "its padding is number 2"),
    "a padding before the first": (_pool(padding=-1), "its padding is number -1"),
    "a window of the image": (_pool((2, 1, 1, 3), padding=1, filterHeight=5, filterWidth=7), ""),
    "a window of a line more": (
        _pool((2, 1, 1, 3), padding=1, filterHeight=6, filterWidth=7),
        "its window 6 x 7 is larger than its input 5 x 7",
    ),
    "a window of a column more": (
        _pool((2, 1, 1, 3), padding=1, filterHeight=5, filterWidth=8),
        "its window 5 x 8 is larger than its input 5 x 7",
    ),
    "a dilated window of the image": (_conv((4, 3, 2, 3), (2, 1, 1, 4), padding=1, dilationHFactor=2, dilationWFactor=6), ""),
    "a dilated window of a column more": (
        _conv((4, 3, 2, 3), (2, 1, 1, 4), padding=1, dilationHFactor=2, dilationWFactor=7),
        "its window 5 x 8 is larger than its input 5 x 7",
    ),
    "a pool of other stimuli": (_pool((1, 5, 7, 3)), "its result is 2 x 5 x 7 x 3, but is declared as 1 x 5 x 7 x 3"),
    "a pool of other channels": (_pool((2, 5, 7, 4)), "its result is 2 x 5 x 7 x 3, but is declared as 2 x 5 x 7 x 4"),
    # convolutions
    "a convolution": (_conv((4, 3, 2, 3)), ""),
    "of other stimuli": (_conv((4, 3, 2, 3), (1, 5, 7, 4)), "its result is 2 x 5 x 7 x 4, but is declared as 1 x 5 x 7 x 4"),
    "weights of five axes": (_conv((4, 3, 2, 3, 1)), "its weights have the shape 4 x 3 x 2 x 3 x 1"),
    "weights of no lines": (_conv((4, 0, 2, 3)), "its weights have the shape 4 x 0 x 2 x 3"),
    "weights of no channels": (_conv((4, 3, 2, 0)), "its weights have the shape 4 x 3 x 2 x 0"),
    "depthwise weights of no outputs": (_conv((1, 3, 2, 0), depthwise=True), "its weights have the shape 1 x 3 x 2 x 0"),
    "one scale, another axis": (_conv((4, 3, 2, 3), axis=3), ""),
    "two scales by output": (_conv((2, 3, 3, 3), axis=0, scales=2), ""),
    "two scales of lines": (_conv((4, 2, 3, 3), axis=1, scales=2), "its weights have scales along the axis 1, not 0"),
    "scales of columns": (_conv((3, 3, 3, 3), axis=2, scales=3), "its weights have scales along the axis 2, not 0"),
    "depthwise, two scales of lines": (
        _conv((1, 2, 3, 3), depthwise=True, axis=1, scales=2),
        "its weights have scales along the axis 1, not 3",
    ),
    "depthwise, one scale, another axis": (_conv((1, 2, 3, 3), depthwise=True, axis=0), ""),
    "depthwise, no multiplier": (_conv((1, 3, 2, 6), depthwise=True, depthMultiplier=0), ""),
    "depthwise, its multiplier": (_conv((1, 3, 2, 6), depthwise=True, depthMultiplier=2), ""),
    "depthwise, a larger multiplier": (
        _conv((1, 3, 2, 6), depthwise=True, depthMultiplier=3),
        "its multiplier is 3, its weights are those of 2",
    ),
    "depthwise, a negative multiplier": (
        _conv((1, 3, 2, 3), depthwise=True, depthMultiplier=-1),
        "its multiplier is -1, its weights are those of 1",
    ),
    "depthwise, two filters": (_conv((2, 3, 2, 3), depthwise=True), "its weights for 3 outputs do not fit 3 channels"),
    "depthwise, fewer outputs": (_conv((1, 3, 2, 2), depthwise=True), "its weights for 2 outputs do not fit 3 channels"),
    "depthwise, four outputs": (_conv((1, 3, 2, 4), depthwise=True), "its weights for 4 outputs do not fit 3 channels"),
    "three groups of one output": (_conv((3, 3, 2, 1)), ""),
    "three groups, four outputs": (_conv((4, 3, 2, 1)), "its weights of 1 channels do not fit 3"),
    "three groups, two outputs": (_conv((2, 3, 2, 1)), "its weights of 1 channels do not fit 3"),
    "weights of two channels": (_conv((4, 3, 2, 2)), "its weights of 2 channels do not fit 3"),
    "weights of six channels": (_conv((4, 3, 2, 6)), "its weights of 6 channels do not fit 3"),
    "no channels": (
        _empty(lambda m, x: m.add("CONV_2D", [x, _const(m, (4, 3, 2, 3))], (2, 5, 7, 4), OUT, "Conv2DOptions", **UNITS)),
        "its weights of 3 channels do not fit 0",
    ),
    "depthwise, no channels": (
        _empty(
            lambda m, x: m.add(
                "DEPTHWISE_CONV_2D", [x, _const(m, (1, 3, 2, 3))], (2, 5, 7, 3), OUT, "DepthwiseConv2DOptions", **UNITS
            )
        ),
        "its weights for 3 outputs do not fit 0 channels",
    ),
    # biases
    "a bias of integers": (_biased(np.arange(4, dtype=np.int32)), ""),
    "a bias of real numbers": (_biased(np.arange(4, dtype=np.float32)), ""),
    "a bias of three axes": (_biased(np.arange(4, dtype=np.int32).reshape(1, 1, 4)), ""),
    "a bias too long": (_biased(np.arange(5, dtype=np.int32)), "its bias has 5 elements for 4 outputs"),
    "a bias too short": (_biased(np.arange(3, dtype=np.float32)), "its bias has 3 elements for 4 outputs"),
    "a bias of 64 bits": (_biased(np.arange(4, dtype=np.int64)), "its bias is of int64"),
    "a bias of integers between real numbers": (
        _biased(np.arange(4, dtype=np.int32), source=None, weights=None),
        "its bias is of int32",
    ),
    "a bias of integers behind real numbers": (_biased(np.arange(4, dtype=np.int32), source=None), "its bias is of int32"),
    "a bias of real numbers behind real numbers": (_biased(np.arange(4, dtype=np.float32), source=None), ""),
    "dense, a bias too long": (
        _biased(np.arange(5, dtype=np.int32), code="FULLY_CONNECTED"),
        "its bias has 5 elements for 4 outputs",
    ),
    "dense, a bias of integers, weights without a scale": (
        lambda m: m.add(
            "FULLY_CONNECTED",
            [m.x, m.file.tensor("w", (4, 105), np.int8, None, np.ones((4, 105), np.int8)), m.constant("b", [1, 2, 3, 4])],
            (2, 4),
            OUT,
            "FullyConnectedOptions",
        ),
        "its bias is of int32",
    ),
    # transposed
    "transposed": (_turned((4, 3, 2, 3)), ""),
    "transposed, five axes": (_turned((4, 3, 2, 3, 1)), "its weights 4 x 3 x 2 x 3 x 1 do not fit 3 channels"),
    "transposed, no columns": (_turned((4, 3, 0, 3)), "its weights 4 x 3 x 0 x 3 do not fit 3 channels"),
    "transposed, other channels": (_turned((4, 3, 2, 2)), "its weights 4 x 3 x 2 x 2 do not fit 3 channels"),
    "transposed, one scale, another axis": (_turned((4, 3, 2, 3), axis=3), ""),
    "transposed, two scales by output": (_turned((2, 3, 2, 3), (2, 10, 14, 2), axis=0, scales=2), ""),
    "transposed, two scales of columns": (
        _turned((4, 3, 2, 3), axis=2, scales=2),
        "its weights have scales along the axis 2, not 0",
    ),
    "transposed, other stimuli": (
        _turned((4, 3, 2, 3), (1, 10, 14, 4)),
        "its result 1 x 10 x 14 x 4 does not fit its input 2 x 5 x 7 x 3",
    ),
    "transposed, other outputs": (
        _turned((4, 3, 2, 3), (2, 10, 14, 5)),
        "its result 2 x 10 x 14 x 5 does not fit its input 2 x 5 x 7 x 3",
    ),
    "transposed, lines less": (
        _turned((4, 3, 2, 3), (2, 8, 14, 4)),
        "its result 2 x 8 x 14 x 4 does not fit its input 2 x 5 x 7 x 3",
    ),
    "transposed, columns more": (
        _turned((4, 3, 2, 3), (2, 10, 15, 4)),
        "its result 2 x 10 x 15 x 4 does not fit its input 2 x 5 x 7 x 3",
    ),
    "transposed, rows": (_turned((4, 3, 2, 3), (2, 10, 14)), "it reads a tensor of 3 axes, not of 4"),
    "transposed, no stride": (
        _turned((4, 3, 2, 3), stride=(2, 0)),
        "its kernel (3, 2), stride (2, 0) or dilation (1, 1) is below 1",
    ),
    "transposed, a padding without name": (_turned((4, 3, 2, 3), padding=2), "its padding is number 2"),
    "transposed, TANH": (_turned((4, 3, 2, 3), fusedActivationFunction=4), "its fused activation TANH is not supported"),
    # fully connected
    "dense": (_dense(), ""),
    "dense, shuffled": (_dense(weightsFormat=1), "its weights are shuffled"),
    "dense, one axis": (_dense((420,)), "its weights 420 do not fit 210 elements"),
    "dense, no outputs": (_dense((0, 105), (2, 0)), "its weights 0 x 105 do not fit 210 elements"),
    "dense, no inputs": (_dense((4, 0)), "its weights 4 x 0 do not fit 210 elements"),
    "dense, other elements": (_dense((4, 100)), "its weights 4 x 100 do not fit 210 elements"),
    "dense, one scale, another axis": (_dense(axis=1), ""),
    "dense, two scales by output": (_dense((2, 105), (2, 2), scales=2), ""),
    "dense, two scales by input": (
        _dense((4, 2), (105, 4), axis=1, scales=2),
        "its weights have scales along the axis 1, not 0",
    ),
    "dense, other outputs": (_dense(made=(2, 5)), "its result is 2 x 4, but is declared as 2 x 5"),
    "dense, other rows": (_dense(made=(1, 4)), "its result is 2 x 4, but is declared as 1 x 4"),
    "dense, all in one": (_dense(made=(8,)), "its result is 2 x 4, but is declared as 8"),
    "dense, outputs before the last axis": (_dense(made=(2, 4, 1)), "its result is 2 x 4, but is declared as 2 x 4 x 1"),
    "dense, rows of an axis more": (_dense(made=(1, 2, 4)), ""),
    "dense, one output": (_dense((1, 105), (2, 1)), ""),
    "dense, one input": (_dense((4, 1), (210, 4)), ""),
    "dense, TANH": (_dense(fusedActivationFunction=4), "its fused activation TANH is not supported"),
    # elements
    "sizes that do not fit": (
        lambda m: m.add("SUB", [m.x, _const(m, (2,))], SHAPE, OUT, "SubOptions"),
        "its inputs (2, 5, 7, 3) and (2,) do not fit each other",
    ),
    "a sum of another shape": (
        lambda m: m.add("ADD", [m.x, _const(m, (3,))], (2, 5, 7, 1), OUT, "AddOptions"),
        "its result is 2 x 5 x 7 x 3, but is declared as 2 x 5 x 7 x 1",
    ),
    "a sum, TANH": (
        lambda m: m.add("ADD", [m.x, _const(m, (3,))], SHAPE, OUT, "AddOptions", fusedActivationFunction=4),
        "its fused activation TANH is not supported",
    ),
    "a function of another shape": (
        lambda m: m.add("ABS", [m.x], (2, 5, 3, 7), OUT),
        "its result is 2 x 5 x 7 x 3, but is declared as 2 x 5 x 3 x 7",
    ),
    "a root of another shape": (
        lambda m: m.add("RSQRT", [m.x], (2, 5, 3, 7), OUT),
        "its result is 2 x 5 x 7 x 3, but is declared as 2 x 5 x 3 x 7",
    ),
    "a rectifier of another shape": (
        lambda m: m.add("RELU6", [m.x], (2, 5, 3, 7), OUT),
        "its result is 2 x 5 x 7 x 3, but is declared as 2 x 5 x 3 x 7",
    ),
    "slopes": (_slopes((5, 7, 3)), ""),
    "slopes of one stimulus": (_slopes((1, 5, 7, 3)), ""),
    "slopes of two stimuli": (_slopes(SHAPE), "its slopes are others for each stimulus"),
    "slopes of five axes": (_slopes((1, 1, 1, 1, 3)), "its slopes are computed at run time, or have more axes than its input"),
    "slopes of two scales": (_slopes((5, 7, 3), 3), "its slopes have several scales"),
    "slopes of four rows": (
        lambda m: m.add("PRELU", [m.add("RESHAPE", [m.x], (10, 21), IN), _const(m, (10, 21))], (10, 21), OUT),
        "its slopes are others for each stimulus",
    ),
    "slopes of real numbers": (_slopes((5, 7, 3), real=True), ""),
    "slopes, another shape": (
        lambda m: m.add("PRELU", [m.x, _const(m, (3,))], (2, 5, 3, 7), OUT),
        "its result is 2 x 5 x 7 x 3, but is declared as 2 x 5 x 3 x 7",
    ),
    "no beta": (lambda m: m.add("SOFTMAX", [m.x], SHAPE, (1 / 256, -128)), "its beta is 0"),
    "a negative beta": (
        lambda m: m.add("SOFTMAX", [m.x], SHAPE, (1 / 256, -128), "SoftmaxOptions", beta=-1.0),
        "its beta is -1",
    ),
    "a beta just below the limit": (
        lambda m: m.add("SOFTMAX", [m.x], SHAPE, (1 / 256, -128), "SoftmaxOptions", beta=999999.0),
        "",
    ),
    "a beta at the limit": (
        lambda m: m.add("SOFTMAX", [m.x], SHAPE, (1 / 256, -128), "SoftmaxOptions", beta=1e6),
        "its beta is 1e+06",
    ),
    "a beta that is no number": (
        lambda m: m.add("SOFTMAX", [m.x], SHAPE, (1 / 256, -128), "SoftmaxOptions", beta=np.nan),
        "its beta is nan",
    ),
    "a softmax of another shape": (
        lambda m: m.add("SOFTMAX", [m.x], (2, 5, 3, 7), (1 / 256, -128), "SoftmaxOptions", beta=1.0),
        "its result is 2 x 5 x 7 x 3, but is declared as 2 x 5 x 3 x 7",
    ),
    # moves
    "other elements": (lambda m: m.add("RESHAPE", [m.x], (2, 5, 7, 2), IN), "210 elements do not fill 2 x 5 x 7 x 2"),
    "joined": (_joined((2, 5, 7, 1), axis=3, made=(2, 5, 7, 4)), ""),
    "joined along another axis": (
        _joined(SHAPE, axis=1, made=(2, 5, 14, 3)),
        "its result is 2 x 10 x 7 x 3, but is declared as 2 x 5 x 14 x 3",
    ),
    "joined with fewer axes": (
        _joined((5, 7, 3), axis=1, made=(2, 10, 7, 3)),
        "its result is 2 x 5 x 7 x 3, but is declared as 2 x 10 x 7 x 3",
    ),
    "joined of other columns": (
        _joined((2, 5, 6, 1), axis=3, made=(2, 5, 7, 4)),
        "its result is 2 x 5 x 6 x 4, but is declared as 2 x 5 x 7 x 4",
    ),
    "joined of other lines": (
        _joined((2, 4, 7, 1), axis=-1, made=(2, 5, 7, 4)),
        "its result is 2 x 4 x 7 x 4, but is declared as 2 x 5 x 7 x 4",
    ),
    "joined of other channels": (
        _joined(SHAPE, (2, 5, 7, 2), axis=1, made=(2, 15, 7, 3)),
        "its result is 2 x 15 x 7 x 2, but is declared as 2 x 15 x 7 x 3",
    ),
    "joined along the axis behind the last": (_joined(SHAPE, axis=4, made=SHAPE), "its axis 4 is none of 4"),
    "joined along the axis before the first": (_joined(SHAPE, axis=-5, made=SHAPE), "its axis -5 is none of 4"),
    "pads of three axes": (_with("PAD", [[0, 0]] * 3), "its padding [0, 0, 0, 0, 0, 0] does not fit 4 axes"),
    "pads of six axes": (_with("PAD", [[1, 1]] * 6), "its padding [1, 1, 1, 1, 1, 1, 1, 1, 1, 1] does not fit 4 axes"),
    "a negative pad": (
        _with("PAD", [[0, 0], [0, -1], [0, 0], [0, 0]], made=(2, 4, 7, 3)),
        "its padding [0, 0, 0, -1, 0, 0, 0, 0] does not fit 4 axes",
    ),
    "pads of another result": (
        _with("PAD", [[0, 0], [1, 0], [0, 0], [0, 0]], made=(2, 7, 7, 3)),
        "its result is 2 x 6 x 7 x 3, but is declared as 2 x 7 x 7 x 3",
    ),
    "pads of real numbers": (_with("PAD", [[0, 0]] * 4, dtype=np.float32), "its padding is of type float32"),
    "mirrored by one": (
        _with("MIRROR_PAD", [[0, 0], [0, 0], [0, 0], [0, 1]], made=(2, 5, 7, 4), options="MirrorPadOptions", mode=1),
        "its mode SYMMETRIC is not supported",
    ),
    "nothing is mirrored": (_with("MIRROR_PAD", [[0, 0]] * 4, options="MirrorPadOptions", mode=1), ""),
    "a value": (_fill([3]), ""),
    "a value without axes": (_fill(3), ""),
    "two values": (_fill([3, 4]), "it has 2 values"),
    "no values": (_with("PADV2", [[0, 0]] * 4, options="PadV2Options"), "it lacks an input"),
    "a computed value": (
        lambda m: m.add("PADV2", [m.x, m.constant("p", [[0, 0]] * 4), m.x], SHAPE, IN, "PadV2Options"),
        "its value is computed at run time",
    ),
    "a mean over the axis behind the last": (
        _with("MEAN", [4], made=SHAPE, options="ReducerOptions", keepDims=True),
        "its axis 4 is none of 4",
    ),
    "a mean over the axis before the first": (
        _with("MEAN", [-5], made=SHAPE, options="ReducerOptions", keepDims=True),
        "its axis -5 is none of 4",
    ),
    "a mean over the first axis from the end": (
        _with("MEAN", [-4], made=(1, 5, 7, 3), options="ReducerOptions", keepDims=True),
        "",
    ),
    "a mean of another result": (
        _with("MEAN", [2], made=(2, 5, 1, 3), options="ReducerOptions", keepDims=False),
        "its result is 2 x 5 x 3, but is declared as 2 x 5 x 1 x 3",
    ),
    "a sum of integers": (
        _with("SUM", [2], made=(2, 5, 1, 3), options="ReducerOptions", keepDims=True),
        "its input is quantized",
    ),
    "a largest of integers": (_with("REDUCE_MAX", [2], made=(2, 5, 1, 3), options="ReducerOptions", keepDims=True), ""),
    "one size": (_with("RESIZE_BILINEAR", [9], options="ResizeBilinearOptions"), "its size is [9]"),
    "five sizes": (_with("RESIZE_BILINEAR", [9, 8, 7, 6, 5], options="ResizeBilinearOptions"), "its size is [9, 8, 7, 6]"),
    "no columns": (_with("RESIZE_BILINEAR", [9, 0], made=(2, 9, 0, 3), options="ResizeBilinearOptions"), "its size is [9, 0]"),
    "one pixel": (_with("RESIZE_BILINEAR", [1, 1], made=(2, 1, 1, 3), options="ResizeBilinearOptions"), ""),
    "a resize of other stimuli": (
        _with("RESIZE_BILINEAR", [9, 8], made=(1, 9, 8, 3), options="ResizeBilinearOptions"),
        "its result is 2 x 9 x 8 x 3, but is declared as 1 x 9 x 8 x 3",
    ),
    "a resize of other channels": (
        _with("RESIZE_BILINEAR", [9, 8], made=(2, 9, 8, 2), options="ResizeBilinearOptions"),
        "its result is 2 x 9 x 8 x 3, but is declared as 2 x 9 x 8 x 2",
    ),
    "an order of nine": (_with("TRANSPOSE", [*range(9)]), "its order [0, 1, 2, 3, 4, 5, 6, 7] is none of 4 axes"),
    "an order from 1": (_with("TRANSPOSE", [1, 2, 3, 4]), "its order [1, 2, 3, 4] is none of 4 axes"),
    "a turned tensor of another shape": (
        _with("TRANSPOSE", [0, 2, 1, 3], made=SHAPE),
        "its result is 2 x 7 x 5 x 3, but is declared as 2 x 5 x 7 x 3",
    ),
    # parts
    "begins of three axes": (_strided([0] * 3, [2, 5, 7, 3], [1] * 4), "its begin, end and steps do not fit 4 axes"),
    "ends of three axes": (_strided([0] * 4, [2, 5, 7], [1] * 4), "its begin, end and steps do not fit 4 axes"),
    "steps of three axes": (_strided([0] * 4, [2, 5, 7, 3], [1] * 3), "its begin, end and steps do not fit 4 axes"),
    "a step of 0 at the end": (_strided([0] * 4, [2, 5, 7, 3], [1, 1, 1, 0]), "its begin, end and steps do not fit 4 axes"),
    "an ellipsis": (
        _strided([0] * 4, SHAPE, [1] * 4, ellipsisMask=8),
        "it has an ellipsis, a new axis or ends that are offsets",
    ),
    "a new axis": (_strided([0] * 4, SHAPE, [1] * 4, newAxisMask=8), "it has an ellipsis, a new axis or ends that are offsets"),
    "ends that are offsets": (
        _strided([0] * 4, SHAPE, [1] * 4, offset=True),
        "it has an ellipsis, a new axis or ends that are offsets",
    ),
    "the last index": (_strided([0, 4, 0, 0], SHAPE, [1] * 4, (2, 7, 3), shrinkAxisMask=2), ""),
    "the first index from the end": (_strided([0, -5, 0, 0], SHAPE, [1] * 4, (2, 7, 3), shrinkAxisMask=2), ""),
    "an index beyond": (_strided([0, 5, 0, 0], SHAPE, [1] * 4, (2, 7, 3), shrinkAxisMask=2), "it takes the index 5 of 5"),
    "an index before": (_strided([0, -6, 0, 0], SHAPE, [1] * 4, (2, 7, 3), shrinkAxisMask=2), "it takes the index -6 of 5"),
    "a strided part of another result": (
        _strided([0, 1, 0, 0], SHAPE, [1] * 4, (2, 5, 7, 3)),
        "its result is 2 x 4 x 7 x 3, but is declared as 2 x 5 x 7 x 3",
    ),
    "begins of a slice of three axes": (_with("SLICE", [0] * 3, [2, 5, 7, 3]), "its begin and size do not fit 4 axes"),
    "sizes of a slice of three axes": (_with("SLICE", [0] * 4, [2, 5, 7]), "its begin and size do not fit 4 axes"),
    "a slice that begins before": (_with("SLICE", [0, 0, -1, 0], [2, 5, 7, 3]), "its begin and size do not fit 4 axes"),
    "a slice that begins beyond": (_with("SLICE", [0, 6, 0, 0], [2, -1, 7, 3]), "its begin and size do not fit 4 axes"),
    "a slice of a line too many": (_with("SLICE", [0, 1, 0, 0], [2, 5, 7, 3]), "its begin and size lead out of its input"),
    "a slice of a negative size": (_with("SLICE", [0, 1, 0, 0], [2, -2, 7, 3]), "its begin and size lead out of its input"),
    "parts": (_parts((2, 3), 1), ""),
    "parts that leave a line": (_parts((2, 2), 1), "its parts take 4 of 5"),
    "parts of an axis beyond": (_parts((2, 3), 4), "its axis 4 is none of 4"),
    "parts of two axes": (_parts((2, 3), [1, 2]), "it has 2 axes"),
    "parts of no axis": (_parts((2, 3), []), "its axis is computed at run time"),
    "parts by sizes": (_parts((2, 3), 1, True), ""),
    "parts by sizes of two axes": (_parts((2, 3), [1, 2], True), "it has 2 axes"),
    "parts of other axes": (
        _parts((2, 3), 1, shapes=[(2,), (2, 3, 7, 3)]),
        "its result is 2 x 0 x 7 x 3, but is declared as 2",
    ),
    "a block of no pixels": (_with("SPACE_TO_DEPTH", options="SpaceToDepthOptions", blockSize=0), "its block has 0 pixels"),
    "a block of -1 pixels": (_with("DEPTH_TO_SPACE", options="DepthToSpaceOptions", blockSize=-1), "its block has -1 pixels"),
    "a constant of run time": (_with("DENSIFY"), "its input is no constant"),
    "another shape of another type": (
        _with("QUANTIZE", made=(2, 5, 3, 7)),
        "its result is 2 x 5 x 7 x 3, but is declared as 2 x 5 x 3 x 7",
    ),
    # real numbers
    "x of integers": (_last("x"), "it computes with quantized tensors"),
    "a result of integers": (_last("real", made_grid=IN), "it computes with quantized tensors"),
    "the second of integers": (_last("real", "x", code="POW"), "it computes with quantized tensors"),
    "one input left out": (_last("real", "none", code="POW"), "it lacks an input"),
    "one input too few": (_last("real", code="POW"), "it has 1 inputs and 1 outputs"),
    "two inputs for three": (_last("real", "real", code="SELECT_V2"), "it has 2 inputs and 1 outputs"),
    "operands that do not fit": (
        _two("POW", "PowOptions", SHAPE, (2,), SHAPE),
        "its inputs (2, 5, 7, 3), (2,) do not fit each other",
    ),
    "a power of another shape": (
        _two("POW", "PowOptions", SHAPE, (3,), (2, 5, 7, 1)),
        "its result is 2 x 5 x 7 x 3, but is declared as 2 x 5 x 7 x 1",
    ),
    "numbers where truth values belong": (_last("real", code="LOGICAL_NOT"), "'t1' is of float32"),
    "rows are chosen": (_select("SELECT", (2,)), "its condition chooses whole rows, or its inputs have several shapes"),
    "elements of the last axis are chosen": (_select("SELECT_V2", (3,)), ""),
    "all are chosen": (_select("SELECT", ()), ""),
    "all are chosen by one": (_select("SELECT", (1,)), ""),
    "each is chosen": (_select("SELECT", SHAPE), ""),
    "integers become real": (_cast(np.int32, np.float32), "it turns int32 into float32"),
    "real numbers become integers": (_cast(np.float32, np.int32), "it turns float32 into int32"),
    "truth values become integers": (_cast(np.bool_, np.int32), "it turns bool into int32"),
    "real numbers become truth values": (_cast(np.float32, np.bool_), "it turns float32 into bool"),
    "packed": (_packed(SHAPE, axis=1, made=(2, 2, 5, 7, 3)), ""),
    "packed of several shapes": (_packed(SHAPE, (2, 5, 7, 1), axis=0, made=(3, *SHAPE)), "its inputs have several shapes"),
    "packed along an axis beyond": (_packed(SHAPE, axis=5, made=(*SHAPE, 2)), "its axis 5 is none of 5"),
    "packed along an axis before": (_packed(SHAPE, axis=-6, made=(2, *SHAPE)), "its axis -6 is none of 5"),
    "packed of another result": (
        _packed(SHAPE, axis=0, made=(3, *SHAPE)),
        "its result is 2 x 2 x 5 x 7 x 3, but is declared as 3 x 2 x 5 x 7 x 3",
    ),
    "all parts but one": (_unpacked(1, 4, (2, 7, 3)), "it has 4 outputs for 5 parts"),
    "one part more": (_unpacked(3, 4, (2, 5, 7)), "it has 4 outputs for 3 parts"),
    "parts of the axis behind the last": (_unpacked(4, 3, (2, 5, 7)), "its axis 4 is none of 4"),
    "parts of the axis before the first": (_unpacked(-5, 2, (5, 7, 3)), "its axis -5 is none of 4"),
    "reversed along the axis behind the last": (_with("REVERSE_V2", [4], real=True), "its axis 4 is none of 4"),
    "reversed along the axis before the first": (_with("REVERSE_V2", [-5], real=True), "its axis -5 is none of 4"),
    "three counts": (_with("TILE", [1, 1, 2], real=True), "it repeats 3 axes of 4"),
    "five counts": (_with("TILE", [1, 1, 1, 1, 2], real=True, made=(1, *SHAPE)), "it repeats 5 axes of 4"),
    "counts of another result": (
        _with("TILE", [1, 2, 1, 1], real=True, made=SHAPE),
        "its result is 2 x 10 x 7 x 3, but is declared as 2 x 5 x 7 x 3",
    ),
    "fewer axes": (
        _with("BROADCAST_TO", [5, 7, 3], real=True, made=(5, 7, 3)),
        "its input (2, 5, 7, 3) does not become [5, 7, 3]",
    ),
    "another size": (
        _with("BROADCAST_TO", [2, 5, 7, 6], real=True, made=(2, 5, 7, 6)),
        "its input (2, 5, 7, 3) does not become [2, 5, 7, 6]",
    ),
    "nine axes": (
        _with("BROADCAST_TO", [1, 2, 3, 4, 5, 2, 5, 7, 2], real=True, made=SHAPE),
        "its input (2, 5, 7, 3) does not become [1, 2, 3, 4, 5, 2, 5, 7]",
    ),
    "broadcast to another result": (
        _with("BROADCAST_TO", [4, 2, 5, 7, 3], real=True, made=SHAPE),
        "its result is 4 x 2 x 5 x 7 x 3, but is declared as 2 x 5 x 7 x 3",
    ),
    "a position": (_with("GATHER", [2], real=True, made=(2, 5, 7, 1), options="GatherOptions", axis=3), ""),
    "a position beyond": (
        _with("GATHER", [0, 3], real=True, made=(2, 5, 7, 2), options="GatherOptions", axis=3),
        "it takes positions that are none of 3",
    ),
    "a position before": (
        _with("GATHER", [0, -1], real=True, made=(2, 5, 7, 2), options="GatherOptions", axis=3),
        "it takes positions that are none of 3",
    ),
    "a position without axes": (
        _with("GATHER", 1, real=True, made=(2, 5, 7), options="GatherOptions", axis=3),
        "its positions have 0 axes, or it takes others for each stimulus",
    ),
    "positions of two axes": (
        _with("GATHER", [[0, 1]], real=True, made=(2, 5, 7, 1, 2), options="GatherOptions", axis=3),
        "its positions have 2 axes, or it takes others for each stimulus",
    ),
    "positions of each stimulus": (
        _with("GATHER", [0, 1], real=True, made=(2, 5, 7, 2), options="GatherOptions", axis=3, batchDims=1),
        "its positions have 1 axes, or it takes others for each stimulus",
    ),
    "positions of no axis": (
        _with("GATHER", [0, 1], real=True, made=(2, 5, 7, 2), options="GatherOptions", axis=4),
        "its axis 4 is none of 4",
    ),
    "positions of another result": (
        _with("GATHER", [0, 1], real=True, made=(2, 5, 7, 3), options="GatherOptions", axis=3),
        "its result is 2 x 5 x 7 x 2, but is declared as 2 x 5 x 7 x 3",
    ),
    "products of vectors": (
        _two("BATCH_MATMUL", "BatchMatMulOptions", (210,), (210,), (1,)),
        "it multiplies arrays of 1 and 1 axes",
    ),
    "products of other axes": (
        _two("BATCH_MATMUL", "BatchMatMulOptions", (10, 21), (1, 21, 4), (1, 10, 4)),
        "it multiplies arrays of 2 and 3 axes",
    ),
    "products of other stimuli": (
        _two("BATCH_MATMUL", "BatchMatMulOptions", (2, 5, 21), (3, 21, 4), (2, 5, 4)),
        "its inputs (2, 5, 21) and (3, 21, 4) do not fit each other",
    ),
    "products of other columns": (
        _two("BATCH_MATMUL", "BatchMatMulOptions", (2, 5, 21), (2, 20, 4), (2, 5, 4)),
        "its inputs (2, 5, 21) and (2, 20, 4) do not fit each other",
    ),
    "products of turned columns": (
        _two("BATCH_MATMUL", "BatchMatMulOptions", (2, 5, 21), (2, 21, 4), (2, 5, 21), adjY=True),
        "its inputs (2, 5, 21) and (2, 21, 4) do not fit each other",
    ),
    "products of another result": (
        _two("BATCH_MATMUL", "BatchMatMulOptions", (2, 5, 21), (1, 21, 4), (1, 5, 4)),
        "its result is 2 x 5 x 4, but is declared as 1 x 5 x 4",
    ),
    "a unit length with an activation": (
        _with("L2_NORMALIZATION", real=True, options="L2NormOptions", fusedActivationFunction=1),
        "it has a fused activation",
    ),
    "a unit length of another shape": (
        _with("L2_NORMALIZATION", real=True, made=(2, 5, 3, 7), options="L2NormOptions"),
        "its result is 2 x 5 x 7 x 3, but is declared as 2 x 5 x 3 x 7",
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_rules(name, tmp_path):
    make, text = RULES[name]
    m = Small(SHAPE)
    assert refusal(written(m, tmp_path, make(m))) == text


OTHERS = {
    code: count
    for count, codes in {
        1: "RESHAPE CONCATENATION SPACE_TO_DEPTH DEPTH_TO_SPACE AVERAGE_POOL_2D MAX_POOL_2D PACK UNPACK CAST L2_NORMALIZATION NEG ELU"
        " SQUARE LOGICAL_NOT",
        2: "CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED ADD SUB MUL DIV MAXIMUM MINIMUM PRELU PAD PADV2 MIRROR_PAD MEAN SUM REDUCE_MAX"
        " REDUCE_MIN RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR TRANSPOSE SPLIT POW SQUARED_DIFFERENCE EQUAL NOT_EQUAL LESS LESS_EQUAL"
        " GREATER GREATER_EQUAL LOGICAL_AND LOGICAL_OR REVERSE_V2 TILE BROADCAST_TO GATHER BATCH_MATMUL",
        3: "TRANSPOSE_CONV SLICE SPLIT_V SELECT SELECT_V2",
        4: "STRIDED_SLICE",
    }.items()
    for code in codes.split()
}
"""The least number of inputs."""


@pytest.mark.parametrize("code", OTHERS)
def test_an_input_too_few(code, tmp_path):
    m, count = Small(SHAPE), OTHERS[code] - 1
    made = m.add(code, [m.x] * count, SHAPE, IN)
    assert refusal(written(m, tmp_path, made)) == f"it has {count} inputs and 1 outputs"


def _second_output(m: Small, made: int) -> int:
    m.file._operators[-1].outputs = np.array([made, m.tensor("other", SHAPE, IN)], np.int32)
    return made


@pytest.mark.parametrize(
    "code", sorted({*OTHERS, "RELU", "TANH", "RSQRT", "GELU", "SOFTMAX", "QUANTIZE"} - {"SPLIT", "SPLIT_V", "UNPACK", "PACK"})
)
def test_an_output_too_many(code, tmp_path):
    """Of operators of integers, and of real numbers: these look at their outputs first."""
    m, count = Small(SHAPE), OTHERS.get(code, 1)
    made = _second_output(m, m.add(code, [m.x] * count, SHAPE, IN))
    text = refusal(written(m, tmp_path, made))
    assert text in (f"it has {count} inputs and 2 outputs", "it computes with quantized tensors")


def test_a_bias_that_is_the_first_tensor(tmp_path):
    m = Small(SHAPE)
    m.file = ModelFile(need_schema())
    b = m.file.tensor("b", (5,), np.int32, None, np.arange(5, dtype=np.int32))
    m.x = m.tensor("x", SHAPE, IN)
    y = m.add("CONV_2D", [m.x, _const(m, (4, 1, 1, 3)), b], (2, 5, 7, 4), OUT, "Conv2DOptions", padding=0, **UNITS)
    assert refusal(written(m, tmp_path, y)) == "its bias has 5 elements for 4 outputs"


@pytest.mark.parametrize(
    ("size", "padding", "text"),
    [(12, 1, ""), (11, 1, "its options have 11 bytes"), (0, 1, "its options have 0 bytes"), (16, 1, ""),
     (12, 0, "its padding is number -1"), (12, 3, "its padding is number -1"), (12, -1, "its padding is number -1")],
)  # fmt: skip
def test_options_of_mediapipe(size, padding, text, tmp_path):
    m = Small(SHAPE)
    path = written(m, tmp_path, _turned((4, 3, 2, 3))(m))

    def change(schema, model) -> None:
        code, operator = model.operatorCodes[0], model.subgraphs[0].operators[0]
        code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.CUSTOM
        code.customCode = "Convolution2DTransposeBias"
        operator.builtinOptionsType, operator.builtinOptions = 0, None
        operator.customOptions = np.array([padding, 2, 2, 0], np.int32).view(np.uint8)[:size]
        operator.inputs = np.append(operator.inputs[[2, 1]], -1).astype(np.int32)

    assert refusal(rewritten(path, change)) == text
