"""What operators of .tflite files are refused for, each in a file of one operator, and what lies just beside and is taken.

They look at `n2d2py.frontend.tflite.file`, `n2d2py.frontend.tflite.lowering`, `n2d2py.frontend.tflite.operators`,
`n2d2py.frontend.tflite.real_operators` and `n2d2py.frontend.tflite.translation`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert", reason="ai-edge-litert, whose schema writes the files, is not installed")

from support.tflite_files import IN, OUT, Small, rewritten

from n2d2py.errors import N2D2Error
from n2d2py.exports.tflite import file as tflite_file
from n2d2py.frontend.models import load_model
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.executor import run_graph

SHAPE = (1, 8, 6, 4)
UNITS = {"strideH": 1, "strideW": 1}
LAYER = {"padding": 0, **UNITS, "dilationHFactor": 1, "dilationWFactor": 1}
POOL = {"padding": 0, **UNITS, "filterHeight": 2, "filterWidth": 2}
LEAST = {
    **dict.fromkeys(
        ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "PRELU", "PAD", "MEAN", "TRANSPOSE", "SPLIT"), 2
    ),
    **dict.fromkeys(("RESIZE_BILINEAR",), 2),
    **dict.fromkeys(("TRANSPOSE_CONV", "SLICE", "SPLIT_V"), 3),
    "STRIDED_SLICE": 4,
}
"""Operators by the number of inputs that they have at least."""


def refusal(tmp_path, make: Callable[[Small], int], made: Small | None = None) -> str:
    """The line of what is refused, empty where the file is taken."""
    made = made or Small()
    path = made.write(tmp_path, make(made))
    try:
        import_onnx(load_model(path))
    except N2D2Error as error:
        (one,) = error.errors
        return one.line()
    return ""


def weights(m: Small, *shape: int, axis: int | None = None, kind=np.int8) -> int:
    """Weights with one scale, or along an axis."""
    return m.weights(shape, shape[axis or 0], axis, kind)[0]


@pytest.mark.parametrize("code", LEAST)
def test_too_few_inputs(code, tmp_path):
    count = LEAST[code] - 1
    line = refusal(tmp_path, lambda m: m.add(code, [m.x] * count, SHAPE, IN))
    assert "E310" in line and f"it has {count} inputs and 1 outputs" in line


@pytest.mark.parametrize(
    "code", ["RELU", "LOGISTIC", "SOFTMAX", "RSQRT", "RESHAPE", "MAX_POOL_2D", "SPACE_TO_DEPTH", "QUANTIZE"]
)
def test_two_outputs(code, tmp_path):
    def make(m: Small) -> int:
        made, other = m.add(code, [m.x], SHAPE, IN), m.tensor("other", SHAPE, IN)
        m.file._operators[-1].outputs = np.array([made, other], np.int32)
        return made

    assert "it has 1 inputs and 2 outputs" in refusal(tmp_path, make)


@pytest.mark.parametrize("code", ["CAST", "PACK", "MAXIMUM", "SQUARE", "L2_NORMALIZATION", "BATCH_MATMUL"])
def test_operators_on_real_numbers_have_one_output(code, tmp_path):
    def make(m: Small) -> int:
        x = m.add("DEQUANTIZE", [m.x], SHAPE, None)
        made, other = m.add(code, [x, x], SHAPE, None), m.tensor("other", SHAPE)
        m.file._operators[-1].outputs = np.array([made, other], np.int32)
        return made

    assert "it has 2 inputs and 2 outputs" in refusal(tmp_path, make)


@pytest.mark.parametrize(
    "code",
    [
        "MAX_POOL_2D",
        "RELU",
        "LOGISTIC",
        "RSQRT",
        "RELU_N1_TO_1",
        "SOFTMAX",
        "SPACE_TO_DEPTH",
        "QUANTIZE",
        "CAST",
        "L2_NORMALIZATION",
    ],
)
def test_operators_of_one_input_have_no_second(code, tmp_path):
    def make(m: Small) -> int:
        x = m.add("DEQUANTIZE", [m.x], SHAPE, None)
        return m.add(code, [x, x], SHAPE, None)

    assert "it has 2 inputs and 1 outputs" in refusal(tmp_path, make)


def _convolution(*shape: int, code: str = "CONV_2D", axis: int | None = None, made=SHAPE, source: int | None = None, **fields):
    options = "Conv2DOptions" if code == "CONV_2D" else "DepthwiseConv2DOptions"

    def make(m: Small) -> int:
        x = m.x if source is None else m.add("RESHAPE", [m.x], (8, 24), IN)
        return m.add(code, [x, weights(m, *shape, axis=axis)], made, OUT, options, **{**LAYER, **fields})

    return make


def _turned(*shape: int, axis: int | None = None, made=(1, 16, 12, 4), **fields):
    def make(m: Small) -> int:
        inputs = [m.constant("shape", made), weights(m, *shape, axis=axis), m.x]
        return m.add(
            "TRANSPOSE_CONV", inputs, made, OUT, "TransposeConvOptions", padding=0, **{"strideH": 2, "strideW": 2, **fields}
        )

    return make


def _dense(*shape: int, axis: int | None = None, made=(1, 5), **fields):
    return lambda m: m.add(
        "FULLY_CONNECTED", [m.x, weights(m, *shape, axis=axis)], made, OUT, "FullyConnectedOptions", **fields
    )


def _biased(kind=np.int32, outputs: int = 4, computed: bool = False):
    def make(m: Small) -> int:
        w, scales = m.weights((4, 1, 1, 4), 4, None)
        if computed:
            bias = m.add("RELU", [m.x], SHAPE, IN)
        elif kind == np.int32:
            bias = m.bias(scales, outputs, IN[0])
        else:
            bias = m.tensor("b", (outputs,), IN, kind, np.ones(outputs, kind))
        return m.add("CONV_2D", [m.x, w, bias], SHAPE, OUT, "Conv2DOptions", **LAYER)

    return make


def _pool(made=SHAPE, **fields):
    return lambda m: m.add("MAX_POOL_2D", [m.x], made, IN, "Pool2DOptions", **{**POOL, **fields})


def _with(code: str, *numbers, made=SHAPE, options: str = "", **fields):
    """An operator whose further inputs are constants of int32."""
    return lambda m: m.add(
        code, [m.x, *(m.constant(f"c{at}", each) for at, each in enumerate(numbers))], made, IN, options, **fields
    )


def _slopes(shape, scales=None, computed: bool = False):
    def make(m: Small) -> int:
        if computed:
            return m.add("PRELU", [m.x, m.add("RELU", [m.x], SHAPE, IN)], SHAPE)
        grid = (np.full(shape[-1], 0.1) if scales else 0.1, 0)
        return m.add("PRELU", [m.x, m.tensor("a", shape, grid, np.int8, np.ones(shape, np.int8), len(shape) - 1)], SHAPE)

    return make


def _strided(begin, end, steps, made, **fields):
    return _with("STRIDED_SLICE", begin, end, steps, made=made, options="StridedSliceOptions", **fields)


def _softmax(beta: float):
    return lambda m: m.add("SOFTMAX", [m.x], SHAPE, (1 / 256, -128), "SoftmaxOptions", beta=beta)


def _fill(*values: int):
    def make(m: Small) -> int:
        fill = m.tensor("v", (len(values),), IN, np.int8, np.array(values, np.int8))
        return m.add("PADV2", [m.x, m.constant("p", [[0, 0]] * 4), fill], SHAPE, IN, "PadV2Options")

    return make


def _split(sizes, axis: int, named: int | None = None):
    def make(m: Small) -> int:
        shapes = [tuple(size if at == axis % 4 else n for at, n in enumerate(SHAPE)) for size in sizes]
        outputs = [m.tensor(f"part{at}", shape, IN) for at, shape in enumerate(shapes)]
        m.file.operator("SPLIT", [m.constant("axis", axis if named is None else named), m.x], outputs[0], "SplitOptions")
        m.file._operators[-1].outputs = np.array(outputs, np.int32)
        return outputs[0]

    return make


def _by_channel(m: Small) -> int:
    made = m.tensor("y", SHAPE, (np.full(4, 0.1), 0), axis=3)
    m.file.operator("RELU", [m.x], made)
    return made


def _real_weights(code: str, *shape: int, made=SHAPE, real: bool = False):
    """Weights of float32 behind integers, or behind real numbers."""
    options = {
        "CONV_2D": "Conv2DOptions",
        "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
        "TRANSPOSE_CONV": "TransposeConvOptions",
        "FULLY_CONNECTED": "FullyConnectedOptions",
    }[code]
    fields = {**UNITS, "padding": 0} if code == "TRANSPOSE_CONV" else {} if code == "FULLY_CONNECTED" else LAYER

    def make(m: Small) -> int:
        x = m.add("DEQUANTIZE", [m.x], SHAPE, None) if real else m.x
        w = m.tensor("w", shape, values=m.rng.normal(size=shape).astype(np.float32))
        inputs = [m.constant("shape", made), w, x] if code == "TRANSPOSE_CONV" else [x, w]
        return m.add(code, inputs, made, None if real else OUT, options, **fields)

    return make


REAL_WEIGHTS = {
    "CONV_2D": ((4, 3, 3, 4), SHAPE),
    "DEPTHWISE_CONV_2D": ((1, 3, 3, 4), SHAPE),
    "TRANSPOSE_CONV": ((4, 3, 3, 4), SHAPE),
    "FULLY_CONNECTED": ((5, 192), (1, 5)),
}


@pytest.mark.parametrize("code", REAL_WEIGHTS)
def test_real_weights_stand_behind_real_numbers_only(code, tmp_path):
    shape, made = REAL_WEIGHTS[code]
    assert refusal(tmp_path, _real_weights(code, *shape, made=made, real=True)) == ""
    line = refusal(tmp_path, _real_weights(code, *shape, made=made))
    assert "E310" in line and "its input is quantized, its weights are not" in line


BLOCK = "SpaceToDepthOptions"
RULES = {
    # windows
    "a kernel of the image": (_pool((1, 1, 1, 4), padding=1, filterHeight=8, filterWidth=6), ""),
    "a stride of 0": (_pool(strideW=0), "stride (1, 0) or dilation (1, 1) is below 1"),
    "a kernel of 0": (_pool(filterHeight=0), "its kernel (0, 2)"),
    "a padding without name": (_pool(padding=2), "its padding is number 2"),
    "a pool of another result": (_pool((1, 8, 5, 4)), "its result is 1 x 8 x 6 x 4, but is declared as 1 x 8 x 5 x 4"),
    "a fused activation": (_pool(fusedActivationFunction=4), "its fused activation TANH is not supported"),
    "a fused activation without name": (_pool(fusedActivationFunction=6), "its fused activation number 6"),
    # convolutions
    "one group": (_convolution(4, 3, 3, 4), ""),
    "two groups": (_convolution(4, 3, 3, 2), ""),
    "scales by output": (_convolution(4, 3, 3, 4, axis=0), ""),
    "scales by input": (_convolution(4, 3, 3, 4, axis=3), "scales along the axis 3, not 0"),
    "weights of three channels": (_convolution(4, 3, 3, 3), "its weights of 3 channels do not fit 4"),
    "weights of more channels": (_convolution(4, 3, 3, 8), "its weights of 8 channels do not fit 4"),
    "groups that do not divide the outputs": (_convolution(3, 3, 3, 2, made=(1, 8, 6, 3)), "its weights of 2 channels do not fit 4"),
    "weights of three axes": (_convolution(4, 3, 4), "its weights have the shape 4 x 3 x 4"),
    "a convolution of rows": (_convolution(4, 3, 3, 4, source=1), "it reads a tensor of 2 axes, not of 4"),
    "a convolution of another result": (_convolution(4, 3, 3, 4, made=(1, 8, 6, 5)), "is declared as 1 x 8 x 6 x 5"),
    "depthwise": (_convolution(1, 3, 3, 4, code="DEPTHWISE_CONV_2D"), ""),
    "depthwise twice": (_convolution(1, 3, 3, 8, code="DEPTHWISE_CONV_2D", made=(1, 8, 6, 8), depthMultiplier=2), ""),
    "depthwise, scales of the last axis": (_convolution(1, 3, 3, 4, code="DEPTHWISE_CONV_2D", axis=3), ""),
    "depthwise, scales of another axis": (_convolution(1, 3, 4, 4, code="DEPTHWISE_CONV_2D", axis=2), "the axis 2, not 3"),
    "depthwise, a wrong multiplier": (
        _convolution(1, 3, 3, 8, code="DEPTHWISE_CONV_2D", made=(1, 8, 6, 8), depthMultiplier=1),
        "its multiplier is 1, its weights are those of 2",
    ),
    "depthwise, two filters": (_convolution(2, 3, 3, 4, code="DEPTHWISE_CONV_2D"), "its weights for 4 outputs do not fit 4"),
    "depthwise, six outputs": (
        _convolution(1, 3, 3, 6, code="DEPTHWISE_CONV_2D", made=(1, 8, 6, 6)),
        "its weights for 6 outputs do not fit 4 channels",
    ),
    "a bias": (_biased(), ""),
    "a bias of another length": (_biased(outputs=3), "its bias has 3 elements for 4 outputs"),
    "a bias of bytes": (_biased(np.int8), "its bias is of int8"),
    "a computed bias": (_biased(computed=True), "its bias is computed at run time"),
    "transposed": (_turned(4, 3, 3, 4), ""),
    "transposed, other outputs": (_turned(5, 3, 3, 4), "its result 1 x 16 x 12 x 4 does not fit its input 1 x 8 x 6 x 4"),
    "transposed, other lines": (_turned(4, 3, 3, 4, made=(1, 17, 12, 4)), "does not fit its input"),
    "transposed, other columns": (_turned(4, 3, 3, 4, made=(1, 16, 13, 4)), "does not fit its input"),
    "transposed, other inputs": (_turned(4, 3, 3, 3), "its weights 4 x 3 x 3 x 3 do not fit 4 channels"),
    "transposed, scales by input": (_turned(4, 3, 3, 4, axis=3), "scales along the axis 3, not 0"),
    # fully connected
    "dense": (_dense(5, 192), ""),
    "dense, shuffled": (_dense(5, 192, weightsFormat=1), "its weights are shuffled"),
    "dense, other elements": (_dense(5, 100), "its weights 5 x 100 do not fit 192 elements"),
    "dense, weights of three axes": (_dense(5, 2, 96), "its weights 5 x 2 x 96 do not fit"),
    "dense, scales by input": (_dense(5, 192, axis=1), "scales along the axis 1, not 0"),
    "dense, another result": (_dense(5, 192, made=(1, 6)), "its result is 1 x 5, but is declared as 1 x 6"),
    "dense, outputs not last": (_dense(5, 192, made=(5, 1)), "its result is 1 x 5, but is declared as 5 x 1"),
    # elements
    "shapes that do not fit": (lambda m: m.add("ADD", [m.x, m.constant("c", [1, 2, 3])], SHAPE), "do not fit each other"),
    "slopes": (_slopes((1, 1, 4)), ""),
    "slopes of several scales": (_slopes((1, 1, 4), scales=True), "its slopes have several scales"),
    "slopes of five axes": (_slopes((1, 1, 1, 1, 4)), "have more axes than its input"),
    "computed slopes": (_slopes((), computed=True), "its slopes are computed at run time"),
    "a softmax": (_softmax(0.5), ""),
    "a softmax of beta 0": (_softmax(0), "its beta is 0"),
    "a softmax of a large beta": (_softmax(1e6), "its beta is 1e+06"),
    # moves
    "a constant is moved": (lambda m: m.add("RESHAPE", [m.constant("c", [1, 2])], (2, 1), IN), "it moves a constant"),
    "other elements": (lambda m: m.add("RESHAPE", [m.x], (1, 191), IN), "192 elements do not fill 1 x 191"),
    "concatenated along no axis": (
        lambda m: m.add("CONCATENATION", [m.x, m.x], SHAPE, IN, "ConcatenationOptions", axis=4),
        "its axis 4 is none of 4",
    ),
    "concatenated along no negative axis": (
        lambda m: m.add("CONCATENATION", [m.x, m.x], SHAPE, IN, "ConcatenationOptions", axis=-5),
        "its axis -5 is none of 4",
    ),
    "pads": (_with("PAD", [[0, 0], [0, 1], [2, 0], [0, 0]], made=(1, 9, 8, 4)), ""),
    "pads of three axes": (_with("PAD", [[0, 0]] * 3), "its padding [0, 0, 0, 0, 0, 0] does not fit 4 axes"),
    "a negative pad": (_with("PAD", [[0, 0], [0, -1], [0, 0], [0, 0]], made=(1, 7, 6, 4)), "does not fit 4 axes"),
    "reflected": (
        _with("MIRROR_PAD", [[0, 0], [1, 1], [0, 0], [0, 0]], made=(1, 10, 6, 4), options="MirrorPadOptions", mode=0),
        "",
    ),
    "mirrored": (
        _with("MIRROR_PAD", [[0, 0], [1, 1], [0, 0], [0, 0]], made=(1, 10, 6, 4), options="MirrorPadOptions", mode=1),
        "its mode SYMMETRIC is not supported",
    ),
    "nothing is mirrored": (_with("MIRROR_PAD", [[0, 0]] * 4, options="MirrorPadOptions", mode=1), ""),
    "one value": (_fill(3), ""),
    "two values": (_fill(3, 4), "it has 2 values"),
    "no value": (_with("PADV2", [[0, 0]] * 4, options="PadV2Options"), "it lacks an input"),
    "computed pads": (lambda m: m.add("PAD", [m.x, m.add("RELU", [m.x], SHAPE, IN)], SHAPE, IN), "its padding is computed"),
    "a mean over no axis of the tensor": (_with("MEAN", [4], options="ReducerOptions", keepDims=True), "its axis 4 is none of 4"),
    "a mean of another result": (
        _with("MEAN", [1, 2], made=(1, 1, 1, 4), options="ReducerOptions", keepDims=False),
        "its result is 1 x 4, but is declared as 1 x 1 x 1 x 4",
    ),
    "a sum of integers": (
        _with("SUM", [1, 2], made=(1, 1, 1, 4), options="ReducerOptions", keepDims=True),
        "its input is quantized",
    ),
    "a mean of integers": (_with("MEAN", [1, 2], made=(1, 1, 1, 4), options="ReducerOptions", keepDims=True), ""),
    "one size": (_with("RESIZE_BILINEAR", [8], options="ResizeBilinearOptions"), "its size is [8]"),
    "a size of 0": (_with("RESIZE_BILINEAR", [0, 6], made=(1, 0, 6, 4), options="ResizeBilinearOptions"), "its size is [0, 6]"),
    "a size of 1": (_with("RESIZE_NEAREST_NEIGHBOR", [1, 6], made=(1, 1, 6, 4), options="ResizeNearestNeighborOptions"), ""),
    "an order of three axes": (_with("TRANSPOSE", [0, 2, 1]), "its order [0, 2, 1] is none of 4 axes"),
    "an order with an axis twice": (_with("TRANSPOSE", [0, 1, 1, 3]), "its order [0, 1, 1, 3] is none of 4 axes"),
    "a slice": (_with("SLICE", [0, 8, 0, 0], [1, 0, 6, -1], made=(1, 0, 6, 4)), "has no elements"),
    "a slice up to the end": (_with("SLICE", [0, 7, 0, 1], [1, 1, 6, -1], made=(1, 1, 6, 3)), ""),
    "a slice from beyond": (_with("SLICE", [0, 9, 0, 0], [1, 0, 6, 4], made=(1, 0, 6, 4)), "its begin and size do not fit 4 axes"),
    "a slice from before": (_with("SLICE", [0, -1, 0, 0], [1, 1, 6, 4], made=(1, 1, 6, 4)), "its begin and size do not fit 4 axes"),
    "a slice of three axes": (_with("SLICE", [0, 1, 0], [1, 1, 6], made=(1, 1, 6)), "its begin and size do not fit 4 axes"),
    "a slice of a negative size": (_with("SLICE", [0, 4, 0, 0], [1, -2, 6, 4]), "its begin and size lead out of its input"),
    "a slice that leads out": (_with("SLICE", [0, 4, 0, 0], [1, 5, 6, 4]), "its begin and size lead out of its input"),
    "a strided slice": (_strided([0, 0, 0, 0], [1, 8, 6, 4], [1, 2, 1, 1], (1, 4, 6, 4)), ""),
    "a strided slice of three axes": (_strided([0, 0, 0], [1, 8, 6], [1, 2, 1], SHAPE), "its begin, end and steps do not fit 4 axes"),
    "a step of 0": (_strided([0] * 4, [1, 8, 6, 4], [1, 0, 1, 1], SHAPE), "its begin, end and steps do not fit 4 axes"),
    "an ellipsis": (_strided([0] * 4, SHAPE, [1] * 4, SHAPE, ellipsisMask=1), "it has an ellipsis, a new axis"),
    "a new axis": (_strided([0] * 4, SHAPE, [1] * 4, SHAPE, newAxisMask=1), "it has an ellipsis, a new axis"),
    "ends that are offsets": (_strided([0] * 4, SHAPE, [1] * 4, SHAPE, offset=True), "or ends that are offsets"),
    "one index": (_strided([0, 7, 0, 0], SHAPE, [1] * 4, (1, 6, 4), shrinkAxisMask=2), ""),
    "one index from the end": (_strided([0, -8, 0, 0], SHAPE, [1] * 4, (1, 6, 4), shrinkAxisMask=2), ""),
    "an index beyond": (_strided([0, 8, 0, 0], SHAPE, [1] * 4, (1, 6, 4), shrinkAxisMask=2), "it takes the index 8 of 8"),
    "an index before": (_strided([0, -9, 0, 0], SHAPE, [1] * 4, (1, 6, 4), shrinkAxisMask=2), "it takes the index -9 of 8"),
    "parts": (_split((3, 5), 1), ""),
    "parts of another axis": (_split((3, 5), -3), ""),
    "parts that leave something": (_split((3, 4), 1), "its parts take 7 of 8"),
    "parts of no axis": (_split((3, 5), 1, named=-5), "its axis -5 is none of 4"),
    "a block": (lambda m: m.add("SPACE_TO_DEPTH", [m.x], (1, 4, 3, 16), IN, BLOCK, blockSize=2), ""),
    "a block of 0 pixels": (lambda m: m.add("SPACE_TO_DEPTH", [m.x], SHAPE, IN, BLOCK, blockSize=0), "its block has 0 pixels"),
    "a block of one pixel": (lambda m: m.add("SPACE_TO_DEPTH", [m.x], SHAPE, IN, BLOCK, blockSize=1), ""),
    "a computed constant": (lambda m: m.add("DENSIFY", [m.x], SHAPE, IN), "its input is no constant"),
    # grids
    "a grid by channel": (_by_channel, "is quantized by channel"),
    "no grid": (lambda m: m.add("RELU", [m.x], SHAPE, None), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_rules_of_operators(name, tmp_path):
    make, text = RULES[name]
    line = refusal(tmp_path, make)
    assert text in line if text else not line, line


@pytest.mark.parametrize("shape", [(8, 6, 4), (4,), (1, 8, 6, 3), (1, 8, 5, 4), (2, 1, 8, 3, 4)])
def test_shapes_that_an_input_does_not_repeat_to(shape, tmp_path, monkeypatch):
    monkeypatch.setitem(tflite_file._REAL_VERSIONS, "BROADCAST_TO", 2)
    made = Small(SHAPE, None)
    line = refusal(tmp_path, lambda m: m.add("BROADCAST_TO", [m.x, m.constant("s", shape)], shape, None), made)
    assert f"its input {SHAPE} does not become {shape}" in line.replace("[", "(").replace("]", ")").replace("(4)", "(4,)")


@pytest.mark.parametrize("field", ["detailsType", "nothing"])
def test_a_quantization_of_its_own_is_refused(field, tmp_path):
    """Beside scale and zero point a tensor may have details of another way."""
    m = Small()
    path = m.write(tmp_path, m.add("RELU", [m.x], SHAPE, IN, name="y"))

    def change(schema, model) -> None:
        (tensor,) = (each for each in model.subgraphs[0].tensors if each.name == b"y")
        if field == "detailsType":
            tensor.quantization.detailsType = schema.QuantizationDetails.CustomQuantization
            tensor.quantization.details = schema.CustomQuantizationT()
        else:
            tensor.quantization.quantizedDimension = 3

    changed = rewritten(path, change)
    if field == "nothing":
        import_onnx(load_model(changed))
        return
    with pytest.raises(N2D2Error, match="E310.*is quantized in a way of its own, without scale and zero point"):
        import_onnx(load_model(changed))


@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("rank", [1, 2, 4])
def test_constants_with_a_scale_for_each_channel(channels, rank, tmp_path):
    """Their channels stand in the last axis of the file, and behind the batch here."""
    m = Small((1, 4, 3, channels))
    shape, scales = (1,) * (rank - 1) + (channels,), np.linspace(0.1, 0.3, channels).astype(np.float32)
    values = np.arange(2, 2 + channels, dtype=np.int8).reshape(shape)
    constant = m.tensor("c", shape, (scales, 0), np.int8, values, rank - 1)
    path = m.write(tmp_path, m.add("MUL", [m.x, constant], (1, 4, 3, channels), OUT))
    given = np.random.default_rng(1).integers(-9, 9, (1, channels, 4, 3)) * np.float32(IN[0])
    graph = import_onnx(load_model(path))
    found = run_graph(graph, {graph.inputs[0]: given.astype(np.float32)})[graph.outputs[0]]
    wanted = given * (values.reshape(-1) * scales).reshape(1, -1, 1, 1)
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, atol=0.51 * OUT[0])
