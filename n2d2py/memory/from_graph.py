"""The memory problem of a typed network: its tensors in HWC and how its layers go through them."""
from __future__ import annotations

from typing import Callable

from n2d2py.errors import InternalError
from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.graph.shapes import channels, height, width
from n2d2py.memory.problem import MemoryProblem, OpSpec, TensorSpec

__all__ = ["memory_problem", "register_layout"]

Layout = Callable[[QuantNode, QuantGraph], OpSpec]
_LAYOUTS: dict[str, Layout] = {}


def register_layout(kind: str, layout: Layout) -> None:
    """Says how layers of an operator kind go through memory; a second one for a kind is an InternalError."""
    if kind in _LAYOUTS:
        raise InternalError(f"two memory layouts for {kind}")
    _LAYOUTS[kind] = layout


def memory_problem(graph: QuantGraph) -> MemoryProblem:
    """Tensors (vectors as 1 x 1 x C) and operators of a typed network, in its order."""
    tensors = {}
    for tensor in graph.tensors.values():
        shape = tensor.shape
        tensors[tensor.name] = TensorSpec(tensor.name, height(shape), width(shape), channels(shape),
                                          tensor.type.bytes)
    ops = []
    for node in graph.nodes:
        layout = _LAYOUTS.get(node.op.kind)
        if layout is None:
            raise InternalError(f"no memory layout for {node.op.kind}")
        ops.append(layout(node, graph))
    return MemoryProblem(tensors, tuple(graph.inputs), tuple(graph.outputs), tuple(ops))


def _conv(node: QuantNode, graph: QuantGraph) -> OpSpec:
    kernel = node.params["weights"].shape[2:]
    return OpSpec.window(node.name, "conv", node.inputs[0], node.output, kernel=tuple(int(k) for k in kernel),
                         stride=node.op.stride, pads=node.op.pads, dilation=node.op.dilation, groups=node.op.groups)


def _pool(node: QuantNode, graph: QuantGraph) -> OpSpec:
    spec = OpSpec.window(node.name, "pool", node.inputs[0], node.output, kernel=node.op.kernel,
                         stride=node.op.stride, pads=node.op.pads)
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
    return 4 if bound < 2 ** 31 else 8


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


def _same_order(node: QuantNode, graph: QuantGraph) -> OpSpec:
    """A view where the elements keep their order in HWC memory, else a copy."""
    shapes = [graph.shape(name) for name in (node.inputs[0], node.output)]
    first, second = ((channels(s), height(s), width(s)) for s in shapes)
    kept = first == second or all(channels(s) == 1 or height(s) * width(s) == 1 for s in shapes)
    return OpSpec(node.name, "reshape", (node.inputs[0],), node.output) if kept else _whole(node, graph)


def _resize(node: QuantNode, graph: QuantGraph) -> OpSpec:
    """Nearest by whole factors goes line by line; every other resampling reads its input as a whole."""
    op, shape = node.op, graph.shape(node.inputs[0])
    factors = [new // old for new, old in zip(op.size, shape[2:])]
    if op.mode == "Nearest" and all(f * old == new for f, old, new in zip(factors, shape[2:], op.size)):
        return OpSpec(node.name, "upsample", (node.inputs[0],), node.output, {"scale": factors if factors[0] != factors[1] else factors[0]})
    return _whole(node, graph)


for _kind, _layout in (("Conv", _conv), ("Pool", _pool), ("Padding", _padding), ("Concat", _concat),
                       ("Fc", _plain("fc")), ("Softmax", _plain("softmax")), ("ElemWise", _plain("add")),
                       ("Affine", _plain("ew")), ("Activation", _plain("ew")), ("Convert", _plain("ew")),
                       ("Quantize", _plain("ew")), ("Reshape", _same_order), ("Identity", _same_order),
                       ("Dropout", _same_order), ("Resize", _resize),
                       *((name, _whole) for name in (
                           "DepthToSpace", "Deconv", "LRN", "Normalize", "PoolSum", "SpaceToDepth", "Take", "Transpose",
                           "Unpool")),
                       *((f"Array{name}", _whole) for name in (
                           "Gather", "Interpolate", "Join", "Map", "Norm", "Product", "Reduce", "Scan", "Scatter",
                           "Softmax", "Take", "Window"))):
    register_layout(_kind, _layout)
