"""Every operator of a quantized ONNX file: the integer nearest to what the file says in float64, ties to even before the zero point is added."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from support.onnx_models import runtime_outputs, text_model
from support.quantized_models import Model, exact
from support.tables import every

import n2d2py
from n2d2py.cli import main
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.passes import fuse
from n2d2py.quant.prequantized import quantize_prequantized
from n2d2py.quant.simulator import quantize_inputs, simulate

COUNT = 4
GRIDS = [
    (
        (0.03125, 113, np.uint8),
        (0.03125, 113, np.uint8),
    ),  # odd zero points, one scale: many results in the middle of two integers
    ((0.03125, -7, np.int8), (0.0625, 5, np.int8)),
    ((0.0213, 113, np.uint8), (0.0371, -3, np.int8)),
]
NEAR_TIE = 1e-4
"""A result of float32 arithmetic so near to the middle of two integers, in steps, may be either."""


def single(operator: str, **attributes) -> Callable[[Model, str, float], str]:
    return lambda model, x, scale: model.add(operator, x, **attributes)


def resize(size: tuple[int, int] = (16, 16), **attributes):
    return lambda model, x, scale: model.add("Resize", x, "", "", model.constant(np.array([COUNT, 4, *size])), **attributes)


def with_weights(operator: str, *shape: int, axis: int = 0, bias: bool = True, **attributes):
    def make(model: Model, x: str, scale: float) -> str:
        scales = np.float32(model.rng.uniform(0.0005, 0.004, shape[axis]) if operator != "ConvTranspose" else 0.004)
        inputs = [model.weights(shape, scales, axis=axis)]
        if bias:
            inputs.append(model.bias(shape[axis] if scales.ndim else shape[1], np.float32(scale) * scales))
        x = x if operator.startswith("Conv") else model.add("Flatten", x)
        return model.add(operator, x, *inputs, **attributes)

    return make


def pair(operator: str, **attributes):
    return lambda model, x, scale: model.add(
        operator, x, model.rounded(model.add("Relu", x), 0.017, 13, np.uint8), **attributes
    )


def constants(operator: str, *values, **attributes):
    return lambda model, x, scale: model.add(operator, x, *map(model.constant, values), **attributes)


LINEAR = {"mode": "linear"}
OPERATORS: dict[str, Callable[[Model, str, float], str]] = {
    **{
        f"{mode} {size}": resize(size, coordinate_transformation_mode=mode, **LINEAR)
        for mode in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric")
        for size in ((16, 16), (4, 4), (13, 11), (24, 5))
    },
    **{
        f"nearest {mode} {rounding}": resize((16, 12), coordinate_transformation_mode=mode, nearest_mode=rounding)
        for mode, rounding in (("asymmetric", "floor"), ("half_pixel", "round_prefer_ceil"), ("align_corners", "ceil"))
    },
    "Conv": with_weights("Conv", 6, 4, 3, 3, pads=[1, 1, 1, 1]),
    "depthwise": with_weights("Conv", 4, 1, 3, 3, pads=[1, 1, 1, 1], strides=[2, 2], group=4),
    "ConvTranspose": with_weights("ConvTranspose", 4, 5, 3, 3, strides=[2, 2], pads=[1, 1, 1, 1]),
    "Gemm": with_weights("Gemm", 7, 256, transB=1),
    "MatMul": with_weights("MatMul", 256, 7, axis=1, bias=False),
    **{name: pair(name) for name in ("Add", "Sub", "Mul", "Max", "Min")},
    "Concat": pair("Concat", axis=1),
    "AveragePool": single("AveragePool", kernel_shape=[2, 2], strides=[2, 2]),
    "AveragePool padded": single("AveragePool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    "MaxPool": single("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    "Transpose": single("Transpose", perm=[0, 2, 3, 1]),
    "LeakyRelu": single("LeakyRelu", alpha=0.125),
    **{
        name: single(name)
        for name in (*"GlobalAveragePool Flatten Relu Sigmoid Tanh HardSwish HardSigmoid Elu Gelu Exp".split(),)
    },
    "ReduceMean": constants("ReduceMean", np.array([2, 3])),
    "Clip": constants("Clip", np.float32(-0.3), np.float32(1.1)),
    "PRelu": constants("PRelu", np.float32([[[0.25]], [[-0.5]], [[0]], [[1.5]]])),
    "Pad": constants("Pad", np.array([0, 0, 1, 2, 0, 0, 2, 1]), np.float32(0)),
}


@every("name", OPERATORS)
@every("grids", GRIDS, ids=["one scale", "half", "two scales"])
def test_each_operator_gives_the_nearest_integers(name, grids):
    (scale, zero, dtype), output = grids
    model = Model((4, 8, 8), opset=20)
    real = OPERATORS[name](model, model.rounded("x", scale, zero, dtype), scale)
    model.outputs.append(real)
    before = model.built()
    model.outputs = [model.rounded(real, *output)]
    graph, _ = fuse(import_onnx(model.built()), integer=True)
    graph, _ = quantize_prequantized(graph, QuantOptions())
    x = (model.rng.integers(-20, 276, (COUNT, *model.shape)) * scale - 128 * scale).astype(np.float32)
    kind = graph.type(graph.outputs[0])
    assert kind.bits == 8 and kind.scale == np.float32(output[0])
    wanted = exact(model.built(), x)
    found = (
        simulate(graph, quantize_inputs(graph, [x]))[graph.outputs[0]].astype(np.int64).reshape(wanted.shape) - kind.zero_point
    )
    steps = exact(before, x) / np.float64(np.float32(output[0]))
    distance = np.abs(steps - np.floor(steps) - 0.5)
    different = found != np.rint(wanted / np.float64(np.float32(output[0])))
    assert not (different & (distance > NEAR_TIE)).any()
    assert np.unique(found).size > 4
    if "16, 16" in name and "corners" not in name and output[0] != 0.0371:
        assert not different.any() and (distance == 0).mean() > 0.05, "ties to even"


@pytest.mark.parametrize("outputs", [6, 5], ids=["square", "not square"])
@pytest.mark.parametrize("transposed", [0, 1])
def test_scales_lie_along_the_outputs(tmp_path, outputs, transposed):
    rng = np.random.default_rng(0)
    weights = rng.integers(-127, 128, (outputs, 6) if transposed else (6, outputs)).astype(np.int8)
    scales = rng.uniform(0.002, 0.02, outputs).astype(np.float32)
    constants = {"xs": np.float32(0.05), "xz": np.int8(3), "w": weights, "ws": scales, "wz": np.zeros(outputs, np.int8)}
    constants |= {"bs": np.float32(0.05) * scales, "bz": np.zeros(outputs, np.int32), "ys": np.float32(0.1), "yz": np.int8(-4)}
    constants["b"] = rng.integers(-300, 300, outputs).astype(np.int32)
    body = f"""xq = QuantizeLinear (x, xs, xz) xd = DequantizeLinear (xq, xs, xz)
        wd = DequantizeLinear <axis = {1 - transposed}> (w, ws, wz) bd = DequantizeLinear <axis = 0> (b, bs, bz)
        g = Gemm <transB = {int(transposed)}> (xd, wd, bd)
        gq = QuantizeLinear (g, ys, yz) y = DequantizeLinear (gq, ys, yz)"""
    path = tmp_path / "net.onnx"
    onnx.save(text_model(f"float[1,6] x => float[1,{outputs}] y", body, constants, opset=13), path)
    x = rng.normal(size=(50, 6)).astype(np.float32) * 2
    (real,) = runtime_outputs(path, x, batch=1, optimize=False)
    assert main([str(path), "-export", "CPP", "-db-export", "0", "-quiet", "-o", str(tmp_path / "out")]) == 0
    found = np.asarray(n2d2py.load_simulator(tmp_path / "out" / "export_CPP_int8")(x))
    np.testing.assert_array_equal(np.rint(found / 0.1), np.rint(real / 0.1))
