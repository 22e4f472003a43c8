"""A bound of the stack that one inference takes."""

from __future__ import annotations

from collections.abc import Sequence

from n2d2py.exports.cpp.view import LayerView
from n2d2py.graph.shapes import width

_FRAMES = 2048
"""The frames of calls, registers, sums: measured on all cores with GCC, see tests/microcontrollers."""


def _window(layer: LayerView) -> int:
    """Bytes of the windows and lines that a layer gathers, of the kernels that take the most."""
    if layer.code is None or layer.operation not in ("Conv", "Fc"):
        return 0
    node, weights = layer.node, layer.node.params["weights"]
    size, outputs = max(2, layer.graph.type(node.inputs[0]).bytes), len(weights)
    inputs = -(-weights[0].size // 16) * 16
    if layer.operation == "Fc":  # the input gathered, and spread to 16 bits; the outputs
        return (1 + size) * inputs + (outputs if layer.graph.type(node.output).bytes == 1 else 256)
    # Two pixels of 16 bits or four of bytes; the bytes of two; a line of the kernel in zero points; results.
    dense = 2 * size * inputs + 2 * inputs * (weights.shape[1] % 16 > 0) + inputs + 4 * (outputs + 1)
    if not node.op.is_depthwise(node):
        return dense
    columns = (width(layer.graph.shape(node.output)) - 1) * node.op.stride[1] + weights.shape[3]
    return max(dense, weights.shape[2] * columns * 16, 1536)  # lines of 16 channels, or of all where that is little


def _pixel_window(layer: LayerView) -> int:
    """The same of the kernels of RV32 (`pixel_convolution.hpp`): words of two pixels."""
    if layer.code is None or layer.operation != "Conv" or layer.node.op.is_depthwise(layer.node):
        return 0
    weights = layer.node.params["weights"]
    inputs, outputs = -(-weights[0].size // 2) * 2, len(weights) + 1
    pixels = 6 if inputs <= 256 else 4
    lines = pixels * weights.shape[2] * 4 + weights.shape[1] * weights.shape[3]
    return 2 * pixels * inputs + lines + pixels * outputs * (len(weights) % 2)


def _own(layer: LayerView) -> int:
    """Those of kernels that say what they take."""
    return max((stream.stack for stream in layer.code.streams), default=0) if layer.code else 0


def riscv_stack_bytes(layers: Sequence[LayerView]) -> int:
    """As `stack_bytes`, on RISC-V."""
    return _FRAMES + max((max(_window(layer), _pixel_window(layer)) for layer in layers), default=0)


def stack_bytes(layers: Sequence[LayerView]) -> int:
    """Bytes: those of the calls, and the largest buffer of a layer; the test program of the export checks it."""
    return _FRAMES + max((max(_window(layer), _own(layer)) for layer in layers), default=0)
