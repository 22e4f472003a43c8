"""Products of matrices, with constant ones and of two activations.

Products with constant matrices become 1x1 convolutions over rows as pixels, as torch's Linear exports them, and a convolution
over a whole input a fully connected layer. Products then have the integers, corrections and kernels of convolutions, and views
cost nothing. Groups are the heads of an attention with relative positions, or experts. A left matrix is the adjacency of a graph
network, mixes the tokens of an MLP-Mixer, or resamples a row.

Products of two activations read and write through views, so layers that only move or scale their matrices disappear. Heads of
an attention then need no transposition, and their temperature is part of the rescale.
"""

from dataclasses import replace
from math import prod
from typing import TypeGuard

import numpy as np

from n2d2py.graph import Graph, Node
from n2d2py.operators import ArrayMatMul, Conv, Fc, IndexSelect, MemoryView, Reshape, is_quantized
from n2d2py.operators.arrays.map import constant_operand, scalar_factor, scale_and_shift
from n2d2py.operators.arrays.matmul import view_positions
from n2d2py.operators.linear import cast_like
from n2d2py.passes.array_layers import over_images, permute_image, permute_operand
from n2d2py.passes.base import Done, Outcome, is_plain, rewrite

# ---- constant matrices --------------------------------------------------------------------------


def _multiplies(node: Node, slots: tuple[int, int]) -> TypeGuard[Node]:
    """True for a product of matrices with these operands (-1 for a constant), of real numbers and without activation."""
    return is_plain(node, ArrayMatMul) and node.op.slots == slots and not node.op.result


_OF_FILE = "it computes in integers of the file"


@rewrite("matmul-to-conv", "matrix products with constant weights turned into 1x1 convolutions", ArrayMatMul)
def matmul_to_conv(graph: Graph, node: Node) -> Outcome:
    """ArrayMatMul(x, W) of rows (R, K) with W (K, N) => MemoryView(Conv(MemoryView(x))), weights (N, K, 1, 1); of a single row,
    such as class tokens and steps of a sequence => Fc(x), weights (N, K). Not in pre-quantized networks.

    An ArrayMap Add of a constant (N) after it is its bias; an ArrayMap Mul is part of its weights and its bias. A scalar counts
    as such a constant, also subtracted or as divisor.
    """
    if not _multiplies(node, (0, -1)) or prod(node.op.right[:-2]) != 1:
        return None
    if is_quantized(graph):
        return _OF_FILE
    width, text = node.op.right[-1], ""
    weights, bias = node.params["operand1"].reshape(-1, width), np.zeros(width)
    for function in ("Add", "Mul"):
        reader = graph.sole_consumer(node.output)
        constant = None if reader is None else _constant(reader, function, width)
        if reader is None or constant is None:
            continue
        graph.absorb(node, reader)
        if function == "Add":
            bias, text = constant, f", with {reader.name} as bias"
        else:
            weights, bias = (weights * constant).astype(weights.dtype), bias * constant
            text += f", times the gains of {reader.name}"
    depth, rows = len(weights), graph.shape(node.output)[1] // width
    node.params = {"weights": np.ascontiguousarray(weights.T), "bias": bias.astype(weights.dtype)}
    if rows == 1:
        node.op = Fc()
        return Done(f"product of a row turned into an Fc{text}")
    node.op, node.params["weights"] = Conv(), node.params["weights"].reshape(width, depth, 1, 1)
    over_images(graph, node, [(depth, 1, rows)], (width, 1, rows))
    return Done(f"product of {rows} rows turned into a Conv of 1x1{text}")


def _constant(layer: Node, function: str, width: int) -> np.ndarray | None:
    op, number = layer.op, scale_and_shift(layer)
    if number is not None and op.dims[-1] == width:
        gain, shift = number
        if function == "Add":
            return np.full(width, shift) if gain == 1 else None
        return np.full(width, gain) if shift == 0 and np.isfinite(gain) else None
    constant = constant_operand(layer, function)
    is_row = constant is not None and constant.shape[-1:] == (width,) == op.dims[-1:] and prod(constant.shape) == width
    return constant.values.reshape(-1) if constant is not None and is_row else None


_SWAP_ROWS_COLUMNS = (0, 1, 3, 2)
"""Permutation that swaps rows and columns."""


@rewrite(
    "grouped-matmul", "matrix products with a constant matrix for each group turned into grouped 1x1 convolutions", ArrayMatMul
)
def grouped_matmul(graph: Graph, node: Node) -> Outcome:
    """ArrayMatMul(x, W) of x (G, T, K) and W (G, K, N) => Conv 1x1 in G groups over T pixels of G K channels, with rows
    transposed from (G, T, K) to (T, G K) before it and back after it. Not in pre-quantized networks."""
    if not _multiplies(node, (0, -1)) or prod(node.op.right[:-2]) == 1:
        return None
    if is_quantized(graph):
        return _OF_FILE
    left, (*outer, depth, width), output = node.op.left, node.op.right, node.output
    end = 1 + max(axis for axis, size in enumerate(outer) if size > 1)
    if left[:end] != node.op.right[:end]:
        return "its matrices do not belong to the outermost groups of its rows"
    groups, rows = prod(outer[:end]), prod(left[end:-1])
    weights = node.params["operand1"].reshape(groups, depth, width).transpose(0, 2, 1).reshape(groups * width, depth, 1, 1)
    node.op, node.params = Conv(groups=groups), {"weights": np.ascontiguousarray(weights)}
    node.params["bias"] = np.zeros(groups * width, weights.dtype)
    text = f"products of {groups} matrices"
    if rows == 1:
        over_images(graph, node, [(groups * depth, 1, 1)], (groups * width, 1, 1))
        return Done(f"{text} turned into a Conv of as many groups")
    node.inputs = [permute_operand(graph, node, node.inputs[0], (depth, groups, rows), _SWAP_ROWS_COLUMNS)]
    dims = graph.shape(output)[1:]
    view = graph.view_output(node, f"{output}_product", dims, MemoryView(dims))
    over_images(graph, node, [(groups * depth, 1, rows)], (groups * width, 1, rows))
    shape, stem = (width, rows, groups), f"{output}_back"
    view.inputs = [permute_image(graph, view, view.inputs[0], shape, _SWAP_ROWS_COLUMNS, stem)]
    return Done(f"{text} with {rows} rows each turned into a Conv of as many groups")


_SWAP_CHANNELS_COLUMNS = (0, 3, 2, 1)
"""Permutation that swaps channels and columns."""


@rewrite("left-matmul", "matrix products with constant left matrices turned into ones with constant right ones", ArrayMatMul)
def left_matmul(graph: Graph, node: Node) -> Outcome:
    """ArrayMatMul(W, x), W (M, K), x (..., K, N) => ArrayMatMul(x transposed, W transposed) transposed; x (K, 1) is a row. Not
    in pre-quantized networks."""
    if not _multiplies(node, (-1, 0)):
        return None
    if is_quantized(graph):
        return _OF_FILE
    op, output = node.op, node.output
    if prod(op.left[:-2]) != 1:
        return "it has a matrix for each of several products"
    products, columns, (outputs, depth) = prod(op.right[:-2]), op.right[-1], op.left[-2:]
    weights = node.params["operand0"].reshape(outputs, depth)
    node.op = ArrayMatMul((products * columns, depth), (depth, outputs), (0, -1))
    node.params = {"operand1": np.ascontiguousarray(weights.T)}
    if products * columns > 1:
        node.inputs = [permute_operand(graph, node, node.inputs[0], (columns, products, depth), _SWAP_CHANNELS_COLUMNS)]
        view = MemoryView(graph.shape(output)[1:])
        after = graph.view_output(node, f"{output}_product", (products * columns * outputs,), view)
        product, shape = node.output, (outputs, products, columns)
        after.inputs = [permute_image(graph, after, product, shape, _SWAP_CHANNELS_COLUMNS, product)]
    return Done(f"its matrix of {outputs} x {depth} multiplies from the right")


@rewrite("conv-to-fc", "Conv over a whole input turned into Fc", Conv)
def conv_to_fc(graph: Graph, node: Node) -> Outcome:
    """Reshape(Conv(x)) to (C) with one output position and no padding => Fc(x) with W' = W as (O, C * KH * KW)."""
    reshape = graph.sole_consumer(node.output)
    if reshape is None or not isinstance(reshape.op, Reshape) or len(reshape.op.dims) != 1:
        return None
    weights, size = node.params["weights"], graph.shape(node.inputs[0])[2:]
    kernel = weights.shape[2:]
    if kernel != size or any(node.op.pads):
        return f"its window of {kernel[1]}x{kernel[0]} is not its whole input of {size[1]}x{size[0]}"
    if node.op.groups != 1:
        return "it has groups"
    if reshape.activation is not None:
        return f"{reshape.name} carries an activation"
    node.op = Fc()
    node.params = {**node.params, "weights": cast_like(weights.reshape(len(weights), -1), weights)}
    graph.absorb(node, reshape)
    return Done(f"Conv and {reshape.name} turned into Fc")


# ---- two activations ----------------------------------------------------------------------------


def steps_of_order(places: np.ndarray, size: int) -> tuple[int, ...] | None:
    """Return the view (size, first, steps) of an array whose elements lie at `places`; None without constant steps."""
    first = int(places.reshape(-1)[0])
    steps = []
    for axis, length in enumerate(places.shape):
        corner = tuple(1 if i == axis else 0 for i in range(places.ndim))
        steps.append(int(places[corner]) - first if length > 1 else 0)
    view = (size, first, *steps)
    return view if min(steps) >= 0 and np.array_equal(view_positions(view, places.shape), places) else None


def _scaled_or_moved(graph: Graph, op: ArrayMatMul, mover: Node, index: int) -> ArrayMatMul | None:
    """Return a product that scales or orders its operand, or with `index` 2 its result, as `mover` does; None for other layers."""
    factor = scalar_factor(mover)
    if factor is not None and factor > 0:
        return replace(op, scale=op.scale * factor)
    if not is_plain(mover, IndexSelect) or mover.op.fills:
        return None
    order, views = mover.op.positions()[0], list(op.full_views())
    size = op.output_size() if index == 2 else graph.shape(mover.inputs[0])[1]
    if index == 2:
        if len(order) != size or len(np.unique(order)) != len(order):
            return None
        order = np.argsort(order)  # where each element of the result goes
    view = steps_of_order(order[view_positions(views[index], (op.left, op.right, op.dims)[index])], size)
    if view is None:
        return None
    views[index] = view
    return replace(op, views=tuple(views))


@rewrite("product-operand", "layers that move or scale operands taken into products of two arrays", ArrayMatMul)
def product_operand(graph: Graph, node: Node) -> Outcome:
    """ArrayMatMul(IndexSelect(x), y) with constant steps => ArrayMatMul(x, y) with a view of x; ArrayMatMul(c * x, y) =>
    ArrayMatMul(x, y) times c, a number above 0."""
    op = node.op
    if op.slots != (0, 1) or op.result:
        return None
    for index, producer in enumerate(map(graph.producer, node.inputs)):
        new = None if producer is None else _scaled_or_moved(graph, op, producer, index)
        if producer is not None and new is not None:
            inputs = list(node.inputs)
            inputs[index] = producer.inputs[0]
            node.op, node.inputs = replace(new, views=new.full_views()), inputs
            graph.prune()
            return Done(f"it does what {producer.name} did")
    return None


@rewrite("product-result", "layers that move or scale results taken into products of two arrays", ArrayMatMul)
def product_result(graph: Graph, node: Node) -> Outcome:
    """IndexSelect(ArrayMatMul(x, y)) => ArrayMatMul with a view of its result; c * ArrayMatMul(x, y), c > 0 => times c."""
    reader = graph.sole_consumer(node.output)
    if reader is None or not _multiplies(node, (0, 1)):
        return None
    op = _scaled_or_moved(graph, node.op, reader, 2)
    if op is None:
        return None
    graph.absorb(node, reader)
    node.op = op
    return Done(f"it does what {reader.name} did")
