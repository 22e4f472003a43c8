"""Translation of a .tflite file to an ONNX graph with QuantizeLinear and DequantizeLinear; images are channels first.

A tensor `t` of integers becomes: operator -> `t_real` -> QuantizeLinear -> `t` -> DequantizeLinear -> `t_dequantized`, which
its consumers read. Tensors of four axes are N, C, H, W in the graph; all others keep the order of the file.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from n2d2py import log
from n2d2py.contracts.onnx.nodes import ROUNDING
from n2d2py.errors import ErrorList, Location, N2D2Error
from n2d2py.frontend.onnx.cut import propose_outputs
from n2d2py.frontend.tflite.file import COMPILED, RefusedOperator, TfliteFile, TfliteOperator, TfliteTensor
from n2d2py.frontend.tflite.signatures import Input, Signature
from n2d2py.graph.node import INT8, ONCE, OTHER, TWICE, TWICE_UINT8, UINT8
from n2d2py.graph.shapes import Shape
from n2d2py.naming import FreshNames
from n2d2py.registry import Registry

OPSET = 21
_FIRST, _LAST = (0, 3, 1, 2), (0, 2, 3, 1)
_CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV")
_ROUNDING = {
    **dict.fromkeys((*_CONVOLUTIONS, "MEAN", "ADD", "SUB", "MUL", "QUANTIZE"), TWICE),
    **dict.fromkeys(("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "LEAKY_RELU", "HARD_SWISH", "PRELU"), TWICE),
    "FULLY_CONNECTED": ONCE,
    "SOFTMAX": OTHER,
}
"""Rounding of reference kernels: two roundings (rescale, then shift), one rounding, and others."""
_REMEDY = "replace the operator and convert the model again, or export the model as ONNX"


Limits = tuple[float, float] | None
"""Smallest and largest value of a fused clamp, if there is one."""


def channels_first(shape: Sequence[int]) -> Shape:
    """Return a shape of the file in the order of the graph."""
    return tuple(shape[axis] for axis in _FIRST) if len(shape) == 4 else tuple(shape)


def graph_axis(axis: int, rank: int) -> int:
    """Return the graph's axis for an axis of the file, which may be negative."""
    return _LAST[axis] if rank == 4 else axis % rank


def onnx_type(tensor: TfliteTensor) -> int:
    """Return ONNX's number of the type of a tensor; all floats are float32."""
    return TensorProto.FLOAT if tensor.dtype.kind == "f" else int(helper.np_dtype_to_tensor_dtype(tensor.dtype))


class Translation:
    """The ONNX graph under construction.

    Attributes:
        places: operator of the file from which each ONNX tensor comes, by name.
        states: (input, output) of each state of the model.
        name, rounding, notes: of the current operator: name of its first result, `Node.rounding`, metadata of its nodes.
    """

    def __init__(self, file: TfliteFile):
        self.file = file
        self.places: dict[str, str] = {}
        self.states: list[tuple[str, str]] = []
        self.rounding = ""
        self.notes: dict[str, str] = {}
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: dict[str, onnx.TensorProto] = {}
        self._real: dict[int, str] = {}
        self._known: dict[int, TfliteTensor] = {}
        self.fresh = FreshNames(tensor.name for tensor in file.tensors)
        self._blocked: set[int] = set()
        self.name = self._label = ""
        self.variables = Variables(self)

    # ---- names and nodes ------------------------------------------------------------------------
    def emit(self, operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        """Add a node; return its only result."""
        self.emit_many(operator, inputs, [output], **attributes)
        return output

    def emit_many(self, operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> None:
        """Add a node with several results."""
        node = helper.make_node(operator, list(inputs), list(outputs), **attributes)
        for key, value in {ROUNDING: self.rounding, **self.notes}.items():
            if value:
                node.metadata_props.add(key=key, value=value)
        self._nodes.append(node)
        for name in outputs:
            self.places[name] = self._label

    def constant(self, name: str, values: np.ndarray | np.generic) -> str:
        """Add a constant."""
        unique = self.fresh(name)
        self._initializers[unique] = numpy_helper.from_array(np.array(values, order="C"), unique)
        return unique

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with a result that is named after the current operator; return the result."""
        return self.emit(kind, inputs, self.fresh(f"{self.name}_{kind.lower()}"), **attributes)

    def add_two(self, kind: str, *inputs: str, **attributes: Any) -> list[str]:
        """Add a node with two results."""
        results = [self.fresh(f"{self.name}_{kind.lower()}") for _ in range(2)]
        self.emit_many(kind, inputs, results, **attributes)
        return results

    def array(self, values: object, kind: type = np.int64) -> str:
        """Add a constant."""
        return self.constant(f"{self.name}_numbers", np.asarray(values, kind))

    def cut(self, x: str, begin: int, end: int, axis: int) -> str:
        """Add a slice from `begin` to `end` along an axis."""
        return self.add("Slice", x, *(self.array([value]) for value in (begin, end, axis)))

    def shaped(self, x: str, *shape: int) -> str:
        """Return the same elements in a shape of the graph."""
        return self.add("Reshape", x, self.array(shape))

    def gather(self, x: str, positions: str) -> str:
        """Add a gather of elements or rows; a negative position reads the first one."""
        return self.add("Gather", x, self.add("Max", positions, self.array([0])))

    def suppress(self, boxes: str, scores: str, count: int, limits: tuple[float, float]) -> tuple[str, str]:
        """Return class and position (R) of the boxes that NonMaxSuppression keeps; TFLite includes scores equal to the limit.

        `limits`: largest overlap, smallest score.
        """
        overlap, score = limits
        least = np.nextafter(np.float32(score), np.float32(-np.inf))
        bounds = [self.array([value], np.float32) for value in (overlap, least)]
        rows = self.add("NonMaxSuppression", boxes, scores, self.array([count]), *bounds)
        number, box = (self.add("Squeeze", self.cut(rows, index, index + 1, 1), self.array([1])) for index in (1, 2))
        return number, box

    # ---- tensors of the file --------------------------------------------------------------------
    def tensor(self, index: int) -> TfliteTensor:
        """Return a tensor of the file. Raise RefusedOperator if it is absent, or of an unsupported type."""
        if index < 0:
            raise RefusedOperator("a required input is missing")
        tensor = self._known.get(index, self.file.tensors[index])
        if tensor.refusal:
            raise RefusedOperator(f"its tensor '{tensor.name}' {tensor.refusal}")
        return tensor

    def real(self, index: int, rank: int = 0, truth: bool = False) -> str:
        """Return the dequantized tensor in the graph's order, its Booleans, or its integers without a scale.

        Constants get leading axes up to `rank`.
        """
        tensor = self.tensor(index)
        self._need_kind(tensor, truth)
        shape = (1,) * (rank - len(tensor.shape)) + tensor.shape
        if tensor.values is not None:
            return self._constant(tensor, tensor.values, shape)
        if index not in self._real:
            self.need_quantized(tensor)
            self._real[index] = self._dequantize(tensor.name, tensor, self.fresh(f"{tensor.name}_dequantized"))
        name = self._real[index]
        return name if shape == tensor.shape else self.reshape(name, tensor.shape, shape)

    def ordered(self, index: int, truth: bool = False) -> str:
        """Return a tensor as `real` does, with the axes of the file."""
        name = self.real(index, truth=truth)
        if len(self.tensor(index).shape) != 4:
            return name
        return self.emit("Transpose", [name], self.fresh(f"{name}_nhwc"), perm=_LAST)

    def positions(self, index: int) -> str:
        """Return integers as ONNX takes them for positions: int64, with the axes of the file."""
        name = self.ordered(index)
        if self.tensor(index).dtype == np.int64:
            return name
        return self.emit("Cast", [name], self.fresh(f"{name}_positions"), to=int(TensorProto.INT64))

    def _need_kind(self, tensor: TfliteTensor, truth: bool) -> None:
        if (tensor.dtype.kind == "b") != truth:
            raise RefusedOperator(f"'{tensor.name}' is of {tensor.dtype.name}")

    def need_quantized(self, tensor: TfliteTensor) -> None:
        """Raise RefusedOperator for integers without scale, or with a quantization that activations cannot have."""
        if not tensor.is_quantized:
            raise RefusedOperator(f"'{tensor.name}' has type {tensor.dtype.name} and no scale")
        if tensor.scale.size > 1:
            raise RefusedOperator(f"'{tensor.name}' is quantized by channel")
        if tensor.dtype not in (np.int8, np.uint8, np.int16):
            raise RefusedOperator(f"'{tensor.name}' has type {tensor.dtype.name}: only 8 and 16 bits are supported")

    def _grid(self, tensor: TfliteTensor) -> list[str]:
        return [
            self.constant(f"{tensor.name}_scale", tensor.scale[0].astype(np.float32)),
            self.constant(f"{tensor.name}_zero_point", tensor.zero_point[0].astype(tensor.dtype)),
        ]

    def _dequantize(self, name: str, tensor: TfliteTensor, output: str) -> str:
        return self.emit("DequantizeLinear", [name, *self._grid(tensor)], output)

    def _constant(self, tensor: TfliteTensor, values: np.ndarray, shape: Shape) -> str:
        """Add a constant operand, whose `shape` may have more leading axes of 1."""
        if not tensor.is_quantized and tensor.dtype.kind != "f":
            return self.constant(tensor.name, _to_channels_first(values.reshape(shape)))
        axis = graph_axis(tensor.axis - len(tensor.shape), len(shape)) if tensor.scale.size > 1 else 0
        return self.parameter(tensor, lambda stored: _to_channels_first(stored.reshape(shape)), axis)

    def parameter(self, tensor: TfliteTensor, form: Callable[[np.ndarray], np.ndarray] = np.asarray, axis: int = 0) -> str:
        """Add a constant after `form`, with its scales along `axis` of the result: floats, or dequantized integers."""
        name, values = tensor.name, tensor.constant()
        if tensor.dtype.kind == "f":
            return self.constant(name, form(values).astype(np.float32))
        if not tensor.is_quantized:
            raise RefusedOperator(f"'{tensor.name}' has type {tensor.dtype.name} and no scale")
        stored = form(values)
        single = tensor.scale.size == 1
        if not single and stored.shape[axis] != tensor.scale.size:
            raise RefusedOperator(f"the scales of '{tensor.name}' are not those of its outputs")
        inputs = [
            self.constant(f"{name}_stored", stored),
            self.constant(f"{name}_scale", tensor.scale[0] if single else tensor.scale.astype(np.float32)),
        ]
        if tensor.zero_point.any():
            zero = tensor.zero_point.astype(tensor.dtype)
            inputs.append(self.constant(f"{name}_zero_point", zero[0] if single else zero))
        return self.emit("DequantizeLinear", inputs, self.fresh(f"{name}_real"), axis=axis)

    def result(self, index: int, emit: Callable[[str], object], limits: Limits = None, truth: bool = False) -> None:
        """Declare a result; `emit` adds the node that produces its real values (or Booleans) under the given name.

        `limits`: a fused clamp.
        """
        tensor = self.tensor(index)
        if tensor.dtype == np.int32 and tensor.is_quantized and index in self.file.outputs:
            log.notice("%s: output '%s' of 32-bit integers becomes their real numbers", self.file.path, tensor.name)
            tensor = self._known[index] = replace(tensor, dtype=np.dtype(np.float32), scale=tensor.scale[:0])
        self._need_kind(tensor, truth)
        if not tensor.is_quantized:
            self._add_clamped(tensor.name, emit, limits)
            self._real[index] = tensor.name
            return
        self.need_quantized(tensor)
        info, scale, zero = np.iinfo(tensor.dtype), float(tensor.scale[0]), int(tensor.zero_point[0])
        low, high = (np.rint(limit / scale) + zero for limit in limits or (0, 0))
        if low <= info.min and high >= info.max:
            limits = None  # the type itself clamps so
        real = self.fresh(f"{tensor.name}_real")
        self._add_clamped(real, emit, limits)
        self.emit("QuantizeLinear", [real, *self._grid(tensor)], tensor.name)

    def ordered_result(self, index: int, emit: Callable[[str], object], truth: bool = False) -> None:
        """Declare a result as `result` does; `emit` adds the node that produces it with the axes of the file."""
        if len(self.tensor(index).shape) != 4:
            return self.result(index, emit, truth=truth)
        inner = self.fresh(f"{self.tensor(index).name}_nhwc")
        emit(inner)
        return self.result(index, lambda name: self.emit("Transpose", [inner], name, perm=_FIRST), truth=truth)

    def _add_clamped(self, name: str, emit: Callable[[str], object], limits: Limits) -> None:
        if limits is None:
            emit(name)
            return
        inner = self.fresh(f"{name}_linear")
        emit(inner)
        if limits == (0, np.inf):
            self.emit("Relu", [inner], name)
        else:
            ends = zip((f"{name}_low", f"{name}_high"), map(np.float32, limits), strict=True)
            self.emit("Clip", [inner, *(self.constant(end, value) for end, value in ends)], name)

    def alias(self, index: int, source: int) -> None:
        """Declare a result that equals the real values of another tensor."""
        self.result(index, lambda name: self.emit("Identity", [self.real(source)], name))

    # ---- shapes ---------------------------------------------------------------------------------
    def expect_shape(self, index: int, shape: Sequence[int]) -> None:
        """Raise RefusedOperator if a result is declared with another shape; an open size becomes that of `shape`."""
        tensor = self.tensor(index)
        if tensor.is_open:
            return self.set_shape(index, shape)
        declared = tensor.shape
        if tuple(shape) != declared:
            texts = [" x ".join(map(str, dims)) for dims in (tuple(shape), declared)]
            raise RefusedOperator(f"its result is {texts[0]}, but is declared as {texts[1]}")

    def bind(self, index: int, name: str) -> None:
        """Set the real, or complex, values of a result."""
        self._real[index] = name

    def set_shape(self, index: int, shape: Sequence[int], values: np.ndarray | None = None) -> None:
        """Set the shape of a result that the file leaves open, or of a constant result with its `values`."""
        self._known[index] = replace(self.tensor(index), shape=tuple(shape), is_open=False, values=values)

    def reshape(self, name: str, shape: Sequence[int], wanted: Sequence[int], output: str = "") -> str:
        """Add a reshape of a tensor; both shapes in the order of the file."""
        if prod(shape) != prod(wanted):
            raise RefusedOperator(f"{prod(shape)} elements do not match the shape {' x '.join(map(str, wanted))}")
        base = output or name
        if _order_matters(shape):
            name = self.emit("Transpose", [name], self.fresh(f"{base}_nhwc"), perm=_LAST)
        is_transposed = _order_matters(wanted)
        target = self.constant(f"{base}_shape", np.array(wanted if is_transposed else channels_first(wanted), np.int64))
        reshaped = output if output and not is_transposed else self.fresh(f"{base}_reshaped")
        name = self.emit("Reshape", [name, target], reshaped)
        if is_transposed:
            name = self.emit("Transpose", [name], output or self.fresh(f"{base}_nchw"), perm=_FIRST)
        return name

    # ---- the whole ------------------------------------------------------------------------------
    def run(self) -> onnx.ModelProto:
        """Return the model.

        Raises:
            ErrorList: E310 for each kind of operator that cannot be translated, with the first one.
            N2D2Error: E305 unusable inputs and outputs.
        """
        file = self.file
        inputs = self._declare_inputs()
        refusals: dict[tuple[str, str], list[TfliteOperator]] = {}
        needed = self._needed_operators()
        for operator in file.operators:
            if operator.index not in needed:
                continue
            self._label, self.name = file.label(operator), next((file.tensors[index].name for index in operator.outputs), "")
            lowering = LOWERINGS.get("custom " * operator.custom + operator.code)
            try:
                if lowering is None:
                    what = "that of a compiler for an accelerator" if operator.code in COMPILED else "not supported"
                    raise RefusedOperator(f"the {'custom ' * operator.custom}operator is {what}")
                if not self._blocked.intersection(operator.inputs):
                    self.rounding, self.notes = self._rounding(operator), {}
                    lowering(self, operator)
                    continue
            except RefusedOperator as reason:
                refusals.setdefault((operator.code, str(reason)), []).append(operator)
            self._blocked.update(operator.outputs)
        ending = self._ending(refusals.values())
        ErrorList.raise_if([self._refused(code, reason, those, ending) for (code, reason), those in refusals.items()])
        outputs = [self._output(index) for index in file.outputs]
        states = self.variables.states()
        self.states = [(source.name, value.name) for source, value in states]
        inputs += [source for source, _ in states]
        outputs += [value for _, value in states]
        graph = helper.make_graph(self._nodes, file.path, inputs, outputs, list(self._initializers.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="tflite")
        model.ir_version = 10
        return model

    def _rounding(self, operator: TfliteOperator) -> str:
        """Return the rounding of an operator's reference kernel, as `Node.rounding`."""
        rule = _ROUNDING.get(operator.code, "")
        ends = [self.file.tensors[index].dtype for index in (*operator.inputs, *operator.outputs) if index >= 0]
        if operator.code in ("AVERAGE_POOL_2D", "RESIZE_BILINEAR"):
            rule = {"int8": INT8, "uint8": UINT8}.get(ends[0].name, OTHER)
        elif operator.code in _CONVOLUTIONS and np.uint8 in ends[1:2]:
            rule = TWICE_UINT8
        return OTHER if rule and np.int16 in ends else rule

    def _ending(self, refusals: Iterable[list[TfliteOperator]]) -> str:
        """Return the remedy that leaves the refused operators and all after them out."""

        def names(indexes: Sequence[int]) -> list[str]:
            return [self.file.tensors[index].name for index in indexes if index >= 0]

        nodes = [(names(operator.inputs), names(operator.outputs)) for operator in self.file.operators]
        refused = {name for operators in refusals for operator in operators for name in names(operator.outputs)}
        return propose_outputs(nodes, refused, names(self.file.outputs)) if refused else ""

    def _refused(self, code: str, reason: str, operators: list[TfliteOperator], ending: str) -> N2D2Error:
        number = "1 operator" if len(operators) == 1 else f"{len(operators)} operators, the first one here"
        what = f"{code} ({number}) cannot be imported: {reason}"
        remedy = "give the file before that compiler" if code in COMPILED else _REMEDY + ending
        return N2D2Error("E310", what, where=self.file.place(operators[0]), remedy=remedy)

    def _needed_operators(self) -> set[int]:
        """Return the operators that contribute to an output; computed shapes are known from the tensors."""
        wanted, needed = set(self.file.outputs), set()
        for operator in reversed(self.file.operators):
            if wanted.intersection(operator.outputs) or operator.code == "ASSIGN_VARIABLE":
                needed.add(operator.index)
                wanted.update(operator.inputs[:1] if operator.code == "RESHAPE" else operator.inputs)
        return needed

    def _declare_inputs(self) -> list[onnx.ValueInfoProto]:
        inputs = []
        for index in self.file.inputs:
            try:
                name = self.tensor(index).name
                self._label = f"input {name}"
                inputs.append(self.graph_input(index, name))
            except RefusedOperator as reason:
                what = f"the input '{self.file.tensors[index].name}' cannot be used: {reason}"
                raise N2D2Error("E305", what, where=Location(self.file.path), remedy="convert the model again") from None
        return inputs

    def graph_input(self, index: int, name: str) -> onnx.ValueInfoProto:
        """Return a graph input called `name` for a tensor of the file."""
        tensor, self._real[index] = self.tensor(index), name
        if 0 in tensor.shape:
            raise RefusedOperator("it has no elements")
        if not tensor.is_quantized:
            return self._output(index, name)
        self.need_quantized(tensor)
        stored = self.emit("QuantizeLinear", [name, *self._grid(tensor)], self.fresh(f"{name}_quantized"))
        self._real[index] = self._dequantize(stored, tensor, self.fresh(f"{name}_dequantized"))
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, channels_first(tensor.shape))

    def _output(self, index: int, name: str = "") -> onnx.ValueInfoProto:
        """Return the declaration of a tensor, with its name or another one."""
        tensor = self._known.get(index, self.file.tensors[index])
        kind = helper.np_dtype_to_tensor_dtype(tensor.dtype)
        return helper.make_tensor_value_info(name or tensor.name, kind, channels_first(tensor.shape))

    def state(self, index: int, next_value: Callable[[str], str]) -> str:
        """Add a variable that an operator keeps between calls; `next_value` adds its update from the old real values.

        Returns:
            The new real values, rounded to the variable's scale.
        """
        tensor = replace(self.file.tensors[index], refusal="")
        if tensor.values is not None or index in self._real:
            raise RefusedOperator(f"its state '{tensor.name}' is a constant, or belongs to another operator")
        self._known[index] = tensor
        source = self.graph_input(index, self.fresh(tensor.name))
        stored = self._stored_real(tensor, next_value(self._real[index]))
        self.variables.own.append((source, self._output(index, stored[0])))
        return stored[1]

    def in_grid(self, index: int, real: str) -> str:
        """Round real values to the scale of a tensor of the file."""
        return self._stored_real(self.tensor(index), real)[1]

    def _stored_real(self, tensor: TfliteTensor, real: str) -> tuple[str, str]:
        """Return real values in the type of a tensor, and their dequantized values."""
        if not tensor.is_quantized:
            return real, real
        stored = self.emit("QuantizeLinear", [real, *self._grid(tensor)], self.fresh(f"{tensor.name}_stored"))
        return stored, self._dequantize(stored, tensor, self.fresh(f"{tensor.name}_next"))

    def graph_output(self, index: int, copied: bool) -> onnx.ValueInfoProto:
        """Return a graph output for a tensor; a copy if the tensor is already an output, or an input."""
        if not copied:
            return self._output(index)
        tensor = self.tensor(index)
        name, real = self.fresh(f"{tensor.name}_kept"), self.real(index)
        kind, grid = ("QuantizeLinear", self._grid(tensor)) if tensor.is_quantized else ("Identity", [])
        return self._output(index, self.emit(kind, [real, *grid], name))


class Variables:
    """The variables of the file as states: graph inputs, and the outputs that replace them in the next call.

    VAR_HANDLE names a variable, READ_VARIABLE reads it and ASSIGN_VARIABLE writes it, also for the next call. The subgraph of
    CALL_ONCE assigns the initial value. Streaming networks (microWakeWord, stateful Keras exports) keep past frames in variables.

    Attributes:
        own: states of single operators: a graph input, and the output that replaces it in the next call.
    """

    def __init__(self, tensors: Translation):
        self._t = tensors
        self._names = tensors.file.variables()
        self._first: dict[str, tuple[int, onnx.ValueInfoProto]] = {}
        self._last: dict[str, int] = {}
        self.own: list[tuple[onnx.ValueInfoProto, onnx.ValueInfoProto]] = []

    def read(self, index: int, handle: int) -> None:
        """Declare a result with the value of a variable: that of the last call until it is assigned."""
        name = self._name(handle)
        source = self._last.get(name, self._first[name][0] if name in self._first else None)
        if source is not None:
            self._need_same(index, source, name)
            return self._t.alias(index, source)
        tensor, initial = self._t.tensor(index), self._t.file.initial.get(name)
        if initial is None or initial.values is None:
            raise RefusedOperator(f"its variable '{name}' has no value before the first call")
        zero = tensor.zero_point[0] if tensor.is_quantized else 0
        if initial.dtype != tensor.dtype or initial.values.size != prod(tensor.shape) or np.any(initial.values != zero):
            raise RefusedOperator(f"its variable '{name}' does not start as zeros")
        self._first[name] = index, self._t.graph_input(index, self._t.fresh(name))

    def assign(self, handle: int, index: int) -> None:
        """Set the value of a variable from here on, and for the next call."""
        name = self._name(handle)
        if self._t.tensor(index).values is not None:
            raise RefusedOperator(f"its variable '{name}' becomes a constant")
        self._last[name] = index

    def states(self) -> list[tuple[onnx.ValueInfoProto, onnx.ValueInfoProto]]:
        """Return the graph input and output of each state, in the order of their first read.

        Raises N2D2Error: E310 a variable that is never assigned, or whose assigned form differs from the form read.
        """
        states, known = [], {*self._t.file.outputs, *(index for index, _ in self._first.values())}
        for name, (index, source) in self._first.items():
            value = self._last.get(name)
            try:
                if value is None:
                    raise RefusedOperator(f"the variable '{name}' is never assigned")
                self._need_same(index, value, name)
                states.append((source, self._t.graph_output(value, value in known)))
            except RefusedOperator as reason:
                remedy = "convert the model with a variable that keeps its value"
                raise N2D2Error("E310", str(reason), where=Location(self._t.file.path), remedy=remedy) from None
            known.add(value)
        return [*states, *self.own]

    def _name(self, handle: int) -> str:
        if handle not in self._names:
            raise RefusedOperator("its variable is not a result of VAR_HANDLE")
        return self._names[handle]

    def _need_same(self, index: int, source: int, name: str) -> None:
        forms = [
            (one.dtype, one.shape, one.scale.tolist(), one.zero_point.tolist()) for one in map(self._t.tensor, (index, source))
        ]
        if forms[0] != forms[1]:
            raise RefusedOperator(f"the variable '{name}' is assigned with another shape or type than it is read")


_MODULES = [f"n2d2py.frontend.tflite.{name}" for name in ("operators", "array_operators", "recurrent", "detections")]
LOWERINGS: Registry[Callable[..., None]] = Registry("the translation of", *_MODULES)
"""Translations by name of the operator, "custom NAME" for custom operators."""


def lowers(*names: str, inputs: Sequence[Input] | None = None, **facts: Any) -> Callable[[Callable], Callable]:
    """Return a decorator that registers a lowering of operators that fit `Signature(inputs, **facts)`; without inputs nothing is
    checked. The lowering gets the Translation, the operator, and what the signature reads."""
    signature = None if inputs is None else Signature(inputs, **facts)

    def add(function: Callable) -> Callable:
        LOWERINGS.declare(*names)(lambda t, op: function(t, op, *(signature.read(op, t.tensor) if signature else ())))
        return function

    return add


def _order_matters(shape: Sequence[int]) -> bool:
    """True if N, H, W, C and N, C, H, W differ in element order for a shape."""
    return len(shape) == 4 and shape[3] > 1 and shape[1] * shape[2] > 1


def _to_channels_first(values: np.ndarray) -> np.ndarray:
    return values.transpose(_FIRST) if values.ndim == 4 else values
