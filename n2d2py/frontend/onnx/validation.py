"""Check of a node against its operator definition in the ONNX standard, before conversion.

The onnx package defines the number and types of inputs, the attributes and their types, and shape inference. The check of the
whole model (model.py) stops at a tolerated unknown operator, and knows no shapes. Here each node is checked with the shapes of
its inputs. Calls of the onnx package that may hang or crash on a crafted file are tried in a resource-limited subprocess.
"""

import os
import pickle
import re
import signal
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from math import isfinite
from tempfile import TemporaryFile
from typing import TypeVar

import onnx
from google.protobuf.message import Message
from onnx import TensorProto

from n2d2py.contracts.onnx.skeleton import has_graphs, walk_nodes
from n2d2py.errors import ErrorList, Location, N2D2Error

TOLERATED = (
    "No Op registered",
    "No opset import for domain",
    "Field 'shape' of 'type' is required but missing",
    "is deprecated in domain_version",
)
"""Findings of the standard's checker that the import accepts or reports with a better message."""

_INFINITE = ("Clip", "Constant", "Pad")
"""Operators whose attributes may be infinite."""
_TYPES = {"to": 1, "dtype": 1, "stash_type": 1, "output_datatype": 1, "output_dtype": 0}
"""Attributes with an element type, and their smallest valid value; 0 means absent."""
_BOUNDS = {"axis": (-64, 64), "batch_dims": (0, 64), "num_outputs": (0, 1 << 16)}
"""Range of some attributes: outside, ONNX shape inference reads out of bounds or exhausts the memory."""
_TERM = r"[A-Za-z ]*(\.\.\.[A-Za-z ]*)?"
_EQUATION = re.compile(rf"{_TERM}(,{_TERM})*(->{_TERM})?")
_STRING_VALUES = {
    "auto_pad": ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"),
    "Gelu.approximate": ("none", "tanh"),
    "BitShift.direction": ("LEFT", "RIGHT"),
    "DepthToSpace.mode": ("DCR", "CRD"),
    "SpaceToDepth.mode": ("DCR", "CRD"),
}
"""Valid values of string attributes, for one operator or for all; converters check other attributes."""
_ROUNDING_BY_AXIS = 13
"""The first opset whose QuantizeLinear and DequantizeLinear have an axis."""


def check_structure(proto: onnx.ModelProto, path: str, opset: int) -> None:
    """Check the number of inputs and outputs, and the attributes, of all nodes against their operator definitions.

    Call it before shape inference: the onnx package ends the process on some invalid attributes.

    Raises ErrorList, N2D2Error: E314 for the nodes that violate their definition.
    """
    context = onnx.checker.C.CheckerContext()
    context.ir_version = proto.ir_version
    imports = {entry.domain: entry.version for entry in proto.opset_import}
    wrong = []
    for node in walk_nodes(proto.graph.node):
        context.opset_imports = imports | {"": definition_version(node.op_type, opset)}
        try:
            if not has_graphs(node):  # its graphs would be checked without the names around them
                onnx.checker.check_node(node, context)
        except onnx.checker.ValidationError as error:
            text = " ".join(str(error).split())
            if not any(phrase in text for phrase in TOLERATED):
                wrong.append(misfit_error(node, path, text.split(" ==> ")[0]))
    ErrorList.raise_if(wrong)


def definition_version(operator: str, opset: int) -> int:
    """Return the model's opset; for an operator that is missing or deprecated there, the last valid one before, or the first
    after. QuantizeLinear and DequantizeLinear always have an axis, as in the expansions."""
    opset = max(opset, _ROUNDING_BY_AXIS) if operator in ("QuantizeLinear", "DequantizeLinear") else opset
    versions = _definitions().get(operator, [])
    if not versions or (onnx.defs.has(operator, opset, "") and not onnx.defs.get_schema(operator, opset, "").deprecated):
        return opset
    return next((version for version in reversed(versions) if version <= opset), versions[0])


@cache
def _definitions() -> dict[str, list[int]]:
    """Return the opsets that define each operator without deprecating it, in order."""
    definitions: dict[str, list[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and not schema.deprecated:
            definitions.setdefault(schema.name, []).append(schema.since_version)
    return {name: sorted(versions) for name, versions in definitions.items()}


def check_attributes(proto: onnx.ModelProto, path: str) -> None:
    """Check the values of attributes of all nodes of the standard, including functions, as `check_structure` does.

    Shape inference of Einsum does not terminate on an equation with dots other than an ellipsis.
    """
    wrong = []
    for node in walk_nodes([*proto.graph.node, *(node for function in proto.functions for node in function.node)]):
        texts = (_find_wrong_value(node, attribute) for attribute in node.attribute if not node.domain)
        wrong += [misfit_error(node, path, f"its attribute {text}") for text in texts if text][:1]
    ErrorList.raise_if(wrong)


def _find_wrong_value(node: onnx.NodeProto, attribute: onnx.AttributeProto) -> str | None:
    name, number, text = attribute.name, attribute.i, attribute.s.decode(errors="replace")
    low, high = _BOUNDS.get(name, (number, number))
    words = _STRING_VALUES.get(name) or _STRING_VALUES.get(f"{node.op_type}.{name}")
    if attribute.ref_attr_name:
        return None
    if name == "num_outputs" and number != len(node.output):
        return f"num_outputs is {number}, it has {len(node.output)} outputs"
    if not low <= number <= high or (name in _TYPES and number not in TensorProto.DataType.values()[_TYPES[name] :]):
        return f"{name} is {number}"
    if not all(map(isfinite, (attribute.f, *attribute.floats))) and node.op_type not in _INFINITE:
        return f"{name} is not finite"
    if (words and text not in words) or (name == "equation" and not _EQUATION.fullmatch(text)):
        return f"{name} is '{text}'" + (f", not {' or '.join(words)}" if words else "")
    return None


def misfit_error(node: onnx.NodeProto, path: str, text: str) -> N2D2Error:
    """Return E314 for a node that violates its operator definition; `text` says how."""
    what = f"node {node.op_type} does not conform to its operator ({text[:200]})"
    where = Location(path, None, next(filter(None, node.output), node.name))
    return N2D2Error("E314", what, where=where, remedy="export the model again, or check it with onnx.checker")


def check_texts(message: Message, path: str) -> None:
    """Raise E302 if a string of a protobuf message is not UTF-8."""
    for field, value in message.ListFields():
        if field.type not in (field.TYPE_STRING, field.TYPE_MESSAGE):
            continue
        for one in (value,) if isinstance(value, (str, bytes, Message)) else value:
            if isinstance(one, Message):
                check_texts(one, path)
            elif isinstance(one, bytes):
                what = f"its text '{one.decode('ascii', 'backslashreplace')[:60]}' is not UTF-8"
                raise N2D2Error("E302", what, where=Location(path), remedy="export or download the model again")


# ---- trial runs in a subprocess -----------------------------------------------------------------
_SECONDS = 10
_BYTES = 4 << 30
T = TypeVar("T")


def run_limited(call: Callable[[], T], what: str, where: Location) -> T:
    """Return what `call` returns in a forked process; without fork or after an exception there, call it here.

    Raises N2D2Error: E317 the call exceeds 10 seconds or 4 GiB, or ends the process.
    """
    if not hasattr(os, "fork"):
        return call()
    with TemporaryFile() as results, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads: the copy has none, and needs none
        child = os.fork()
        if child == 0:
            with suppress(Exception):
                _set_limits()
                pickle.dump(call(), results)
                results.flush()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            text = f"shape inference of {what} exceeds {_SECONDS} seconds or {_BYTES >> 30} GiB"
            raise N2D2Error("E317", text, where=where, remedy="export the model again; the file may be malicious")
        results.seek(0)
        with suppress(EOFError, pickle.UnpicklingError):
            return pickle.load(results)
    return call()


def _set_limits() -> None:
    import resource

    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_SECONDS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError), open("/proc/self/statm", "rb") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + _BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
