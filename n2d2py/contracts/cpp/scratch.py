"""Scratch of the kernels of a layer (`kernels/n2d2/scratch.hpp`), declared next to the C++ form of its operator.

    @scratch("Mean")
    def needed(layer: Layer) -> ScratchNeed | None:

A binary is built for one instruction set or several, which is not known when the memory is planned: a need is the largest over
the sets. Kernels make blocks that fit into their scratch.
"""

from __future__ import annotations

from collections.abc import Callable

from n2d2py.arithmetic import round_up
from n2d2py.contracts.cpp.identifiers import Identifiers
from n2d2py.contracts.cpp.layer import ExportChoices, Layer
from n2d2py.graph import QuantGraph, channels, height, width
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.scratch import ScratchNeed
from n2d2py.registry import Registry

ScratchFunction = Callable[[Layer], "ScratchNeed | None"]
_NEEDS: Registry[ScratchFunction] = Registry("the scratch of", "n2d2py.operators.catalog")
scratch = _NEEDS.declare
"""Decorator that registers a function of a planned layer as the scratch of operator kinds."""
_TAIL = 64
"""Bytes that copying may write after windows."""
_PIXELS = 6
"""Pixels of a tile of most kernels; they make smaller ones where these do not fit."""
_TILES = 4
"""Tiles of a block that hide the time of reading many weights."""
_BLOCK, _ORDERED_BLOCK, _LARGE_BLOCK, _LINES_BLOCK = 24576, 65536, 262144, 32768
"""Bytes of windows that kernels gather at a time: of layers whose lines have an order, of those with many weights, as lines."""
_MANY_WEIGHTS = 524288


def scratch_needs(graph: QuantGraph, plan: MemoryPlan, choices: ExportChoices = ExportChoices()) -> dict[str, ScratchNeed]:
    """Scratch of layers, by name, in a plan of their tensors; those that need nothing are not in it."""
    identifiers = Identifiers(graph)
    needs = {}
    for node in graph.nodes:
        function = _NEEDS.get(node.op.kind)
        if function is None or plan.op(node.name).view:
            continue
        need = function(Layer.of(node, graph, plan, identifiers, choices))
        if need is not None:
            needs[node.name] = need
    return needs


def _window_bytes(layer: Layer, inputs: int) -> int:
    """Return the most bytes of a window of `inputs` inputs, over the instruction sets: bytes may be widened to 16 bits."""
    size = layer.inputs[0].bytes
    words = -(-inputs * size // 4)
    return words * (8 if size == 1 else 4)


def windows_scratch(layer: Layer, kernel: tuple[int, int], groups: int = 1) -> ScratchNeed:
    """Return the bytes of `panels/panel_convolution.hpp`: windows of some tiles, or lines of input with their padding."""
    shape, (_, _, lines, columns) = layer.input_shape, layer.output_shape
    depth = channels(shape) // groups
    window = _window_bytes(layer, kernel[0] * kernel[1] * depth)
    ordered = layer.serial and not layer.streamed
    parts, pixels = (groups, lines * columns) if ordered else (1, columns if layer.streamed else lines * columns)
    weights = kernel[0] * kernel[1] * depth * channels(layer.output_shape) // groups
    block = _LARGE_BLOCK if weights > _MANY_WEIGHTS else _ORDERED_BLOCK if ordered else _BLOCK
    tile = min(_PIXELS, pixels) + 1
    most = max(min(block, window * (pixels + _PIXELS)), window * tile)
    if not ordered and kernel != (1, 1):
        by_lines = (height(shape) + kernel[0]) * (width(shape) + kernel[1]) * depth * layer.inputs[0].bytes
        most = max(most, min(_LINES_BLOCK, by_lines))
    # Each block reads all weights again: of large layers in float32, from memory.
    enough = min(most, window * tile * (1 if layer.integer or weights <= _MANY_WEIGHTS else _TILES))
    least, enough, most = (parts * size + _TAIL for size in (window * min(3, tile), enough, most))
    return ScratchNeed(least, least, enough, most)


def input_scratch(layer: Layer) -> ScratchNeed:
    """Return the bytes of `panels/panel_fullyconnected.hpp`: the input as a window, and before it was arranged."""
    shape = layer.input_shape
    inputs = channels(shape) * height(shape) * width(shape)
    window = (_window_bytes(layer, inputs) + 127) // 64 * 64
    size = window + round_up(inputs * layer.inputs[0].bytes, 4) + _TAIL
    return ScratchNeed(size, size, size, size)
