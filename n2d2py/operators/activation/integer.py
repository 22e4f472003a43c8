"""Functions of single values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from n2d2py import log
from n2d2py.arithmetic.interpolated import fit_knots, nearest_defined
from n2d2py.errors import N2D2Error
from n2d2py.graph import Node, QuantNode
from n2d2py.graph.forms import Interpolated, Table
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.functions import Clip
from n2d2py.quant.contract import LayerTypes, Quantizer, quantize_layer, quantizer
from n2d2py.quant.forming import activation_clamp, formed

_WITHIN = (0.75, 1.5)
"""Steps by which results of a table of knots may be off, 0.5 of them by rounding: the second where no table does better. Errors of 1.5
steps cost networks of 16 bits with SiLU up to 3 dB."""


@quantizer("Activation")
class ActivationQuantizer(Quantizer):
    """table[q - qmin] = quantized f(s_x (q - zero point)) for every stored input value q, or knots between which inputs
    of 16 bits are interpolated; where f is not defined, its value at the nearest q where it is."""

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        x, y = types.inputs[0], types.output
        if x.bits > 8 and isinstance(node.op.function, Clip):  # a sum of one, and the clamp of its output
            return quantize_layer(replace(node, op=ElemWise("Sum"), activation=node.op.function), types)
        first = x.qmin if x.bits == 8 else -(2**15) if x.signed else 0
        stored = np.arange(first, x.qmax + (2 if x.bits > 8 else 1))
        with np.errstate(all="ignore"):
            values = nearest_defined(node.op.function(x.dequantize(stored).astype(np.float64)))
        if values is None:
            raise _not_a_number(node)
        clamp = activation_clamp(node, y)
        if x.bits > 8:
            steps = values / y.scale + y.zero_point
            for within in _WITHIN:
                knots = fit_knots(steps, y.qmin, y.qmax, within)
                if knots is not None:
                    return formed(node, Interpolated(knots), clamp)
            log.notice(
                "%s: 16-bit %s uses a table of 65536 entries, as interpolation in 4096 entries would be off by more than 1.5 "
                "steps",
                node.name,
                node.op.function.kind,
            )
            values = values[x.qmin - first : -1]
        return formed(node, Table(y.quantize(values)), clamp)

    def prequantized(self, node: Node, types: LayerTypes) -> QuantNode:
        """A table, the function after the layer in it."""
        x, y = types.inputs[0], types.output
        stored = np.arange(x.qmin, x.qmax + 1)
        with np.errstate(over="ignore"):
            values = node.op.function((stored - x.zero_point).astype(np.float32) * np.float32(x.scale))
        values = nearest_defined(values if node.activation is None else node.activation(values))
        if values is None:
            raise _not_a_number(node)
        return formed(node, Table(y.quantize_linear(values)), (y.qmin, y.qmax))


def _not_a_number(node: Node) -> N2D2Error:
    return N2D2Error(
        "E504",
        f"layer '{node.name}' ({node.op.function.kind}) gives NaN for all of its inputs",
        where=node.location,
        remedy="check the weights and the input range",
    )
