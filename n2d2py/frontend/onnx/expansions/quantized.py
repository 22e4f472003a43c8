"""QOperator nodes as DequantizeLinear, the float operator and QuantizeLinear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from n2d2py.frontend.onnx.parts import EXPANSIONS, Parts, Unsupported, expands


@dataclass(frozen=True)
class _Form:
    """Input layout of an operator: `operands` are indices of (x, scale, zero point), `result` is the index of the output scale,
    `bias` is the index of an int32 bias in the scale of the product of the first two operands."""

    operator: str
    operands: tuple[int, ...] = (0,)
    result: int = 3
    bias: int | None = None


_MICROSOFT = "com.microsoft::"
_FORMS = {
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
"""Form by operator (with its domain)."""


def _expand_form(form: _Form, parts: Parts) -> None:
    """Add the nodes of a form; an int32 bias becomes a float constant.

    Raises:
        Unsupported: the layout is not channels first, or scales are not constant.
    """
    if parts.attribute("channels_last", 0):
        raise Unsupported("channels-last (NHWC) tensors are not supported", "quantize an NCHW model")
    needed = [index for position in form.operands for index in (position, position + 1)]
    if not needed or not all(map(parts.has, needed)):
        raise Unsupported(f"it has {len(parts.inputs)} inputs, which is too few", "export the model again")
    axis = 0 if form.operator == "Conv" or parts.attribute("transB", 0) else 1
    reals = [parts.add("DequantizeLinear", *parts.inputs[position : position + 3], axis=axis) for position in form.operands]
    if form.bias is not None and parts.has(form.bias):
        reals.append(parts.add_constant("bias", _dequantize_bias(parts, (form.bias, *(index + 1 for index in form.operands)))))
    attributes, grid = parts.attributes("channels_last", "opset"), parts.inputs[form.result : form.result + 2]
    if not parts.has(form.result):
        parts.add(form.operator, *reals, out=0, **attributes)
    else:
        parts.add("QuantizeLinear", parts.add(form.operator, *reals, **attributes), *grid, out=0)


for _name, _form in _FORMS.items():
    EXPANSIONS.add(_name, partial(_expand_form, _form))


@expands(_MICROSOFT + "QLinearConcat")
def _concat(parts: Parts) -> None:
    """Add a Concat of any number of operands, which follow the scale and zero point of the result."""
    _expand_form(_Form("Concat", tuple(range(2, len(parts.inputs), 3)), 0), parts)


def _dequantize_bias(parts: Parts, places: Sequence[int]) -> np.ndarray:
    """Return B * scale_x * scale_w in float64; `places` are the input indices of the three."""
    bias, x, w = (parts.constant(index, "bias or scale").astype(np.float64).reshape(-1) for index in places)
    if x.size != 1 or w.size not in (1, bias.size):
        raise Unsupported("its scales and its bias differ in length", "quantize the model again")
    return bias * x * w
