"""The drawing of a network: boxes with name, operator, shape and number type; edges downwards."""

from __future__ import annotations

from itertools import pairwise

from n2d2py.graph import QuantGraph, QuantNode, n2d2_dims
from n2d2py.operators.conv import Conv
from n2d2py.operators.pool import Pool
from n2d2py.report.layers import layer_type, stored_parameters
from n2d2py.report.layout import Item, Layout, lay_out
from n2d2py.report.svg import Svg, number
from n2d2py.report.text import grouped, shorten

_BOX = (212.0, 46.0)
_END = (212.0, 34.0)
_LANE = 5.0


def _tensor_text(graph: QuantGraph, tensor: str) -> str:
    kind = graph.type(tensor)
    return kind.name if kind.is_float else f"{kind.name} · scale {kind.scale:.4g}"


def _dims(graph: QuantGraph, tensor: str) -> str:
    return "×".join(map(str, n2d2_dims(graph.shape(tensor))))


def _operator_text(node: QuantNode) -> str:
    """Operator with kernel and stride, such as "Conv depthwise 3×3 /2"."""
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


def _parts(graph: QuantGraph) -> tuple[list[tuple[float, float]], list[tuple[int, int]]]:
    """Return the sizes of the inputs, layers and outputs, in this order, and the edges between them."""
    producer = {name: k for k, name in enumerate(graph.inputs)}
    sizes, edges = [_END] * len(graph.inputs), []
    for node in graph.nodes:
        first = len(sizes)
        sizes.append(_BOX)
        edges += [(producer[name], first) for name in node.inputs]
        producer.update(dict.fromkeys(node.outputs, first))
    for name in graph.outputs:
        edges.append((producer[name], len(sizes)))
        sizes.append(_END)
    return sizes, edges


def draw_network(graph: QuantGraph, *, standalone: bool = True) -> str:
    """Return the SVG text; `standalone` brings its own colours, else the page's style sheet gives them.

    In a page the box of layer k is the element `node-k` and leads to the element `layer-k`.
    """
    sizes, edges = _parts(graph)
    layout = lay_out(sizes, edges)
    svg = Svg(layout.width, layout.height, "network", standalone=standalone, title="" if standalone else "network")
    _draw_edges(svg, layout)
    inputs = len(graph.inputs)
    for k, name in enumerate(graph.inputs):
        _draw_end(svg, layout.items[k], f"input {name}", f"{_dims(graph, name)} · {_tensor_text(graph, name)}")
    for k, node in enumerate(graph.nodes, inputs):
        if standalone:
            _draw_layer(svg, layout.items[k], graph, node)
            continue
        row = k - inputs
        with svg.link(f"layer-{row}", f"node-{row}", row, f"{node.name}, {_operator_text(node)}: go to its row in the table"):
            _draw_layer(svg, layout.items[k], graph, node)
    for k, name in enumerate(graph.outputs, inputs + len(graph.nodes)):
        _draw_end(svg, layout.items[k], f"output {name}", _dims(graph, name))
    return svg.finish()


def _draw_layer(svg: Svg, item: Item, graph: QuantGraph, node: QuantNode) -> None:
    x, y = item.x - item.width / 2, item.y - item.height / 2
    out = node.outputs[0]
    macs = int(node.op.macs([graph.shape(name) for name in node.inputs], graph.shape(out), node))
    count = sum(int(array.size) for array in stored_parameters(node))
    title = f"{node.name}: {_operator_text(node)}, {grouped(macs)} MACs, {grouped(count)} parameters"
    svg.rect(x, y, item.width, item.height, "box", 4, title=title)
    svg.rect(x, y, 5, item.height, _style(node), 2)
    svg.text(x + 13, y + 15, shorten(node.name, 27), "name", anchor="start")
    svg.text(x + 13, y + 28, shorten(f"{_operator_text(node)} → {_dims(graph, out)}", 36), "info", anchor="start")
    svg.text(x + 13, y + 40, _tensor_text(graph, out), "info", anchor="start")


def _draw_end(svg: Svg, item: Item, title: str, text: str) -> None:
    svg.rect(item.x - item.width / 2, item.y - item.height / 2, item.width, item.height, "end", item.height / 2)
    svg.text(item.x, item.y - 3, shorten(title, 24), "name")
    svg.text(item.x, item.y + 10, shorten(text, 34), "info")


def _draw_edges(svg: Svg, layout: Layout) -> None:
    lanes: dict[tuple[int, int], int] = {}
    for route in layout.edges:
        items = [layout.items[index] for index in route]
        parts = [f"M{number(items[0].x)} {number(items[0].y + items[0].height / 2)}"]
        for upper, lower in pairwise(items):
            y0, y1 = upper.y + upper.height / 2, lower.y - lower.height / 2
            if lower.column != upper.column:
                lane = lanes.setdefault((upper.column, route[0]), sum(1 for column, _ in lanes if column == upper.column))
                parts.append(_over(layout, upper, lower, y0, y1, lane))
            elif abs(upper.x - lower.x) < 0.05:
                parts.append(f"V{number(y1)}")
            else:
                middle = number((y0 + y1) / 2)
                parts.append(f"C{number(upper.x)} {middle} {number(lower.x)} {middle} {number(lower.x)} {number(y1)}")
            if lower.key is None:
                parts.append(f"V{number(lower.y + lower.height / 2)}")
        svg.path("".join(parts), "edge")
        end = items[-1]
        tip = end.y - end.height / 2
        svg.path(f"M{number(end.x)} {number(tip)}l-3.5 -7h7z", "arrow")


def _over(layout: Layout, upper: Item, lower: Item, y0: float, y1: float, lane: int) -> str:
    """Return the way from the foot of a column, through the gutter, to the head of the next one."""
    right = max(item.x + item.width / 2 for item in layout.items if item.column == upper.column)
    gutter, foot, head = right + 22 + lane * _LANE, y0 + 9 + lane * _LANE, y1 - 13 - lane * _LANE
    return f"V{number(foot)}H{number(gutter)}V{number(head)}H{number(lower.x)}V{number(y1)}"
