"""Layers of .tflite files, translated to ONNX, in ONNX Runtime as in LiteRT: every size another one, several stimuli.

They look at `n2d2py.frontend.tflite.lowering`, `n2d2py.frontend.tflite.operators` and `n2d2py.frontend.tflite.array_operators`.
"""

import struct

import numpy as np
import pytest
from support.tables import every

pytest.importorskip("ai_edge_litert", reason="the referee, ai-edge-litert, is not installed")

from support.tflite_files import Small, compare, kinds, litert, rewritten, translated, written

SAME, VALID = 0, 1
LIMITS = {2: (-1, 1), 3: (0, 6)}
"""Of the fused activations RELU_N1_TO_1 and RELU6; 1 is RELU."""
SHAPE = (2, 5, 7, 3)
X = np.random.default_rng(5).normal(0, 2, SHAPE).astype(np.float32)


def real(m: Small, name: str, *shape: int) -> int:
    """A constant of real numbers."""
    return m.tensor(name, shape, values=m.rng.normal(size=shape).astype(np.float32))


def _sizes(shape, kernel, stride, dilation, padding):
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    return [-(-n // s) if padding == SAME else (n - e) // s + 1 for n, s, e in zip(shape[1:3], stride, extents, strict=True)]


WINDOWS = [
    (SAME, (3, 2), (1, 1), (1, 1)),
    (SAME, (2, 3), (2, 1), (1, 1)),
    (SAME, (3, 3), (2, 3), (1, 1)),
    (SAME, (4, 4), (3, 2), (1, 1)),
    (SAME, (2, 5), (3, 3), (1, 1)),
    (SAME, (1, 1), (2, 3), (1, 1)),
    (SAME, (1, 2), (4, 5), (1, 1)),
    (SAME, (1, 1), (3, 4), (1, 1)),
    (SAME, (2, 1), (5, 6), (1, 1)),
    (SAME, (3, 2), (1, 1), (2, 3)),
    (SAME, (2, 3), (1, 1), (3, 1)),
    (VALID, (5, 7), (1, 1), (1, 1)),
    (VALID, (5, 2), (3, 2), (1, 1)),
    (VALID, (2, 7), (2, 1), (1, 1)),
    (VALID, (3, 2), (2, 3), (1, 1)),
    (VALID, (3, 3), (1, 1), (2, 3)),
    (VALID, (2, 4), (1, 1), (4, 2)),
    (VALID, (1, 1), (4, 6), (1, 1)),
]


def _convolution(m: Small, groups: int | str, window, shape=SHAPE, bias: str = "given", activation: int = 0) -> int:
    """A convolution of real numbers; `groups`: of channels, or how often each channel is filtered ("1", "2")."""
    (padding, kernel, stride, dilation), depthwise = window, isinstance(groups, str)
    outputs = shape[3] * int(groups) if depthwise else 6
    fields = {
        "padding": padding, "strideH": stride[0], "strideW": stride[1],
        "dilationHFactor": dilation[0], "dilationWFactor": dilation[1], "fusedActivationFunction": activation,
    }  # fmt: skip
    form = (1, *kernel, outputs) if depthwise else (outputs, *kernel, shape[3] // int(groups))
    inputs = [m.x, real(m, "w", *form)]
    if bias == "zero":
        inputs.append(m.tensor("b", (outputs,), values=np.zeros(outputs, np.float32)))
    elif bias != "none":
        inputs.append(real(m, "b", outputs) if bias == "given" else -1)
    made = (shape[0], *_sizes(shape, kernel, stride, dilation, padding), outputs)
    if depthwise:
        return m.add("DEPTHWISE_CONV_2D", inputs, made, None, "DepthwiseConv2DOptions", depthMultiplier=int(groups), **fields)
    return m.add("CONV_2D", inputs, made, None, "Conv2DOptions", **fields)


@every("groups", [1, 3, "1", "2"])
@every("window", WINDOWS)
def test_convolutions(window, groups, tmp_path):
    m = Small(SHAPE, None)
    compare(written(m, tmp_path, _convolution(m, groups, window)), [X])


@every("bias", ["none", "left out"])
@every("groups", [1, 3, "1", "2"])
def test_convolutions_without_a_bias(groups, bias, tmp_path):
    """As with one of zeros."""
    m, same = Small(SHAPE, None), Small(SHAPE, None)
    (found,) = translated(written(m, tmp_path, _convolution(m, groups, WINDOWS[0], bias=bias)), [X])
    (wanted,) = litert(written(same, tmp_path, _convolution(same, groups, WINDOWS[0], bias="zero")), [X])
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


@every("activation", range(4))
@every("groups", [1, "2"])
def test_convolutions_with_an_activation(groups, activation, tmp_path):
    m = Small(SHAPE, None)
    (found,) = compare(written(m, tmp_path, _convolution(m, groups, WINDOWS[2], activation=activation)), [X])
    assert (found.min(), found.max()) == LIMITS[activation] if activation > 1 else (found.min() == 0) == (activation == 1)


@every("code", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
@every("window", [one for one in WINDOWS if one[3] == (1, 1)])
def test_pools(window, code, tmp_path):
    padding, kernel, stride, _ = window
    m = Small(SHAPE, None)
    fields = {"strideH": stride[0], "strideW": stride[1], "filterHeight": kernel[0], "filterWidth": kernel[1]}
    made = (2, *_sizes(SHAPE, *window[1:], padding), 3)
    y = m.add(code, [m.x], made, None, "Pool2DOptions", padding=padding, **fields)
    compare(written(m, tmp_path, y), [X])


@every("code", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
@every("activation", range(4))
def test_pools_with_an_activation(activation, code, tmp_path):
    m = Small(SHAPE, None)
    fields = {"strideH": 1, "strideW": 1, "filterHeight": 1, "filterWidth": 2, "fusedActivationFunction": activation}
    y = m.add(code, [m.x], (2, 5, 6, 3), None, "Pool2DOptions", padding=VALID, **fields)
    (found,) = compare(written(m, tmp_path, y), [9 * X])
    assert (found.min(), found.max()) == LIMITS[activation] if activation > 1 else (found.min() == 0) == (activation == 1)


TURNED = [
    (SAME, (3, 2), (1, 1), (5, 7)),
    (SAME, (3, 2), (2, 3), (10, 21)),
    (SAME, (3, 2), (2, 3), (9, 19)),
    (SAME, (2, 5), (3, 2), (13, 14)),
    (SAME, (1, 1), (2, 3), (10, 20)),
    (SAME, (4, 3), (4, 1), (20, 7)),
    (VALID, (3, 2), (1, 1), (7, 8)),
    (VALID, (3, 2), (2, 3), (11, 20)),
    (VALID, (3, 2), (2, 3), (12, 22)),
    (VALID, (2, 4), (3, 2), (14, 17)),
    (VALID, (1, 1), (2, 3), (9, 21)),
    (VALID, (5, 1), (2, 1), (14, 7)),
]


def _turned(m: Small, window, bias: bool = True, activation: int = 0, outputs: int = 4) -> int:
    padding, kernel, stride, sizes = window
    made = (2, *sizes, outputs)
    inputs = [m.constant("shape", made), real(m, "w", outputs, *kernel, 3), m.x] + ([real(m, "b", outputs)] if bias else [])
    fields = {"strideH": stride[0], "strideW": stride[1], "fusedActivationFunction": activation}
    return m.add("TRANSPOSE_CONV", inputs, made, None, "TransposeConvOptions", padding=padding, **fields)


@every("bias", [False, True])
@every("window", TURNED)
def test_transposed_convolutions(window, bias, tmp_path):
    m = Small(SHAPE, None)
    compare(written(m, tmp_path, _turned(m, window, bias)), [X])


@every("activation", range(4))
def test_transposed_convolutions_with_an_activation(activation, tmp_path):
    m = Small(SHAPE, None)
    (found,) = compare(written(m, tmp_path, _turned(m, TURNED[1], activation=activation)), [X])
    assert (found.min(), found.max()) == LIMITS[activation] if activation > 1 else (found.min() == 0) == (activation == 1)


@every("bias", [False, True])
@every("window", TURNED)
def test_mediapipe_transposed_convolutions(window, bias, tmp_path):
    """As the operator of LiteRT; its numbers are the padding, counted from 1, the stride along lines and from line to line."""
    m, same = Small(SHAPE, None), Small(SHAPE, None)
    path = written(m, tmp_path, _turned(m, window, bias))

    def change(schema, model) -> None:
        code, operator = model.operatorCodes[0], model.subgraphs[0].operators[0]
        code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.CUSTOM
        code.customCode = "Convolution2DTransposeBias"
        operator.builtinOptionsType, operator.builtinOptions = 0, None
        operator.customOptions = np.frombuffer(struct.pack("<3i", window[0] + 1, *window[2][::-1]), np.uint8)
        operator.inputs = operator.inputs[[2, 1, 3] if bias else [2, 1]]
        if not bias:
            operator.inputs = np.append(operator.inputs, -1).astype(np.int32)

    (found,) = translated(rewritten(path, change), [X])
    (wanted,) = litert(written(same, tmp_path, _turned(same, window, bias)), [X])
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


DENSE = [
    ((2, 12), (2, 5), {}),
    ((12,), (1, 5), {}),
    ((12,), (5,), {"keepNumDims": True}),
    ((2, 3, 12), (6, 5), {}),
    ((2, 3, 12), (2, 3, 5), {"keepNumDims": True}),
    ((2, 3, 4, 12), (24, 5), {}),
    ((2, 3, 4, 12), (2, 3, 4, 5), {"keepNumDims": True}),
    ((2, 2, 3, 4, 12), (2, 2, 3, 4, 5), {"keepNumDims": True}),
    ((2, 2, 3, 2), (2, 5), {}),
    ((2, 3, 4), (2, 5), {}),
    ((4, 2, 3), (2, 5), {}),
    ((1, 12), (1, 5), {}),
]


@every("bias", [False, True])
@every(("shape", "made", "fields"), DENSE)
def test_fully_connected(shape, made, fields, bias, tmp_path):
    m = Small(shape, None)
    inputs = [m.x, real(m, "w", 5, 12), real(m, "b", 5) if bias else -1]
    path = written(m, tmp_path, m.add("FULLY_CONNECTED", inputs, made, None, "FullyConnectedOptions", **fields))
    compare(path, [m.rng.normal(size=shape).astype(np.float32)])
    rows = len(made) > 2
    assert ("Conv" in kinds(path), "Gemm" in kinds(path)) == (rows, not rows)


@every("shape", [(2, 12), (2, 3, 12), (2, 3, 4, 12)])
@every("activation", range(4))
def test_fully_connected_with_an_activation(activation, shape, tmp_path):
    m = Small(shape, None)
    fields = {"keepNumDims": True, "fusedActivationFunction": activation}
    inputs = [m.x, real(m, "w", 5, 12), real(m, "b", 5)]
    y = m.add("FULLY_CONNECTED", inputs, (*shape[:-1], 5), None, "FullyConnectedOptions", **fields)
    (found,) = compare(written(m, tmp_path, y), [9 * m.rng.normal(size=shape).astype(np.float32)])
    assert (found.min(), found.max()) == LIMITS[activation] if activation > 1 else (found.min() == 0) == (activation == 1)


def test_rows_that_become_others_are_flattened(tmp_path):
    m = Small(SHAPE, None)
    path = written(
        m, tmp_path, m.add("FULLY_CONNECTED", [m.x, real(m, "w", 4, 21), -1], (2, 5, 4), None, "FullyConnectedOptions")
    )
    assert "Gemm" in kinds(path)
    (found,) = translated(path, [X])
    weights = m.file._buffers[-1].data.view(np.float32).reshape(4, 21)
    np.testing.assert_allclose(found, (X.reshape(10, 21) @ weights.T).reshape(2, 5, 4), rtol=2e-5, atol=2e-5)
