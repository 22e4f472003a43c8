"""Operators that read and write integers (QOperator format) as what they stand for: DequantizeLinear, the operator in
floating point, QuantizeLinear."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

from n2d2py.frontend.onnx.contract import operator_key
from n2d2py.frontend.onnx.unsupported import Unsupported


@dataclass(frozen=True)
class _Form:
    """Where an operator has its operands: `operands` are indexes of (x, scale, zero point); `result` that of the
    output's scale; `bias` that of an int32 bias in the scale of the product of the first two operands."""

    operator: str
    operands: tuple[int, ...] = (0,)
    result: int = 3
    bias: int | None = None


_MICROSOFT = "com.microsoft::"
EXPANDED: dict[str, _Form] = {
    "QLinearConv": _Form("Conv", (0, 3), 6, 8),
    "QLinearMatMul": _Form("MatMul", (0, 3), 6),
    _MICROSOFT + "QGemm": _Form("Gemm", (0, 3), 7, 6),
    _MICROSOFT + "QLinearAdd": _Form("Add", (0, 3), 6),
    _MICROSOFT + "QLinearMul": _Form("Mul", (0, 3), 6),
    **{
        f"{_MICROSOFT}QLinear{name}": _Form(name)
        for name in ("Sigmoid", "LeakyRelu", "Softmax", "GlobalAveragePool", "AveragePool", "ReduceMean")
    },
}
"""Operator (with its domain) -> its form. QLinearConcat has its own."""

_CONCAT = _MICROSOFT + "QLinearConcat"
_OWN = ("channels_last", "opset")
"""Attributes that the floating-point operators do not have."""


def is_qoperator(proto: onnx.NodeProto) -> bool:
    """True if `expand` knows the node's operator."""
    return operator_key(proto.op_type, proto.domain) in EXPANDED or operator_key(proto.op_type, proto.domain) == _CONCAT


def expand(proto: onnx.NodeProto, constants: dict[str, np.ndarray], fresh: Callable[[str], str]) -> list[onnx.NodeProto]:
    """The nodes that stand for `proto`; a bias is added to `constants` as real numbers.

    Raises:
        Unsupported: for another layout than channels first, and scales that are not constant.
    """
    if any(a.name == "channels_last" and a.i for a in proto.attribute):
        raise Unsupported("its tensors are in the order NHWC", "quantize the model in the order NCHW")
    if operator_key(proto.op_type, proto.domain) == _CONCAT:
        form = _Form("Concat", tuple(range(2, len(proto.input), 3)), 0)
    else:
        form = EXPANDED[operator_key(proto.op_type, proto.domain)]
    nodes, reals = [], []
    needed = [index for at in form.operands for index in (at, at + 1)]
    if not needed or max(needed) >= len(proto.input) or not all(proto.input[index] for index in needed):
        raise Unsupported(f"it has {len(proto.input)} inputs, which are too few", "export the model again")
    for index in form.operands:
        reals.append(fresh(f"{proto.input[index]}_real"))
        turned = any(a.name == "transB" and a.i for a in proto.attribute)
        axis = 0 if form.operator == "Conv" or turned else 1
        nodes.append(helper.make_node("DequantizeLinear", proto.input[index : index + 3], [reals[-1]], axis=axis))
    if form.bias is not None and len(proto.input) > form.bias and proto.input[form.bias]:
        reals.append(fresh(f"{proto.output[0]}_bias"))
        constants[reals[-1]] = _bias(proto, (form.bias, *(index + 1 for index in form.operands)), constants)
    attributes = [a for a in proto.attribute if a.name not in _OWN]
    result = list(proto.input[form.result : form.result + 2])
    real = fresh(f"{proto.output[0]}_real") if result and result[0] else proto.output[0]
    inner = helper.make_node(form.operator, reals, [real])
    inner.attribute.extend(attributes)
    nodes.append(inner)
    if real != proto.output[0]:
        nodes.append(helper.make_node("QuantizeLinear", [real, *result], list(proto.output[:1])))
    return nodes


def _bias(proto: onnx.NodeProto, places: Sequence[int], constants: Mapping[str, np.ndarray]) -> np.ndarray:
    """B * scale_x * scale_w in float64; `places` are those of the three among the inputs."""
    names = [proto.input[index] for index in places]
    if any(name not in constants for name in names):
        raise Unsupported("its bias or its scales are not constant", "quantize the model with static scales")
    bias, x, w = (constants[name].astype(np.float64).reshape(-1) for name in names)
    if x.size != 1 or w.size not in (1, bias.size):
        raise Unsupported("its scales do not fit its bias", "quantize the model again")
    return bias * x * w


def has_plain_integers(graph: onnx.GraphProto) -> bool:
    """True if no node computes with integers of a static scale: what a DequantizeLinear gives of a tensor of the network
    is only an output of the model."""
    constants = {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        if set(node.input) <= constants:
            constants.update(node.output)
    written = {name for node in graph.node for name in node.output}
    static = [
        node
        for node in graph.node
        if node.op_type == "DequantizeLinear" and node.input[0] not in constants and node.input[1] in constants
    ]
    real = {name for node in static for name in node.output}
    return (
        not any(is_qoperator(node) for node in graph.node)
        and not any(node.input[0] in written for node in static)
        and not any(name in real for node in graph.node for name in node.input)
    )
