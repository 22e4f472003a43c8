"""Checks a node against the definition of its operator in the ONNX standard, before a converter reads it.

The onnx package holds the definitions: number and types of inputs, attributes and their types, and the rules by which
shapes follow from shapes. The check of the whole model (model.py) ends early where it tolerates an unknown operator, and
knows no shapes; here each node is checked with the shapes that its inputs have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from math import isfinite
from typing import Any

import onnx
from onnx import TensorProto

from n2d2py.errors import ErrorList, Location, N2D2Error

TOLERATED = (
    "No Op registered",
    "No opset import for domain",
    "Field 'shape' of 'type' is required but missing",
    "is deprecated in domain_version",
)
"""Findings of the standard's checker that the import reports better, or does not mind."""

_INFINITE = ("Clip", "Constant", "Pad")
"""Operators whose attributes may be infinite."""
_TYPES = {"to": 1, "dtype": 1, "stash_type": 1, "output_datatype": 1, "output_dtype": 0}
"""Attributes that name a type of elements, and the first that they may: 0 stands for none."""
_BOUNDS = {"axis": (-64, 64), "batch_dims": (0, 64), "num_outputs": (0, 1 << 16)}
"""Least and greatest value of attributes of some operators, of any number of axes: their rules of shapes leave the memory, or
fill it, on others."""
_TERM = r"[A-Za-z ]*(\.\.\.[A-Za-z ]*)?"
_EQUATION = re.compile(rf"{_TERM}(,{_TERM})*(->{_TERM})?")
_WORDS = {
    "auto_pad": ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"),
    "Gelu.approximate": ("none", "tanh"),
    "BitShift.direction": ("LEFT", "RIGHT"),
    "DepthToSpace.mode": ("DCR", "CRD"),
    "SpaceToDepth.mode": ("DCR", "CRD"),
}
"""Values of attributes that are texts, of one operator or of all that have it; converters check others themselves."""
_ROUNDING_BY_AXIS = 13
"""The first operator set whose QuantizeLinear and DequantizeLinear have an axis."""


def check_structure(proto: onnx.ModelProto, path: str, opset: int) -> None:
    """Compare number of inputs and outputs, and attributes, of all nodes with the definitions of their operators.

    To be called before any inference of shapes by the onnx package, which leaves the process on some wrong attributes.

    Raises:
        ErrorList, N2D2Error: E314 for the nodes that are not as their operators are defined.
    """
    context = onnx.checker.C.CheckerContext()
    context.ir_version = proto.ir_version
    imports = {entry.domain: entry.version for entry in proto.opset_import}
    wrong = []
    for node in _nodes(proto.graph.node):
        context.opset_imports = imports | {"": definition_version(node.op_type, opset)}
        text = _misfit(node, context)
        if text is not None:
            wrong.append(misfit_error(node, path, text))
    ErrorList.raise_if(wrong)


def definition_version(operator: str, opset: int) -> int:
    """The operator set whose definition counts: the model's; where that lacks the operator or deprecates it, the last one
    before that does not, or the first one after. Roundings have an axis, as those of the expansions do."""
    opset = max(opset, _ROUNDING_BY_AXIS) if operator in ("QuantizeLinear", "DequantizeLinear") else opset
    versions = _definitions().get(operator, [])
    if not versions or (onnx.defs.has(operator, opset, "") and not onnx.defs.get_schema(operator, opset, "").deprecated):
        return opset
    return next((version for version in reversed(versions) if version <= opset), versions[0])


@cache
def _definitions() -> dict[str, list[int]]:
    """The operator sets that define each operator without deprecating it, in order."""
    found: dict[str, list[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and not schema.deprecated:
            found.setdefault(schema.name, []).append(schema.since_version)
    return {name: sorted(versions) for name, versions in found.items()}


def check_bounds(proto: onnx.ModelProto, path: str) -> None:
    """Check the axes, counts and equations of all nodes, those of functions included, as `check_structure` does.

    The rule of shapes of Einsum does not end on an equation whose dots are not an ellipsis.

    Raises:
        ErrorList, N2D2Error: E314.
    """
    bodies = [proto.graph.node, *(function.node for function in proto.functions)]
    wrong = [
        misfit_error(node, path, f"its attribute {attribute.name} is {attribute.i or attribute.s}")
        for nodes in bodies
        for node in _nodes(nodes)
        for attribute in node.attribute
        if (attribute.name in _BOUNDS and not _BOUNDS[attribute.name][0] <= attribute.i <= _BOUNDS[attribute.name][1])
        or (attribute.name == "equation" and not _EQUATION.fullmatch(attribute.s.decode(errors="replace")))
    ]
    ErrorList.raise_if(wrong)


def _nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """The nodes, and those of the graphs within them."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _nodes(graph.node)


def _misfit(proto: onnx.NodeProto, context: Any) -> str | None:
    if any(a.type in (a.GRAPH, a.GRAPHS) for a in proto.attribute):
        return None  # its graphs would be checked without the names around them
    node = onnx.NodeProto()
    node.CopyFrom(proto)
    node.domain = "" if proto.domain == "ai.onnx" else proto.domain
    try:
        onnx.checker.check_node(node, context)
    except onnx.checker.ValidationError as error:
        text = " ".join(str(error).split())
        return None if any(phrase in text for phrase in TOLERATED) else text.split(" ==> ")[0]
    for attribute in node.attribute:
        if attribute.name == "num_outputs" and attribute.i != len(node.output):
            return f"its num_outputs are {attribute.i}, it has {len(node.output)} outputs"
        if not all(map(isfinite, (attribute.f, *attribute.floats))) and node.op_type not in _INFINITE:
            return f"its attribute {attribute.name} is not finite"
        if attribute.name in _TYPES and attribute.i not in TensorProto.DataType.values()[_TYPES[attribute.name] :]:
            return f"its attribute {attribute.name} is {attribute.i}, which is not an element type"
        words = _WORDS.get(attribute.name) or _WORDS.get(f"{node.op_type}.{attribute.name}")
        text = attribute.s.decode(errors="replace")
        if words and text not in words:
            return f"its attribute {attribute.name} is '{text}', not {' or '.join(words)}"
    return None


def misfit_error(proto: onnx.NodeProto, path: str, text: str) -> N2D2Error:
    return N2D2Error(
        "E314",
        f"node {proto.op_type} does not conform to its operator ({text[:200]})",
        where=Location(path, None, next(filter(None, proto.output), proto.name)),
        remedy="export the model again, or check it with onnx.checker",
    )


def check_texts(message: object) -> str | None:
    """The first text of a protobuf message that is not UTF-8, shown with escapes; None when all are."""
    for field, value in message.ListFields():  # type: ignore[attr-defined]
        if field.type not in (field.TYPE_STRING, field.TYPE_MESSAGE):
            continue
        for one in value if _is_list(value) else (value,):
            if field.type == field.TYPE_MESSAGE:
                found = check_texts(one)
                if found is not None:
                    return found
            elif not isinstance(one, str):
                return one.decode("ascii", "backslashreplace")
    return None


def _is_list(value: object) -> bool:
    return not isinstance(value, (str, bytes)) and hasattr(value, "__len__")
