"""Integer forms of element-wise combinations."""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import NumType, StepRescale
from n2d2py.graph import Node, QuantNode
from n2d2py.graph.forms import Aligned, Dequantized
from n2d2py.graph.node import TWICE
from n2d2py.quant.contract import LayerTypes, Quantizer, quantize_layer, quantizer, refusal
from n2d2py.quant.forming import common_multipliers, file_clamp, integer_layer, peak, rescaled_layer
from n2d2py.quant.weights.byte_pairs import byte_form
from n2d2py.quant.weights.file_rounding import sums_rescale


@quantizer("ElemWise")
class ElemWiseQuantizer(Quantizer):
    """Sum: acc = sum of m_i q_i + offset, m_i ~ w_i s_i / (s_y unit) in 14 bits (22 with a 16-bit tensor).

    The unit is a power of two, which makes the rescale exact in every mode. EuclideanSum: the root of real numbers, in float32.
    """

    def refuses(self, node: Node) -> str | None:
        op = node.op
        weights, shifts = op.coefficients(len(node.inputs))
        weighted = any(weight != 1 for weight in weights) or any(shifts)
        if (op.operation == "EuclideanSum" and any(shifts)) or (op.operation in ("Max", "Min") and weighted):
            return f"ElemWise {op.operation}"
        return None

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        op, count, step = node.op, len(types.inputs), types.output.scale
        peaks = [peak(kind) for kind in types.inputs]
        scales = np.array([kind.scale for kind in types.inputs])
        if op.operation == "EuclideanSum":
            return dequantize_and_combine(node, types)
        if op.operation == "Prod":
            bound = int(np.prod([float(p) for p in peaks]))
            form = Aligned(np.ones(count, np.int32), np.zeros(1, np.int32))
            return rescaled_layer(node, types, np.array([float(np.prod(scales)) / step]), bound, form)
        weights, shifts = (np.array(v, np.float64) for v in op.coefficients(count))
        multipliers, unit = common_multipliers(weights * scales / step, 22 if types.wide else 14)
        offset = round(float(shifts.sum()) / (unit * step)) if op.operation == "Sum" else 0
        bound = sum(abs(m) * p for m, p in zip(multipliers, peaks, strict=True)) + abs(offset)
        acc_type = np.int32 if bound < 2**31 else np.int64
        form = Aligned(np.array(multipliers, acc_type), np.array([offset], acc_type))
        return rescaled_layer(node, types, np.array([unit]), bound, form)

    def prequantized(self, node: Node, types: LayerTypes) -> QuantNode:
        if node.rounding == TWICE and types.follows_file(node) and (found := _tflite(node, types)) is not None:
            return found
        types.remark(node, "no integers were found that agree for all pairs of bytes")
        fixed = types.options.rescaling != "Floating-point" and node.op.operation != "Prod"
        if fixed and max(kind.bits for kind in types.inputs) <= 16:
            return quantize_layer(node, types)
        return dequantize_and_combine(node, types)


def _tflite(node: Node, types: LayerTypes) -> QuantNode | None:
    """Return the integer form of TFLite's kernels ADD, SUB and MUL; None if no form here is bit-exact."""
    op, inputs, output, clamp = node.op, types.inputs, types.output, file_clamp(node, types.output)
    weights, shifts = op.coefficients(len(inputs))
    if len(inputs) != 2 or any(shifts):
        return None
    if op.operation == "Prod":
        factors = np.array([np.float64(inputs[0].scale) * np.float64(inputs[1].scale) / np.float64(output.scale)])
        bound = int(np.prod([peak(kind) for kind in inputs]))
        rescale = sums_rescale(node, factors, bound, clamp)
        form = Aligned(np.ones(2, np.int32), np.zeros(1, np.int32))
        return None if rescale is None else integer_layer(node, form, clamp, rescale, bound)
    if op.operation != "Sum" or set(map(abs, weights)) != {1}:
        return None
    scales, fixed = _scales(inputs, weights), types.options.rescaling != "Floating-point"
    found = byte_form("Sum", scales, inputs, output, clamp, fixed, tflite=True)
    return found and integer_layer(node, Aligned(found.multipliers, found.offset), clamp, found.rescale, found.bound)


def _scales(inputs: list[NumType], weights: tuple[float, ...]) -> np.ndarray:
    return np.array([np.float32(kind.scale) * np.float32(weight) for kind, weight in zip(inputs, weights, strict=True)])


def dequantize_and_combine(node: Node, types: LayerTypes) -> QuantNode:
    """Return a float32 combination of scale_i (q_i - zero point); for two 8-bit tensors, an integer form with equal results."""
    op = node.op
    weights, shifts = op.coefficients(len(types.inputs))
    plain = op.operation in ("Prod", "Max", "Min") and set(weights) == {1}
    if any(shifts) or not (plain or op.operation in ("Sum", "EuclideanSum")):
        raise refusal(node, f"ElemWise {op.operation}", "replace it by sums, products or limits of tensors")
    scales = _scales(types.inputs, weights)
    clamp = file_clamp(node, types.output)
    found = byte_form(op.operation, scales, types.inputs, types.output, clamp)
    if found is not None:
        return integer_layer(node, Aligned(found.multipliers, found.offset), clamp, found.rescale, found.bound)
    return integer_layer(node, Dequantized(scales), clamp, StepRescale(np.float32(types.output.scale)))
