"""Check of each node's types and shapes against its operator definition."""

from collections.abc import Iterable, Mapping
from functools import partial
from math import prod

import numpy as np
import onnx
from onnx import TensorProto, TypeProto, helper, numpy_helper, shape_inference

from n2d2py.contracts.onnx.skeleton import has_graphs
from n2d2py.contracts.onnx.tensors import Tensors, Unsupported, element_name
from n2d2py.errors import Location, N2D2Error
from n2d2py.frontend.onnx.folding import is_foldable
from n2d2py.frontend.onnx.validation import definition_version, misfit_error, run_limited
from n2d2py.graph.graph import check_size
from n2d2py.graph.shapes import MAX_TENSOR, Shape

_Parameter = tuple[str, "onnx.defs.OpSchema.FormalParameter"]
"""An input that is present, and its declaration."""
_SCALARS = {"Clip": (1, 2), "CumSum": (1,), "Dropout": (1, 2), "OneHot": (1,), "Range": (0, 1, 2), "TopK": (1,), "Trilu": (1,)}
"""Inputs with a single value, which shape inference does not check."""
_MAX_SHAPE_SIZE = 1 << 12
"""Largest number of elements of a constant that determines a result shape."""
_MAX_GROWTH = 1 << 27
"""Bytes of the constants folded for a small file. They grow by 16 for each stored element."""
_COSTS = dict.fromkeys(("DFT", "GridSample", "OneHot", "Resize", "RoiAlign", "STFT", "Upsample"), 8) | {"Concat": 1}
"""Bytes that computing a constant takes for each byte of the result, temporary ones included; 2 for other operators."""
_MAX_PLAUSIBLE = 1 << 24
"""Largest plausible number in shapes."""
_CLAMPED = ("Slice",)
"""Operators whose shape inference clamps any number: exporters write the largest integer for "to the end"."""
_CLASSES = {"bool": "b", "string": "s", "complex64": "c", "complex128": "c"}


class Validator:
    """Checker of node types and shapes; `tensors` and `constants` describe the inputs of each node.

    `shapes` has the known result shapes of all checked nodes (batch 1), `empty` those of results without elements.
    """

    def __init__(self, tensors: Tensors, constants: Mapping[str, np.ndarray]):
        self._tensors, self._constants = tensors, constants
        self._room = _MAX_GROWTH + 16 * sum(array.size for array in constants.values())
        self.shapes: dict[str, Shape] = {}
        self.empty: dict[str, Shape] = {}

    def check(self, node: onnx.NodeProto) -> N2D2Error | None:
        """Check types and shapes against the operator definition.

        Returns:
            The type or shape error (E314), or None; the converter may have a better message.

        Raises:
            N2D2Error: E314 for several values of one, constants that do not fit, implausible numbers; E240 for too large a result.
            Unsupported: for a constant above that limit, more than all constants may take together, or that cannot be computed.
        """
        if has_graphs(node) or node.domain or not onnx.defs.has(node.op_type):
            return None
        schema = onnx.defs.get_schema(node.op_type, definition_version(node.op_type, self._tensors.model.opset), "")
        for index in _SCALARS.get(node.op_type, ()):
            name = node.input[index] if index < len(node.input) else ""
            if name in self._constants and self._constants[name].size != 1:
                raise self._error(node, f"its input '{name}' is not a single value")
        # the last declaration may be variadic
        parameters = [(n, schema.inputs[min(index, len(schema.inputs) - 1)]) for index, n in enumerate(node.input) if n]
        misfit = self._type_error(node, parameters) or self._shape_error(node, schema, parameters)
        if misfit is not None and all(name in self._constants for name, _ in parameters):
            raise misfit  # its value would be computed before the error is reported
        return misfit

    def _error(self, node: onnx.NodeProto, text: str) -> N2D2Error:
        return misfit_error(node, self._tensors.model.path, text)

    # ---- types ----------------------------------------------------------------------------
    def _type_error(self, node: onnx.NodeProto, parameters: list[_Parameter]) -> N2D2Error | None:
        """Return the error if constants or typed tensors violate their declared types, or differ where these must agree."""
        same: dict[str, tuple[str, str]] = {}
        for name, parameter in parameters:
            kind, allowed = self._type(name), _allowed_types(parameter)
            if kind is None and self._is_real(name) and "float" not in allowed:
                return self._error(node, f"its input '{name}' contains real numbers, not {' or '.join(allowed)}")
            if kind is None:
                continue
            if kind not in allowed and _class(kind) not in {_class(text) for text in allowed}:
                return self._error(node, f"its input '{name}' contains {kind}, not {' or '.join(allowed)}")
            if not parameter.is_homogeneous:
                continue
            other, first = same.setdefault(parameter.type_str, (kind, name))
            of_network = any(p.type_str == parameter.type_str and self._tensors.is_tensor(n) for n, p in parameters)
            if kind == "string" and of_network:
                return self._error(node, f"its input '{name}' contains strings")
            if _class(kind) != _class(other) or (_class(kind) == "i" and kind != other):
                return self._error(node, f"its inputs '{first}' of {other} and '{name}' of {kind} must have the same type")
        return None

    def _type(self, name: str) -> str | None:
        """Return the ONNX type name of a tensor; None if it is unknown, or for a real tensor of the network."""
        if name in self._constants:
            dtype = self._constants[name].dtype
            return "string" if dtype.kind in "OUS" else element_name(helper.np_dtype_to_tensor_dtype(dtype)).lower()
        return (self._tensors.kind_of(name) or None) if self._tensors.is_tensor(name) else None

    def _is_real(self, name: str) -> bool:
        """True if an untyped tensor of the network has real numbers that are not dequantized integers of the file."""
        tensors = self._tensors
        of_integers = any(value.element_type in (TensorProto.INT8, TensorProto.UINT8) for value in tensors.model.inputs)
        return tensors.is_tensor(name) and name not in tensors.integers and not of_integers

    # ---- shapes ---------------------------------------------------------------------------
    def _shape_error(self, node: onnx.NodeProto, schema: onnx.defs.OpSchema, parameters: list[_Parameter]) -> N2D2Error | None:
        tensors, described = self._tensors, self._describe_inputs(node, parameters)
        if described is None:
            return None
        types, data = described
        opsets, version = [helper.make_opsetid("", tensors.model.opset)], max(tensors.model.proto.ir_version, 4)
        infer = partial(shape_inference.infer_node_outputs, schema, node, types, data, opset_imports=opsets, ir_version=version)
        is_wild, is_constant = _has_implausible_numbers(node, data.values()), all(name in self._constants for name in types)
        if (is_wild and node.op_type not in _CLAMPED) or any(a.name == "equation" for a in node.attribute):
            infer = partial(run_limited, infer, f"the node {node.op_type}", Location(tensors.model.path, None, node.output[0]))
        try:
            results = infer()
        except (shape_inference.InferenceError, onnx.checker.ValidationError) as error:
            text = " ".join(str(error).split())
            if is_constant and is_foldable(node):
                raise Unsupported(f"its constant value cannot be computed ({text[:80]})") from None
            if is_wild:
                raise self._error(node, text) from None
            return None if tensors.is_batched else self._error(node, text)
        for result in results.values() if is_constant else ():
            self._reserve(node, result, [self._constants[each] for each in types])
        errors = (self._keep_shape(node, name, result) for name, result in results.items())
        return next((error for error in errors if error is not None), None)

    def _reserve(self, node: onnx.NodeProto, result: TypeProto, inputs: list[np.ndarray]) -> None:
        """Take the bytes of a constant result from those of all constants, before the result is computed."""
        kind = result.tensor_type
        sizes = [dim.dim_value for dim in kind.shape.dim if dim.HasField("dim_value")]
        count, largest = prod(sizes), max((array.size for array in inputs), default=1)
        if not kind.HasField("shape") or len(sizes) < len(kind.shape.dim):
            count = count * largest if node.op_type in ("NonZero", "NonMaxSuppression") else largest  # else a selection
        floats = [array.itemsize for array in inputs if array.dtype.kind == "f"]
        size = count * max(helper.tensor_dtype_to_np_dtype(kind.elem_type or TensorProto.FLOAT).itemsize, *floats, 1)
        windows = {a.name: prod(abs(number) + (a.name == "pads") for number in a.ints) for a in node.attribute}
        work = _COSTS.get(node.op_type, 2) * (size * windows.get("kernel_shape", 1) + largest * windows.get("pads", 0))
        is_computed = is_foldable(node) and node.op_type != "Constant"
        if min(sizes, default=0) < 0 or count > MAX_TENSOR or work * is_computed > self._room:
            raise Unsupported(f"its constant value would have {count:,} elements, or need too much memory", "check the shapes")
        self._room -= size * is_computed

    def _describe_inputs(
        self, node: onnx.NodeProto, parameters: list[_Parameter]
    ) -> tuple[dict[str, TypeProto], dict[str, TensorProto]] | None:
        """Return types and small constants of the inputs by name; None if one of them is unknown."""
        tensors = self._tensors
        types: dict[str, TypeProto] = {}
        data: dict[str, TensorProto] = {}
        kinds: dict[str, str] = {}
        for name, parameter in sorted(parameters, key=lambda pair: pair[0] not in self._constants):
            allowed = _allowed_types(parameter)
            kind = self._type(name) or kinds.get(parameter.type_str) or ("uint8" if "uint8" in allowed else allowed[0])
            if _class(kind) == "f" or (self._type(name) is None and "float" in allowed and parameter.type_str not in kinds):
                kind = "float"
            kinds.setdefault(parameter.type_str, kind)
            element = TensorProto.DataType.Value(kind.upper())
            if name in self._constants:
                array = self._constants[name]
                if node.op_type == "Range":  # ONNX's own definition of AffineGrid gives it lists of one
                    array = array.reshape(())
                types[name] = helper.make_tensor_type_proto(element, array.shape)
                if array.size <= _MAX_SHAPE_SIZE and kind != "string":
                    data[name] = numpy_helper.from_array(array.astype(np.float32) if kind == "float" else array, name)
            elif tensors.is_tensor(name):
                types[name] = helper.make_tensor_type_proto(element, tensors.dims_of(name))
            else:
                return None
        return types, data

    def _keep_shape(self, node: onnx.NodeProto, name: str, result: TypeProto) -> N2D2Error | None:
        known = all(dim.HasField("dim_value") for dim in result.tensor_type.shape.dim)
        dims = [dim.dim_value if dim.HasField("dim_value") else 1 for dim in result.tensor_type.shape.dim]
        if any(size < 0 for size in dims):
            return self._error(node, f"its result '{name}' has shape {dims}")
        if prod(dims):
            check_size(f"the output of {node.op_type} '{name}'", (1, *dims), self._tensors.model.place(name))
        if known and len(dims) >= 2 and min(dims[1:]) > 0:
            self.shapes[name] = (1, *dims[1:])
        elif known and dims and dims[0] and not all(dims):
            self.empty[name] = tuple(dims)
        return None


def _has_implausible_numbers(node: onnx.NodeProto, data: Iterable[TensorProto]) -> bool:
    """True if an attribute or a constant is so large that a converter could loop or exhaust the memory."""
    if any(abs(number) > _MAX_PLAUSIBLE for a in node.attribute for number in (a.i, *a.ints)):
        return True
    return any((np.abs(numpy_helper.to_array(one).astype(np.float64)) > _MAX_PLAUSIBLE).any() for one in data)


def _allowed_types(parameter: onnx.defs.OpSchema.FormalParameter) -> list[str]:
    """Return the element types of a parameter, sorted: float of tensor(float) or seq(tensor(float))."""
    return sorted({text.rpartition("(")[2].rstrip(")") for text in parameter.types})


def _class(kind: str) -> str:
    """Return the class of a type; number, integer, Boolean and string are not interchangeable, other widths are."""
    return _CLASSES.get(kind) or ("i" if "int" in kind else "f")
