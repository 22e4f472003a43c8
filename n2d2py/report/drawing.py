"""Drawings of a network and of a memory plan.

A network is boxes with name, operator, shape and number type, in the order of execution. An edge to the next layer is straight.
Other edges share a lane on the right, one for each tensor. A plan has time to the right and addresses upwards.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, log2

from n2d2py.figures import Drawing, Svg, number
from n2d2py.graph import QuantGraph, QuantNode, n2d2_dims
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem
from n2d2py.naming import shorten
from n2d2py.report.layers import kernel_size, layer_type, stored_parameters
from n2d2py.report.text import grouped, short_bytes

_WIDTH, _LAYER, _PORT = 212.0, 46.0, 34.0
"""Width of the boxes, height of those of layers, and of inputs and outputs, in pixels."""
_GAP, _MARGIN, _LANE = 22.0, 30.0, 6.0
"""Pixels between rows, around the drawing, and between lanes."""


@dataclass(frozen=True)
class Box:
    """A box in the drawing, from `y` downwards."""

    y: float
    height: float

    @property
    def middle(self) -> float:
        """The y of the centre."""
        return self.y + self.height / 2


class Layout:
    """Places of boxes of some heights, one below the other, with edges (from, to) to later boxes; `paths`: lines and arrows."""

    def __init__(self, heights: list[float], edges: list[tuple[int, int]]):
        tops = accumulate((height + _GAP for height in heights), initial=_MARGIN)
        self.boxes = [Box(top, height) for top, height in zip(tops, heights, strict=False)]
        ends: dict[int, int] = {}
        for a, b in edges:
            if b != a + 1:
                ends[a] = max(b, ends.get(a, b))
        self._lanes: dict[int, int] = {}
        occupied: list[int] = []  # where each lane is free again
        for source in sorted(ends):
            lane = next((k for k, end in enumerate(occupied) if end < source), len(occupied))
            occupied[lane : lane + 1] = [ends[source]]
            self._lanes[source] = lane
        self.width = 2.5 * _MARGIN + _WIDTH + _LANE * len(occupied)
        self.height = self.boxes[-1].y + self.boxes[-1].height + _MARGIN
        self.paths = [self._path(*edge) for edge in edges]

    def _path(self, a: int, b: int) -> tuple[str, str]:
        source, target = self.boxes[a], self.boxes[b]
        if b == a + 1:
            x, y = number(_MARGIN + _WIDTH / 2), number(target.y)
            return f"M{x} {number(source.y + source.height)}V{y}", f"M{x} {y}l-3.5 -7h7z"
        x, y, lane = number(_MARGIN + _WIDTH), number(target.middle), number(1.5 * _MARGIN + _WIDTH + _LANE * self._lanes[a])
        return f"M{x} {number(source.middle)}H{lane}V{y}H{x}", f"M{x} {y}l7 -3.5v7z"


def _tensor_text(graph: QuantGraph, tensor: str) -> str:
    kind = graph.type(tensor)
    return kind.name if kind.is_float else f"{kind.name} · scale {kind.scale:.4g}"


def _dims(graph: QuantGraph, tensor: str) -> str:
    return "×".join(map(str, n2d2_dims(graph.shape(tensor))))


def _operator_text(node: QuantNode) -> str:
    text, kernel = layer_type(node), kernel_size(node)
    if kernel:
        text += f" {kernel[0]}×{kernel[1]}"
        stride = node.op.stride
        text += "" if stride == (1, 1) else f" /{stride[0]}" + (f"×{stride[1]}" if stride[0] != stride[1] else "")
    return text


def _style(node: QuantNode) -> str:
    kind = node.op.kind
    if kind == "Conv":
        return "k-dw" if layer_type(node) == "Conv depthwise" else "k-conv"
    return {"Fc": "k-fc", "Pool": "k-pool", "ElemWise": "k-join", "Concat": "k-join"}.get(kind, "k-other")


def _parts(graph: QuantGraph) -> tuple[list[float], list[tuple[int, int]]]:
    producer = {name: k for k, name in enumerate(graph.inputs)}
    heights, edges = [_PORT] * len(graph.inputs), []
    for node in graph.nodes:
        edges += [(producer[name], len(heights)) for name in node.inputs]
        producer.update(dict.fromkeys(node.outputs, len(heights)))
        heights.append(_LAYER)
    for name in graph.outputs:
        edges.append((producer[name], len(heights)))
        heights.append(_PORT)
    return heights, edges


def draw_network(graph: QuantGraph, *, standalone: bool = True) -> Drawing:
    """Return the SVG text; `standalone` includes the colours. In a page, box k is `node-k` and leads to `layer-k`."""
    layout = Layout(*_parts(graph))
    svg = Svg(layout.width, layout.height, "network", standalone=standalone, title="" if standalone else "network")
    for path, tip in layout.paths:
        svg.path(path, "edge")
        svg.path(tip, "arrow")
    boxes = iter(layout.boxes)
    for name in graph.inputs:
        _draw_port(svg, next(boxes), f"input {name}", f"{_dims(graph, name)} · {_tensor_text(graph, name)}")
    for row, node in enumerate(graph.nodes):
        if standalone:
            _draw_layer(svg, next(boxes), graph, node)
            continue
        with svg.link(f"layer-{row}", f"node-{row}", row, f"{node.name}, {_operator_text(node)}: go to its row in the table"):
            _draw_layer(svg, next(boxes), graph, node)
    for name in graph.outputs:
        _draw_port(svg, next(boxes), f"output {name}", _dims(graph, name))
    return svg.finish()


def _draw_layer(svg: Svg, box: Box, graph: QuantGraph, node: QuantNode) -> None:
    x, y, out = _MARGIN, box.y, node.outputs[0]
    macs = int(node.op.macs([graph.shape(name) for name in node.inputs], graph.shape(out), node))
    count = sum(int(array.size) for array in stored_parameters(node))
    title = f"{node.name}: {_operator_text(node)}, {grouped(macs)} MACs, {grouped(count)} parameters"
    svg.rect(x, y, _WIDTH, _LAYER, "box", 4, title=title)
    svg.rect(x, y, 5, _LAYER, _style(node), 2)
    svg.text(x + 13, y + 15, shorten(node.name, 27), "name", anchor="start")
    svg.text(x + 13, y + 28, shorten(f"{_operator_text(node)} → {_dims(graph, out)}", 36), "info", anchor="start")
    svg.text(x + 13, y + 40, _tensor_text(graph, out), "info", anchor="start")


def _draw_port(svg: Svg, box: Box, title: str, text: str) -> None:
    svg.rect(_MARGIN, box.y, _WIDTH, _PORT, "end", _PORT / 2)
    svg.text(_MARGIN + _WIDTH / 2, box.middle - 3, shorten(title, 24), "name")
    svg.text(_MARGIN + _WIDTH / 2, box.middle + 10, shorten(text, 34), "info")


_MAP_WIDTH, _MAP_HEIGHT = 1400.0, 430.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 66.0, 10.0, 10.0, 34.0
_HUES = 8
_LETTER = 5.6
_LINE = 13.0
"""Width of a letter and height of a line of a label, in pixels."""


def _tick_step(span: int, most: int) -> int:
    """Return the smallest power of two that divides `span` into at most `most` parts."""
    return 2 ** max(0, ceil(log2(span / most)))


def draw_memory(problem: MemoryProblem, plan: MemoryPlan, layers: Sequence[str] = (), *, standalone: bool = False) -> Drawing:
    """Return the SVG text; `standalone` includes the colours. Wrapped parts have a dashed outline.

    The buffer that layer k of `layers` writes is the element `buffer-k` of the page and leads to the element `layer-k`. Views
    are drawn with the bytes of the tensors that were written.
    """
    writers = {op.output: op.name for op in problem.ops}
    views = {problem.op(name).output for name in plan.views}
    last = max([step.clock for step in plan.schedule], default=0)
    peak = max(1, plan.arena_bytes)
    column = (_MAP_WIDTH - _LEFT - _RIGHT) / (last + 2)
    foot = _MAP_HEIGHT - _BOTTOM

    def x(clock: float) -> float:
        return _LEFT + (clock + 1) * column

    def y(address: float) -> float:
        return foot - address / peak * (foot - _TOP)

    svg = Svg(_MAP_WIDTH, _MAP_HEIGHT, "memory", standalone=standalone, title="memory map" if layers else "")
    rows = {name: row for row, name in enumerate(layers)}
    step = _tick_step(peak, 8)
    for address in range(0, peak + 1, step):
        svg.line(_LEFT, y(address), _MAP_WIDTH - _RIGHT, y(address), "grid")
        svg.text(_LEFT - 6, y(address) + 3.5, short_bytes(address), "tick", anchor="end")
    labels = []
    names = [name for name, plane in plan.planes.items() if name not in views and not plane.external]
    for index, name in enumerate(names):
        plane = plan.planes[name]
        until = min(plane.release, last) + 1
        layer = writers.get(name, name)
        facts = f"{layer}: {grouped(plane.bytes)} bytes, clock {plane.alloc} to {plane.release}"
        for part, (begin, end) in enumerate(plane.intervals()):
            where = f"{facts}, {grouped(begin)} to {grouped(end)}" + (", wrapped part" if part else "")
            width, height = x(until) - x(plane.alloc), y(begin) - y(end)
            style, row = f"buffer h{index % _HUES}{' wrapped' if part else ''}", rows.get(layer)
            mark = "" if part else f"buffer-{row}"
            with (
                nullcontext() if row is None else svg.link(f"layer-{row}", mark, row, f"{where}: go to its layer in the table")
            ):
                svg.rect(x(plane.alloc), y(end), width, height, style, title=where)
            if max(width, height) >= 9 * _LETTER and min(width, height) >= _LINE:
                labels.append((x(plane.alloc) + width / 2, (y(begin) + y(end)) / 2, width, height, layer))
    _label(svg, labels)
    clocks = {step.op: step.clock for step in plan.schedule}
    for name, scratch in plan.scratch.items():
        high, low = y(scratch.offset + scratch.size), y(scratch.offset)
        title = f"{name}: scratch of {grouped(scratch.size)} bytes"
        svg.rect(x(clocks[name]), high, column, low - high, "scratch", title=title)
    svg.line(_LEFT, y(plan.arena_bytes), _MAP_WIDTH - _RIGHT, y(plan.arena_bytes), "threshold")
    every = _tick_step(last + 1, 24)
    for clock in range(0, last + 1, every):
        svg.text(x(clock + 0.5), foot + 13, str(clock), "tick")
    svg.text((_LEFT + _MAP_WIDTH - _RIGHT) / 2, foot + 28, "clock (inputs are written at -1)", "tick")
    svg.line(_LEFT, foot, _MAP_WIDTH - _RIGHT, foot, "axis")
    return svg.finish()


def _label(svg: Svg, labels: list[tuple[float, float, float, float, str]]) -> None:
    """Write the labels (centre, width and height of the buffer, text) along the longer side, none over another."""
    occupied: list[tuple[float, float, float, float]] = []
    for x, y, width, height, name in labels:
        flat = width >= min(height, len(name) * _LETTER)
        text = shorten(name, int((width if flat else height) / _LETTER))
        room = (len(text) * _LETTER, _LINE) if flat else (_LINE, len(text) * _LETTER)
        if any(2 * abs(x - tx) < room[0] + tw and 2 * abs(y - ty) < room[1] + th for tx, ty, tw, th in occupied):
            continue
        occupied.append((x, y, *room))
        if flat:
            svg.text(x, y + 3.5, text, "tag")
        else:
            svg.upright(x + 3.5, y, text, "tag", anchor="middle")
