"""Layers of row-major arrays become layers of images: where these pay, the views around them, sums and products, reductions.

Next to float layers, conversions would cost more than integers save. Views let image layers read and write row-major arrays
without copies: an array (H, W, C) has the memory order of an image with C channels. Neighbouring axes that broadcast alike
become one axis.
Examples are gates (one weight for each element, row or channel) and focal modulation. Added constants are biases of an
attention and positional embeddings; a constant for each channel or row belongs to the layers with gains (`gains.py`).
Reductions become pools of images whose channels are the axes after the reduced ones: (A, R, C) is one row of A * R columns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from n2d2py.contracts.operator import Op
from n2d2py.contracts.quant.quantizer import refused
from n2d2py.graph import Graph, Node, Shape
from n2d2py.operators import ArrayReduce, ElemWise, IndexSelect, MemoryView, Normalize, Pool, Softmax, Transpose, is_quantized
from n2d2py.operators.arrays.base import strides
from n2d2py.operators.arrays.map import ArrayMap, constant_operand
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.pointwise import AddConstants, Affine
from n2d2py.passes.base import Done, Outcome, Pass, is_plain, rewrite

_FINDERS: list[Callable[[Node], Any]] = []


def integer_rewrite(name: str, summary: str, find: Callable[[Node], Any], *at: type[Op]) -> Callable[..., Pass]:
    """Decorator: a rewrite to integer layers, applied only next to integer layers; not in pre-quantized networks.

    `find` returns the replacement of a layer, which the decorated function gets too; None if the rewrite does not apply.
    """
    _FINDERS.append(find)

    def pass_of(rule: Callable[[Graph, Node, Any], Outcome]) -> Pass:
        def apply(graph: Graph, node: Node) -> Outcome:
            found = find(node)
            return None if found is None else reason_for_float(graph, node) or rule(graph, node, found)

        return Pass(name, summary, at, apply)

    return pass_of


def reason_for_float(graph: Graph, node: Node) -> str | None:
    """Return the reason why an array layer stays in floating point: precision, pre-quantized network, float neighbour; else
    None."""
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
    if any(find(node) is not None for find in _FINDERS):
        return all(_has_integers(graph, reader) for reader in graph.consumers(node.output))
    return refused(node) is None


def over_images(graph: Graph, node: Node, sources: Sequence[Shape], result: Shape) -> None:
    """Let a layer read its inputs as images of `sources` (C, H, W) and write one of `result`, viewed as an array again."""
    output = node.output
    for number, dims in enumerate(sources):
        name = f"{output}_operand{number}_rows" if len(sources) > 1 else f"{output}_rows"
        name = graph.add_before(node, MemoryView(tuple(dims)), node.inputs[number], name)
        node.inputs = [*node.inputs[:number], name, *node.inputs[number + 1 :]]
    graph.view_output(node, f"{output}_pixels", result, MemoryView(graph.shape(output)[1:]))


def permute_operand(graph: Graph, node: Node, source: str, shape: Shape, perm: tuple[int, ...]) -> str:
    """Add layers before `node` that permute `source`, viewed as an image of `shape` (C, H, W), by `perm`; return its rows."""
    stem = f"{node.output}_operand"
    image = permute_image(graph, node, source, shape, perm, stem)
    return graph.add_before(node, MemoryView(graph.shape(source)[1:]), image, f"{stem}_rows")


def permute_image(graph: Graph, node: Node, source: str, shape: Shape, perm: tuple[int, ...], stem: str) -> str:
    """As `permute_operand`; return the image. Names of the layers begin with `stem`."""
    image = graph.add_before(node, MemoryView(shape), source, f"{stem}_image")
    return graph.add_before(node, Transpose(perm), image, f"{stem}_turned")


# ---- sums and products --------------------------------------------------------------------------


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


@rewrite("array-sums", "sums of arrays turned into layers that have integers", ArrayMap)
def array_sums(graph: Graph, node: Node) -> Outcome:
    """ArrayMap Add or Sub of two arrays of one shape => ElemWise Sum; of constants, before a normalization => AddConstants. Not
    in pre-quantized networks."""
    replacement, constants = _find_replacement(node), _added_constants(node)
    if replacement is not None and not replacement.shapes and node.op.function != "Mul":
        if is_quantized(graph):
            return "it computes in integers of the file"
        node.op, node.inputs, node.params = replacement.op, list(replacement.operands), {}
        return Done(f"it is {node.op.kind}")
    if constants is None or len(constants) < prod(node.op.dims) or is_quantized(graph):
        return None
    if not any(isinstance(reader.op, Normalize) for reader in graph.consumers(node.output)):
        return None
    return _add_constants(node, constants)


def _add_constants(node: Node, constants: np.ndarray) -> Done:
    node.op, node.params = AddConstants(), {"constants": constants}
    return Done(f"it is {node.op.kind}")


def _find_elemwise(node: Node) -> Replacement | None:
    replacement = _find_replacement(node)
    return replacement if replacement is not None and (replacement.shapes or node.op.function == "Mul") else None


@integer_rewrite(
    "array-elemwise",
    "products of arrays, and sums with operands that repeat, turned into layers that have integers",
    _find_elemwise,
    ArrayMap,
)
def array_elemwise(graph: Graph, node: Node, replacement: Replacement) -> Outcome:
    """ArrayMap Mul of two arrays of one shape => ElemWise Prod; Mul, Add or Sub with axes of length 1 =>
    MemoryView(ElemWise(MemoryView of both))."""
    node.op, node.inputs, node.params = replacement.op, list(replacement.operands), {}
    if not replacement.shapes:
        return Done(f"it is {replacement.op.kind}")
    sources = [(channels, height, width) for height, width, channels in replacement.shapes]
    over_images(graph, node, sources, max(sources, key=prod))
    return Done(f"it is {replacement.op.kind} of images")


def _find_outer_product(node: Node) -> Replacement | None:
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


@integer_rewrite(
    "outer-product", "products of arrays that repeat each other turned into products of matrices", _find_outer_product, ArrayMap
)
def outer_product(graph: Graph, node: Node, replacement: Replacement) -> Outcome:
    """ArrayMap Mul of (..., A, 1) and (..., 1, B) => ArrayMatMul with sums of a single product."""
    node.op, node.inputs = replacement.op, list(replacement.operands)
    return Done(f"it is {replacement.op.kind}")


@integer_rewrite(
    "added-constants", "constants added to arrays turned into layers that have integers", _added_constants, ArrayMap
)
def added_constants(graph: Graph, node: Node, constants: np.ndarray) -> Outcome:
    """ArrayMap Add or Sub of an array (..., *S) and constants (*S) => AddConstants."""
    if np.abs(constants).max() > _LARGEST_SCORE and any(isinstance(one.op, Softmax) for one in graph.consumers(node.output)):
        return "its constants are a mask"
    return _add_constants(node, constants)


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


# ---- reductions ---------------------------------------------------------------------------------


_MODES = {"Mean": "Average", "Sum": "Average", "Max": "Max"}


def _find_pool(node: Node) -> tuple[int, int, int, tuple[int, ...]] | None:
    """Return the array as (A, R, C) with the reduced elements in the middle, and the axis order for that; () in memory."""
    op = node.op
    if not is_plain(node, ArrayReduce) or op.function not in _MODES or op.result:
        return None
    if prod(op.dims[axis] for axis in op.axes) == 1:
        return None
    before, between = range(min(op.axes)), [axis for axis in range(min(op.axes), max(op.axes)) if axis not in op.axes]
    after = [*between, *range(max(op.axes) + 1, len(op.dims))]
    outer, reduced, inner = (prod(op.dims[axis] for axis in axes) for axes in (before, op.axes, after))
    turns = any(op.dims[axis] > 1 for axis in between)
    return outer, reduced, inner, (*before, *op.axes, *after) if turns else ()


@integer_rewrite("pooled-arrays", "reductions of arrays turned into pools", _find_pool, ArrayReduce)
def pooled_arrays(graph: Graph, node: Node, sizes: tuple[int, int, int, tuple[int, ...]]) -> Outcome:
    """ArrayReduce Mean or Max of (A, R, C) over R => MemoryView(Pool 1xR(MemoryView(x))); Sum is the mean times R; an
    IndexSelect makes reduced axes with others between them adjacent."""
    outer, reduced, inner, axes = sizes
    function, window, output = node.op.function, (1, reduced), node.output
    if axes:
        dims, steps = node.op.dims, strides(node.op.dims)
        order = IndexSelect(tuple(tuple(step * steps[axis] for step in range(dims[axis])) for axis in axes))
        node.inputs = [graph.add_before(node, order, node.inputs[0], f"{output}_order")]
    node.op = Pool(_MODES[function], window, window)
    over_images(graph, node, [(inner, 1, outer * reduced)], (inner, 1, outer))
    if function == "Sum":
        gains = {"weights": np.full(inner, reduced, np.float32), "bias": np.zeros(inner, np.float32)}
        view = graph.required_producer(output)
        view.inputs = [graph.add_before(view, Affine(), node.output, f"{node.output}_sum", gains)]
    return Done(f"{function} of {reduced} rows turned into a Pool")
