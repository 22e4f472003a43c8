"""Low-bit integers, several channels in a byte, and back: the storage of activations between layers.

With B bits and the smallest integer `low`, byte c // (8/B) of a pixel holds q - low of channel c at bit B (c mod 8/B): the
first channel in the lowest bits, as in weights and in ONNX's INT4 and INT2. Unused bits of the last byte of a pixel are 0.
"""

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.contracts.cpp.layer import Layer, LayerCode, cpp
from n2d2py.contracts.operator import Op, register
from n2d2py.errors import InternalError
from n2d2py.graph import QuantGraph, QuantNode, Shape, channels, height, width
from n2d2py.memory.access import Access, Repacked, memory_access

PACKED = NumType(8, signed=False, plain=True)
"""The type of a packed tensor: bytes."""


def packed_bits(kind: NumType) -> int | None:
    """Return the packed width of a type's integers: 1, 2 or 4 bits; None if they need a byte or more."""
    if kind.is_float or kind.plain or kind.bits != 8:
        return None
    return next((bits for bits in (1, 2, 4) if kind.qmax - kind.qmin < 2**bits), None)


def packed_bytes(count: int, bits: int) -> int:
    """Return the bytes of so many channels."""
    return -(-count * bits // 8)


@register
class PackChannels(Op):
    """Integers (N, C, ...) from low to low + 2^bits - 1, packed into bytes (N, ceil(C bits / 8), ...); 1, 2 or 4 bits."""

    bits: int
    low: int = 0

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        batch, count, *rest = inputs[0]
        return [(batch, packed_bytes(count, self.bits), *rest)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Raise InternalError for an integer out of range."""
        codes, each = inputs[0].astype(np.int64) - self.low, 8 // self.bits
        if codes.size and not 0 <= codes.min() <= codes.max() < 2**self.bits:
            raise InternalError(f"{node.name}: integers outside the {self.bits} bits from {self.low} on")
        batch, count, *rest = codes.shape
        filled = np.zeros((batch, packed_bytes(count, self.bits) * each, *rest), np.int64)
        filled[:, :count] = codes
        filled = filled.reshape(batch, -1, each, *rest)
        shifts = (np.arange(each) * self.bits).reshape(1, 1, each, *[1] * len(rest))
        return [(filled << shifts).sum(axis=2).astype(np.uint8)]


@register
class UnpackChannels(Op):
    """The integers (N, channels, ...) that PackChannels packed."""

    bits: int
    low: int
    channels: int

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        return [(inputs[0][0], self.channels, *inputs[0][2:])]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        stored, each = inputs[0].astype(np.int64), 8 // self.bits
        batch, count, *rest = stored.shape
        values = np.empty((batch, count * each, *rest), np.int64)
        for index in range(each):
            values[:, index::each] = (stored >> (index * self.bits)) & (2**self.bits - 1)
        return [(values[:, : self.channels] + self.low).astype(graph.type(node.output).dtype)]


@memory_access("PackChannels", "UnpackChannels")
def _access(node: QuantNode, graph: QuantGraph) -> Access:
    shape = graph.shape(node.output)
    return Repacked.of(height(shape), width(shape), isinstance(node.op, UnpackChannels))


@cpp("PackChannels", "UnpackChannels")
def _lower(layer: Layer) -> LayerCode:
    op, packs = layer.op, isinstance(layer.op, PackChannels)
    count = channels(layer.input_shape if packs else layer.output_shape)
    title = f"{count} channels {'into' if packs else 'from'} {packed_bytes(count, op.bits)} bytes"
    config = layer.config(title, layer.planes, {"Bits": op.bits, "Low": op.low, "Serial": layer.serial})
    return layer.code("packed_channels", layer.call("packChannels" if packs else "unpackChannels", config))
