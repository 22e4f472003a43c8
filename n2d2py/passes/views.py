"""Views that let image layers read and write row-major arrays without copies."""

from __future__ import annotations

from collections.abc import Sequence

from n2d2py.contracts.operator import Op
from n2d2py.graph import Graph, Node, Tensor
from n2d2py.graph.shapes import Shape
from n2d2py.operators.transpose import Transpose
from n2d2py.operators.view import MemoryView


def over_images(graph: Graph, node: Node, sources: Sequence[Shape], result: Shape) -> None:
    """Let a layer read its inputs as images of the dims `sources` (C, H, W) and write one of `result`, viewed as an array
    again."""
    output = node.output
    for number, dims in enumerate(sources):
        name = f"{output}_operand{number}_rows" if len(sources) > 1 else f"{output}_rows"
        view = MemoryView(tuple(dims))
        name = graph.add_helper(view, node.inputs[number], name, graph.nodes.index(node), node.location)
        node.inputs = [*node.inputs[:number], name, *node.inputs[number + 1 :]]
    pixels = graph.fresh_name(f"{output}_pixels")
    graph.tensors[pixels] = Tensor(pixels, (1, *result))
    node.outputs = [pixels]
    as_array(graph, pixels, output, node, graph.nodes.index(node) + 1)


def as_array(graph: Graph, source: str, output: str, node: Node, index: int) -> None:
    """Add, for `node` and at index `index`, the view that writes the known tensor `output`."""
    name = graph.fresh_name(f"{output}_view")
    view = Node(name, MemoryView(graph.shape(output)[1:]), [source], [output], location=node.location, helper=True)
    graph.nodes.insert(index, view)


def permute_rows(
    graph: Graph, node: Node, index: int, source: str, shape: Shape, perm: tuple[int, ...], stem: str, rows: bool = True
) -> str:
    """Add, for `node` and at index `index`, layers that view the rows of `source` as an image of `shape` (C, H, W) and permute its
    axes by `perm`; return the result, as rows or, with `rows` False, as an image."""
    back = [("rows", MemoryView(graph.shape(source)[1:]))] if rows else []
    ops: list[tuple[str, Op]] = [("image", MemoryView(shape)), ("turned", Transpose(perm)), *back]
    for step, (label, op) in enumerate(ops):
        source = graph.add_helper(op, source, f"{stem}_{label}", index + step, node.location)
    return source
