"""Integer normalization along rows."""

from __future__ import annotations

from math import sqrt

import numpy as np

from n2d2py.arithmetic.attention import LONGEST_LINE
from n2d2py.graph import Node, QuantGraph, QuantNode
from n2d2py.graph.forms import Normalized
from n2d2py.quant.contract import LayerTypes, Quantizer, quantizer, refusal
from n2d2py.quant.forming import common_multipliers, rescaled_layer

_GAIN_BITS = 14
_FRACTION, _WIDE_FRACTION = 12, 16
"""Fractional bits of a normalized element, for 8-bit and for 16-bit results."""


@quantizer("Normalize")
class NormQuantizer(Quantizer):
    """Gains have 14 bits, or fewer if 32-bit accumulators require it. Their unit is a power of two: the rescale is exact in
    every mode.

    A node without parameters gets one gain and no offset.
    """

    def refuses(self, node: Node) -> str | None:
        if node.op.power == 1:
            return "a normalisation by the L1 norm"
        if node.op.part:
            return f"the {node.op.part} of a normalisation"
        return f"a normalisation of more than {LONGEST_LINE} elements" if node.op.size > LONGEST_LINE else None

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        x, y, op = types.inputs[0], types.output, node.op
        root = sqrt(op.size) if op.summed else 1.0  # sum of squares instead of their mean
        gains = np.asarray(node.params.get("gain", np.ones(1)), np.float64) / (root * y.scale)
        shifts = np.asarray(node.params.get("shift", np.zeros(1)), np.float64) / y.scale
        # `added` moves into the root: equal for a row of zeros, negligible for rows of many steps
        epsilon = min(max(round(op.size**2 * (op.epsilon + op.added**2) / (root * x.scale) ** 2), 1), 2**60)
        fraction = _FRACTION if y.bits == 8 else _WIDE_FRACTION
        largest = int(sqrt(op.size) * 2**fraction) + 2
        bits = min(_GAIN_BITS, 30 - largest.bit_length()) if y.bits == 8 else _GAIN_BITS
        steps = gains * 2.0**-fraction if gains.any() else np.full(len(gains), 2.0**-fraction)
        multipliers, unit = common_multipliers(steps, bits)
        whole = np.array(multipliers if gains.any() else [0] * len(gains))
        offsets = np.array([round(shift / unit) for shift in shifts])
        bound = int(np.max(largest * np.abs(whole) + np.abs(offsets)))
        if bound >= 2**53:
            raise refusal(node, "a normalisation whose bias is beyond 53 bits of its gains")
        form = Normalized(
            whole.astype(np.int16),
            offsets.astype(np.int32 if bound < 2**31 else np.int64),
            np.array([epsilon], np.int64),
            np.array([fraction], np.int32),
        )
        return rescaled_layer(node, types, np.array([unit]), bound, form)

    def real_params(self, node: QuantNode, graph: QuantGraph) -> dict[str, np.ndarray]:
        """Return the 14-bit gains and the offsets as real numbers."""
        form, step = node.form_as(Normalized), node.rescaling.effective()[0] * graph.type(node.output).scale
        step_of_gain = step * (sqrt(node.op.size) if node.op.summed else 1.0)
        values = {"gain": form.gains * (step_of_gain * 2.0 ** int(form.fraction[0])), "shift": form.offsets * step}
        return {role: np.broadcast_to(each, node.op.size).astype(np.float32) for role, each in values.items()}

    def in_files(self, node: Node) -> bool:
        return False
