"""The accesses of the built-in operators."""

from __future__ import annotations

from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.graph.shapes import channels, height, width
from n2d2py.memory.access import (
    Access,
    Concatenated,
    LineTable,
    Pointwise,
    PoolWindow,
    Ranges,
    Upsample,
    View,
    Whole,
    Window,
    memory_access,
)

__all__: list[str] = []


@memory_access("Conv")
def _conv(node: QuantNode, graph: QuantGraph) -> Access:
    """A residual is added where the output is stored, which so takes its place."""
    lines, columns = node.params["weights"].shape[2:]
    op, aliases = node.op, 1 if len(node.inputs) > 1 else None
    return Window((int(lines), int(columns)), op.stride, op.pads, op.dilation, op.groups, aliases=aliases)


@memory_access("Pool")
def _pool(node: QuantNode, graph: QuantGraph) -> Access:
    op = node.op
    if "scales" in node.params and op.order(graph.shape(node.inputs[0])[2:]) == "lanes":  # no sums of lines
        return PoolWindow(op.kernel, op.stride, op.pads, mode=op.mode.lower(), by_lines=False)
    return PoolWindow(op.kernel, op.stride, op.pads, mode=op.mode.lower(), partial_bytes=_partial_bytes(node, graph))


def _partial_bytes(node: QuantNode, graph: QuantGraph) -> int:
    """Bytes of what a channel of a pool is reduced to before the output is computed from it."""
    kind = graph.type(node.inputs[0])
    if node.op.mode == "Max":
        return kind.bytes
    if kind.is_float:
        return graph.type(node.output).bytes
    reach = max(kind.qmax - kind.zero_point, kind.zero_point - kind.qmin, abs(kind.qmax))
    bound = max(node.op.kernel[0] * node.op.kernel[1] * reach, node.bound)
    return 4 if bound < 2**31 else 8


@memory_access("Padding")
def _padding(node: QuantNode, graph: QuantGraph) -> Access:
    """A window of one pixel."""
    return PoolWindow((1, 1), pads=node.op.pads, mode="padding")


@memory_access("Concat")
def _concat(node: QuantNode, graph: QuantGraph) -> Access:
    return Concatenated(node.rescale is not None or node.activation is not None)


@memory_access("ElemWise", "Affine", "Activation", "Convert", "Quantize")
def _pointwise(node: QuantNode, graph: QuantGraph) -> Access:
    return Pointwise()


@memory_access(
    "Fc",
    "Softmax",
    "DepthToSpace",
    "LRN",
    "Normalize",
    "SpaceToDepth",
    "IndexSelect",
    "Transpose",
    "ArrayGather",
    "ArrayInterpolate",
    "ArrayConcat",
    "ArrayMap",
    "ArrayNorm",
    "ArrayTopK",
    "ArrayMatMul",
    "ArrayReduce",
    "ArrayCumSum",
    "ArrayScatter",
    "ArraySoftmax",
    "ArrayIndexSelect",
    "ArrayConvPool",
)
def _whole(node: QuantNode, graph: QuantGraph) -> Access:
    return Whole()


@memory_access("PoolSum")
def _pool_sum(node: QuantNode, graph: QuantGraph) -> Access:
    """Stores its result past the caches where that lies with the caller."""
    return Whole(prefers_caller=True)


@memory_access("Reshape", "Identity", "Dropout")
def _same_order(node: QuantNode, graph: QuantGraph) -> Access:
    """A view where the elements keep their order in HWC memory, else a copy."""
    shapes = [graph.shape(name) for name in (node.inputs[0], node.output)]
    first, second = ((channels(s), height(s), width(s)) for s in shapes)
    kept = first == second or all(channels(s) == 1 or height(s) * width(s) == 1 for s in shapes)
    return View() if kept else Whole()


@memory_access("Deconv")
def _deconv(node: QuantNode, graph: QuantGraph) -> Access:
    """A position gathers what the taps u of the kernel bring from (position + pad - u * dilation) / stride."""
    op, kernel = node.op, node.params["weights"].shape[2:]
    tables: list[Ranges] = []
    for outputs, inputs, k, s, p, d in zip(
        graph.shape(node.output)[2:], graph.shape(node.inputs[0])[2:], kernel, op.stride, op.pads[:2], op.dilation, strict=True
    ):
        ranges = []
        for position in range(outputs):
            reached = [(position + p - u * d) // s for u in range(k) if (position + p - u * d) % s == 0]
            inside = [at for at in reached if 0 <= at < inputs]
            ranges.append((min(inside), max(inside) + 1) if inside else (0, 0))
        tables.append(tuple(ranges))
    return LineTable((tables[0],), (tables[1],))


@memory_access("Unpool")
def _unpool(node: QuantNode, graph: QuantGraph) -> Access:
    """A position is looked for in the windows of the pool that hold it, and in all that these windows cover."""
    op, tables = node.op, []
    pooled, covered = (graph.shape(name)[2:] for name in node.inputs)
    for outputs, windows, size, k, s, p in zip(
        graph.shape(node.output)[2:], pooled, covered, op.kernel, op.stride, op.pads[:2], strict=True
    ):
        first = [min(windows, max(0, -((k - 1 - y - p) // s))) for y in range(outputs)]
        stop = [max(f, min(windows, (y + p) // s + 1)) for y, f in enumerate(first)]
        over = [
            (max(0, f * s - p), min(size, (t - 1) * s - p + k)) if f < t else (0, 0) for f, t in zip(first, stop, strict=True)
        ]
        tables.append((tuple(zip(first, stop, strict=True)), tuple(over)))
    return LineTable(tables[0], tables[1])


@memory_access("Resize")
def _resize(node: QuantNode, graph: QuantGraph) -> Access:
    """Nearest by whole factors repeats pixels; another resampling reads the two neighbours of each position."""
    op, shape = node.op, graph.shape(node.inputs[0])
    factors = [new // old for new, old in zip(op.size, shape[2:], strict=True)]
    if op.mode == "Nearest" and all(f * old == new for f, old, new in zip(factors, shape[2:], op.size, strict=True)):
        return Upsample((factors[0], factors[1]))
    lines, columns = (
        tuple((int(a), int(b) + 1) for a, b in zip(*op.taps(old, new)[:2], strict=True))
        for old, new in zip(shape[2:], op.size, strict=True)
    )
    return LineTable((lines,), (columns,))
