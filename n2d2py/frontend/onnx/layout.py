"""Finds inputs that a model takes in the order of its training framework (NHWC) and transposes itself."""

from __future__ import annotations

import onnx

_ELEMENTWISE = ("Add", "Sub", "Mul", "Div", "Cast", "Identity", "Clip", "Relu", "QuantizeLinear", "DequantizeLinear")


def nhwc_inputs(graph: onnx.GraphProto) -> set[str]:
    """The inputs that reach, through element-wise nodes only, nothing but transpositions NHWC -> NCHW."""
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    outputs = {value.name for value in graph.output}
    found: set[str] = set()
    # nodes are in topological order, so the readers of a tensor are judged before it
    for name in [
        *(node.output[0] for node in reversed(graph.node) if node.op_type in _ELEMENTWISE),
        *(value.name for value in graph.input),
    ]:
        nodes = readers.get(name, [])
        if nodes and name not in outputs and all(_to_nchw(node) or not found.isdisjoint(node.output) for node in nodes):
            found.add(name)
    return found.intersection(value.name for value in graph.input)


def _to_nchw(node: onnx.NodeProto) -> bool:
    return node.op_type == "Transpose" and any(a.name == "perm" and list(a.ints) == [0, 3, 1, 2] for a in node.attribute)
