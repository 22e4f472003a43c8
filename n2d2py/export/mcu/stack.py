"""A bound of the stack that one inference takes."""

from __future__ import annotations

from collections.abc import Iterable

from n2d2py.export.cpp.view import LayerView

__all__ = ["stack_bytes"]

_FRAMES = 2048
"""The frames of calls, registers, sums: measured on all cores with GCC, see tests/export_mcu."""


def _window(layer: LayerView) -> int:
    """Bytes of the windows of two pixels that a convolution gathers, 16 bits for an element at least."""
    if layer.code is None or layer.operation != "Conv":
        return 0
    size = max(2, layer.graph.type(layer.node.inputs[0]).bytes)
    return 2 * size * layer.node.params["weights"][0].size


def stack_bytes(layers: Iterable[LayerView]) -> int:
    """Bytes: those of the calls, and the largest buffer of a layer; the test program of the export checks it."""
    return _FRAMES + max((_window(layer) for layer in layers), default=0)
