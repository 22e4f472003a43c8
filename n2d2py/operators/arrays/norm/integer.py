"""Softmax and normalisation of lines in integers."""

from __future__ import annotations

from math import sqrt

import numpy as np

from n2d2py.arithmetic import make_rescale
from n2d2py.arithmetic.attention import LONGEST_LINE, exponentials, mask_bits, taken_of
from n2d2py.graph import Node, QuantGraph, QuantNode
from n2d2py.graph.forms import Exponentials, MaskedExponentials, Normalized
from n2d2py.quant.contract import LayerTypes, Quantizer, quantizer, refusal
from n2d2py.quant.forming import activation_clamp, common_multipliers, formed, rescaled

_GAIN_BITS = 14
_FRACTION, _WIDE_FRACTION = 12, 16
"""Bits behind the point of a normalised element, for results of 8 and of 16 bits."""


@quantizer("ArraySoftmax")
class SoftmaxQuantizer(Quantizer):
    """Powers, and the reciprocal of the scale of the output."""

    def refuses(self, node: Node) -> str | None:
        if node.op.log:
            return "the logarithm of a softmax"
        return "a softmax of more than 65535 elements" if node.op.size > 65535 else None

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        x, y = types.inputs[0], types.output
        form = self.form(node, Exponentials(exponentials(x.scale, x.bits), np.array([round(2.0**32 / y.scale)], np.int64)))
        floating = types.options.rescaling == "Floating-point"
        rescale = make_rescale("Floating-point", np.array([1 / y.scale]))[0] if floating else None
        return formed(node, form, activation_clamp(node, y), rescale)

    def form(self, node: Node, powers: Exponentials) -> Exponentials:
        """The form with what else a layer needs."""
        return powers


@quantizer("ArrayMaskedSoftmax")
class MaskedSoftmaxQuantizer(SoftmaxQuantizer):
    """Those of a softmax, and the mask in bits."""

    def form(self, node: Node, powers: Exponentials) -> Exponentials:
        """With the mask."""
        return MaskedExponentials(powers.powers, powers.numerator, mask_bits(node.params["mask"]))

    def real_params(self, node: QuantNode, graph: QuantGraph) -> dict[str, np.ndarray]:
        """The mask."""
        return {"mask": taken_of(node.form_as(MaskedExponentials).mask, node.op.size)}


@quantizer("ArrayNorm")
class NormQuantizer(Quantizer):
    """Gains in 14 bits, or what sums of 32 bits leave; their unit is a power of two, so the rescale is exact in every mode.

    One gain and no offset where the node has none of its own.
    """

    def refuses(self, node: Node) -> str | None:
        if node.op.part:
            return f"the {node.op.part} of a normalisation"
        return f"a normalisation of more than {LONGEST_LINE} elements" if node.op.inner > LONGEST_LINE else None

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        x, y, op = types.inputs[0], types.output, node.op
        gains = np.asarray(node.params.get("gain", np.ones(1)), np.float64) / y.scale
        shifts = np.asarray(node.params.get("shift", np.zeros(1)), np.float64) / y.scale
        # what is added to a root counts inside: the same for a line of zeros, and nothing to one of many steps
        epsilon = min(max(round(op.inner**2 * (op.epsilon + op.added**2) / x.scale**2), 1), 2**60)
        fraction = _FRACTION if y.bits == 8 else _WIDE_FRACTION
        largest = int(sqrt(op.inner) * 2**fraction) + 2
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
        return rescaled(node, types, np.array([unit]), bound, form)

    def real_params(self, node: QuantNode, graph: QuantGraph) -> dict[str, np.ndarray]:
        """Gains of 14 bits and offsets in their unit."""
        form, step = node.form_as(Normalized), node.rescaling.effective()[0] * graph.type(node.output).scale
        values = {"gain": form.gains * (step * 2.0 ** int(form.fraction[0])), "shift": form.offsets * step}
        return {role: np.broadcast_to(each, node.op.inner).astype(np.float32) for role, each in values.items()}

    def prequantized(self, node: Node, types: LayerTypes) -> QuantNode:
        """Refused: other runtimes round a normalisation in floating point."""
        raise refusal(node, "a normalisation between quantized tensors of the file")
