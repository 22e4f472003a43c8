"""Where the tensors of a one-layer network lie: apart, strided, wrapped, as columns of others, or the output over an input."""

from collections.abc import Callable
from dataclasses import replace

from n2d2py.arithmetic import NumType
from n2d2py.graph.shapes import Shape, channels, height, width
from n2d2py.memory.plan import Plane


def plane(offset: int, shape: Shape, kind: NumType, gap: int = 0, limit: int | None = None, wrap_offset: int = 0) -> Plane:
    """A plane at `offset` whose pixels are `gap` elements apart."""
    size = channels(shape) * kind.bytes
    return Plane(offset, size, size + gap * kind.bytes, width(shape), height(shape), 0, 1, limit, wrap_offset)


def apart(tensors: dict[str, tuple[Shape, NumType]], gap: int = 0) -> dict[str, Plane]:
    """One after the other, eight bytes apart."""
    planes, offset = {}, 16
    for name, (shape, kind) in tensors.items():
        planes[name] = plane(offset, shape, kind, gap)
        offset = -(-(offset + planes[name].bytes + 8) // 8) * 8
    return planes


def columns(tensors: dict[str, tuple[Shape, NumType]]) -> dict[str, Plane]:
    """One after the other, the lines of each a part of longer ones."""
    planes, offset = {}, 16
    for name, (shape, kind) in tensors.items():
        whole = plane(offset, shape, kind)
        planes[name] = replace(whole, pitch=whole.line_bytes + 3 * whole.stride)
        offset = -(-(offset + planes[name].bytes + 8) // 8) * 8
    return planes


def wrapped(tensors: dict[str, tuple[Shape, NumType]], gap: int = 0) -> dict[str, Plane]:
    """Every plane in two pieces: the lines from the middle on lie before the first ones."""
    planes, offset = {}, 8
    for name, (shape, kind) in tensors.items():
        whole = plane(offset, shape, kind, gap)
        before = height(shape) // 2
        rest = (height(shape) - before) * whole.line_bytes
        if before:
            first = -(-(offset + rest + 8) // 8) * 8
            whole = plane(first, shape, kind, gap, before * whole.line_bytes, offset)
        planes[name] = whole
        offset = -(-(whole.offset + whole.bytes + 8) // 8) * 8
    return planes


Dead = Callable[[int], int]
"""How many of the first input lines no line from y on reads."""


def window_dead(stride: int, top: int) -> Dead:
    """Of windows that move by `stride` from `top` lines above the input."""
    return lambda y: y * stride - top


def _margin(source: Plane, output: Plane, dead: Dead) -> int:
    """By how many bytes the output must start before the input: line y may only cover dead lines."""
    return max(
        (y + 1) * output.line_bytes - min(source.count, max(0, dead(y))) * source.line_bytes for y in range(output.count)
    )


def before_input(source: tuple[Shape, NumType], output: tuple[Shape, NumType], dead: Dead) -> dict[str, Plane]:
    """The output over the input, as near as the line rule lets it."""
    x, y = plane(0, *source), plane(0, *output)
    margin = _margin(x, y, dead)
    base = -(-max(0, margin) // 8) * 8
    size = output[1].bytes
    start = (base - margin) // size * size
    return {"x": plane(base, *source), "y": plane(start, *output)}


def ring(source: tuple[Shape, NumType], output: tuple[Shape, NumType], dead: Dead) -> dict[str, Plane]:
    """The output starts where the input ends and wraps to its beginning, in the smallest ring."""
    x, y = plane(0, *source), plane(0, *output)
    start = -(-x.bytes // y.line_bytes) * y.line_bytes if x.bytes % output[1].bytes else x.bytes
    lead = -(-max(_margin(x, y, dead), y.bytes - start, 0) // y.line_bytes)
    if lead >= y.count:
        return {"x": x, "y": plane(start, *output)}
    return {"x": x, "y": plane(start, *output, limit=lead * y.line_bytes, wrap_offset=0)}
