"""ONNX tensors during the construction of the Graph: as images or vectors, and as arrays of any rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from n2d2py.contracts.onnx.skeleton import tensors_read
from n2d2py.contracts.operator import make_operator
from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph, Node, Shape, Tensor, dims_text
from n2d2py.graph.shapes import MAX_TENSOR

if TYPE_CHECKING:
    from n2d2py.frontend.onnx.model import OnnxModel

_MAX_POSITIONS = 1 << 22
"""Largest number of positions along one axis."""

_KINDS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


class Unsupported(Exception):
    """Refusal of a node: `reason` and `remedy` are clauses, the same for every affected node."""

    def __init__(self, reason: str, remedy: str | None = None):
        self.reason = reason
        self.remedy = remedy
        super().__init__(reason)


class MixesSamples(Unsupported):
    """Refusal of a node that mixes the samples of a batch."""


class MergesBatchAxis(MixesSamples):
    """Refusal of an operator on arrays, whose elements have no separate batch axis, in a model of a fixed batch size."""


@contextmanager
def refuse_misfits() -> Iterator[None]:
    """Refuse a node whose inputs, attributes or subgraphs do not match its operator."""
    try:
        yield
    except (ValueError, IndexError, KeyError, TypeError, ZeroDivisionError) as error:
        raise Unsupported("its inputs, attributes or body do not fit the operator", "export the model again") from error


def constant_kind(array: np.ndarray) -> str:
    """Return the kind of a constant: "" for floating point. Raise Unsupported for strings and other types."""
    name = array.dtype.name
    if name in _KINDS:
        return name
    if name in ("float16", "float32", "float64", "bfloat16"):
        return ""
    what = "texts" if name == "object" else f"values of type {name}"
    raise Unsupported(f"it holds {what} instead of numbers", "export the model again")


@dataclass(frozen=True)
class Value:
    """A tensor: its ONNX dimensions, its kind, and either its vector, its constant value or its image.

    An image is a graph tensor (1, C, H, W) or of lower rank, with the same dimensions as in ONNX.
    """

    dims: Shape
    kind: str
    tensor: str | None = None
    constant: np.ndarray | None = None
    image: str | None = None

    @property
    def size(self) -> int:
        return prod(self.dims)

    @property
    def is_constant(self) -> bool:
        return self.constant is not None


class Tensors:
    """The graph under construction, and the known facts about each ONNX tensor.

    Attributes:
        constants: known ONNX tensors by name.
        names: ONNX tensor name -> graph tensor of the same shape, an image or a vector with batch 1.
        arrays: ONNX tensor name -> graph tensor (1, E) with its elements in row-major order.
        dims: ONNX tensor name -> its shape, for the tensors in `arrays`.
        whole: True if the first axis of inputs is part of a sample.
        is_batched: True if the first axis of inputs has a fixed size above 1: several samples.
        read: ONNX tensors with a consumer, and the model's outputs.
        weight_scales: scale of each element of a constant that comes from a DequantizeLinear.
        plain_integers: True if the network has no static scales: integers of the file are of a fixed type.
        integers: ONNX tensors of quantized integers (QuantizeLinear); the graph has the dequantized values.
    """

    def __init__(self, model: OnnxModel, graph: Graph, whole: bool, plain_integers: bool):
        self.model = model
        self.graph = graph
        self.constants: dict[str, np.ndarray] = dict(model.constants)
        self.names: dict[str, str] = {}
        self.weight_scales: dict[str, np.ndarray] = {}
        self.integers: set[str] = set()
        self.arrays: dict[str, str] = {}
        self.dims: dict[str, Shape] = {}
        self.whole = whole
        self.is_batched = model.batch not in (None, 1) and not whole
        self.read = tensors_read(model.proto.graph.node).union(filter(None, model.outputs))
        self.plain_integers = plain_integers
        self.writers = {name: node for node in model.proto.graph.node for name in node.output}
        self._taken = set(self.writers)
        self._renamed: dict[str, str] = {}
        self._vectors: dict[str, str] = {}

    def fresh(self, name: str) -> str:
        """Return `name` with underscores appended until it is unused."""
        while name in self._taken or name in self.graph.tensors or name in self.constants:
            name += "_"
        self._taken.add(name)
        return name

    # ---- tensors in their two forms ---------------------------------------------------------
    def is_tensor(self, name: str) -> bool:
        """True if an ONNX tensor is computed in the network."""
        return name in self.names or name in self.arrays

    def dims_of(self, name: str) -> Shape:
        """Return the ONNX shape of a tensor of the network."""
        return self.dims[name] if name in self.dims else self.graph.shape(self.names[name])

    def known_shape(self, name: str) -> Shape:
        """Return the ONNX shape of a constant or a tensor of the network."""
        return self.constants[name].shape if name in self.constants else self.dims_of(name)

    def kind_of(self, name: str) -> str:
        """Return the kind of a tensor of the network: "" for real numbers."""
        return self.graph.kind(self.names.get(name) or self.arrays[name])

    def plane(self, name: str) -> str:
        """Return the graph tensor of the ONNX shape: an image, a sequence or a vector.

        Raises Unsupported: for a tensor of integers, without batch axis, or of too many axes.
        """
        if name not in self.names:
            dims = self.dims[name]
            if self.kind_of(name):
                raise Unsupported(f"its input is of type {self.kind_of(name)}")
            if not 2 <= len(dims) <= 4 or dims[0] != 1:
                raise Unsupported(f"its input has the shape {dims_text(dims) or '1'}")
            source = self.arrays[name]
            self.names[name] = source if len(dims) == 2 else self._reshaped(name, source, dims[1:], "image")
        return self.names[name]

    def array(self, name: str) -> str:
        """Return the graph tensor (1, E) with the elements of an ONNX tensor."""
        if name not in self.arrays:
            tensor = self.names[name]
            self.dims[name] = self.graph.shape(tensor)
            self.arrays[name] = self.vector(tensor, name)
        return self.arrays[name]

    def vector(self, image: str, name: str) -> str:
        """Return the elements (1, E) of a graph tensor that holds or was computed for the ONNX tensor `name`."""
        shape = self.graph.shape(image)
        if len(shape) > 2 and image not in self._vectors:
            self._vectors[image] = self._reshaped(name, image, (prod(shape),), "array")
        vector = self._vectors.get(image, image)
        return self._renamed.get(vector, vector)

    def _reshaped(self, name: str, tensor: str, dims: Shape, label: str) -> str:
        reshaped, op = self.fresh(f"{name}_{label}"), make_operator("Reshape", tuple(dims))
        self.graph.add(Node(reshaped, op, [tensor], [reshaped], location=self.model.place(name)))
        return reshaped

    def value(self, name: str) -> Value:
        """Return a tensor or constant in the form that array converters use."""
        if name in self.constants:
            constant = self.constants[name]
            return Value(constant.shape, constant_kind(constant), None, constant)
        if name not in self.names and name not in self.arrays:
            raise Unsupported("it reads a tensor of unknown shape")
        return Value(self.dims_of(name), self.kind_of(name), self.array(name))

    def bind(self, name: str, value: Value) -> None:
        """Bind `value` to the ONNX tensor `name`; a layer just added for it takes this name."""
        source = value.image or value.tensor
        if source is None:
            self.constants[name] = np.asarray(value.constant)
            return
        tensor = self._renamed.get(source, source)
        last = self.graph.nodes[-1] if self.graph.nodes else None
        is_new = last is not None and last.outputs == [tensor]
        is_new = is_new and tensor not in (*self.arrays.values(), *self.names.values())
        if is_new and last is not None and name not in self.graph.tensors:
            old = self.graph.tensors.pop(tensor)
            self._renamed[tensor] = name
            self.graph.tensors[name] = Tensor(name, old.shape, old.kind)
            last.name, last.outputs, last.source = name, [name], [name]
            last.location = self.model.place(name)
        elif value.image is not None:
            self.graph.add(Node(name, make_operator("Identity"), [tensor], [name], location=self.model.place(name)))
        elif name not in self.graph.tensors:
            self.graph.aliases[name] = tensor
        if value.image is not None:
            self.names[name] = name
            return
        self.arrays[name] = name if is_new else tensor
        self.dims[name] = value.dims

    def rename(self, source: str, result: str) -> None:
        """Give a tensor of the network another ONNX name."""
        for table in (self.names, self.arrays, self.dims):
            if source in table:
                table[result] = table[source]  # type: ignore[index]
        self.graph.aliases[result] = self.names.get(source) or self.arrays[source]

    def parameter(self, layer: str, role: str, array: np.ndarray, finite: bool = True) -> np.ndarray:
        """Return a read-only float32 copy of a parameter. Raise E306 for NaN, and with `finite` also for infinite values."""
        try:
            values = np.ascontiguousarray(array, np.float32)
        except (ValueError, TypeError):
            what = f"the {role} of the layer are not numbers"
            raise N2D2Error("E306", what, where=self.model.place(layer), remedy="export the model again") from None
        if finite and not np.isfinite(values).all():
            what = f"values of the {role} of the layer are not finite in float32"
            raise N2D2Error("E306", what, where=self.model.place(layer), remedy="train or export the model again")
        values.setflags(write=False)
        return values


def check_size(dims: Iterable[int]) -> None:
    """Raise Unsupported for an empty tensor, or one that exceeds the size limit."""
    count = prod(dims)
    if not count:
        raise Unsupported("its result has no elements")
    if count > MAX_TENSOR:
        raise Unsupported(f"its result would have {count:,} elements, at most {MAX_TENSOR:,} are supported")


def check_positions(lengths: Iterable[int]) -> None:
    """Raise Unsupported before lists of positions would exhaust the memory."""
    longest = max(lengths, default=0)
    if longest > _MAX_POSITIONS:
        raise Unsupported(f"an axis of its result would have {longest:,} elements, at most {_MAX_POSITIONS:,} are supported")


def element_name(code: int) -> str:
    """Return ONNX's name of an element type: "FLOAT", "INT8", ..."""
    from onnx import TensorProto

    return TensorProto.DataType.Name(code) if code in TensorProto.DataType.values() else str(code)


def element_dtype(code: int) -> np.dtype:
    """Return the NumPy type of an ONNX element type."""
    from onnx import helper

    return helper.tensor_dtype_to_np_dtype(code)
