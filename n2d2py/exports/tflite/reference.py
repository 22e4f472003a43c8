"""Quantized network with the arithmetic of LiteRT's reference kernels (TFLite Micro), as far as the tool's forms express it.

Convolutions, means and QUANTIZE multiply by m / 2^31 and shift, with a rounding each (`DoublingRescale`). Fully connected
layers round once. Element-wise sums and products are rounded several times by the kernels, here once, from float32. They may be
one step off, as may functions that the kernels compute in fixed point.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from n2d2py.arithmetic import FloatRescale, StepRescale
from n2d2py.exports.tflite.file import int8_grid
from n2d2py.exports.tflite.xnnpack import function_table, with_xnnpack
from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.graph.forms import Custom, Dequantized, Rescaled, Weighted
from n2d2py.quant.forming import peak
from n2d2py.quant.weights.file_rounding import doubling, mean_rescale, multiplied


def with_reference(graph: QuantGraph) -> QuantGraph:
    """Return the network with integer layers that compute the results of the reference kernels, or are one step off."""
    made = with_xnnpack(graph)
    made.nodes = [_layer(made, node) if made.is_integer(node) else node for node in made.nodes]
    return made


def _layer(graph: QuantGraph, node: QuantNode) -> QuantNode:
    kinds, y = [graph.type(name) for name in node.inputs], graph.type(node.output)
    if any(kind.plain or kind.bits != 8 for kind in (*kinds, y)):
        return node
    products = node.op.kind == "ArrayMatMul" and isinstance(node.rescale, FloatRescale)
    if products or (isinstance(node.form, Weighted) and node.op.kind != "Fc"):
        return replace(node, rescale=doubling(node.rescaling.effective()))
    if node.op.kind == "Pool" and node.op.mode == "Average" and node.rescaling.count == 1 and isinstance(node.form, Rescaled):
        return _mean(graph, node)
    if node.op.kind == "Activation":
        return function_table(graph, node, multiplied, multiplied)
    if node.op.kind in ("Concat", "Convert", "Identity") and isinstance(node.form, Rescaled | Custom):
        factors = np.array([np.float64(np.float32(kind.scale)) / np.float64(np.float32(y.scale)) for kind in kinds])
        return replace(node, rescale=doubling(factors))
    if node.op.kind == "ElemWise" and node.op.operation == "Prod" and len(kinds) == 2:
        factor = np.array([np.float64(kinds[0].scale) * np.float64(kinds[1].scale) / np.float64(y.scale)])
        return replace(node, rescale=doubling(factor))
    if node.op.kind == "ElemWise" and node.op.operation == "Sum" and not isinstance(node.rescale, FloatRescale):
        weights, shifts = node.op.coefficients(len(kinds))
        if not any(shifts):
            scales = np.array([np.float32(kind.scale) * np.float32(w) for kind, w in zip(kinds, weights, strict=True)])
            return replace(node, form=Dequantized(scales), rescale=StepRescale(np.float32(y.scale)))
    return node


def _mean(graph: QuantGraph, node: QuantNode) -> QuantNode:
    """Apply MEAN to whole images, else a depthwise convolution with weights of 1; AVERAGE_POOL_2D divides."""
    x, y, shape = graph.type(node.inputs[0]), graph.type(node.output), graph.shape(node.inputs[0])
    count, ratio = node.op.kernel[0] * node.op.kernel[1], np.float64(x.scale) / np.float64(y.scale)
    if tuple(node.op.kernel) == tuple(shape[2:]) and not any(node.op.pads):
        rescale = mean_rescale(float(ratio), count)
    elif int8_grid(x) != int8_grid(y):
        rescale = doubling(np.array([ratio / count]))
    else:
        return node
    return replace(node, form=Rescaled(), rescale=rescale, bound=count * peak(x))
