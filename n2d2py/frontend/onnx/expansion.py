"""Replacement of operators without converter by their function body in the ONNX standard."""

from __future__ import annotations

from functools import partial

import onnx

from n2d2py import log
from n2d2py.contracts.onnx.nodes import find_converter
from n2d2py.errors import Location
from n2d2py.frontend.onnx.folding import SHAPE_ARITHMETIC
from n2d2py.frontend.onnx.model import OnnxModel
from n2d2py.frontend.onnx.trial import run_limited

_ROUNDS = 4
"""Largest number of passes: a function body may contain other operators with function bodies."""


def expand_functions(model: OnnxModel) -> None:
    """Inline the function bodies of operators without converter, such as Attention or Shrink."""
    for number in range(_ROUNDS):
        versions = {entry.domain: entry.version for entry in model.proto.opset_import} | {"": model.opset}
        nodes = [node for node in model.proto.graph.node if _is_expandable(node, versions)]
        if not nodes:
            return
        if number == 0:
            _declare_constant_types(model.proto.graph)
        from onnx import inliner

        kinds = sorted({(_domain(node), node.op_type) for node in nodes})
        operators = [name for _, name in kinds]
        _write_defaults(nodes, versions)
        inline = partial(inliner.inline_selected_functions, model.proto, kinds, inline_schema_functions=True)
        try:
            model.proto = run_limited(inline, ", ".join(operators), Location(model.path))
        except (RuntimeError, ValueError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
            log.detail("%s: %s cannot be expanded: %s", model.path, ", ".join(operators), str(error).splitlines()[0])
            return
        log.detail("%s: %s replaced by their definitions", model.path, ", ".join(operators))


def _declare_constant_types(graph: onnx.GraphProto) -> None:
    """Declare the types of constants for functions whose body depends on types; absent inputs have an empty one."""
    graph.value_info.append(onnx.ValueInfoProto())
    for tensor in graph.initializer:
        graph.value_info.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))


def _domain(node: onnx.NodeProto) -> str:
    return "" if node.domain == "ai.onnx" else node.domain


def _write_defaults(nodes: list[onnx.NodeProto], versions: dict[str, int]) -> None:
    """Write default attributes explicitly: inlining drops a reference to an absent attribute."""
    for node in nodes:
        names = {attribute.name for attribute in node.attribute}
        for name, attribute in onnx.defs.get_schema(node.op_type, versions[_domain(node)], _domain(node)).attributes.items():
            if name not in names and attribute.default_value.type != onnx.AttributeProto.UNDEFINED:
                node.attribute.append(attribute.default_value)


def _is_expandable(node: onnx.NodeProto, versions: dict[str, int]) -> bool:
    if _domain(node) not in versions or node.op_type in SHAPE_ARITHMETIC or find_converter(node.op_type, node.domain):
        return False
    try:
        schema = onnx.defs.get_schema(node.op_type, versions[_domain(node)], _domain(node))
    except onnx.defs.SchemaError:
        return False
    return schema.has_function or schema.has_context_dependent_function  # pyright: ignore[reportAttributeAccessIssue]  (not in its stub)
