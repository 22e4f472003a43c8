"""Products of matrices, with constant ones and of two activations.

Products with constant matrices become 1x1 convolutions over rows as pixels, as torch's Linear exports them, and a convolution
over a whole input a fully connected layer. Products then have the integers, corrections and kernels of convolutions, and views
cost nothing. Groups are the heads of an attention with relative positions, or experts. A left matrix is the adjacency of a graph
network, mixes the tokens of an MLP-Mixer, or resamples a row.

Products of two activations read and write through views, so layers that only move or scale their matrices disappear. Heads of
an attention then need no transposition, and their temperature is part of the rescale.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import ClassVar

import numpy as np

from n2d2py.graph import Graph, Node
from n2d2py.operators import ArrayMatMul, Conv, Fc, IndexSelect, MemoryView, Reshape, is_quantized
from n2d2py.operators.arrays.map import constant_operand, scalar_factor, scale_and_shift
from n2d2py.operators.arrays.matmul import view_positions
from n2d2py.operators.linear import cast_like
from n2d2py.passes.array_layers import over_images, permute_image, permute_operand
from n2d2py.passes.base import Pass

# ---- constant matrices --------------------------------------------------------------------------


class _ConstantProduct(Pass):
    """A rewrite of ArrayMatMul with a constant; not in pre-quantized networks, whose layers have their own rules."""

    slots: ClassVar[tuple[int, int]] = (0, -1)

    def match_product(self, graph: Graph, node: Node, op: ArrayMatMul) -> object:
        raise NotImplementedError

    def match(self, graph: Graph, node: Node) -> object:
        op = node.op
        if not isinstance(op, ArrayMatMul) or op.slots != self.slots or op.result or node.activation is not None:
            return None
        match = self.match_product(graph, node, op)
        return "it computes in integers of the file" if match is not None and is_quantized(graph) else match


class MatMulToConv(_ConstantProduct):
    """ArrayMatMul(x, W) of rows (R, K) with W (K, N) => MemoryView(Conv(MemoryView(x))), weights (N, K, 1, 1); of a single row,
    such as class tokens and steps of a sequence => Fc(x), weights (N, K).

    An ArrayMap Add of a constant (N) after it is its bias; an ArrayMap Mul is part of its weights and its bias. A scalar counts
    as such a constant, also subtracted or as divisor.
    """

    name = "matmul-to-conv"
    summary = "matrix products with constant weights turned into 1x1 convolutions"

    def match_product(self, graph: Graph, node: Node, op: ArrayMatMul) -> tuple[np.ndarray, np.ndarray, list[Node], str] | None:
        """Return the weights (K, N), the bias (N), the layers that are part of them, and a text about these."""
        if prod(op.right[:-2]) != 1:
            return None
        width, layers, text = op.right[-1], [node], ""
        weights, bias = node.params["operand1"].reshape(-1, width), np.zeros(width)
        for function in ("Add", "Mul"):
            reader = graph.sole_consumer(layers[-1].output)
            constant = None if reader is None else _constant(reader, function, width)
            if reader is None or constant is None:
                continue
            layers.append(reader)
            if function == "Add":
                bias, text = constant, f", with {reader.name} as bias"
            else:
                weights, bias = (weights * constant).astype(weights.dtype), bias * constant
                text += f", times the gains of {reader.name}"
        return weights, bias, layers[1:], text

    def rewrite(self, graph: Graph, node: Node, match: tuple[np.ndarray, np.ndarray, list[Node], str]) -> str:
        weights, bias, layers, text = match
        for layer in layers:
            graph.absorb(node, layer)
        depth, width = weights.shape
        node.params = {"weights": np.ascontiguousarray(weights.T), "bias": bias.astype(weights.dtype)}
        rows = graph.shape(node.output)[1] // width
        if rows == 1:
            node.op = Fc()
            return f"product of a row turned into an Fc{text}"
        node.op, node.params["weights"] = Conv(), node.params["weights"].reshape(width, depth, 1, 1)
        over_images(graph, node, [(depth, 1, rows)], (width, 1, rows))
        return f"product of {rows} rows turned into a Conv of 1x1{text}"


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


class GroupedMatMul(_ConstantProduct):
    """ArrayMatMul(x, W) of x (G, T, K) and W (G, K, N) => Conv 1x1 in G groups over T pixels of G K channels, with rows
    transposed from (G, T, K) to (T, G K) before it and back after it."""

    name = "grouped-matmul"
    summary = "matrix products with a constant matrix for each group turned into grouped 1x1 convolutions"

    def match_product(self, graph: Graph, node: Node, op: ArrayMatMul) -> tuple[int, int] | str | None:
        if prod(op.right[:-2]) == 1:
            return None
        end = 1 + max(axis for axis, size in enumerate(op.right[:-2]) if size > 1)
        if op.left[:end] != op.right[:end]:
            return "its matrices do not belong to the outermost groups of its rows"
        return prod(op.right[:end]), prod(op.left[end:-1])

    def rewrite(self, graph: Graph, node: Node, sizes: tuple[int, int]) -> str:
        groups, rows = sizes
        (source,), output = node.inputs, node.output
        assert isinstance(node.op, ArrayMatMul)
        depth, width = node.op.right[-2:]
        weights = node.params["operand1"].reshape(groups, depth, width).transpose(0, 2, 1).reshape(groups * width, depth, 1, 1)
        node.op, node.params = Conv(groups=groups), {"weights": np.ascontiguousarray(weights)}
        node.params["bias"] = np.zeros(groups * width, weights.dtype)
        if rows > 1:
            node.inputs = [permute_operand(graph, node, source, (depth, groups, rows), _SWAP_ROWS_COLUMNS)]
        text = f"products of {groups} matrices"
        if rows == 1:
            over_images(graph, node, [(groups * depth, 1, 1)], (groups * width, 1, 1))
            return f"{text} turned into a Conv of as many groups"
        dims = graph.shape(output)[1:]
        view = graph.view_output(node, f"{output}_product", dims, MemoryView(dims))
        over_images(graph, node, [(groups * depth, 1, rows)], (groups * width, 1, rows))
        shape, stem = (width, rows, groups), f"{output}_back"
        view.inputs = [permute_image(graph, view, view.inputs[0], shape, _SWAP_ROWS_COLUMNS, stem)]
        return f"{text} with {rows} rows each turned into a Conv of as many groups"


_SWAP_CHANNELS_COLUMNS = (0, 3, 2, 1)
"""Permutation that swaps channels and columns."""


class LeftMatMul(_ConstantProduct):
    """ArrayMatMul(W, x), W (M, K), x (..., K, N) => ArrayMatMul(x transposed, W transposed) transposed; x (K, 1) is a row."""

    name = "left-matmul"
    summary = "matrix products with constant left matrices turned into ones with constant right ones"
    slots = (-1, 0)

    def match_product(self, graph: Graph, node: Node, op: ArrayMatMul) -> tuple[int, int] | str:
        if prod(op.left[:-2]) != 1:
            return "it has a matrix for each of several products"
        return prod(op.right[:-2]), op.right[-1]

    def rewrite(self, graph: Graph, node: Node, sizes: tuple[int, int]) -> str:
        products, columns = sizes
        op, (source,), output = node.op, node.inputs, node.output
        assert isinstance(op, ArrayMatMul)
        outputs, depth = op.left[-2:]
        weights = node.params["operand0"].reshape(outputs, depth)
        node.op = ArrayMatMul((products * columns, depth), (depth, outputs), (0, -1))
        node.params = {"operand1": np.ascontiguousarray(weights.T)}
        text = f"its matrix of {outputs} x {depth} multiplies from the right"
        if products * columns == 1:
            return text
        node.inputs = [permute_operand(graph, node, source, (columns, products, depth), _SWAP_CHANNELS_COLUMNS)]
        view = graph.view_output(
            node, f"{output}_product", (products * columns * outputs,), MemoryView(graph.shape(output)[1:])
        )
        product, shape = node.output, (outputs, products, columns)
        view.inputs = [permute_image(graph, view, product, shape, _SWAP_CHANNELS_COLUMNS, product)]
        return text


class ConvToFc(Pass):
    """Reshape(Conv(x)) to (C) with one output position and no padding => Fc(x) with W' = W as (O, C * KH * KW)."""

    name = "conv-to-fc"
    summary = "Conv over a whole input turned into Fc"
    at = (Conv,)

    def match(self, graph: Graph, node: Node) -> Node | str | None:
        reshape = graph.sole_consumer(node.output)
        if reshape is None or not isinstance(reshape.op, Reshape) or len(reshape.op.dims) != 1:
            return None
        kernel, size = node.params["weights"].shape[2:], graph.shape(node.inputs[0])[2:]
        if kernel != size or any(node.op.pads):
            return f"its window of {kernel[1]}x{kernel[0]} is not its whole input of {size[1]}x{size[0]}"
        if node.op.groups != 1:
            return "it has groups"
        if reshape.activation is not None:
            return f"{reshape.name} carries an activation"
        return reshape

    def rewrite(self, graph: Graph, node: Node, reshape: Node) -> str:
        weights = node.params["weights"]
        node.op = Fc()
        node.params = {**node.params, "weights": cast_like(weights.reshape(len(weights), -1), weights)}
        graph.absorb(node, reshape)
        return f"Conv and {reshape.name} turned into Fc"


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


def _only_moves(node: Node | None) -> bool:
    return node is not None and isinstance(node.op, IndexSelect) and node.activation is None and not node.op.fills


class ProductOperand(Pass):
    """ArrayMatMul(IndexSelect(x), y) with constant steps => ArrayMatMul(x, y) with a view of x; ArrayMatMul(c * x, y) =>
    ArrayMatMul(x, y) times c, a number above 0."""

    name = "product-operand"
    summary = "layers that move or scale operands taken into products of two arrays"

    def match(self, graph: Graph, node: Node) -> tuple[ArrayMatMul, list[str], str] | None:
        op = node.op
        if not isinstance(op, ArrayMatMul) or op.slots != (0, 1) or op.result:
            return None
        for index, dims in enumerate((op.left, op.right)):
            producer = graph.producer(node.inputs[index])
            if producer is None:
                continue
            views, inputs = list(op.full_views()), list(node.inputs)
            inputs[index : index + 1] = producer.inputs[:1]
            factor = scalar_factor(producer)
            if factor is not None and factor > 0:
                return replace(op, scale=op.scale * factor, views=tuple(views)), inputs, f"the factor of {producer.name}"
            if _only_moves(producer):
                places = producer.op.positions()[0][view_positions(views[index], dims)]
                steps = steps_of_order(places, graph.shape(inputs[index])[1])
                if steps is not None:
                    views[index] = steps
                    return replace(op, views=tuple(views)), inputs, f"the order of {producer.name}"
        return None

    def rewrite(self, graph: Graph, node: Node, match: tuple[ArrayMatMul, list[str], str]) -> str:
        node.op, node.inputs, what = match
        graph.prune()
        return f"it takes in {what}"


class ProductResult(Pass):
    """IndexSelect(ArrayMatMul(x, y)) => ArrayMatMul with a view of its result; c * ArrayMatMul(x, y), c > 0 => times c."""

    name = "product-result"
    summary = "layers that move or scale results taken into products of two arrays"

    def match(self, graph: Graph, node: Node) -> tuple[Node, ArrayMatMul] | None:
        op = node.op
        if not isinstance(op, ArrayMatMul) or op.slots != (0, 1) or op.result or node.activation is not None:
            return None
        reader = graph.sole_consumer(node.output)
        if reader is None:
            return None
        factor = scalar_factor(reader)
        if factor is not None and factor > 0:
            return reader, replace(op, scale=op.scale * factor)
        if not _only_moves(reader):
            return None
        order = reader.op.positions()[0]
        if len(order) != op.output_size() or len(np.unique(order)) != len(order):
            return None
        views = op.full_views()
        back = np.argsort(order)  # where each element of the result goes
        view = steps_of_order(back[view_positions(views[2], op.dims)], op.output_size())
        return None if view is None else (reader, replace(op, views=(*views[:2], view)))

    def rewrite(self, graph: Graph, node: Node, match: tuple[Node, ArrayMatMul]) -> str:
        reader, op = match
        graph.absorb(node, reader)
        node.op = op
        return f"it does what {reader.name} did"
