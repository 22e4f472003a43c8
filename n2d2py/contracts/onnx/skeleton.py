"""Copy of a model without its large constants, for structural analysis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx

_LARGE_BYTES = 1 << 16
"""Size in bytes above which a constant cannot determine shapes."""


def skeleton(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of the model in which large initializers become inputs of their shape and type, without copying them."""
    import onnx  # late: operators of an INI need the rest of this module only
    from onnx import helper

    light, heavy = onnx.ModelProto(), []
    for field, value in proto.ListFields():
        if field.name != "graph":
            _copy_field(light, field.name, value)
    light.graph.SetInParent()
    for field, value in proto.graph.ListFields():
        if field.name != "initializer":
            _copy_field(light.graph, field.name, value)
            continue
        for tensor in value:
            if tensor.ByteSize() > _LARGE_BYTES:
                heavy.append(tensor)
            else:
                light.graph.initializer.add().CopyFrom(tensor)
    light.graph.name = light.graph.name or "graph"  # ONNX Runtime needs none, the checker does
    names = {value.name for value in light.graph.input}
    light.graph.input.extend(
        helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        for tensor in heavy
        if tensor.name not in names
    )
    return light


def subgraphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """Return the subgraphs in the attributes of a node."""
    return [graph for one in node.attribute for graph in (*([one.g] if one.HasField("g") else []), *one.graphs)]


def walk_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield the nodes, including those of subgraphs."""
    for node in nodes:
        yield node
        for graph in subgraphs(node):
            yield from walk_nodes(graph.node)


def _copy_field(target: Any, name: str, value: Any) -> None:
    """Copy one field of a message."""
    if hasattr(value, "MergeFrom"):
        getattr(target, name).MergeFrom(value)
    else:
        setattr(target, name, value)
