"""Implementations of a kernel beside the portable one: what each needs, and its order of the constants.

SIMD kernels multiply groups of four inputs with 16 outputs at once, so their weights lie in panels. A layer
that has them is exported with both orders, one of which is compiled (`kernels/n2d2/isa.hpp`); the C++
specialisations for an instruction set read the panels and take any layer that has them.

Adding one: a function that packs, and a line in `IMPLEMENTATIONS`.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

import numpy as np

from n2d2py.arithmetic import NumType

__all__ = ["Facts", "Panels", "Implementation", "IMPLEMENTATIONS", "choose", "packed_matrix", "packed_depthwise",
           "depthwise_order"]

OUTPUTS = 16
"""Outputs of a panel: 32-bit sums of one 512-bit register."""
QUAD = 4
"""Products of bytes that one instruction adds to a sum; half as many of 16-bit integers."""


@dataclass(frozen=True)
class Facts:
    """What a choice may depend on; `outputs` and `inputs` are those of one group, `taps` the kernel's positions."""

    kernel: str
    input: NumType
    output: NumType
    weight_type: str
    sum_type: str
    groups: int
    outputs: int
    inputs: int
    taps: int


@dataclass(frozen=True, eq=False)
class Panels:
    """Constants in the order of SIMD kernels.

    Attributes:
        weights: int8, flat.
        bias: int32, with what the moving of inputs by half their range adds taken out; modulo 2^32.
        signed_bias: the same where bytes are multiplied as signed ones, unsigned ones - 128 (ARM's dot product).
        order: position -> output, for all constants per output; None when it is the identity.
    """

    weights: np.ndarray
    bias: np.ndarray
    order: np.ndarray | None = None
    signed_bias: np.ndarray | None = None

    def sorted(self, values: np.ndarray) -> np.ndarray:
        """Constants per output in the order of the kernel."""
        return values if self.order is None or len(values) != len(self.order) else values[self.order]


@dataclass(frozen=True)
class Implementation:
    """One order of constants, with the layers that it is for.

    Attributes:
        kernel: the C++ function.
        name: for reports.
        needs: whether a layer can use it.
        pack: (weights (O, inputs of an output in the kernel's order), bias, facts) -> Panels.
    """

    kernel: str
    name: str
    needs: Callable[[Facts], bool]
    pack: Callable[[np.ndarray, np.ndarray, Facts], Panels]


def _multiplied(facts: Facts, bits: tuple[int, ...]) -> bool:
    """What the dot product instructions multiply: inputs of so many bits, 8-bit weights, 32-bit sums."""
    return (not facts.input.is_float and facts.input.bits in bits and facts.weight_type == "std::int8_t"
            and facts.sum_type == "std::int32_t")


def _moved_bias(weights: np.ndarray, bias: np.ndarray, facts: Facts) -> np.ndarray:
    """The bias for signed bytes stored + 128 and for unsigned 16-bit inputs stored - 32768."""
    shift = {(8, True): 128, (16, False): -32768}.get((facts.input.bits, facts.input.signed), 0)
    bias = bias.astype(np.int64) - shift * weights.reshape(len(weights), -1).astype(np.int64).sum(axis=1)
    return (bias & 0xffffffff).astype(np.uint32).view(np.int32)


def _signed_bias(weights: np.ndarray, bias: np.ndarray, facts: Facts) -> np.ndarray | None:
    """The bias for unsigned bytes multiplied as signed ones, 128 less; as it is for signed ones."""
    if facts.input.bits != 8:
        return None
    shift = 0 if facts.input.signed else 128
    moved = bias.astype(np.int64) + shift * weights.reshape(len(weights), -1).astype(np.int64).sum(axis=1)
    return (moved & 0xffffffff).astype(np.uint32).view(np.int32)


def packed_matrix(weights: np.ndarray, outputs: int, each: int = QUAD) -> np.ndarray:
    """(groups * outputs, K) -> per group and per 16 of its outputs: [ceil(K / each)][outputs of the panel][each], flat.

    K is filled up with zeros; the last panel of a group has only the outputs that are left.
    """
    rows, inputs = weights.shape
    padded = np.zeros((rows, -(-inputs // each) * each), np.int8)
    padded[:, :inputs] = weights
    panels = []
    for group in range(0, rows, outputs):
        for first in range(group, group + outputs, OUTPUTS):
            panel = padded[first:min(first + OUTPUTS, group + outputs)]
            panels.append(panel.reshape(len(panel), -1, each).transpose(1, 0, 2).reshape(-1))
    return np.concatenate(panels)


def _matrix(weights: np.ndarray, bias: np.ndarray, facts: Facts) -> Panels:
    packed = packed_matrix(weights.reshape(len(weights), -1), facts.outputs, QUAD * 8 // facts.input.bits)
    return Panels(packed, _moved_bias(weights, bias, facts), signed_bias=_signed_bias(weights, bias, facts))


def depthwise_order(channels: int) -> np.ndarray:
    """Position -> channel: each 64 channels as the unpack instructions leave them, the others in order.

    Register j of four holds, in its 128-bit part l, the channels 16 l + 4 j to 16 l + 4 j + 3.
    """
    order = np.arange(channels)
    whole = channels // 64 * 64
    order[:whole] = order[:whole].reshape(-1, 4, 4, 4).transpose(0, 2, 1, 3).reshape(-1)
    return order


def packed_depthwise(weights: np.ndarray) -> np.ndarray:
    """(C, KH, KW) -> per 16 positions of `depthwise_order`: [ceil(KH / 4)][KW][channels of the panel][4 lines], flat.

    Lines beyond KH are zeros; the last panel has only the channels that are left.
    """
    channels, lines, columns = weights.shape
    padded = np.zeros((channels, -(-lines // QUAD) * QUAD, columns), np.int8)
    padded[:, :lines] = weights[depthwise_order(channels)]
    quads = padded.reshape(channels, -1, QUAD, columns).transpose(1, 3, 0, 2)
    return np.concatenate([quads[:, :, first:first + OUTPUTS].reshape(-1) for first in range(0, channels, OUTPUTS)])


def _depthwise(weights: np.ndarray, bias: np.ndarray, facts: Facts) -> Panels:
    order = depthwise_order(len(weights))
    return Panels(packed_depthwise(weights), _moved_bias(weights, bias, facts)[order], order,
                  _signed_bias(weights, bias, facts)[order])


IMPLEMENTATIONS: tuple[Implementation, ...] = (
    Implementation("convolution", "panels of 16 outputs",
                   lambda f: (_multiplied(f, (8, 16)) and (f.groups == 1 or f.outputs >= 8)
                              and f.inputs * f.taps >= 4), _matrix),
    Implementation("depthwise", "lines by four", lambda f: _multiplied(f, (8,)) and f.outputs == 1, _depthwise),
    Implementation("fullyConnected", "panels of 16 outputs",
                   lambda f: _multiplied(f, (8, 16)) and f.inputs >= 4, _matrix),
)


def choose(facts: Facts) -> Implementation | None:
    """The first implementation that fits; None for the portable kernel alone."""
    return next((i for i in IMPLEMENTATIONS if i.kernel == facts.kernel and i.needs(facts)), None)
