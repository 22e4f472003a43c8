"""A bound of the stack that one inference takes."""

from __future__ import annotations

from collections.abc import Iterable

from n2d2py.export.cpp.view import LayerView

__all__ = ["stack_bytes"]

_FRAMES = 2048
"""The frames of calls, registers, sums: measured on all cores with GCC, see tests/export_mcu."""


def _window(layer: LayerView) -> int:
    """Bytes of the windows that a layer gathers: of two pixels, 16 bits for an element at least."""
    if layer.code is None or layer.operation not in ("Conv", "Fc"):
        return 0
    weights, size = layer.node.params["weights"], max(2, layer.graph.type(layer.node.inputs[0]).bytes)
    if layer.operation == "Fc":  # the input gathered, and spread to 16 bits; the outputs
        return (1 + size) * weights[0].size + (len(weights) if layer.graph.type(layer.node.output).bytes == 1 else 256)
    return 2 * size * weights[0].size + 2 * weights[0].size * (weights.shape[1] % 4 > 0) + 2 * len(weights)


def stack_bytes(layers: Iterable[LayerView]) -> int:
    """Bytes: those of the calls, and the largest buffer of a layer; the test program of the export checks it."""
    return _FRAMES + max((_window(layer) for layer in layers), default=0)
