"""Shared by the rewrites of array layers into image layers: where these pay, and the views around them.

Next to float layers, conversions would cost more than integers save. Views let image layers read and write row-major arrays
without copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from n2d2py.contracts.quant.quantizer import refused
from n2d2py.graph import Graph, Node, Shape, Tensor
from n2d2py.operators.quantize import is_quantized
from n2d2py.operators.reshape import MemoryView, Transpose
from n2d2py.passes.base import Pass

_RULES: list[Callable[[Node], Any]] = []


class IntegerRewrite(Pass):
    """A rewrite to integer layers, applied only next to integer layers; not in pre-quantized networks."""

    @staticmethod
    def find(node: Node) -> Any:
        """Return the replacement of the layer; None if the rewrite does not apply."""
        raise NotImplementedError

    def __init_subclass__(cls) -> None:
        _RULES.append(cls.find)

    def match(self, graph: Graph, node: Node) -> object:
        replacement = self.find(node)
        if replacement is None:
            return None
        reason = reason_for_float(graph, node)
        return replacement if reason is None else reason


def reason_for_float(graph: Graph, node: Node) -> str | None:
    """Return the reason why an array layer stays in floating point: its precision, a pre-quantized network, a float neighbour;
    else None."""
    if is_quantized(graph):
        return "it computes in integers of the file"
    if graph.precision(node).quantize is False:
        return "it is to stay in floating point"
    for producer in map(graph.producer, node.inputs):
        if producer is not None and not _has_integers(graph, producer):
            return f"it follows {producer.name}, which has no integers"
    for reader in graph.consumers(node.output):
        if not _has_integers(graph, reader):
            return f"it feeds {reader.name}, which has no integers"
    return None


def _has_integers(graph: Graph, node: Node) -> bool:
    """True if a layer has an integer form, or gets one by a rewrite because its consumers have one."""
    if graph.precision(node).quantize is False:
        return False
    if any(find(node) is not None for find in _RULES):
        return all(_has_integers(graph, reader) for reader in graph.consumers(node.output))
    return refused(node) is None


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


def permute_operand(graph: Graph, node: Node, source: str, shape: Shape, perm: tuple[int, ...]) -> str:
    """Add, before `node`, layers that view the rows of `source` as an image of `shape` (C, H, W) and permute its axes by `perm`;
    return the result as rows."""
    at, stem = graph.nodes.index(node), f"{node.output}_operand"
    image = permute_image(graph, node, at, source, shape, perm, stem)
    return graph.add_helper(MemoryView(graph.shape(source)[1:]), image, f"{stem}_rows", at + 2, node.location)


def permute_image(graph: Graph, node: Node, at: int, source: str, shape: Shape, perm: tuple[int, ...], stem: str) -> str:
    """As `permute_operand`, for `node` and at index `at`; return the image."""
    image = graph.add_helper(MemoryView(shape), source, f"{stem}_image", at, node.location)
    return graph.add_helper(Transpose(perm), image, f"{stem}_turned", at + 1, node.location)
