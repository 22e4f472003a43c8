"""The memory problem of a typed network: its tensors in HWC and how its layers go through them."""

from __future__ import annotations

from collections.abc import Callable

from n2d2py.errors import InternalError
from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.graph.shapes import channels, height, width
from n2d2py.memory.problem import MemoryProblem, OpSpec, TensorSpec
from n2d2py.registry import Registry

__all__ = ["layout_kinds", "memory_problem", "register_layout"]

Layout = Callable[[QuantNode, QuantGraph], OpSpec]
LAYOUTS: Registry[Layout] = Registry("the memory layout of")
"""How layers go through memory, by operator kind."""


def register_layout(kind: str, layout: Layout) -> None:
    """Says how layers of an operator kind go through memory; a second one for a kind is an InternalError."""
    LAYOUTS.add(kind, layout)


def layout_kinds() -> tuple[str, ...]:
    """The operator kinds that can go through memory."""
    return tuple(LAYOUTS)


def memory_problem(graph: QuantGraph) -> MemoryProblem:
    """Tensors (vectors as 1 x 1 x C) and operators of a typed network, in its order."""
    tensors = {}
    for tensor in graph.tensors.values():
        shape = tensor.shape
        tensors[tensor.name] = TensorSpec(tensor.name, height(shape), width(shape), channels(shape), tensor.type.bytes)
    ops = []
    for node in graph.nodes:
        layout = LAYOUTS.get(node.op.kind)
        if layout is None:
            raise InternalError(f"no memory layout for {node.op.kind}")
        ops.append(layout(node, graph))
    return MemoryProblem(tensors, tuple(graph.inputs), tuple(graph.outputs), tuple(ops))


def _conv(node: QuantNode, graph: QuantGraph) -> OpSpec:
    kernel = node.params["weights"].shape[2:]
    return OpSpec.window(
        node.name,
        "conv",
        node.inputs[0],
        node.output,
        kernel=tuple(int(k) for k in kernel),
        stride=node.op.stride,
        pads=node.op.pads,
        dilation=node.op.dilation,
        groups=node.op.groups,
    )


def _pool(node: QuantNode, graph: QuantGraph) -> OpSpec:
    spec = OpSpec.window(
        node.name, "pool", node.inputs[0], node.output, kernel=node.op.kernel, stride=node.op.stride, pads=node.op.pads
    )
    spec.attributes["kind"] = node.op.mode.lower()
    if "scales" in node.params and node.op.order(graph.shape(node.inputs[0])[2:]) == "lanes":  # no sums of lines
        spec.attributes["by_lines"] = False
    else:
        spec.attributes["sum_bytes"] = _partial_bytes(node, graph)
    return spec


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


def _padding(node: QuantNode, graph: QuantGraph) -> OpSpec:
    """A window of one pixel."""
    spec = OpSpec.window(node.name, "pool", node.inputs[0], node.output, kernel=(1, 1), pads=node.op.pads)
    spec.attributes["kind"] = "padding"
    return spec


def _concat(node: QuantNode, graph: QuantGraph) -> OpSpec:
    attributes = {"rescale": True} if node.rescale is not None or node.activation is not None else {}
    return OpSpec(node.name, "concat", tuple(node.inputs), node.output, attributes)


def _plain(type: str) -> Layout:
    return lambda node, graph: OpSpec(node.name, type, tuple(node.inputs), node.output)


def _whole(node: QuantNode, graph: QuantGraph) -> OpSpec:
    """A layer that may read all of its inputs for each element of its output, as a fully connected one does."""
    return OpSpec(node.name, "fc", tuple(node.inputs), node.output, {"layer": node.op.kind})


def _pool_sum(node: QuantNode, graph: QuantGraph) -> OpSpec:
    """Stores its result past the caches where that lies with the caller."""
    spec = _whole(node, graph)
    spec.attributes["straight"] = True
    return spec


def _same_order(node: QuantNode, graph: QuantGraph) -> OpSpec:
    """A view where the elements keep their order in HWC memory, else a copy."""
    shapes = [graph.shape(name) for name in (node.inputs[0], node.output)]
    first, second = ((channels(s), height(s), width(s)) for s in shapes)
    kept = first == second or all(channels(s) == 1 or height(s) * width(s) == 1 for s in shapes)
    return OpSpec(node.name, "reshape", (node.inputs[0],), node.output) if kept else _whole(node, graph)


Ranges = list[list[int]]
"""For each position of an output's axis the range [first, stop] of an input's positions that it reads."""


def _window(node: QuantNode, inputs: list[list[Ranges]]) -> OpSpec:
    """A layer that goes line by line; for each input the ranges of its lines and of its columns."""
    lines, columns = zip(*inputs, strict=True)
    return OpSpec(
        node.name,
        "window",
        tuple(node.inputs),
        node.output,
        {"layer": node.op.kind, "lines": list(lines), "columns": list(columns)},
    )


def _deconv(node: QuantNode, graph: QuantGraph) -> OpSpec:
    """A position gathers what the taps u of the kernel bring from (position + pad - u * dilation) / stride."""
    op, kernel = node.op, node.params["weights"].shape[2:]
    ranges = []
    for outputs, inputs, k, s, p, d in zip(
        graph.shape(node.output)[2:], graph.shape(node.inputs[0])[2:], kernel, op.stride, op.pads[:2], op.dilation, strict=True
    ):
        ranges.append([])
        for position in range(outputs):
            reached = [(position + p - u * d) // s for u in range(k) if (position + p - u * d) % s == 0]
            inside = [at for at in reached if 0 <= at < inputs]
            ranges[-1].append([min(inside), max(inside) + 1] if inside else [0, 0])
    return _window(node, [ranges])


def _unpool(node: QuantNode, graph: QuantGraph) -> OpSpec:
    """A position is looked for in the windows of the pool that hold it, and in all that these windows cover."""
    op, ranges = node.op, ([], [])
    pooled, covered = (graph.shape(name)[2:] for name in node.inputs)
    for outputs, windows, size, k, s, p in zip(
        graph.shape(node.output)[2:], pooled, covered, op.kernel, op.stride, op.pads[:2], strict=True
    ):
        first = [min(windows, max(0, -((k - 1 - y - p) // s))) for y in range(outputs)]
        stop = [max(f, min(windows, (y + p) // s + 1)) for y, f in enumerate(first)]
        ranges[0].append([list(pair) for pair in zip(first, stop, strict=True)])
        ranges[1].append(
            [[max(0, f * s - p), min(size, (t - 1) * s - p + k)] if f < t else [0, 0] for f, t in zip(first, stop, strict=True)]
        )
    return _window(node, list(ranges))


def _resize(node: QuantNode, graph: QuantGraph) -> OpSpec:
    """Nearest by whole factors repeats pixels; another resampling reads the two neighbours of each position."""
    op, shape = node.op, graph.shape(node.inputs[0])
    factors = [new // old for new, old in zip(op.size, shape[2:], strict=True)]
    if op.mode == "Nearest" and all(f * old == new for f, old, new in zip(factors, shape[2:], op.size, strict=True)):
        scale = factors[0] if factors[0] == factors[1] else factors
        return OpSpec(node.name, "upsample", (node.inputs[0],), node.output, {"scale": scale})
    taps = [op.taps(old, new)[:2] for old, new in zip(shape[2:], op.size, strict=True)]
    return _window(node, [[[[int(a), int(b) + 1] for a, b in zip(*axis, strict=True)] for axis in taps]])


for _kind, _layout in (
    ("Conv", _conv),
    ("Pool", _pool),
    ("Padding", _padding),
    ("Concat", _concat),
    ("Fc", _plain("fc")),
    ("Softmax", _plain("softmax")),
    ("ElemWise", _plain("add")),
    ("Affine", _plain("ew")),
    ("Activation", _plain("ew")),
    ("Convert", _plain("ew")),
    ("Quantize", _plain("ew")),
    ("Reshape", _same_order),
    ("Identity", _same_order),
    ("Dropout", _same_order),
    ("Resize", _resize),
    ("Deconv", _deconv),
    ("Unpool", _unpool),
    ("PoolSum", _pool_sum),
    *((name, _whole) for name in ("DepthToSpace", "LRN", "Normalize", "SpaceToDepth", "Take", "Transpose")),
    *(
        (f"Array{name}", _whole)
        for name in (
            "Gather",
            "Interpolate",
            "Join",
            "Map",
            "Norm",
            "Order",
            "Product",
            "Reduce",
            "Scan",
            "Scatter",
            "Softmax",
            "Take",
            "Window",
        )
    ),
):
    register_layout(_kind, _layout)
