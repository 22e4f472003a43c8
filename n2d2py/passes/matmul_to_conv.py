"""A matrix product with constant weights is a convolution of 1x1 over rows as pixels: what torch's Linear becomes.

    ArrayMatMul(x, W) of rows (W', K) with W (K, N)   =>  MemoryView(Conv(MemoryView(x))), weights (N, K, 1, 1)
    ... of a single row (1, K)                        =>  Fc(x), weights (N, K): class tokens, steps of a sequence
    ... and an ArrayMap Add of a constant (N) after it  =>  its bias
    ... and an ArrayMap Mul by a constant (N) after it  =>  in its weights and its bias

A single number counts as such a constant, subtracted and divided by too. So it has the integers, the corrections and the kernels of convolutions; the views cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from n2d2py.graph import Graph, Node
from n2d2py.operators.arrays.map import ArrayMap, scale_and_shift
from n2d2py.operators.conv import Conv
from n2d2py.operators.fc import Fc
from n2d2py.passes.base import Match, Pass
from n2d2py.passes.constant_products import constant_product, kept_by_the_file
from n2d2py.passes.views import over_images


@dataclass(frozen=True)
class Product:
    """Weights (K, N) of a product, and the layers that add a constant `bias` (N) to its rows and multiply them by `gain`, if any."""

    weights: np.ndarray
    added: Node | None
    bias: np.ndarray | None
    scaled: Node | None
    gain: np.ndarray | None


class MatMulToConv(Pass):
    """ArrayMatMul with constant weights => Conv 1x1 or Fc; not in pre-quantized networks, whose layers have their own rules."""

    name = "matmul-to-conv"
    summary = "matrix products with constant weights turned into 1x1 convolutions"

    def match(self, graph: Graph, node: Node) -> Match | None:
        op = constant_product(node, (0, -1))
        if op is None or prod(op.right[:-2]) != 1:
            return None
        kept = kept_by_the_file(graph, node)
        if kept is not None:
            return kept
        weights = node.params["operand1"].reshape(op.right[-2:])
        added, bias = _behind(graph, node, "Add", op.right[-1])
        scaled, gain = _behind(graph, added or node, "Mul", op.right[-1])
        return Match(Product(weights, added, bias, scaled, gain))

    def rewrite(self, graph: Graph, node: Node, found: Product) -> str:
        width = found.weights.shape[1]
        for after in (found.added, found.scaled):
            if after is not None:
                graph.absorb(node, after)
        weights, bias = found.weights, np.zeros(width) if found.bias is None else found.bias
        if found.gain is not None:
            weights, bias = (weights * found.gain).astype(weights.dtype), bias * found.gain
        node.params = {"weights": np.ascontiguousarray(weights.T), "bias": bias.astype(weights.dtype)}
        rows = graph.shape(node.output)[1] // width
        if rows == 1:
            node.op = Fc()
        else:
            _over_pixels(graph, node, rows)
        return (
            (f"product of {rows} rows turned into a Conv of 1x1" if rows > 1 else "product of a row turned into an Fc")
            + (f", with {found.added.name} as bias" if found.added else "")
            + (f", times the gains of {found.scaled.name}" if found.scaled else "")
        )


def _over_pixels(graph: Graph, node: Node, rows: int) -> None:
    """Make a layer with weights (N, K) a Conv of 1x1 over `rows` pixels, between views."""
    width, depth = node.params["weights"].shape
    node.op = Conv()
    node.params["weights"] = node.params["weights"].reshape(width, depth, 1, 1)
    over_images(graph, node, [(depth, 1, rows)], (width, 1, rows))


def _behind(graph: Graph, node: Node, function: str, width: int) -> tuple[Node, np.ndarray] | tuple[None, None]:
    """The layer that combines the rows of `node` alone with a constant, and that constant (N); two None where there is none."""
    reader = graph.sole_consumer(node.output)
    constant = None if reader is None else _constant(reader, function, width)
    return (None, None) if reader is None or constant is None else (reader, constant)


def _constant(layer: Node, function: str, width: int) -> np.ndarray | None:
    """The constant (N) that a layer combines with every row, None where it does something else."""
    op, number = layer.op, scale_and_shift(layer)
    if number is not None and op.dims[-1] == width:
        gain, shift = number
        if function == "Add":
            return np.full(width, shift) if gain == 1 else None
        return np.full(width, gain) if shift == 0 and np.isfinite(gain) else None
    if not isinstance(op, ArrayMap) or op.function != function or op.result or sorted(op.slots) != [-1, 0] or layer.activation:
        return None
    index = op.slots.index(-1)
    constant, shape = layer.params[f"operand{index}"], op.shapes[index]
    alone = prod(shape) == width and shape[-1:] == (width,) and op.dims[-1] == width
    return constant.reshape(-1) if alone and op.shapes[1 - index] == op.dims else None
