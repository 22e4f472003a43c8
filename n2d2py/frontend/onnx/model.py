"""Reading and checks of an ONNX file: protobuf, opset, external data, initializers, inputs."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from math import prod
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, numpy_helper

from n2d2py import log
from n2d2py.arithmetic import NumType
from n2d2py.contracts.onnx.skeleton import has_graphs, skeleton, tensors_read, walk_nodes
from n2d2py.errors import Location, N2D2Error, suggest
from n2d2py.files import open_regular
from n2d2py.frontend.onnx.cut import Cut
from n2d2py.frontend.onnx.encodings import quantize_by
from n2d2py.frontend.onnx.external import load_external_data, refuse_external_data
from n2d2py.frontend.onnx.validation import TOLERATED, check_attributes, check_structure, check_texts, run_limited
from n2d2py.graph.shapes import MAX_TENSOR, dims_text

MIN_OPSET = 7
"""The first opset with the current broadcasting rules."""
MAX_OPSET = 28
"""The newest opset whose operators were checked against the converters."""

_MOST_BYTES = 2**31
_MAX_NODES = 20_000
"""Largest number of nodes after function inlining; current large networks have a few thousand."""
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)
_BYTES = (TensorProto.UINT8, TensorProto.INT8)
_IMAGES = (*_BYTES, TensorProto.UINT16, TensorProto.INT16)
_INTEGERS = (TensorProto.BOOL, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32, TensorProto.UINT64)
_IMAGE_READERS = ("Cast", "Transpose", "Identity", "Reshape")


Dims = tuple[int | None, ...]
"""A shape; None for an open size."""


@dataclass(frozen=True)
class OnnxInput:
    """A data input: its name, its element type and its declared shape.

    `kind` is the kind of the graph's tensor, "" for real numbers.
    """

    name: str
    element_type: int
    dims: Dims = ()
    kind: str = ""

    @property
    def shape(self) -> Dims:
        """Return the shape with batch 1; that of an input with one axis has both."""
        return (1, *self.dims[len(self.dims) > 1 :])

    @property
    def is_open(self) -> bool:
        """True if a size other than the batch is unknown."""
        return None in self.shape[1:]


@dataclass(frozen=True)
class ImportOptions:
    """Options of the import of a model.

    Attributes:
        ignore: nodes to skip, named by their first outputs.
        load_weights: False if layers get initial values, of `seed`, instead of the stored weights.
        encodings: an AIMET file with quantization parameters, for ONNX only.
    """

    ignore: tuple[str, ...] = ()
    load_weights: bool = True
    seed: int = 1
    encodings: Path | None = None
    cut: Cut = Cut()


@dataclass
class OnnxModel:
    """A checked ONNX model with inlined functions.

    Attributes:
        path: file name for messages.
        proto: the model; its initializers are also in `constants`, by name.
        opset: version of the default operator set.
        inputs: the data inputs (graph inputs without initializer), in order.
        batch: static batch size of the file; None if it is symbolic.
        places: location shown in messages instead of a tensor name, for a translated model.
        stored: integer types of inputs that a translated file stores as integers; the model has real numbers there.
        states: (input, output) pairs of states, which are the last inputs and outputs.
        has_given_sizes: True if the user gave sizes that the file leaves open.
    """

    path: str
    proto: onnx.ModelProto
    opset: int
    inputs: list[OnnxInput]
    batch: int | None
    constants: dict[str, np.ndarray]
    options: ImportOptions = ImportOptions()
    places: Mapping[str, str] = field(default_factory=dict)
    states: list[tuple[str, str]] = field(default_factory=list)
    stored: Mapping[str, NumType] = field(default_factory=dict)
    has_given_sizes: bool = False

    @property
    def user_inputs(self) -> list[OnnxInput]:
        """Return the inputs that are not states."""
        return self.inputs[: len(self.inputs) - len(self.states)]

    @property
    def outputs(self) -> list[str]:
        """Return the names of the graph outputs."""
        return [value.name for value in self.proto.graph.output]

    def set_sizes(self, name: str, sizes: Sequence[int]) -> None:
        """Set the sizes after the batch axis that the file leaves open; an input with one axis, or with a free batch, may get all.

        Raises N2D2Error: E305 no such input, or a shape that the file does not allow.
        """
        names = [one.name for one in self.inputs]
        if name not in names:
            what = f"input '{name}' does not exist; the inputs are {', '.join(names)}"
            raise N2D2Error("E305", what, where=self.place(), remedy="name one of the inputs")
        index = names.index(name)
        dims = self.inputs[index].dims
        first = 0 if len(dims) < 2 or (len(sizes) == len(dims) and dims[0] is None) else 1
        if len(sizes) != len(dims[first:]) or any(
            known not in (None, size) for known, size in zip(dims[first:], sizes, strict=True)
        ):
            what = f"input '{name}' has shape {dims_text(dims[first:])} and cannot have {dims_text(sizes)}"
            remedy = "give a size for each axis after the batch; only open sizes can be changed"
            raise N2D2Error("E305", what, where=self.place(), remedy=remedy)
        self.inputs[index] = replace(self.inputs[index], dims=(*dims[:first], *sizes))
        if len(sizes) == len(dims) > 1:
            self.batch = 1 if sizes[0] == 1 else _common_batch(self.inputs)
        self.has_given_sizes = True

    def integer_type(self, value: OnnxInput) -> NumType | None:
        """Return the integer type (with scale and zero point) of an input that the file declares as integers; else None."""
        if value.name in self.stored or value.element_type not in _IMAGES or value.kind:
            return self.stored.get(value.name)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.element_type)
        readers = [node for node in self.proto.graph.node if value.name in node.input]
        grids = {self._input_quantization(node) if "Linear" in node.op_type else (1.0, 0) for node in readers}
        if len(grids) != 1 or None in grids:
            return None
        ((scale, zero),) = grids  # type: ignore[misc]
        return stored_type(dtype, scale, zero)

    def _input_quantization(self, node: onnx.NodeProto) -> tuple[float, int] | None:
        """Return the (scale, zero point) of an operator's first input; None unless they are constant scalars."""
        constants = [self.constants.get(name) for name in node.input[1:3]]
        if any(one is None or one.size != 1 for one in constants):
            return None
        numbers = [one.item() for one in constants if one is not None]
        return float(np.float32(numbers[0])), int(numbers[1]) if len(numbers) > 1 else 0

    def place(self, section: str | None = None) -> Location:
        """Return a location in this file for messages."""
        return Location(self.path, None, self.places.get(section, section) if section else section)


def stored_type(dtype: np.dtype, scale: float, zero_point: int) -> NumType:
    """Return the number type of integers of a file."""
    signed = dtype.kind == "i"
    return NumType(8 * dtype.itemsize, signed, scale=scale, zero_point=zero_point, full=signed)


def load_onnx(path: str | Path | onnx.ModelProto, options: ImportOptions = ImportOptions()) -> OnnxModel:
    """Return the model in the file `path` (or a model in memory), checked and with inlined functions.

    Raises N2D2Error: E301 unreadable file, E302 invalid model, E303 opset, E304 external data, E305 unusable inputs, E314
    nodes that violate their operator definition, E315 encodings.
    """
    if isinstance(path, onnx.ModelProto):
        name, proto = str(path.graph.name or "model"), onnx.ModelProto()
        proto.CopyFrom(path)
        check_texts(proto, name)
        refuse_external_data(proto, name)
    else:
        name, proto = str(path), _read(Path(path))
    _use_default_domain(proto)
    opset = _default_opset(proto, name)
    _check_node_count(proto, name)
    _check(proto, name)
    check_attributes(proto, name)
    if proto.functions:
        proto = _inline(proto, name)
    check_structure(proto, name, opset)
    options.cut.apply(proto, name)
    if options.encodings is not None:
        quantize_by(proto, options.encodings)
    constants = {t.name: to_array(t, name) for t in proto.graph.initializer}
    inputs = _data_inputs(proto, name, set(constants))
    _check_ignored(proto, name, options.ignore)
    producer, count = f"{proto.producer_name or 'unknown'} {proto.producer_version}", len(proto.graph.node)
    log.detail("%s: IR version %d, opset %d, producer %s, %d nodes", name, proto.ir_version, opset, producer, count)
    return OnnxModel(name, proto, opset, inputs, _common_batch(inputs), constants, options)


def to_array(tensor: TensorProto, path: str) -> np.ndarray:
    """Return the values of a tensor, read-only. Raise E302 if the stored bytes do not fit the shape."""
    try:
        array = numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError) as error:
        what = f"tensor '{tensor.name}' is damaged ({error})"
        raise N2D2Error("E302", what, where=Location(path), remedy="export or download the model again") from None
    array.setflags(write=False)
    return array


def read_model(path: Path, kind: str, remedy: str) -> bytes:
    """Return the bytes of a model file; `remedy` is that for 2 GB or more.

    Raises N2D2Error: E301 unreadable file, E302 a file that is too large.
    """
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size >= _MOST_BYTES:
                what = f"the file has {size:,} bytes, more than the limit of {_MOST_BYTES:,}"
                raise _invalid_model_error(str(path), what, remedy)
            return file.read()
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        reason = f"the {kind} file does not exist" if missing else f"the {kind} file cannot be read ({error.strerror})"
        raise N2D2Error("E301", reason, where=Location(str(path)), remedy="check the path") from None


def _read(path: Path) -> onnx.ModelProto:
    data = read_model(path, "ONNX", "export the model with its weights as external data")
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError:
        raise _invalid_model_error(str(path), "the file is damaged, truncated or not an ONNX model") from None
    if not (proto.graph.node or proto.graph.output):
        raise _invalid_model_error(str(path), "the file does not contain an ONNX graph")
    check_texts(proto, str(path))
    _sort_nodes(proto.graph)
    load_external_data(proto, path)
    return proto


def _use_default_domain(proto: onnx.ModelProto) -> None:
    """Write the domain of the standard as "", the other name of "ai.onnx"."""
    bodies = (proto, proto.graph), *((function, function) for function in proto.functions)
    for owner, body in bodies:
        for one in (*owner.opset_import, *walk_nodes(body.node)):
            if one.domain == "ai.onnx":
                one.domain = ""


def _sort_nodes(graph: onnx.GraphProto) -> None:
    """Put each node after those that produce its inputs, as ONNX Runtime does; a graph with a cycle keeps its order."""
    producers = {name: position for position, node in enumerate(graph.node) for name in node.output if name}
    read = [[producers[name] for name in tensors_read([node]) - {*node.output} if name in producers] for node in graph.node]
    if all(max(positions, default=-1) < position for position, positions in enumerate(read)):
        return
    with suppress(CycleError):
        order = {at: rank for rank, at in enumerate(TopologicalSorter(dict(enumerate(read))).static_order())}
        graph.node.sort(key=lambda node: min((order[producers[name]] for name in node.output if name), default=0))


def _check_node_count(proto: onnx.ModelProto, path: str) -> None:
    if len(proto.graph.node) > _MAX_NODES:
        what = f"the model has {len(proto.graph.node):,} nodes, more than the limit of {_MAX_NODES:,}"
        raise _invalid_model_error(path, what, "export a smaller model without unrolled loops")


def _invalid_model_error(path: str, what: str, remedy: str = "export or download the model again") -> N2D2Error:
    return N2D2Error("E302", what, where=Location(path), remedy=remedy)


def _default_opset(proto: onnx.ModelProto, path: str) -> int:
    newest = onnx.defs.onnx_opset_version()
    versions = [entry.version for entry in proto.opset_import if not entry.domain]
    if not versions and proto.opset_import:  # operators of other domains only
        return MAX_OPSET
    if not versions:
        what = "the model declares no version of the ONNX operator set"
        raise N2D2Error("E303", what, where=Location(path), remedy=f"export it with an opset from {MIN_OPSET} to {newest}")
    opset = max(versions)
    if opset < MIN_OPSET or opset > newest:
        remedy = f"export the model with an opset from {MIN_OPSET} to {newest}, or convert it with onnx.version_converter"
        raise N2D2Error("E303", f"opset {opset} is not supported", where=Location(path), remedy=remedy)
    if opset > MAX_OPSET:
        what = f"opset {opset} is newer than {MAX_OPSET}, the newest tested one"
        log.warning("W303", what, where=Location(path), remedy="compare the result with ONNX Runtime")
    return opset


def _check(proto: onnx.ModelProto, path: str) -> None:
    """Run the structural checker of the onnx package; it accepts unknown operators, which the import reports together."""
    _fill_sparse(proto, path)
    try:
        onnx.checker.check_model(skeleton(proto))
    except (onnx.checker.ValidationError, ValueError) as error:
        text = " ".join(str(error).split())
        if not any(phrase in text for phrase in TOLERATED):
            what = f"the file is not a valid ONNX model ({text[:200]})"
            remedy = "export the model again, or check it with onnx.checker"
            raise N2D2Error("E302", what, where=Location(path), remedy=remedy) from None
    _check_names(proto, path)


def _fill_sparse(proto: onnx.ModelProto, path: str) -> None:
    for sparse in proto.graph.sparse_initializer:
        name, dims = sparse.values.name, tuple(sparse.dims)
        if not 0 < prod(dims) <= MAX_TENSOR or min(dims) < 0:
            raise _invalid_model_error(path, f"the sparse tensor '{name}' has {prod(dims):,} elements")
        values, positions = to_array(sparse.values, path).reshape(-1), to_array(sparse.indices, path)
        try:  # places, or the index along each axis
            axes, sizes = (tuple(positions.T), dims) if positions.ndim > 1 else ((positions,), (prod(dims),))
            positions = np.ravel_multi_index(axes, sizes)
            dense = np.zeros(prod(dims), values.dtype)
            dense[positions] = values
        except (ValueError, IndexError, TypeError):
            raise _invalid_model_error(path, f"the sparse tensor '{name}' has indices that do not fit its values") from None
        proto.graph.initializer.append(numpy_helper.from_array(dense.reshape(dims), name))
    proto.graph.ClearField("sparse_initializer")


def _check_names(proto: onnx.ModelProto, path: str) -> None:
    """Raise E302 unless each tensor has one producer; the structural checker may stop before this check."""
    stored = {tensor.name for tensor in proto.graph.initializer}
    writes = Counter(value.name for value in proto.graph.input if value.name not in stored)
    writes.update(tensor.name for tensor in proto.graph.initializer)
    writes.update(name for node in proto.graph.node for name in node.output if name)
    for name in (name for name, count in writes.items() if count > 1):
        raise _invalid_model_error(path, f"the tensor '{name}' is written twice")


def _inline(proto: onnx.ModelProto, path: str) -> onnx.ModelProto:
    from onnx import inliner

    try:
        inlined = run_limited(lambda: inliner.inline_local_functions(proto), "its functions", Location(path))
    except (RuntimeError, ValueError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise _invalid_model_error(path, f"its functions cannot be inlined ({' '.join(str(error).split())[:200]})") from None
    _check_node_count(inlined, path)
    return inlined


def _data_inputs(proto: onnx.ModelProto, path: str, initialized: set[str]) -> list[OnnxInput]:
    values = [value for value in proto.graph.input if value.name not in initialized]
    if not values:
        remedy = "export it with at least one input without an initializer"
        raise N2D2Error("E305", "the model has no data input", where=Location(path), remedy=remedy)
    inputs = []
    for value in values:
        tensor = value.type.tensor_type
        if tensor.elem_type not in (*_FLOATS, *_IMAGES, *_INTEGERS):
            known = TensorProto.DataType.values()
            kind = TensorProto.DataType.Name(tensor.elem_type) if tensor.elem_type in known else "unknown"
            what = f"input '{value.name}' has the unsupported type {kind}"
            raise N2D2Error("E305", what, where=Location(path), remedy="use inputs of a number type or bool")
        if not tensor.HasField("shape"):
            what = f"input '{value.name}' has no shape"
            raise N2D2Error("E305", what, where=Location(path), remedy="export the model with the shapes of its inputs")
        kind = _input_kind(proto.graph, value.name, tensor.elem_type)
        inputs.append(OnnxInput(value.name, tensor.elem_type, declared_dims(value), kind))
    return inputs


def declared_dims(value: onnx.ValueInfoProto) -> Dims:
    """Return the declared shape of a tensor."""
    return tuple(dim.dim_value if dim.dim_value > 0 else None for dim in value.type.tensor_type.shape.dim)


def _common_batch(inputs: Sequence[OnnxInput]) -> int | None:
    """Return the first axis that all inputs share, None if it is open; 1 if they differ."""
    batches = {one.dims[0] for one in inputs if len(one.dims) > 1}
    return batches.pop() if len(batches) == 1 else 1


def _input_kind(graph: onnx.GraphProto, name: str, element_type: int) -> str:
    """Return the kind of an input: "" for bytes that are converted first (images). Real numbers that are converted first are
    integers (ids), which must be exact."""
    if element_type in _FLOATS:
        return _cast_kind(graph, name)
    if element_type in _IMAGES:
        readers = [node.op_type for node in graph.node if name in node.input]
        words = ("Linear", "Integer") if element_type in _BYTES else ()
        if readers and all(reader in _IMAGE_READERS or any(word in reader for word in words) for reader in readers):
            return ""
    return onnx.helper.tensor_dtype_to_np_dtype(element_type).name


def _cast_kind(graph: onnx.GraphProto, name: str) -> str:
    """Return the integer kind to which all consumers cast a float input; "" if they differ or a branch reads it."""
    readers = [node for node in graph.node if name in node.input]
    others = [node for node in readers if node.op_type != "Cast"]
    if others or any(map(has_graphs, graph.node)) or name in {one.name for one in graph.output}:
        return ""
    kinds = {attribute.i for node in readers for attribute in node.attribute if attribute.name == "to"}
    (kind,) = kinds if len(kinds) == 1 else (0,)
    return onnx.helper.tensor_dtype_to_np_dtype(kind).name if kind in (TensorProto.INT32, TensorProto.INT64) else ""


def _check_ignored(proto: onnx.ModelProto, path: str, ignore: Iterable[str]) -> None:
    names = [node.output[0] for node in proto.graph.node if node.output]
    for name in ignore:
        if name not in names:
            what = f"Ignore names '{name}', which is not the first output of any node"
            remedy = suggest(name, names, "name the first output of a node")
            log.warning("W304", what, where=Location(path), remedy=remedy)
