"""Structure of a model: a copy without its large constants, and walks over the nodes of subgraphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

_LARGE_BYTES = 1 << 16
"""Size in bytes above which a constant cannot determine shapes."""


def skeleton(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of the model in which large initializers become inputs of their shape and type, without copying them."""
    import onnx  # late: operators of an INI need the rest of this module only
    from google.protobuf.field_mask_pb2 import FieldMask

    paths = [field.name for field, _ in proto.ListFields() if field.name != "graph"]
    paths += [f"graph.{field.name}" for field, _ in proto.graph.ListFields() if field.name != "initializer"]
    light = onnx.ModelProto()
    light.graph.SetInParent()
    FieldMask(paths=paths).MergeMessage(proto, light)
    light.graph.name = light.graph.name or "graph"  # ONNX Runtime needs none, the checker does
    names = {value.name for value in light.graph.input}
    for tensor in proto.graph.initializer:
        if tensor.ByteSize() <= _LARGE_BYTES:
            light.graph.initializer.add().CopyFrom(tensor)
        elif tensor.name not in names:
            light.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    return light


def tensor_types(proto: onnx.ModelProto) -> dict[str, onnx.ValueInfoProto]:
    """Return the types of tensors by name: inferred ones, or those of the file if it is damaged."""
    import onnx

    try:
        graph = onnx.shape_inference.infer_shapes(skeleton(proto), data_prop=True).graph
    except (onnx.shape_inference.InferenceError, ValueError):
        graph = proto.graph
    return {value.name: value for value in (*graph.value_info, *graph.output, *graph.input)}


def subgraphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """Return the subgraphs in the attributes of a node."""
    return [graph for one in node.attribute for graph in (*([one.g] if one.HasField("g") else []), *one.graphs)]


def has_graphs(node: onnx.NodeProto) -> bool:
    """True if an attribute of a node is a graph."""
    return any(one.type in (one.GRAPH, one.GRAPHS) for one in node.attribute)


def walk_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield the nodes, including those of subgraphs."""
    for node in nodes:
        yield node
        for graph in subgraphs(node):
            yield from walk_nodes(graph.node)


def tensors_read(nodes: Iterable[onnx.NodeProto]) -> set[str]:
    """Return the tensors that nodes and their subgraphs read, and the outputs of the subgraphs."""
    read: set[str] = set()
    for node in walk_nodes(nodes):
        read.update(node.input, *((value.name for value in graph.output) for graph in subgraphs(node)))
    return read - {""}
