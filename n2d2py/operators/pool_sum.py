"""Max pooling plus a second input, in one pass over memory; floating point, or 32-bit integers unchanged.

ElemWise Sum(Pool Max(x), y)  =>  PoolSum(x, y), for floating-point exports
"""

import numpy as np

from n2d2py.contracts.cpp import Layer, LayerCode, cpp, epilogue, window
from n2d2py.contracts.facets import OnnxWriter, Op, Pads, onnx_emitter, register
from n2d2py.contracts.quant.quantizer import Quantizer, quantizer
from n2d2py.graph import Node, Shape, chain, dims_text
from n2d2py.memory.access import Whole, memory_access
from n2d2py.operators.pool import Pool
from n2d2py.operators.pool.op import emit_pool


@register
class PoolSum(Op):
    """y = max pool of the first input + the second; axes of length 1 of either are broadcast.

    The pooled image is never stored: one pass reads both inputs and stores the sum, of floating point or of 32-bit integers
    without scales. Otherwise the sum rescales both inputs, and the pool stays a separate pass.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    macs_per_output = 1

    @property
    def pool(self) -> Pool:
        """The max pool without the sum."""
        return Pool("Max", self.kernel, self.stride, self.pads)

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        pooled = self.pool.output_shapes(inputs[:1], node)[0]
        if len(inputs[1]) != 4 or any(a != b and 1 not in (a, b) for a, b in zip(pooled, inputs[1], strict=True)):
            dims = " and ".join(dims_text(shape[1:]) for shape in (pooled, inputs[1]))
            remedy = "use equal shapes; axes of length 1 are broadcast"
            raise self.error("E205", node, f"has operands of different shapes {dims}", remedy)
        return [tuple(max(a, b) for a, b in zip(pooled, inputs[1], strict=True))]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [self.pool.run(inputs[:1], node)[0] + inputs[1]]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Add modulo 2^32, as in C++."""
        return self.run(inputs, node)


@chain("fuse-pool-sum", "sums merged into the max pool before", ("Pool", "ElemWise"), integer=False, last=True)
def _replacement(pool: Node, total: Node) -> Op | str:
    if pool.op.mode != "Max":
        return "it is not a max pool"
    weights, shifts = total.op.coefficients(len(total.inputs))
    if total.op.operation != "Sum" or any(w != 1 for w in weights) or any(shifts):
        return f"{total.name} is not a plain addition"
    if len(total.inputs) != 2 or total.inputs[0] == total.inputs[1]:
        return f"{total.name} does not add one other tensor"
    if min(pool.op.pads) < 0:
        return "it crops"
    if any(pad >= size for pad, size in zip(pool.op.pads, 2 * pool.op.kernel, strict=True)):
        return "its padding is as wide as its windows"
    return PoolSum(pool.op.kernel, pool.op.stride, pool.op.pads)


@onnx_emitter("PoolSum")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    pooled = writer.fresh(f"{output}_pooled")
    emit_pool(writer, Node(node.name, node.op.pool, node.inputs[:1], [pooled]), pooled)
    writer.emit("Add", [pooled, node.inputs[1]], output)


# an output in the caller's buffer is stored past the caches
memory_access("PoolSum")(lambda node, graph: Whole(prefers_caller=True))


@quantizer("PoolSum")
class PoolSumQuantizer(Quantizer):
    """Only integers without scales."""

    def refuses(self, node: Node) -> str | None:
        return node.op.kind

    def plain(self, node: Node) -> bool:
        return True


STREAMING_BYTES = 1 << 18
"""Bytes from which a result in the caller's buffer is stored past the caches: more than half of a typical L2 cache."""


@cpp("PoolSum")
def _lower(layer: Layer) -> LayerCode:
    layer = layer.requiring_whole_input()
    plain = layer.integer and all(kind.plain for kind in (*layer.inputs, layer.output))
    size = int(np.prod(layer.output_shape)) * layer.output.bytes
    op, (first, other) = layer.op, layer.input_planes
    pooled = op.pool.output_shapes([layer.input_shape], layer.node)[0]
    stored = f"n2d2::Moved<{layer.output.cpp}>" if plain else epilogue(layer)
    types = {"Input": first, "Other": other, "Output": layer.output_plane, "Epilogue": stored}
    sizes = {"PooledHeight": pooled[2], "PooledWidth": pooled[3], "Streaming": size >= STREAMING_BYTES and layer.external}
    title = f"max pool {op.kernel[0]} x {op.kernel[1]} and sum"
    config = layer.config(title, types, {**window(op.kernel, op.stride, op.pads), **sizes})
    return layer.code("pool_sum", layer.call("poolSum", config, inputs=layer.bases))
