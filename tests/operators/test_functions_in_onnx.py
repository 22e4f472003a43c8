"""The nodes that functions become in ONNX, those that become them, and integers of a file's quantizers."""

from __future__ import annotations

from math import inf, pi, sqrt
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from n2d2py.arithmetic import NumType
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.operators.functions import (
    ONNX_FUNCTIONS,
    Abs,
    ChannelClip,
    Clip,
    Elu,
    Erf,
    Exp,
    Gelu,
    GeluTanh,
    HardSigmoid,
    HardSwish,
    LeakyRectifier,
    Log,
    Logistic,
    Mish,
    Softplus,
    Softsign,
    Sqrt,
    Step,
    Swish,
    Tanh,
    rectifier,
)
from n2d2py.operators.quantize import Quantize, integer_type, limits_of


class Emitter:
    """Nodes as text; results that have no name are called a, b, c, ..."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def constant(self, value: Any) -> str:
        return f"{value:.6g}" if isinstance(value, float) else str(np.ravel(value).tolist())

    def emit(self, kind: str, inputs: list[str], output: str | None = None, **attributes: float) -> str:
        made = output or "abcdefgh"[len(self.lines)]
        given = "".join(f" {name}={value:.6g}" for name, value in attributes.items())
        self.lines.append(f"{made} = {kind}{given}({', '.join(inputs)})")
        return made


@pytest.mark.parametrize(
    "function, lines",
    [
        (Clip(0.0), "y = Relu(x)"),
        (Clip(0.0, 6.0), "y = Clip(x, 0, 6)"),
        (Clip(-1.0), "y = Clip(x, -1, )"),
        (Clip(high=2.0), "y = Clip(x, , 2)"),
        (Clip(), "y = Clip(x, , )"),
        (ChannelClip(-0.5, (1.0, 2.0)), "a = Max(x, -0.5); y = Min(a, [1.0, 2.0])"),
        (LeakyRectifier(0.25), "y = LeakyRelu alpha=0.25(x)"),
        (LeakyRectifier(0.25, 3.0), "a = LeakyRelu alpha=0.25(x); y = Clip(a, , 3)"),
        (Step(0.5), "a = Greater(x, 0.5); y = Where(a, 1, 0)"),
        (Step(0.5, None, 3.0), "a = Greater(x, 0.5); y = Where(a, 3, x)"),
        (Step(0.5, 2.0, None), "a = Greater(x, 0.5); y = Where(a, x, 2)"),
        (Tanh(), "y = Tanh(x)"),
        (Tanh(2.0), "a = Mul(x, 2); y = Tanh(a)"),
        (Elu(0.5), "y = Elu alpha=0.5(x)"),
        (Elu(1.5, 1.25), "y = Selu alpha=1.5 gamma=1.25(x)"),
        (Elu(2.0, 1.0, 0.5), "y = Celu alpha=2(x)"),
        (HardSigmoid(0.25, 0.75), "y = HardSigmoid alpha=0.25 beta=0.75(x)"),
        (HardSwish(0.25, 0.75, 2.0), "a = Mul(x, 0.25); b = Add(a, 0.75); c = Clip(b, 0, 2); y = Mul(x, c)"),
        (Gelu(), f"a = Mul(x, {sqrt(0.5):.6g}); b = Erf(a); c = Mul(x, 0.5); d = Add(b, 1); y = Mul(c, d)"),
        (
            GeluTanh(),
            f"a = Mul(x, x); b = Mul(a, x); c = Mul(b, 0.044715); d = Add(x, c); e = Mul(d, {sqrt(2 / pi):.6g}); f = Tanh(e);"
            " g = Mul(x, 0.5); h = Add(f, 1); y = Mul(g, h)",
        ),
        (Swish(), "a = Sigmoid(x); y = Mul(x, a)"),
        (Mish(), "a = Softplus(x); b = Tanh(a); y = Mul(x, b)"),
        (Logistic(), "y = Sigmoid(x)"),
        (Softplus(), "y = Softplus(x)"),
        (Softsign(), "y = Softsign(x)"),
        (Abs(), "y = Abs(x)"),
        (Erf(), "y = Erf(x)"),
        (Exp(), "y = Exp(x)"),
        (Log(), "y = Log(x)"),
        (Sqrt(), "y = Sqrt(x)"),
    ],
    ids=str,
)
def test_the_nodes_of_a_function(function, lines):
    emitter = Emitter()
    function.emit(emitter, "x", "y")
    assert "; ".join(emitter.lines) == lines


@pytest.mark.parametrize("function", [Elu(2.0, 1.0, 0.25), Elu(2.0, 1.5, 0.5), Elu(1.0, 1.0, 2.0)], ids=str)
def test_exponential_units_that_onnx_has_no_node_for(function):
    with pytest.raises(ValueError, match="has no ONNX nodes"):
        function.emit(Emitter(), "x", "y")


def source(attributes: dict[str, Any], constants: dict[int, float]) -> Any:
    """A node with these attributes and constant inputs."""
    return SimpleNamespace(
        attribute=lambda name, default=None: attributes.get(name, default),
        optional_constant=lambda index, what: np.float32(constants[index]) if index in constants else None,
    )


LARGEST = float(np.finfo(np.float32).max)


@pytest.mark.parametrize(
    "operator, attributes, constants, wanted",
    [
        ("Relu", {}, {}, Clip(0.0)),
        ("Clip", {}, {}, Clip()),
        ("Clip", {"min": -1.0, "max": 2.0}, {}, Clip(-1.0, 2.0)),
        ("Clip", {}, {1: -1.0}, Clip(-1.0)),
        ("Clip", {}, {2: 2.0}, Clip(high=2.0)),
        ("Clip", {}, {1: 3.0, 2: 2.0}, Clip(2.0, 2.0)),
        ("Clip", {}, {1: -LARGEST, 2: LARGEST}, Clip()),
        ("Clip", {}, {1: -LARGEST / 2, 2: LARGEST / 2}, Clip(-LARGEST / 2, LARGEST / 2)),
        ("LeakyRelu", {}, {}, LeakyRectifier(0.01)),
        ("LeakyRelu", {"alpha": 0.5}, {}, LeakyRectifier(0.5)),
        ("ThresholdedRelu", {}, {}, Step(1.0, 0.0, None)),
        ("ThresholdedRelu", {"alpha": 0.5}, {}, Step(0.5, 0.0, None)),
        ("Tanh", {"alpha": 3.0}, {}, Tanh()),
        ("Elu", {}, {}, Elu()),
        ("Elu", {"alpha": 0.5}, {}, Elu(0.5)),
        ("Selu", {}, {}, Elu(1.67326319217681884765625, 1.05070102214813232421875)),
        ("Selu", {"alpha": 1.5, "gamma": 2.0}, {}, Elu(1.5, 2.0)),
        ("Celu", {}, {}, Elu()),
        ("Celu", {"alpha": 4.0}, {}, Elu(4.0, 1.0, 0.25)),
        ("HardSigmoid", {}, {}, HardSigmoid(0.2, 0.5)),
        ("HardSigmoid", {"alpha": 0.25, "beta": 0.75}, {}, HardSigmoid(0.25, 0.75)),
        ("HardSwish", {}, {}, HardSwish(1 / 6, 0.5, 1.0)),
        ("Gelu", {}, {}, Gelu()),
        ("Gelu", {"approximate": "tanh"}, {}, GeluTanh()),
        ("Gelu", {"approximate": "none"}, {}, Gelu()),
        ("Sigmoid", {}, {}, Logistic()),
        ("Mish", {}, {}, Mish()),
    ],
)
def test_the_function_of_a_node(operator, attributes, constants, wanted):
    assert ONNX_FUNCTIONS[operator](source(attributes, constants)) == wanted


@pytest.mark.parametrize(
    "operator, attributes, text",
    [
        ("Celu", {"alpha": 0.0}, "its alpha is not positive"),
        ("Celu", {"alpha": -1.0}, "its alpha is not positive"),
        ("Gelu", {"approximate": "erf"}, "its approximation is erf"),
    ],
)
def test_nodes_that_are_no_function(operator, attributes, text):
    with pytest.raises(ValueError, match=f"^{text}$"):
        ONNX_FUNCTIONS[operator](source(attributes, {}))


@pytest.mark.parametrize(
    "slope, clipping, wanted",
    [
        (0.0, 0.0, Clip(0.0)),
        (0.0, 6.0, Clip(0.0, 6.0)),
        (0.0, 0.5, Clip(0.0, 0.5)),
        (0.0, -1.0, Clip(0.0)),
        (0.25, 0.0, LeakyRectifier(0.25, inf)),
        (0.25, 6.0, LeakyRectifier(0.25, 6.0)),
    ],
)
def test_rectifiers(slope, clipping, wanted):
    assert rectifier(slope, clipping) == wanted


X = np.array([-2.0, -0.5, 0.0, 0.5, 1.0, 2.0])


@pytest.mark.parametrize(
    "function, wanted",
    [
        (Step(0.5), [0, 0, 0, 0, 1, 1]),
        (Step(0.5, None, 3.0), [-2, -0.5, 0, 0.5, 3, 3]),
        (Step(0.5, 3.0, None), [3, 3, 3, 3, 1, 2]),
        (LeakyRectifier(0.25, 1.5), [-0.5, -0.125, 0, 0.5, 1, 1.5]),
        (Elu(2.0, 3.0, 0.5), [6 * np.expm1(-1), 6 * np.expm1(-0.25), 0, 1.5, 3, 6]),
        (HardSigmoid(0.25, 0.75), [0.25, 0.625, 0.75, 0.875, 1, 1]),
        (HardSwish(0.5, 0.75, 1.5), [0, -0.25, 0, 0.5, 1.25, 3]),
        (Tanh(2.0), np.tanh(2 * X)),
        (Softsign(), [-2 / 3, -1 / 3, 0, 1 / 3, 0.5, 2 / 3]),
        (Logistic(), 1 / (1 + np.exp(-X))),
        (Swish(), X / (1 + np.exp(-X))),
    ],
    ids=str,
)
def test_values(function, wanted):
    np.testing.assert_allclose(function(X), wanted, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("step, nonnegative", [
    (Step(0.0, 0.0, 0.0), True), (Step(0.0, 0.0, None), True), (Step(-0.5, 0.0, None), False), (Step(0.0, None, 1.0), False),
    (Step(0.0, -0.5, 1.0), False), (Step(0.0, 0.0, -0.5), False), (Step(0.5, 0.25, None), True),
])  # fmt: skip
def test_steps_that_are_never_negative(step, nonnegative):
    assert step.nonnegative is nonnegative


@pytest.mark.parametrize(
    "dtype, wanted",
    [
        (np.int8, (8, True)),
        (np.uint16, (16, False)),
        (ml_dtypes.int4, (4, True)),
        (ml_dtypes.uint2, (2, False)),
        (np.float32, None),
        (np.bool_, None),
    ],
)
def test_types_of_integers(dtype, wanted):
    assert integer_type(np.dtype(dtype)) == wanted


@pytest.mark.parametrize(
    "bits, signed, wanted", [(8, True, (-128, 127)), (8, False, (0, 255)), (2, True, (-2, 1)), (4, False, (0, 15))]
)
def test_limits_of_integers(bits, signed, wanted):
    assert limits_of(bits, signed) == wanted


@pytest.mark.parametrize(
    "zero, wanted",
    [
        # signed where the zero point of that is 0, else unsigned
        (np.uint8(0), NumType(8, False, scale=0.5)),
        (np.uint8(3), NumType(8, False, scale=0.5, zero_point=3)),
        (np.uint8(127), NumType(8, False, scale=0.5, zero_point=127)),
        (np.uint8(128), NumType(8, True, scale=0.5, full=True)),
        (np.uint8(129), NumType(8, False, scale=0.5, zero_point=129)),
        (np.int8(0), NumType(8, True, scale=0.5, full=True)),
        (np.int8(-128), NumType(8, False, scale=0.5)),
        (np.int8(1), NumType(8, False, scale=0.5, zero_point=129)),
        (np.int8(-5), NumType(8, False, scale=0.5, zero_point=123)),
        (np.uint16(2**15), NumType(16, True, scale=0.5, full=True)),
        (np.int16(-(2**15)), NumType(16, False, scale=0.5)),
        (np.int16(7), NumType(16, False, scale=0.5, zero_point=2**15 + 7)),
    ],
)
def test_the_type_of_a_quantized_tensor(zero, wanted):
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in (("s", np.float32(0.5)), ("z", zero))]
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N", 6]) for name in "xy"]
    graph = import_onnx(
        helper.make_model(
            helper.make_graph(nodes, "g", ends[:1], ends[1:], constants),
            opset_imports=[helper.make_opsetid("", 21)],
            ir_version=10,
        )
    )
    assert [node.op.type for node in graph.nodes if isinstance(node.op, Quantize)] == [wanted]
