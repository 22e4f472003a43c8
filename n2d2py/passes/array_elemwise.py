"""Products of two arrays, and sums with an operand that repeats, have the integers of images.

    ArrayMap Mul of two arrays of one shape                                =>  ElemWise Prod
    ArrayMap Mul, Add or Sub of an array and one with axes of length 1     =>  MemoryView(ElemWise(MemoryView of both))

The memory of (H, W, C) is that of an image of C channels; axes side by side that repeat alike are one of these. Gates of rows (a weight
of each element, row or line) are such products.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from n2d2py.graph import Graph, Node
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.elemwise import ElemWise
from n2d2py.passes.base import Match, Pass
from n2d2py.passes.neighbours import gets_integers, left_in_floats
from n2d2py.passes.views import over_images

_OPS = {"Mul": ("Prod", ()), "Add": ("Sum", ()), "Sub": ("Sum", (1.0, -1.0))}


@dataclass(frozen=True)
class Images:
    """The operator, its operands, and the shapes (H, W, C) of these as images; () where both have one shape."""

    op: ElemWise
    operands: tuple[str, str]
    shapes: tuple[tuple[int, int, int], ...]


class ArrayElemWise(Pass):
    """ArrayMap Mul, Add or Sub of two arrays => ElemWise; not in pre-quantized networks, nor next to layers that have no integers."""

    name = "array-elemwise"
    summary = "products of arrays, and sums with operands that repeat, turned into layers that have integers"

    def match(self, graph: Graph, node: Node) -> Match | None:
        found = _images_of(node)
        if found is None:
            return None
        reason = left_in_floats(graph, node)
        return Match(found) if reason is None else Match.no(reason)

    def rewrite(self, graph: Graph, node: Node, found: Images) -> str:
        node.op, node.inputs, node.params = found.op, list(found.operands), {}
        if not found.shapes:
            return f"it is {found.op.kind}"
        sources = [(channels, height, width) for height, width, channels in found.shapes]
        over_images(graph, node, sources, max(sources, key=prod))
        return f"it is {found.op.kind} of images"


def _images_of(node: Node) -> Images | None:
    """Replacement of a layer; None where it is not a product, and not a sum with an operand that repeats, or repeats in more ways than an image has
    axes.
    """
    op = node.op
    if not isinstance(op, ArrayMap) or op.function not in _OPS or op.result or node.activation is not None:
        return None
    if sorted(op.slots) != [0, 1]:
        return None
    shapes = images(op.dims, op.shapes)
    if shapes is None or (not shapes and op.function != "Mul"):
        return None
    operation, weights = _OPS[op.function]
    return Images(ElemWise(operation, weights), (node.inputs[op.slots[0]], node.inputs[op.slots[1]]), shapes)


@gets_integers
def _is_elemwise(node: Node) -> bool:
    return _images_of(node) is not None


def images(dims: tuple[int, ...], shapes: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, int, int], ...] | None:
    """The operands as images (H, W, C), with axes of length 1 where they repeat; () where none does. None where that takes more axes, or
    where each of them repeats somewhere.

    `shapes` broadcast to `dims`, all of one rank.
    """
    groups = axis_groups(dims, shapes)
    if not any(any(repeats) for _, repeats in groups):
        return ()
    if len(groups) > 3 or all(any(repeats[number] for _, repeats in groups) for number in range(len(shapes))):
        return None
    sizes = [
        [1] * (3 - len(groups)) + [1 if repeats[number] else size for size, repeats in groups] for number in range(len(shapes))
    ]
    return tuple((height, width, channels) for height, width, channels in sizes)


def axis_groups(dims: tuple[int, ...], shapes: tuple[tuple[int, ...], ...]) -> list[tuple[int, tuple[bool, ...]]]:
    """(length, whether each operand repeats along it) of the axes, those side by side taken together that repeat alike."""
    groups: list[tuple[int, tuple[bool, ...]]] = []
    for axis, size in enumerate(dims):
        repeats = tuple(shape[axis] != size for shape in shapes)
        if size == 1:
            continue
        if groups and groups[-1][1] == repeats:
            groups[-1] = groups[-1][0] * size, repeats
        else:
            groups.append((size, repeats))
    return groups
