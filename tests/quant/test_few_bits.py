"""ONNX networks quantized to fewer than 8 bits: INT4 and INT2 (QDQ), QCDQ, QONNX; the integers of ONNX Runtime or NumPy."""

from itertools import product
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from support.errors import error_line, error_of
from support.ops import Quantize
from support.quantized_models import Model, reference
from support.tables import every

from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.model import load_onnx
from n2d2py.passes import fuse
from n2d2py.quant.prequantized import quantize_prequantized
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.reference.executor import run_graph

pytest.importorskip("onnxruntime")

SHAPE = (3, 8, 8)
QONNX = "qonnx.custom_op.general"
DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "qat" / "onnx"


def typed(proto):
    graph, _ = fuse(import_onnx(proto), integer=True)
    return quantize_prequantized(graph, QuantOptions(unsigned=True))[0]


def outputs(graph, x: np.ndarray) -> np.ndarray:
    (name,) = graph.outputs
    return graph.type(name).dequantize(simulate(graph, quantize_inputs(graph, [x]))[name])


def stimuli(count: int = 16) -> np.ndarray:
    return np.random.default_rng(1).uniform(-1, 1, (count, *SHAPE)).astype(np.float32)


def check(model: Model, *, wide: tuple[int, ...]) -> None:
    """The results of the model are those of ONNX Runtime; `wide`: the largest integer of each layer with weights."""
    proto = model.built()
    proto.ir_version = 13 if model.opset >= 25 else 10
    x, graph = stimuli(), typed(proto)
    found, (want,) = outputs(graph, x), reference(proto, x)
    assert np.unique(want).size > 8, "the case is too narrow to tell anything"
    np.testing.assert_array_equal(found, want.reshape(found.shape))
    assert tuple(graph.type(node.output).qmax for node in graph.nodes if "weights" in node.params) == wide


def integers(model: Model, shape, bits: int, *, unsigned: bool = False, narrow: bool = False) -> np.ndarray:
    low, high = (0, 2**bits) if unsigned else (-(2 ** (bits - 1)) + narrow, 2 ** (bits - 1))
    return model.rng.integers(low, high, shape)


@every("bits, dtype, opset", [(4, "int4", 21), (4, "uint4", 21), (2, "int2", 25), (2, "uint2", 25)])
def test_packed_weights_and_activations(bits, dtype, opset):
    model, kind = Model(SHAPE, opset=opset), np.dtype(getattr(ml_dtypes, dtype))
    unsigned = dtype.startswith("u")
    x = model.rounded("x", 1 / 127)
    scales = model.rng.uniform(0.1, 0.2, 6).astype(np.float32)
    middle = 2 ** (bits - 1) if unsigned else 0
    w = model.add(
        "DequantizeLinear",
        model.constant(integers(model, (6, 3, 3, 3), bits, unsigned=unsigned).astype(kind)),
        model.constant(scales),
        model.constant(np.full(6, middle, kind)),
        axis=0,
    )
    y = model.add("Relu", model.add("Conv", x, w, pads=[1, 1, 1, 1]))
    kind = np.dtype(getattr(ml_dtypes, f"uint{bits}"))
    y = model.rounded(y, 0.13 if bits == 4 else 0.5, 0, kind)
    y = model.add("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2])
    signed = np.dtype(getattr(ml_dtypes, f"int{bits}"))
    w = model.add("DequantizeLinear", model.constant(integers(model, (5, 96), bits).astype(signed)), model.step(0.0471, 0)[0])
    y = model.add("Gemm", model.add("Flatten", y), w, transB=1)
    model.outputs.append(model.rounded(y, 0.05))
    check(model, wide=(2**bits - 1, 127))


@every("dtype, zero, low, high", [(np.uint8, 0, 0, 15), (np.int8, 0, -8, 7), (np.int8, -3, -8, 7), (np.uint8, 128, 121, 135)])
def test_integers_clipped_to_fewer(dtype, zero, low, high):
    """QCDQ: QuantizeLinear, Clip, DequantizeLinear; of weights Clip, DequantizeLinear."""
    model = Model(SHAPE)
    x = model.rounded("x", 1 / 127)
    limits = [model.constant(np.array(value, np.int8)) for value in (-7, 7)]
    stored = model.add("Clip", model.constant(integers(model, (6, 3, 3, 3), 8).astype(np.int8)), *limits)
    y = model.add("Conv", x, model.add("DequantizeLinear", stored, model.step(0.0937, 0)[0]), pads=[1, 1, 1, 1])
    step = model.step(0.4, zero, dtype)
    y = model.add("QuantizeLinear", y, *step)
    y = model.add("Clip", y, *(model.constant(np.array(value, dtype)) for value in (low, high)))
    y = model.add("DequantizeLinear", y, *step)
    y = model.add("Conv", y, model.weights((4, 6, 1, 1), 0.00213))
    model.outputs.append(model.rounded(y, 0.01))
    most = high - 128 if zero == 128 else high + 128 if zero < 0 else high
    check(model, wide=(most, 127))


def qonnx(model: Model, x: str, scale, bits: int, *, signed: int = 1, narrow: int = 0, zero: float = 0.0, mode="ROUND") -> str:
    given = (np.asarray(scale, np.float32), np.float32(zero), np.float32(bits))
    return model.add("Quant", x, *map(model.constant, given), domain=QONNX, signed=signed, narrow=narrow, rounding_mode=mode)


def quantized(x: np.ndarray, scale, low: int, high: int) -> np.ndarray:
    return np.clip(np.rint(x / np.float32(scale)), low, high) * np.float32(scale)


@every("weights, acts", [(8, 8), (4, 4), (3, 5), (2, 2), (1, 4)])
def test_qonnx(weights, acts):
    """ONNX Runtime has no such operators: NumPy computes them."""
    model = Model(SHAPE)
    w = model.rng.normal(size=(6, 3, 1, 1)).astype(np.float32)
    scales = model.rng.uniform(0.2, 0.4, (6, 1, 1, 1)).astype(np.float32)
    x = qonnx(model, "x", 1 / 128, 8)
    if weights == 1:
        real = np.where(w >= 0, 1, -1) * scales
        kernel = model.add("BipolarQuant", model.constant(w), model.constant(scales), domain=QONNX)
    else:
        half = 2 ** (weights - 1)
        real = quantized(w, scales, 1 - half, half - 1)
        kernel = qonnx(model, model.constant(w), scales, weights, narrow=1)
    y = model.add("Relu", model.add("Conv", x, kernel))
    model.outputs.append(qonnx(model, y, 1.1 / 2**acts, acts, signed=0))
    proto = model.built()
    data = stimuli()
    want = np.einsum("nchw,ocuv->nohw", quantized(data, 1 / 128, -128, 127), real)
    want = quantized(np.maximum(want, 0).astype(np.float32), 1.1 / 2**acts, 0, 2**acts - 1)
    graph = typed(proto)
    found = outputs(graph, data)
    assert np.unique(want).size > 0.6 * 2**acts, "the case is too narrow to tell anything"
    same = np.isclose(found, want, atol=1e-6)
    assert same.mean() >= 0.999 and np.abs(found - want).max() <= 1.1 / 2**acts + 1e-6, "ties apart"
    assert graph.type(graph.outputs[0]).qmax == 2**acts - 1


@every("mode", ["ROUND", "round", "HALF_EVEN", "half_even"])
def test_names_of_the_rounding_of_qonnx(mode):
    """Two names, in letters of either kind."""
    model = Model(SHAPE)
    model.outputs.append(qonnx(model, "x", 0.1, 4, mode=mode))
    proto, data = model.built(), stimuli()
    assert np.allclose(outputs(typed(proto), data), quantized(data, 0.1, -8, 7), atol=1e-6)


@every(
    "change, words",
    [
        ({"mode": "FLOOR"}, "rounding_mode=FLOOR"),
        ({"bits": 3.5}, "bit width [3.5]"),
        ({"zero": 0.5}, "zero point is not a whole number"),
        ({"bits": 24}, "24-bit activations"),
        ({"scale": [0.1, 0.2, 0.3]}, "per channel"),
        ({"scale": -0.1}, "not a positive number"),
    ],
)
def test_qonnx_that_is_refused(change, words):
    model = Model(SHAPE)
    model.outputs.append(qonnx(model, "x", **{"scale": 0.1, "bits": 4, **change}))
    cause, _, remedy = refused(model).partition("; ")
    assert words in cause and remedy


@every("bits", [1, 2, 7, 8, 9, 16, 17, 32, 33])
def test_the_limits_of_qonnx(bits):
    """All zero points around the limits of the bits: what is taken gives the values of the definition."""
    x = stimuli(4) * 40
    for signed, narrow in product((0, 1), repeat=2):
        low, high = (-(2 ** (bits - 1)) + narrow, 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1 - narrow)
        for zero in sorted({low - 1, low, 0, high, high + 1}):
            model = Model(SHAPE)
            y = qonnx(model, "x", 0.25, bits, signed=signed, narrow=narrow, zero=zero)
            model.outputs.append(model.add("Relu", y))
            right = bits <= 16 and low < high and low <= zero <= high
            if right:
                want = (np.clip(np.rint(x.astype(np.float64) / 0.25 + zero), low, high) - zero) * 0.25
                graph = import_onnx(model.built())
                found = run_graph(graph, {graph.inputs[0]: x})[graph.outputs[0]]
                np.testing.assert_array_equal(found, np.maximum(want, 0).astype(np.float32), f"{signed} {narrow} {zero}")
            else:
                assert "E310" in refused(model)


@pytest.mark.parametrize("operator, words", [("Trunc", "drops the lowest bits"), ("BipolarQuant", "binary activations")])
def test_operators_of_qonnx_that_are_refused(operator, words):
    model = Model(SHAPE)
    constants = [model.constant(np.float32(value)) for value in ((0.1, 0, 8, 4) if operator == "Trunc" else (0.1,))]
    model.outputs.append(model.add(operator, "x", *constants, domain=QONNX))
    assert words in refused(model)


def refused(model: Model) -> str:
    return error_of(lambda: import_onnx(model.built())).errors[0].line()


def test_scales_of_blocks_are_refused_with_their_size():
    model = Model(SHAPE, opset=21)
    stored = model.constant(np.zeros((4, 192), ml_dtypes.int4))
    w = model.add("DequantizeLinear", stored, model.constant(np.ones((4, 6), np.float32)), axis=1, block_size=32)
    model.outputs.append(model.add("Gemm", model.add("Flatten", model.rounded("x", 0.01)), w, transB=1))
    assert "block_size=32" in error_line(lambda: import_onnx(model.built()))


def test_a_rounding_that_keeps_fewer_of_the_same_integers_is_merged():
    model = Model(SHAPE)
    step = model.step(0.1, 0, np.uint8)
    y = model.add("QuantizeLinear", "x", *step)
    y = model.add("Clip", y, *(model.constant(np.array(value, np.uint8)) for value in (0, 15)))
    model.outputs.append(model.add("DequantizeLinear", y, *step))
    graph, _ = fuse(import_onnx(model.built()), integer=True)
    (kind,) = [node.op.type for node in graph.nodes if isinstance(node.op, Quantize)]
    assert (kind.qmin, kind.qmax) == (0, 15)


@pytest.mark.skipif(not DATA.is_dir(), reason="../shared/data/qat is not here")
@pytest.mark.parametrize(
    "name", ["brev_qcdq_w4a4", "brev_qcdq_w4a8", "brev_qonnx_w4a4", "brev_qonnx_w8a8", "qdq_w4a8", "qdq_w2a2", "qdq_w2a2b"]
)
def test_outputs_of_other_tools(name):
    """Brevitas' torch modules and ONNX Runtime, by stored outputs."""
    graph, stored = typed(load_onnx(DATA / f"{name}.onnx")), np.load(DATA / f"{name}_ref.npz")
    x, want = stored["x"].astype(np.float32), stored["y"]
    found = np.concatenate([outputs(graph, x[i : i + 1]) for i in range(len(x))]).reshape(want.shape)
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-6 * max(1.0, np.abs(want).max()))
    assert np.array_equal(found.argmax(axis=1), want.argmax(axis=1))
