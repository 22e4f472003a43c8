"""Drawings of a network and of a memory plan.

A network is boxes with name, operator, shape and number type, in columns and in the order of execution. An edge to the next
layer is straight. Other edges share a lane next to the column of their source, one for each tensor. A plan has time to the right
and addresses upwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import ceil

from n2d2py.figures import Drawing, Svg, number
from n2d2py.graph import QuantGraph, QuantNode, n2d2_dims
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem
from n2d2py.naming import shorten
from n2d2py.operators.conv import Conv
from n2d2py.operators.pool import Pool
from n2d2py.report.layers import layer_type, stored_parameters
from n2d2py.report.text import grouped, short_bytes

_WIDTH, _LAYER, _PORT = 212.0, 46.0, 34.0
"""Width of the boxes, height of those of layers, and of inputs and outputs, in pixels."""
_GAP, _MARGIN, _LANE = 22.0, 30.0, 6.0
"""Pixels between rows, around the drawing, and between lanes."""
_ROWS = 26
"""Boxes of a column; 1.2 times as many are still one column."""


@dataclass
class Box:
    """A box in the drawing; (x, y) is its left upper corner."""

    column: int
    y: float
    height: float
    x: float = 0.0

    @property
    def middle(self) -> float:
        """The y of the centre."""
        return self.y + self.height / 2

    @property
    def bottom(self) -> float:
        """The y of the lower edge."""
        return self.y + self.height


class Layout:
    """Places of boxes of some heights, in order, with edges (from, to) to later boxes; `paths`: their lines and arrows."""

    def __init__(self, heights: list[float], edges: list[tuple[int, int]]):
        columns = ceil(len(heights) / _ROWS) if len(heights) > 1.2 * _ROWS else 1
        rows = ceil(len(heights) / columns)
        self.boxes = [Box(k // rows, 0.0, height) for k, height in enumerate(heights)]
        bent = [edge for edge in edges if not self._is_next(*edge)]
        far = dict.fromkeys(a for a, b in bent if self.boxes[b].column > self.boxes[a].column + 1)
        self._above = {source: _MARGIN + _LANE * k for k, source in enumerate(far)}
        for k, box in enumerate(self.boxes):
            box.y = self.boxes[k - 1].bottom + _GAP if k % rows else _MARGIN + _LANE * len(far)
        lanes = [self._free_lanes(column, bent) for column in range(columns)]
        left, self._lane_x = _MARGIN, dict[tuple[int, int], float]()
        for column, numbers in enumerate(lanes):
            for box in self.boxes[column * rows : (column + 1) * rows]:
                box.x = left
            left += _WIDTH + _MARGIN
            self._lane_x |= {(column, source): left - _MARGIN / 2 + _LANE * lane for source, lane in numbers.items()}
            left += _MARGIN + _LANE * (max(numbers.values(), default=-1) + 1)
        self.width, self.height = left - _MARGIN, max(box.bottom for box in self.boxes) + _MARGIN
        self.paths = [self._straight(*edge) if self._is_next(*edge) else self._bent(*edge) for edge in edges]

    def _is_next(self, a: int, b: int) -> bool:
        return b == a + 1 and self.boxes[a].column == self.boxes[b].column

    def _free_lanes(self, column: int, edges: list[tuple[int, int]]) -> dict[int, int]:
        """Return the lane of each source (box) next to a column, short ones first, such that no two in a lane meet."""
        spans: dict[int, list[float]] = {}
        for a, b in edges:
            first, last = self.boxes[a].column, max(self.boxes[a].column, self.boxes[b].column - 1)
            if column in (first, last):
                ends = self.boxes[a].middle if column == first else 0.0, self.boxes[b].middle if column == last else 0.0
                spans[a] = [*spans.get(a, ()), *ends]
        lanes: dict[int, int] = {}
        occupied: list[list[tuple[float, float]]] = []
        for source, ends in sorted(spans.items(), key=lambda item: max(item[1]) - min(item[1])):
            low, high = min(ends), max(ends)
            free = (k for k, spans in enumerate(occupied) if all(high < begin or end < low for begin, end in spans))
            lane = next(free, len(occupied))
            occupied[lane:] = occupied[lane:] or [[]]
            occupied[lane].append((low, high))
            lanes[source] = lane
        return lanes

    def _straight(self, a: int, b: int) -> tuple[str, str]:
        x, y = number(self.boxes[a].x + _WIDTH / 2), number(self.boxes[b].y)
        return f"M{x} {number(self.boxes[a].bottom)}V{y}", f"M{x} {y}l-3.5 -7h7z"

    def _bent(self, a: int, b: int) -> tuple[str, str]:
        source, target = self.boxes[a], self.boxes[b]
        path = f"M{number(source.x + _WIDTH)} {number(source.middle)}H{number(self._lane_x[source.column, a])}"
        if target.column > source.column + 1:
            path += f"V{number(self._above[a])}H{number(self._lane_x[target.column - 1, a])}"
        from_left = target.column > source.column
        x, y = number(target.x if from_left else target.x + _WIDTH), number(target.middle)
        return f"{path}V{y}H{x}", f"M{x} {y}l{-7 if from_left else 7} -3.5v7z"


def _tensor_text(graph: QuantGraph, tensor: str) -> str:
    kind = graph.type(tensor)
    return kind.name if kind.is_float else f"{kind.name} · scale {kind.scale:.4g}"


def _dims(graph: QuantGraph, tensor: str) -> str:
    return "×".join(map(str, n2d2_dims(graph.shape(tensor))))


def _operator_text(node: QuantNode) -> str:
    text = layer_type(node)
    kernel = (
        node.params["weights"].shape[2:]
        if isinstance(node.op, Conv)
        else (node.op.kernel if isinstance(node.op, Pool) else None)
    )
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
    x, y, out = box.x, box.y, node.outputs[0]
    macs = int(node.op.macs([graph.shape(name) for name in node.inputs], graph.shape(out), node))
    count = sum(int(array.size) for array in stored_parameters(node))
    title = f"{node.name}: {_operator_text(node)}, {grouped(macs)} MACs, {grouped(count)} parameters"
    svg.rect(x, y, _WIDTH, _LAYER, "box", 4, title=title)
    svg.rect(x, y, 5, _LAYER, _style(node), 2)
    svg.text(x + 13, y + 15, shorten(node.name, 27), "name", anchor="start")
    svg.text(x + 13, y + 28, shorten(f"{_operator_text(node)} → {_dims(graph, out)}", 36), "info", anchor="start")
    svg.text(x + 13, y + 40, _tensor_text(graph, out), "info", anchor="start")


def _draw_port(svg: Svg, box: Box, title: str, text: str) -> None:
    svg.rect(box.x, box.y, _WIDTH, _PORT, "end", _PORT / 2)
    svg.text(box.x + _WIDTH / 2, box.middle - 3, shorten(title, 24), "name")
    svg.text(box.x + _WIDTH / 2, box.middle + 10, shorten(text, 34), "info")


_MAP_WIDTH, _MAP_HEIGHT = 1400.0, 430.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 66.0, 10.0, 10.0, 34.0
_HUES = 8
_LETTER = 5.6
_LINE = 13.0
"""Width of a letter and height of a line of a label, in pixels."""


def _tick_step(span: int, most: int) -> int:
    """Return the smallest power of two that divides `span` into at most `most` parts."""
    step = 1
    while span / step > most:
        step *= 2
    return step


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
    rows, marked = {name: row for row, name in enumerate(layers)}, set()
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
            mark = "" if row is None or row in marked else f"buffer-{row}"
            marked.add(row)
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
