"""Checks a node against the definition of its operator in the ONNX standard, before a converter reads it.

The onnx package holds the definitions: number and types of inputs, attributes and their types, and the rules by which
shapes follow from shapes. The check of the whole model (model.py) ends early where it tolerates an unknown operator, and
knows no shapes; here each node is checked with the shapes that its inputs have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from math import isfinite, prod
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, TypeProto, helper, numpy_helper, shape_inference

from n2d2py.errors import ErrorList, Location, N2D2Error
from n2d2py.frontend.onnx.registry import Unsupported
from n2d2py.graph.graph import check_size
from n2d2py.graph.shapes import MAX_TENSOR, Shape

if TYPE_CHECKING:
    from n2d2py.frontend.onnx.builder import Builder

__all__ = ["TOLERATED", "Validator", "check_bounds", "check_structure", "check_texts"]

TOLERATED = (
    "No Op registered",
    "No opset import for domain",
    "Field 'shape' of 'type' is required but missing",
    "is deprecated in domain_version",
)
"""What the check of the standard refuses although the import lists it better, or does not need it."""

_TYPE = TensorProto.DataType
_Parameter = tuple[str, "onnx.defs.OpSchema.FormalParameter"]
"""An input that is given, and its declaration."""
_SHAPING = 1 << 12
"""Elements of the largest constant that the shape of a result depends on."""
_INFINITE = ("Clip", "Constant", "Pad")
"""Operators whose attributes may be infinite."""
_TYPES = {"to": 1, "dtype": 1, "stash_type": 1, "output_datatype": 1, "output_dtype": 0}
"""Attributes that name a type of elements, and the first that they may: 0 stands for none."""
_SINGLE = {"Clip": (1, 2), "CumSum": (1,), "Dropout": (1, 2), "OneHot": (1,), "Range": (0, 1, 2), "TopK": (1,), "Trilu": (1,)}
"""Inputs that hold one value, which the rules of shapes do not look at."""
_BOUNDS = {"axis": (-64, 64), "batch_dims": (0, 64), "num_outputs": (0, 1 << 16)}
"""Least and greatest value of attributes of some operators, of any number of axes: their rules of shapes leave the memory, or
fill it, on others."""
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
_WILD = 1 << 24
"""Numbers beyond it make no sense in shapes."""
_CLASSES = {"bool": "b", "string": "s", "complex64": "c", "complex128": "c"}


def check_structure(proto: onnx.ModelProto, path: str, opset: int) -> None:
    """Compares number of inputs and outputs, and attributes, of all nodes with the definitions of their operators.

    To be called before any inference of shapes by the onnx package, which leaves the process on some wrong attributes.

    Raises:
        ErrorList, N2D2Error: E314 for the nodes that are not as their operators are defined.
    """
    context = onnx.checker.C.CheckerContext()
    context.ir_version = proto.ir_version
    imports = {entry.domain: entry.version for entry in proto.opset_import}
    wrong = []
    for node in _nodes(proto.graph.node):
        context.opset_imports = imports | {"": _version(node.op_type, opset)}
        text = _misfit(node, context)
        if text is not None:
            wrong.append(_error(node, path, text))
    ErrorList.raise_if(wrong)


def _version(operator: str, opset: int) -> int:
    """The operator set whose definition counts: the model's; where that lacks the operator or deprecates it, the last one
    before that does not, or the first one after. Roundings have an axis, as those that `qoperators` makes do."""
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
    """Checks the axes and counts of all nodes, those of functions included, as `check_structure` does.

    Raises:
        ErrorList, N2D2Error: E314.
    """
    bodies = [proto.graph.node, *(function.node for function in proto.functions)]
    wrong = [
        _error(node, path, f"its attribute {attribute.name} is {attribute.i}")
        for nodes in bodies
        for node in _nodes(nodes)
        for attribute in node.attribute
        if attribute.name in _BOUNDS and not _BOUNDS[attribute.name][0] <= attribute.i <= _BOUNDS[attribute.name][1]
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
        if attribute.name in _TYPES and attribute.i not in _TYPE.values()[_TYPES[attribute.name] :]:
            return f"its attribute {attribute.name} is {attribute.i}, which is no type of elements"
        words = _WORDS.get(attribute.name) or _WORDS.get(f"{node.op_type}.{attribute.name}")
        text = attribute.s.decode(errors="replace")
        if words and text not in words:
            return f"its attribute {attribute.name} is '{text}', not {' or '.join(words)}"
    return None


def _error(proto: onnx.NodeProto, path: str, text: str) -> N2D2Error:
    return N2D2Error(
        "E314",
        f"the node {proto.op_type} is not as the operator is defined ({text[:200]})",
        where=Location(path, None, next(filter(None, proto.output), proto.name)),
        remedy="export the model again, or look at it with onnx.checker",
    )


class Validator:
    """Checks types and shapes at the nodes of one model, with what `builder` knows of their inputs.

    `shapes` holds those of the results of all nodes that were checked, as far as they are known (batch 1).
    """

    def __init__(self, builder: Builder):
        self._builder = builder
        self.shapes: dict[str, Shape] = {}

    def check(self, proto: onnx.NodeProto) -> N2D2Error | None:
        """Compares types and shapes with the definition of the operator.

        Returns:
            What is wrong with types or shapes (E314), or None; the converter may say it better.

        Raises:
            N2D2Error: E314 where one value is wanted, or where numbers make no sense; E240 for a result beyond what a
                tensor may have.
            Unsupported: for such a constant.
        """
        node = onnx.NodeProto()
        node.CopyFrom(proto)
        node.domain = "" if proto.domain == "ai.onnx" else proto.domain
        has_graphs = any(a.type in (a.GRAPH, a.GRAPHS) for a in node.attribute)
        if has_graphs or node.domain or not onnx.defs.has(node.op_type):
            return None
        schema = onnx.defs.get_schema(node.op_type, _version(node.op_type, self._builder.model.opset), "")
        for index in _SINGLE.get(node.op_type, ()):
            name = node.input[index] if index < len(node.input) else ""
            if name in self._builder.constants and self._builder.constants[name].size != 1:
                raise self._error(proto, f"its input '{name}' is no single value")
        parameters = list(_parameters(proto, schema))
        wrong = self._wrong_types(proto, parameters)
        return wrong or self._wrong_shapes(node, schema, parameters)

    def _error(self, proto: onnx.NodeProto, text: str) -> N2D2Error:
        return _error(proto, self._builder.model.path, text)

    # ---- types ----------------------------------------------------------------------------
    def _wrong_types(self, proto: onnx.NodeProto, parameters: list[_Parameter]) -> N2D2Error | None:
        """Constants, and tensors of fixed types, have types that the operator takes, the same where they must be."""
        same: dict[str, tuple[str, str]] = {}
        for name, parameter in parameters:
            kind, allowed = self._type(name), _allowed(parameter)
            if kind is None and self._is_real(name) and "float" not in allowed:
                return self._error(proto, f"its input '{name}' holds real numbers, not {' or '.join(allowed)}")
            if kind is None:
                continue
            if kind not in allowed and _class(kind) not in {_class(text) for text in allowed}:
                return self._error(proto, f"its input '{name}' holds {kind}, not {' or '.join(allowed)}")
            if not parameter.is_homogeneous:
                continue
            other, first = same.setdefault(parameter.type_str, (kind, name))
            of_network = any(p.type_str == parameter.type_str and self._builder.is_tensor(n) for n, p in parameters)
            if kind == "string" and of_network:
                return self._error(proto, f"its input '{name}' holds texts")
            if _class(kind) != _class(other) or (_class(kind) == "i" and kind != other):
                return self._error(proto, f"its inputs '{first}' of {other} and '{name}' of {kind} must be of one type")
        return None

    def _type(self, name: str) -> str | None:
        """The type of an ONNX tensor as the standard calls it; None for real numbers of the network, and where unknown."""
        builder = self._builder
        if name in builder.constants:
            dtype = builder.constants[name].dtype
            return "string" if dtype.kind in "OUS" else _TYPE.Name(helper.np_dtype_to_tensor_dtype(dtype)).lower()
        return (builder.kind_of(name) or None) if builder.is_tensor(name) else None

    def _is_real(self, name: str) -> bool:
        """Whether a tensor of the network without a type holds real numbers, and not those that integers of the file stand for."""
        builder = self._builder
        of_integers = any(given.element_type in (TensorProto.INT8, TensorProto.UINT8) for given in builder.model.inputs)
        return builder.is_tensor(name) and name not in builder.integers and not of_integers

    # ---- shapes ---------------------------------------------------------------------------
    def _wrong_shapes(self, node: onnx.NodeProto, schema: onnx.defs.OpSchema, parameters: list[_Parameter]) -> N2D2Error | None:
        """Infers the shapes of the results; the widths of types play no part."""
        builder = self._builder
        types: dict[str, TypeProto] = {}
        data: dict[str, TensorProto] = {}
        chosen: dict[str, str] = {}
        for name, parameter in sorted(parameters, key=lambda pair: pair[0] not in builder.constants):
            allowed = _allowed(parameter)
            kind = self._type(name) or chosen.get(parameter.type_str) or ("uint8" if "uint8" in allowed else allowed[0])
            if _class(kind) == "f" or (self._type(name) is None and "float" in allowed and parameter.type_str not in chosen):
                kind = "float" if "float" in allowed else kind
            chosen.setdefault(parameter.type_str, kind)
            element = _TYPE.Value(kind.upper())
            if name in builder.constants:
                array = builder.constants[name]
                types[name] = helper.make_tensor_type_proto(element, array.shape)
                if array.size <= _SHAPING and kind != "string":
                    data[name] = numpy_helper.from_array(
                        np.asarray(array).astype(np.float32) if kind == "float" else np.asarray(array), name
                    )
            elif builder.is_tensor(name):
                types[name] = helper.make_tensor_type_proto(element, builder.dims_of(name))
            else:
                return None
        try:
            results = shape_inference.infer_node_outputs(
                schema,
                node,
                types,
                data,
                opset_imports=[helper.make_opsetid("", builder.model.opset)],
                ir_version=max(builder.model.proto.ir_version, 4),
            )
        except (shape_inference.InferenceError, onnx.checker.ValidationError) as error:
            wrong = self._error(node, " ".join(str(error).split()))
            if _is_wild(node, data.values()):
                raise wrong from None
            return None if builder.is_batched else wrong
        for name, result in results.items():
            known = result.tensor_type.HasField("shape") and all(d.HasField("dim_value") for d in result.tensor_type.shape.dim)
            dims = [dim.dim_value if dim.HasField("dim_value") else 1 for dim in result.tensor_type.shape.dim]
            if any(size < 0 for size in dims):
                return self._error(node, f"its result '{name}' has the shape {dims}")
            if prod(dims) > MAX_TENSOR and all(given in builder.constants for given in types):
                raise Unsupported(f"its constant value would have {prod(dims):,} elements", "check the shapes in the model")
            if prod(dims) > MAX_TENSOR:
                check_size(f"the output of {node.op_type} '{name}'", (1, *dims), builder.model.place(name))
            if known and len(dims) >= 2 and min(dims[1:]) > 0:
                self.shapes[name] = (1, *dims[1:])
        return None


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


def _parameters(proto: onnx.NodeProto, schema: onnx.defs.OpSchema) -> Iterator[_Parameter]:
    """The inputs that are given, with their declarations; the last declaration may stand for several."""
    declared = schema.inputs
    for index, name in enumerate(proto.input):
        if name and declared:
            yield name, declared[min(index, len(declared) - 1)]


def _is_wild(node: onnx.NodeProto, data: Iterable[TensorProto]) -> bool:
    """Whether an attribute or a constant is so large that a converter could loop or fill the memory over it."""
    attributes = (number for a in node.attribute for number in (a.i, *a.ints))
    constants = (number for tensor in data for number in np.abs(numpy_helper.to_array(tensor).astype(np.float64)).reshape(-1))
    return any(abs(number) > _WILD for numbers in (attributes, constants) for number in numbers)


def _allowed(parameter: onnx.defs.OpSchema.FormalParameter) -> list[str]:
    """The types of elements of a parameter, sorted: float of tensor(float) or seq(tensor(float))."""
    return sorted({text.rpartition("(")[2].rstrip(")") for text in parameter.types})


def _class(kind: str) -> str:
    """Numbers, whole numbers, truth values and texts are no substitute for each other; their widths are."""
    return _CLASSES.get(kind) or ("i" if "int" in kind else "f")
