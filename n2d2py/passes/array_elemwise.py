"""Element-wise sums and products of row-major arrays get the integer operators of images.

An array (H, W, C) has the memory order of an image with C channels. Neighbouring axes that broadcast alike become one axis.
Examples are gates (one weight for each element, row or channel) and focal modulation. Added constants are biases of an
attention and positional embeddings; a constant for each channel or row belongs to the layers with gains (`gains.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from n2d2py.graph import Graph, Node
from n2d2py.operators.arrays.map import ArrayMap, constant_operand
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.normalize import Normalize
from n2d2py.operators.pointwise import AddConstants
from n2d2py.operators.quantize import is_quantized
from n2d2py.operators.softmax import Softmax
from n2d2py.passes.array_layers import IntegerRewrite, over_images
from n2d2py.passes.base import Pass

_OPS = {"Mul": ("Prod", ()), "Add": ("Sum", ()), "Sub": ("Sum", (1.0, -1.0))}
_LARGEST_SCORE = 128.0
"""Constants above this before a Softmax are a mask, which would leave the other scores too few 8-bit steps."""


@dataclass(frozen=True)
class Replacement:
    """The replacing operator, its operands, and their shapes (H, W, C) as images; () if both have one shape."""

    op: ElemWise | ArrayMatMul
    operands: tuple[str, str]
    shapes: tuple[tuple[int, int, int], ...] = ()


def _sum_or_product(node: Node) -> ArrayMap | None:
    """Return the operator of a layer if it is a sum or product of two real tensors; else None."""
    op = node.op
    fits = isinstance(op, ArrayMap) and op.function in _OPS and not op.result and node.activation is None
    return op if fits and sorted(op.slots) == [0, 1] else None


def _find_replacement(node: Node) -> Replacement | None:
    """Return the replacement of a layer that combines two arrays; None if they broadcast along more axes than an image has."""
    op = _sum_or_product(node)
    shapes = None if op is None else images(op.dims, op.shapes)
    if op is None or shapes is None:
        return None
    return Replacement(ElemWise(*_OPS[op.function]), (node.inputs[op.slots[0]], node.inputs[op.slots[1]]), shapes)


def _added_constants(node: Node) -> np.ndarray | None:
    """Return the constants (C) that a layer adds to each C elements of its only input; else None."""
    constant, op = constant_operand(node, "Add", "Sub"), node.op
    if constant is None or (op.function == "Sub" and constant.position == 0):
        return None
    _, shape, values = constant
    first = next((axis for axis, size in enumerate(shape) if size > 1), None)
    if first is None or shape[first:] != op.dims[first:] or values.size != prod(shape) or not np.isfinite(values).all():
        return None
    return values.reshape(-1) if op.function == "Add" else -values.reshape(-1)


class ArraySums(Pass):
    """ArrayMap Add or Sub of two arrays of one shape => ElemWise Sum; of constants, before a normalization => AddConstants. Not
    in pre-quantized networks."""

    name = "array-sums"
    summary = "sums of arrays turned into layers that have integers"

    def match(self, graph: Graph, node: Node) -> Replacement | np.ndarray | str | None:
        replacement, constants = _find_replacement(node), _added_constants(node)
        if replacement is not None and not replacement.shapes and node.op.function != "Mul":
            return "it computes in integers of the file" if is_quantized(graph) else replacement
        readers = graph.consumers(node.output)
        if constants is None or len(constants) < prod(node.op.dims) or is_quantized(graph):
            return None
        return constants if any(isinstance(reader.op, Normalize) for reader in readers) else None

    def rewrite(self, graph: Graph, node: Node, replacement: Replacement | np.ndarray) -> str:
        if isinstance(replacement, Replacement):
            node.op, node.inputs, node.params = replacement.op, list(replacement.operands), {}
        else:
            node.op, node.params = AddConstants(), {"constants": replacement}
        return f"it is {node.op.kind}"


class ArrayElemWise(IntegerRewrite):
    """ArrayMap Mul of two arrays of one shape => ElemWise Prod; Mul, Add or Sub with axes of length 1 =>
    MemoryView(ElemWise(MemoryView of both))."""

    name = "array-elemwise"
    summary = "products of arrays, and sums with operands that repeat, turned into layers that have integers"

    @staticmethod
    def find(node: Node) -> Replacement | None:
        replacement = _find_replacement(node)
        return replacement if replacement is not None and (replacement.shapes or node.op.function == "Mul") else None

    def rewrite(self, graph: Graph, node: Node, replacement: Replacement) -> str:
        node.op, node.inputs, node.params = replacement.op, list(replacement.operands), {}
        if not replacement.shapes:
            return f"it is {replacement.op.kind}"
        sources = [(channels, height, width) for height, width, channels in replacement.shapes]
        over_images(graph, node, sources, max(sources, key=prod))
        return f"it is {replacement.op.kind} of images"


class OuterProduct(IntegerRewrite):
    """ArrayMap Mul of (..., A, 1) and (..., 1, B) => ArrayMatMul with sums of a single product."""

    name = "outer-product"
    summary = "products of arrays that repeat each other turned into products of matrices"

    @staticmethod
    def find(node: Node) -> Replacement | None:
        op = _sum_or_product(node)
        groups = axis_groups(op.dims, op.shapes) if op is not None and op.function == "Mul" else []
        ways = [repeats for _, repeats in groups]
        if op is None or len(ways) < 2 or sorted(ways[-2:]) != [(False, True), (True, False)]:
            return None
        if any(repeats != (False, False) for repeats in ways[:-2]):
            return None
        *outer, (rows, _), (columns, _) = groups
        count, first = prod(size for size, _ in outer), ways[-2].index(False)
        product = ArrayMatMul((count, rows, 1), (count, 1, columns), (0, 1))
        return Replacement(product, (node.inputs[op.slots[first]], node.inputs[op.slots[1 - first]]))

    def rewrite(self, graph: Graph, node: Node, replacement: Replacement) -> str:
        node.op, node.inputs = replacement.op, list(replacement.operands)
        return f"it is {replacement.op.kind}"


class AddedConstants(IntegerRewrite):
    """ArrayMap Add or Sub of an array (..., *S) and constants (*S) => AddConstants."""

    name = "added-constants"
    summary = "constants added to arrays turned into layers that have integers"

    find = staticmethod(_added_constants)

    def match(self, graph: Graph, node: Node) -> object:
        constants = _added_constants(node)
        if constants is not None and np.abs(constants).max() > _LARGEST_SCORE:
            if any(isinstance(reader.op, Softmax) for reader in graph.consumers(node.output)):
                return "its constants are a mask"
        return super().match(graph, node)

    def rewrite(self, graph: Graph, node: Node, constants: np.ndarray) -> str:
        node.op, node.params = AddConstants(), {"constants": constants}
        return "it is AddConstants"


def images(dims: tuple[int, ...], shapes: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, int, int], ...] | None:
    """Return the operands as images (H, W, C) with length 1 where they broadcast; () without broadcasting.

    None if that needs more axes, or if each operand broadcasts along some axis. `shapes` broadcast to `dims`, all of one rank.
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
    """Return (length, whether each operand broadcasts along it) of the axes; neighbours that broadcast alike are merged."""
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
