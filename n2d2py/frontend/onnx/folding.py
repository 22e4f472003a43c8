"""Constant folding with the reference implementation of the onnx package, also for a file of a fixed batch size.

The samples of a fixed batch are imported separately with batch 1, and shapes are folded with batch 1. A number that the graph
computes from the batch size then changes; this module keeps the value for the file's batch size too.

A network may mix the samples of a batch. If a transposition moves the batch axis, no check of single nodes can detect this. An
example is attention over the first axis, as in PyTorch's TransformerEncoder without `batch_first`: it is correct for one sample
and mixes several. Two samples are run together and separately to detect it.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import helper

from n2d2py.contracts.onnx.skeleton import has_graphs, tensor_types
from n2d2py.contracts.onnx.tensors import Unsupported
from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.model import OnnxInput, OnnxModel
from n2d2py.graph.shapes import Shape

_Values = Sequence[np.ndarray | None]
SHAPE_READERS = ("Shape", "Size")
"""Operators whose result depends only on the shape of their input."""
_ARITHMETIC = "Constant ConstantOfShape Equal Expand Gather Greater If Less Not Range Slice Split Where"
SHAPE_ARITHMETIC = (*SHAPE_READERS, *_ARITHMETIC.split())
"""Operators that exporters use to compute shapes; they need no converter if they are folded."""

_RANDOM = ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli")
_QUANTIZED = ("QuantizeLinear", "DequantizeLinear")


def is_foldable(proto: onnx.NodeProto) -> bool:
    """True if the node is deterministic, has no subgraphs, an inferred size, and is not part of a quantized network."""
    return not (proto.domain or proto.op_type in (*_RANDOM, *_QUANTIZED, "MaxUnpool") or has_graphs(proto))


def _global_max_pool(proto: onnx.NodeProto, x: np.ndarray) -> np.ndarray:
    """Return the maximum over all spatial axes; the reference implementation is only correct for rank 4."""
    return x.max(axis=tuple(range(2, x.ndim)), keepdims=True)


def _gather_elements(proto: onnx.NodeProto, data: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return GatherElements; the reference implementation refuses axes above 64, and fewer index rows than data rows."""
    axis = next((attribute.i for attribute in proto.attribute), 0) % data.ndim
    lines = tuple(slice(None) if each == axis else slice(size) for each, size in enumerate(indices.shape))
    return np.take_along_axis(data[lines], indices, axis)


_FLATTENED = ("Softmax", "LogSoftmax", "Hardmax")
"""Operators that flattened the axes from `axis` on before this version, unlike the reference implementation."""
_SINGLE_AXIS_OPSET = 13


def _flattened_softmax(proto: onnx.NodeProto, x: np.ndarray) -> np.ndarray:
    lines = x.reshape(prod(x.shape[: next((a.i for a in proto.attribute), 1)]), -1)
    (values,) = evaluate(helper.make_node(proto.op_type, proto.input, proto.output, axis=1), [lines], _SINGLE_AXIS_OPSET)
    return values.reshape(x.shape)


_CORRECTIONS = {"GlobalMaxPool": _global_max_pool, "GatherElements": _gather_elements}
"""Replacements of incorrect reference implementations."""


def evaluate(proto: onnx.NodeProto, values: _Values, opset: int) -> list[np.ndarray]:
    """Return the outputs of a node for input values (None: absent).

    Raises Unsupported: the node cannot be evaluated.
    """
    from onnx.reference import ReferenceEvaluator

    if proto.op_type == "CumSum" and values[1] is not None and values[1].size == 1:
        values = [values[0], values[1].reshape(())]  # torch.onnx writes the axis with one dimension
    known = {name: value for name, value in zip(proto.input, values, strict=True) if value is not None}
    kinds = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in known.items()}
    inputs = [helper.make_tensor_value_info(name, kinds[name], value.shape) for name, value in known.items()]
    names = [name for name in proto.output if name]
    graph = helper.make_graph([proto], "fold", inputs, [onnx.ValueInfoProto(name=name) for name in names])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    if proto.op_type in _FLATTENED and opset < _SINGLE_AXIS_OPSET:
        return [_flattened_softmax(proto, np.asarray(values[0]))]
    try:
        if proto.op_type in _CORRECTIONS:
            return [_CORRECTIONS[proto.op_type](proto, *values)]
        results = [np.asarray(result) for result in ReferenceEvaluator(model).run(None, known)]
    except Exception as error:  # the evaluator raises whatever NumPy or its operators raise
        text = str(error).partition("\n")[0][:80] or type(error).__name__
        raise Unsupported(f"its constant value cannot be computed ({text})") from None
    by_name = dict(zip(names, results, strict=True))
    return [by_name.get(name, np.empty(0)) for name in proto.output]


# ---- the batch size of the file ------------------------------------------------------------------
_TOLERANCE = 0.02
"""Largest relative root mean square difference of an output due to rounding or a step of a few integers."""
_MAX_BYTES = 2**30
"""Largest model that is run, in bytes: protobuf ends at 2 GiB, and the runtime copies the weights."""


def refuse_mixed_samples(model: OnnxModel) -> None:
    """Run a model with a free batch, whose batch axis a node moves, on two samples together and separately.

    Without ONNX Runtime, or if it cannot run two samples, nothing is checked.

    Raises N2D2Error: E310 an output differs.
    """
    if model.batch is not None or not model.options.load_weights or not _moves_first_axis(model.proto.graph):
        return
    if model.proto.ByteSize() > _MAX_BYTES or any(one.is_open or len(one.dims) < 2 for one in model.inputs):
        return
    random = np.random.default_rng(0)
    both = {one.name: _draw_samples(one, random) for one in model.inputs}
    try:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # nodes that it cannot run are not errors here
        options.intra_op_num_threads = 1
        data = model.proto.SerializeToString()
        session: Any = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        results = session.run(model.outputs, both)
        parts = [session.run(model.outputs, {name: x[i : i + 1] for name, x in both.items()}) for i in range(2)]
    except Exception:  # ONNX Runtime has no common base class for its errors; ImportError without it
        return
    for name, together, *alone in zip(model.outputs, results, *parts, strict=True):
        if not _is_concatenation(together, alone):
            what = f"the model mixes the samples of a batch: output '{name}' of two samples differs from those of each alone"
            remedy = "correct the batch axis of the model, or give -input-shape with a leading 1"
            raise N2D2Error("E310", what, where=model.place(), remedy=remedy)


def _moves_first_axis(graph: onnx.GraphProto) -> bool:
    constants = {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Transpose" and node.input[0] not in constants:
            perm = next((list(one.ints) for one in node.attribute if one.name == "perm"), None)
            if perm is None or perm[0] != 0:
                return True
    return False


def _draw_samples(one: OnnxInput, random: np.random.Generator) -> np.ndarray:
    dtype = onnx.helper.tensor_dtype_to_np_dtype(one.element_type)
    shape = (2, *filter(None, one.shape[1:]))  # all are known here
    return random.integers(0, 2, shape).astype(dtype) if dtype.kind in "iub" else random.normal(size=shape).astype(dtype)


def _is_concatenation(together: np.ndarray, alone: list[np.ndarray]) -> bool:
    """True if a result for two samples concatenates the separate results along some axis, or if the results are inconclusive:
    other shapes, integers, and values that are not finite."""
    if together.dtype.kind != "f" or not all(np.isfinite(one).all() for one in (together, *alone)):
        return True
    sizes = zip(together.shape, *(part.shape for part in alone), strict=False)
    axes = [axis for axis, (both, *each) in enumerate(sizes) if both == sum(each)]
    if len(axes) != 1 or together.ndim != alone[0].ndim:
        return True
    concatenated = np.concatenate(alone, axes[0]).astype(np.float64)
    return bool(np.square(together - concatenated).sum() <= _TOLERANCE**2 * np.square(concatenated).sum())


_SHAPE_INPUTS = {"Reshape": 1, "Expand": 1, "Resize": 3}
"""Index of the input with the shape of the result."""
_POSITION_OPERATORS = ("Gather", "GatherElements", "GatherND", "Pad", "Slice", "Split", "Tile", "TopK", "Upsample")
"""Operators with constants that are positions or counts of elements."""


class BatchValues:
    """The constants of a file of batch size `batch` that differ from those for batch 1: `values` by name."""

    def __init__(self, proto: onnx.ModelProto, batch: int):
        self._batch = batch
        self.values: dict[str, np.ndarray] = {}
        self._shapes: dict[str, Shape] = {}
        if batch == 1 or not any(node.op_type in SHAPE_READERS for node in proto.graph.node):
            return
        for name, value in tensor_types(proto).items():
            dims = value.type.tensor_type.shape.dim
            if all(size.HasField("dim_value") for size in dims):
                self._shapes[name] = tuple(size.dim_value for size in dims)

    def fold(self, node: onnx.NodeProto, values: _Values, results: list[np.ndarray], opset: int, check: Callable) -> None:
        """Fold a node for the file's batch size too, if its inputs differ from the `values` for batch 1, after a `check` of it."""
        inputs = [self._read(name, value, node) for name, value in zip(node.input, values, strict=True)]
        if all(one is value for one, value in zip(inputs, values, strict=True)):
            return
        check(node)
        for name, one, value in zip(node.output, evaluate(node, inputs, opset), results, strict=True):
            if name and not np.array_equal(one, value):
                self.values[name] = one

    def _read(self, name: str, value: np.ndarray | None, node: onnx.NodeProto) -> np.ndarray | None:
        if value is None or name in self.values:
            return self.values.get(name, value)
        if node.op_type not in SHAPE_READERS or any(value.strides):
            return value
        guess = (self._batch, *value.shape[1:]) if value.shape[:1] == (1,) else value.shape
        shape = self._shapes.get(name, guess)
        return value if shape == value.shape else np.broadcast_to(value.reshape(-1)[:1].reshape(()), shape)

    def of(self, node: onnx.NodeProto, constants: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the constants that a node must read with their values for the file's batch size.

        Raises Unsupported: separate samples cannot reproduce the node's result.
        """
        constants_of_file = {}
        for index, name in enumerate(node.input):
            if name not in self.values:
                continue
            one, value = self.values[name], constants[name]
            if _SHAPE_INPUTS.get(node.op_type) == index:
                fits = one.shape == value.shape and one[0] == self._batch * value[0] and np.array_equal(one[1:], value[1:])
            elif node.op_type in _POSITION_OPERATORS and index:
                fits = False
            elif one.shape == value.shape:
                constants_of_file[name], fits = one, True
            else:  # the same for every image
                fits = one.shape[1:] == value.shape[1:] and len(value) == 1 and bool(np.all(one == value))
            if not fits:
                raise Unsupported("it uses the batch size as a number", "export the model with batch 1")
        return constants_of_file
