"""Turns an ONNX model into a Graph in one walk over its nodes.

Each node is either folded (all its inputs are known), or handed to the converter of its operator. A node
that cannot be imported does not stop the walk: its outputs get the shapes that ONNX infers, so that every
other unsupported node is found too, and one error lists them all.
"""
from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Mapping, Sequence

import numpy as np
import onnx

from n2d2py import log
from n2d2py.errors import ErrorList, InternalError, N2D2Error
from n2d2py.frontend.onnx import folding, grids, qoperators
from n2d2py.frontend.onnx.arrays.values import Arrays, Value, constant_kind
from n2d2py.frontend.onnx.expansion import expand_functions
from n2d2py.frontend.onnx.initial import initial_values
from n2d2py.frontend.onnx.layout import nhwc_inputs
from n2d2py.frontend.onnx.model import OnnxInput, OnnxModel, load_onnx, to_array
from n2d2py.frontend.onnx.node import OnnxNode
from n2d2py.frontend.onnx.preflight import Preflight
from n2d2py.frontend.onnx.registry import ArrayConverter, Converter, Unsupported, find_array_converter, find_converter
from n2d2py.graph import Graph, Node, Tensor
from n2d2py.graph.shapes import Shape
from n2d2py.operators import ArrayMap, ArrayTake, Conv, Deconv, Fc, Op, Reshape, Transpose

__all__ = ["Builder", "import_onnx"]

_IMAGE_LAYERS = ("Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool",
                 "BatchNormalization", "Gemm", "MatMul", "Resize", "Upsample", "DepthToSpace", "SpaceToDepth", "LRN")
"""Operators whose layers of images are worth a change of order in memory."""
_FUNCTIONS = ("Relu", "Sigmoid", "Tanh", "Softplus", "Clip", "LeakyRelu", "HardSigmoid", "HardSwish", "Elu", "Selu",
              "Celu", "ThresholdedRelu", "Gelu", "Abs", "Erf", "Exp", "Log", "Mish", "Softsign", "Sqrt", "Identity")
"""Operators that go element by element, whatever the shape."""
_OTHER = {"float16": "half", "bfloat16": "bfloat16", "float64": "double"}
"""Element types of weights that are not kept."""

_ON_INTEGERS = ("DequantizeLinear", "MaxPool", "GlobalMaxPool", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose",
                "Concat", "Split", "Slice", "Gather", "Identity", "Dropout", "DepthToSpace", "SpaceToDepth")
"""Operators that may read integers: they only move values, so that what they give stands for the same numbers."""


def import_onnx(model: OnnxModel | onnx.ModelProto | str | Path, name: str | None = None, *,
                input_shapes: Mapping[str, Shape] | None = None) -> Graph:
    """The Graph of an ONNX model: float32, batch 1, layers named after the first outputs of their nodes.

    `input_shapes` replaces the declared shapes of inputs (batch 1 included). An input that the model
    transposes from NHWC becomes CHW, with a notice.

    Raises:
        N2D2Error: E30x from `load_onnx`; E305 an input shape that is not known, E306 weights that are not
            finite, E310 (one for each kind of unsupported node), E311 an output without layer, E2xx shapes.
    """
    if not isinstance(model, OnnxModel):
        model = load_onnx(model)
    expand_functions(model)
    title, shapes = name or Path(model.path).stem, dict(input_shapes or {})
    if model.batch in (None, 1) or shapes:
        return _built(Builder(model, Graph(title), shapes))
    # the first axis of a fixed size: stimuli side by side if no layer mixes them, else a part of each stimulus
    try:
        return _built(Builder(model, Graph(title), shapes))
    except (N2D2Error, ErrorList) as refusal:
        try:
            return _built(Builder(model, Graph(title), shapes, whole=True))
        except (N2D2Error, ErrorList):
            raise refusal from None


class Builder:
    """The walk's state.

    Attributes:
        graph: what is being built.
        constants: every known ONNX tensor by name.
        names: ONNX tensor name -> graph tensor of the same shape, an image or a vector with batch 1.
        arrays: ONNX tensor name -> graph tensor (1, E) with its elements in row-major order.
        dims: ONNX tensor name -> its shape, for those in `arrays`.
        whole: the first axes of inputs belong to each stimulus.
        grids: the scale of each element of a constant that a DequantizeLinear gave.
        integers: ONNX tensors that hold integers of a QuantizeLinear; the graph has the real numbers that they stand for.
    """

    def __init__(self, model: OnnxModel, graph: Graph, input_shapes: dict[str, Shape], whole: bool = False):
        self.model = model
        self.graph = graph
        self.constants: dict[str, np.ndarray] = dict(model.constants)
        self.names: dict[str, str] = {}
        self.grids: dict[str, np.ndarray] = {}
        self.integers: set[str] = set()
        self.arrays: dict[str, str] = {}
        self.dims: dict[str, Shape] = {}
        self.whole = whole
        self._is_batched = model.batch not in (None, 1) and not whole
        self._input_shapes = input_shapes
        self._preflight = Preflight(model)
        self._blocked: set[str] = set()
        self._read = _tensors_read(model.proto.graph)
        self._taken = {name for node in model.proto.graph.node for name in node.output}

    # ---- for converters ---------------------------------------------------------------------
    def layer(self, node: OnnxNode, op: Op, inputs: Sequence[str], params: Mapping[str, np.ndarray] | None = None,
              *, part: str | None = None, output: str | None = None) -> str:
        """Adds a layer that reads graph tensors; returns its output tensor.

        The layer gives output 0 of `node` and has its name; with `part` it is an intermediate one, called
        after the node and the part; with `output` it gives that ONNX tensor, an output of the node after the first.
        """
        name = (output or node.name) if part is None else self.fresh(f"{node.name}_{part}")
        checked = {role: self.parameter(name, role, array) for role, array in (params or {}).items()}
        if not self.model.load_weights:
            checked = initial_values(op, checked, self.model.seed + len(self.graph.nodes))
        if isinstance(op, (Conv, Deconv, Fc)) and len(node.inputs) > 1 and node.inputs[1] in self.grids:
            scales = grids.weight_scales(self.grids[node.inputs[1]], len(checked["weights"]))
            checked |= {} if scales is None else {"weight_scales": scales}
        place = self.model.place(name)
        if len(op.output_shapes([self.graph.shape(tensor) for tensor in inputs],
                                Node(name, op, [], [name], checked, location=place))[0]) > 4:
            raise Unsupported("its result has more axes than channels, height and width")
        self.graph.add(Node(name, op, list(inputs), [name], checked, location=place))
        if part is None:
            self.names[name] = name
        return name

    def fresh(self, name: str) -> str:
        """`name`, with underscores appended until no tensor has it."""
        while name in self._taken or name in self.graph.tensors or name in self.constants:
            name += "_"
        self._taken.add(name)
        return name

    def is_read(self, name: str) -> bool:
        """Whether an ONNX tensor is read by a node or is an output of the model."""
        return name in self._read

    # ---- tensors in their two forms ---------------------------------------------------------
    def is_tensor(self, name: str) -> bool:
        """Whether an ONNX tensor is computed in the network."""
        return name in self.names or name in self.arrays

    def dims_of(self, name: str) -> Shape:
        """The shape that ONNX gives a tensor of the network."""
        return self.dims[name] if name in self.dims else self.graph.shape(self.names[name])

    def kind_of(self, name: str) -> str:
        """Kind of a tensor of the network: "" for real numbers."""
        return self.graph.kind(self.names.get(name) or self.arrays[name])

    def plane(self, name: str) -> str:
        """The graph tensor of the ONNX shape: an image, a sequence or a vector.

        Raises:
            Unsupported: for a tensor without batch axis, of more axes, or of integers.
        """
        if name not in self.names:
            dims = self.dims[name]
            if self.kind_of(name):
                raise Unsupported(f"its input is of type {self.kind_of(name)}")
            if not 2 <= len(dims) <= 4 or dims[0] != 1:
                raise Unsupported(f"its input has the shape {'x'.join(map(str, dims)) or '1'}")
            source = self.arrays[name]
            self.names[name] = source if len(dims) == 2 else self._reshaped(name, source, dims[1:], "image")
        return self.names[name]

    def array(self, name: str) -> str:
        """The graph tensor (1, E) with the elements of an ONNX tensor."""
        if name not in self.arrays:
            tensor = self.names[name]
            self.dims[name] = self.graph.shape(tensor)
            size = prod(self.dims[name])
            self.arrays[name] = tensor if len(self.dims[name]) == 2 else self._reshaped(name, tensor, (size,), "array")
        return self.arrays[name]

    def _reshaped(self, name: str, tensor: str, dims: Shape, label: str) -> str:
        made = self.fresh(f"{name}_{label}")
        self.graph.add(Node(made, Reshape(tuple(dims)), [tensor], [made], location=self.model.place(name)))
        return made

    def value(self, name: str) -> Value:
        """A tensor or constant as converters to arrays see it."""
        if name in self.constants:
            constant = self.constants[name]
            return Value(constant.shape, constant_kind(constant), None, constant)
        if name not in self.names and name not in self.arrays:
            raise Unsupported("it reads a tensor of unknown shape")
        return Value(self.dims_of(name), self.kind_of(name), self.array(name))

    def bind(self, name: str, value: Value) -> None:
        """Makes `value` the ONNX tensor `name`; a layer just added for it gets that name."""
        if value.tensor is None:
            self.constants[name] = np.asarray(value.constant)
            return
        last = self.graph.nodes[-1] if self.graph.nodes else None
        own = last is not None and last.outputs == [value.tensor] and value.tensor not in self.arrays.values() \
            and value.tensor not in self.names.values()
        if own and name not in self.graph.tensors:
            tensor = self.graph.tensors.pop(value.tensor)
            self.graph.tensors[name] = Tensor(name, tensor.shape, tensor.kind)
            last.name, last.outputs, last.source = name, [name], [name]
            last.location = self.model.place(name)
        elif name not in self.graph.tensors:
            self.graph.aliases[name] = value.tensor
        self.arrays[name] = name if own and name in self.graph.tensors else value.tensor
        self.dims[name] = value.dims

    def guard_batch(self, node: OnnxNode, index: int, axis: int, verb: str, allowed: bool = False) -> None:
        """Raises Unsupported where a layer mixes the stimuli of a batch of free size."""
        name = node.inputs[index]
        if axis == 0 and not allowed and self.model.batch is None and name not in self.constants:
            dims = self.dims_of(name)
            if len(dims) > 1 and dims[0] == 1:
                raise Unsupported(f"it {verb} the batch axis", "export the model with batch 1")

    def parameter(self, layer: str, role: str, array: np.ndarray, finite: bool = True) -> np.ndarray:
        """A float32 copy of a parameter that nothing changes.

        Raises:
            N2D2Error: E306 for values that are no numbers or, where they have to be, not finite.
        """
        try:
            values = np.ascontiguousarray(array, np.float32)
        except (ValueError, TypeError):
            raise N2D2Error("E306", f"the layer's {role} are no numbers", where=self.model.place(layer),
                            remedy="check the export of the model") from None
        if finite and not np.isfinite(values).all():
            raise N2D2Error("E306", f"not all values of the layer's {role} are finite in float32",
                            where=self.model.place(layer), remedy="check the training and the export")
        values.setflags(write=False)
        return values

    # ---- the walk ---------------------------------------------------------------------------
    def build(self) -> None:
        """Fills the graph."""
        self._add_inputs()
        for proto in self.model.proto.graph.node:
            self._visit(proto)
        ErrorList.raise_if(self._preflight.errors())
        self._set_outputs()
        self.graph.prune()
        other = {_OTHER[a.dtype.name] for a in self.model.constants.values() if a.dtype.name in _OTHER and a.ndim}
        if other:
            log.notice("%s: %s weights are converted to float32", self.model.path, " and ".join(sorted(other)))
        self.graph.verify()

    def _add_inputs(self) -> None:
        transposed = nhwc_inputs(self.model.proto.graph)
        for value in self.model.inputs:
            kind = value.kind
            fixed = len(value.dims) > 1 and value.dims[0] not in (None, 1) and not self._is_batched
            if kind or not 2 <= len(value.dims) <= 4 or self.whole or (fixed and not self._input_shapes):
                dims = self._array_dims(value)
                self.arrays[value.name] = self.graph.add_input(value.name, (1, prod(dims)), kind)
                self.dims[value.name] = dims
                continue
            is_nhwc = value.name in transposed and len(value.shape) == 4
            shape = self._input_shape(value, is_nhwc)
            self.names[value.name] = self.graph.add_input(value.name, shape)
            if is_nhwc:
                log.notice("%s: the input '%s' is declared as height, width, channels; the network takes channels, "
                           "height, width (%s)", self.model.path, value.name, "x".join(map(str, shape[1:])))
                name = self.fresh(f"{value.name}_nhwc")
                self.graph.add(Node(name, Transpose((0, 2, 3, 1)), [value.name], [name],
                                    location=self.model.place(name)))
                self.names[value.name] = name

    def _array_dims(self, value: OnnxInput) -> Shape:
        dims = tuple(value.dims)
        if len(dims) > 1 and dims[0] is None:
            dims = (1, *dims[1:])
        if None in dims:
            text = "x".join("?" if size is None else str(size) for size in dims)
            raise N2D2Error("E305", f"the input '{value.name}' has the shape {text} with unknown sizes",
                            where=self.model.place(), remedy="fix the sizes when exporting the model")
        return dims  # type: ignore[return-value]

    def _input_shape(self, value: OnnxInput, is_nhwc: bool) -> Shape:
        if value.name in self._input_shapes:
            return tuple(self._input_shapes[value.name])
        declared = tuple(value.shape[axis] for axis in (0, 3, 1, 2)) if is_nhwc else value.shape
        if None in declared:
            text = "x".join("?" if size is None else str(size) for size in declared[1:])
            raise N2D2Error("E305", f"the input '{value.name}' has the shape {text} with unknown sizes",
                            where=self.model.place(), remedy="fix the sizes when exporting the model, or feed it from "
                            "a stimuli provider of known size")
        return declared  # type: ignore[return-value]

    def _visit(self, proto: onnx.NodeProto) -> None:
        """Folds, skips or converts one node."""
        if not proto.output or not any(self.is_read(name) for name in proto.output if name):
            return
        if proto.output[0] in self.model.ignored:
            self._skip(proto)
            return
        missing = [name for name in proto.input
                   if name and name not in self.constants and not self.is_tensor(name) and name not in self._blocked]
        if missing:
            raise N2D2Error("E302", f"the node reads '{missing[0]}', which nothing writes before it",
                            where=self.model.place(proto.output[0]), remedy="export the model again")
        try:
            if proto.op_type == "If" and self._splice(proto):
                return
            if qoperators.is_qoperator(proto):
                self._expand(proto)
                return
            if any(name in self._blocked for name in proto.input):
                if find_converter(proto.op_type, proto.domain) is None and \
                        find_array_converter(proto.op_type, proto.domain) is None and proto.op_type not in folding.SHAPE_ARITHMETIC:
                    raise Unsupported("the operator is not supported")
                self._block(proto)
            elif not self._fold(proto):
                self._convert(proto)
        except Unsupported as refusal:
            self._preflight.refuse(proto, refusal)
            self._block(proto)
        except N2D2Error as error:
            self._preflight.fail(error)
            self._block(proto)

    def _fold(self, proto: onnx.NodeProto) -> bool:
        """Computes a node whose inputs are known, or that only reads a shape."""
        if proto.op_type == "Constant" and proto.attribute and proto.attribute[0].name == "value":
            self.constants[proto.output[0]] = to_array(proto.attribute[0].t, self.model.path)
            return True
        reads_shape = proto.op_type in folding.SHAPE_READERS
        if not folding.is_foldable(proto) or not (reads_shape or all(
                name in self.constants for name in proto.input if name)):
            return False
        values = []
        for name in proto.input:
            if not name:
                values.append(None)
            elif name in self.constants:
                values.append(self.constants[name])
            else:
                values.append(np.broadcast_to(np.float32(0), self.dims_of(name)))
        for name, value in zip(proto.output, folding.evaluate(proto, values, self.model.opset)):
            if name:
                value.setflags(write=False)
                self.constants[name] = value
        if proto.op_type in grids.MOVES and proto.input[0] in self.grids:
            values = [self.grids.get(name, value) for name, value in zip(proto.input, values)]
            self.grids[proto.output[0]] = folding.evaluate(proto, values, self.model.opset)[0]
        return True

    def _expand(self, proto: onnx.NodeProto) -> None:
        """Imports an operator on integers as the nodes that it stands for."""
        for part in qoperators.expand(proto, self.constants, self.fresh):
            self._read.update(part.output)
            self._visit(part)

    def _convert(self, proto: onnx.NodeProto) -> None:
        converter = find_converter(proto.op_type, proto.domain)
        on_arrays = None if self._is_batched else find_array_converter(proto.op_type, proto.domain)
        if converter is None and on_arrays is None:
            raise Unsupported("the operator is not supported")
        integers = self.integers.intersection(proto.input)
        if integers and proto.op_type not in _ON_INTEGERS:
            raise Unsupported(f"it computes with the integers of '{min(integers)}'",
                              "let it read what a DequantizeLinear gives")
        self._apply(proto, converter, on_arrays)
        if integers and proto.op_type != "DequantizeLinear":
            self.integers.update(filter(None, proto.output))
        if not self.is_tensor(proto.output[0]) and proto.output[0] not in self.constants:
            raise InternalError(f"the converter of {proto.op_type} gave no result for {proto.output[0]}")

    def _apply(self, proto: onnx.NodeProto, converter: Converter | None, on_arrays: ArrayConverter | None) -> None:
        """Converts a node to layers of images where they take it, else to operators on arrays."""
        prefers_arrays = self._prefers_arrays(proto)
        if prefers_arrays and converter is not None and self._as_vector(proto, converter):
            return
        if converter is None or (on_arrays is not None and prefers_arrays):
            on_arrays(Arrays(OnnxNode(proto, self), self))  # type: ignore[misc]
            return
        try:
            converter(OnnxNode(proto, self), self)
        except Unsupported:
            if on_arrays is None:
                raise
            on_arrays(Arrays(OnnxNode(proto, self), self))

    def _prefers_arrays(self, proto: onnx.NodeProto) -> bool:
        """Whether a data input is there as an array only, and the operator no layer of images."""
        return proto.op_type not in _IMAGE_LAYERS and any(
            name in self.arrays and name not in self.names for name in proto.input)

    def _as_vector(self, proto: onnx.NodeProto, converter: Converter) -> bool:
        """Converts an activation function of an array of reals as one of a vector; False for other nodes."""
        if proto.op_type not in _FUNCTIONS or self.kind_of(proto.input[0]):
            return False
        try:
            converter(OnnxNode(proto, self, as_vector=True), self)
        except Unsupported:
            return False
        name = proto.output[0]
        self.arrays[name], self.dims[name] = self.names.pop(name), self.dims_of(proto.input[0])
        return True

    def _skip(self, proto: onnx.NodeProto) -> None:
        """The node's first output becomes another name of its first input."""
        source, result = proto.input[0], proto.output[0]
        log.notice("%s: [%s] %s is ignored as asked", self.model.path, result, proto.op_type)
        if source in self.constants:
            self.constants[result] = self.constants[source]
        elif self.is_tensor(source):
            self._rename(source, result)
        else:
            self._blocked.add(result)

    def _rename(self, source: str, result: str) -> None:
        """Gives a tensor another ONNX name."""
        for table in (self.names, self.arrays, self.dims):
            if source in table:
                table[result] = table[source]  # type: ignore[index]
        self.graph.aliases[result] = self.names.get(source) or self.arrays[source]

    def _splice(self, proto: onnx.NodeProto) -> bool:
        """Follows an If whose condition is known into its branch."""
        if proto.input[0] not in self.constants:
            return False
        wanted = "then_branch" if self.constants[proto.input[0]].reshape(-1)[0] else "else_branch"
        branch = next(a.g for a in proto.attribute if a.name == wanted)
        self.constants.update({t.name: to_array(t, self.model.path) for t in branch.initializer})
        self._read |= _tensors_read(branch)
        for node in branch.node:
            self._visit(node)
        for inner, outer in zip((value.name for value in branch.output), proto.output):
            if inner in self.constants:
                self.constants[outer] = self.constants[inner]
            elif self.is_tensor(inner):
                self._rename(inner, outer)
            else:
                self._blocked.add(outer)
        return True

    def _block(self, proto: onnx.NodeProto) -> None:
        """Gives the outputs of a refused node their inferred shapes, or marks them as unknown."""
        for name in filter(None, proto.output):
            if self.is_tensor(name):
                continue
            shape = self._preflight.inferred_shape(name)
            if shape is None:
                self._blocked.add(name)
            else:
                self.graph.tensors[name] = Tensor(name, shape)
                self.names[name] = name

    def _set_outputs(self) -> None:
        if not self.model.outputs:
            raise N2D2Error("E311", "the model has no outputs", where=self.model.place(),
                            remedy="name the results of the network as outputs")
        for name in self.model.outputs:
            if self.is_tensor(name):
                tensor = self._output(name)
                self.graph.outputs.append(tensor)
                continue
            if name in self.constants and self.constants[name].size and not self._is_batched:
                self.graph.outputs.append(self._constant_output(name))
                continue
            what = "is a constant" if name in self.constants else "is written by no node"
            raise N2D2Error("E311", f"the output '{name}' {what}", where=self.model.place(),
                            remedy="remove this output from the model")
        self.graph.outputs = list(dict.fromkeys(self.graph.outputs))

    def _constant_output(self, name: str) -> str:
        """A layer that gives a constant, whatever its input is."""
        value, first = self.value(name), self.array(self.model.inputs[0].name)
        size = self.graph.shape(first)[1]
        op = ArrayMap("Right", (value.size,), ((1,), (value.size,)), (0, -1), value.kind)
        one = self.fresh(f"{name}_first")
        self.graph.add(Node(one, ArrayTake(size, ((0,),)), [first], [one], location=self.model.place(name)))
        made = name if name not in self.graph.tensors else self.fresh(name)
        constant = value.constant.astype(value.kind or np.float32)  # type: ignore[union-attr]
        self.graph.add(Node(made, op, [one], [made], {"operand1": constant}, location=self.model.place(name)))
        return made

    def _output(self, name: str) -> str:
        """The tensor of an output: of its ONNX shape where it is an image, else the elements in order."""
        dims = self.dims_of(name)
        if name in self.names or not 2 <= len(dims) <= 4 or dims[0] != 1 or self.kind_of(name):
            return self.names.get(name) or self.arrays[name]
        before = self.arrays[name]
        made = self.plane(name)
        if made != before and before == name:
            # the last layer gets the name of the output
            inner = self.fresh(f"{name}_array")
            _renamed(self.graph, name, inner)
            _renamed(self.graph, made, name)
            self.arrays[name], self.names[name] = inner, name
            for table in (self.arrays, self.names):
                for key, tensor in table.items():
                    if tensor == before and key != name:
                        table[key] = inner
            return name
        return made


def _renamed(graph: Graph, old: str, new: str) -> None:
    """Calls a tensor and its layer by another name."""
    tensor = graph.tensors.pop(old)
    graph.tensors[new] = Tensor(new, tensor.shape, tensor.kind)
    for node in graph.nodes:
        node.inputs = [new if name == old else name for name in node.inputs]
        if node.outputs == [old]:
            node.name, node.outputs, node.source = new, [new], [new]
    graph.outputs = [new if name == old else name for name in graph.outputs]


def _built(builder: Builder) -> Graph:
    builder.build()
    return builder.graph


def _tensors_read(graph: onnx.GraphProto) -> set[str]:
    """Names that the nodes of a graph and of its inner graphs read, and the graph's outputs."""
    read = {value.name for value in graph.output}
    for node in graph.node:
        read.update(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                read |= _tensors_read(attribute.g)
    return read
