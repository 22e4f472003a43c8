"""Constants that a file of a fixed batch computes from the size of its batch.

Images of such a file are imported side by side, each with batch 1, and shapes are folded so. What a graph computes from the
size of the
batch as a number is another constant then: this module keeps that of the file too.

A network may also compute another result for two stimuli together than for each alone. Where a transposition moves the batch
axis, no
rule about single nodes can tell: attention over the first axis of a file whose first axis is the batch, as PyTorch's
TransformerEncoder
without `batch_first` has it, looks right for one stimulus and mixes all that come together. Running the file shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx import folding
from n2d2py.frontend.onnx.model import OnnxInput, OnnxModel
from n2d2py.frontend.onnx.skeleton import skeleton
from n2d2py.frontend.onnx.unsupported import Unsupported
from n2d2py.graph.shapes import Shape

_OFF = 0.02
"""Root of the squared difference by the power of an output, above which it is neither rounding nor a step of a few integers."""
_MOST_BYTES = 2**30
"""Models above this are not run: protobuf writes up to 2 GiB, and a runtime holds the weights once more."""


def refuse_mixed_stimuli(model: OnnxModel) -> None:
    """Run a file with a batch of free size, whose batch axis some node moves, on two stimuli and on each of them.

    What ONNX Runtime cannot run with two stimuli is left alone: it is a network for one. Nothing is run where it is not
        installed.

    Raises:
        N2D2Error: E310 where an output differs.
    """
    if model.batch is not None or not model.load_weights or not _moves_first_axis(model.proto.graph):
        return
    if model.proto.ByteSize() > _MOST_BYTES or any(one.is_open or len(one.dims) < 2 for one in model.inputs):
        return
    random = np.random.default_rng(0)
    both = {one.name: _drawn(one, random) for one in model.inputs}
    try:
        session = _session(model.proto)
        found = session.run(model.outputs, both)
        parts = [session.run(model.outputs, {name: x[i : i + 1] for name, x in both.items()}) for i in range(2)]
    except Exception:  # ONNX Runtime has no common base class for its errors; ImportError without it
        return
    for name, together, *alone in zip(model.outputs, found, *parts, strict=True):
        if not _is_joined(together, alone):
            raise N2D2Error(
                "E310",
                f"the model mixes the samples of a batch: output '{name}' of two samples differs from the outputs of each "
                "alone",
                where=model.place(),
                remedy="correct the batch axis of the model, or give -input-shape with a leading 1",
            )


def _session(proto: onnx.ModelProto) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # nodes that it cannot run are not errors here
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _moves_first_axis(graph: onnx.GraphProto) -> bool:
    """True if a transposition of what is computed puts another axis in front."""
    constants = {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Transpose" and node.input[0] not in constants:
            perm = next((list(one.ints) for one in node.attribute if one.name == "perm"), None)
            if perm is None or perm[0] != 0:
                return True
    return False


def _drawn(one: OnnxInput, random: np.random.Generator) -> np.ndarray:
    """Two stimuli for an input."""
    dtype = onnx.helper.tensor_dtype_to_np_dtype(one.element_type)
    shape = (2, *filter(None, one.shape[1:]))  # all are known here
    return random.integers(0, 2, shape).astype(dtype) if dtype.kind in "iub" else random.normal(size=shape).astype(dtype)


def _is_joined(together: np.ndarray, alone: list[np.ndarray]) -> bool:
    """True if a result for two stimuli is those of each, joined along some axis; True for what says nothing: other shapes, integers, and
    what is not finite."""
    parts = [np.asarray(part) for part in alone]
    if together.dtype.kind != "f" or not all(np.isfinite(one).all() for one in (together, *parts)):
        return True
    if together.ndim != parts[0].ndim:
        return True
    axes = [axis for axis, size in enumerate(together.shape) if size == parts[0].shape[axis] + parts[1].shape[axis]]
    if len(axes) != 1:
        return True
    joined = np.concatenate(parts, axes[0]).astype(np.float64)
    return bool(np.square(together - joined).sum() <= _OFF**2 * np.square(joined).sum())


_SHAPES = {"Reshape": 1, "Expand": 1, "Resize": 3}
"""The input that holds the shape of the result."""
_PLACES = ("Gather", "GatherElements", "GatherND", "Pad", "Slice", "Split", "Tile", "TopK", "Upsample")
"""Operators whose constants say places or counts of elements."""


class BatchValues:
    """The constants of the file by name, as far as they differ from those for batch 1.

    Attributes:
        batch: the size of the batch in the file.
    """

    def __init__(self, proto: onnx.ModelProto, batch: int):
        self.batch = batch
        self._values: dict[str, np.ndarray] = {}
        self._shapes: dict[str, Shape] = {}
        if not any(node.op_type in folding.SHAPE_READERS for node in proto.graph.node):
            return
        try:
            graph = onnx.shape_inference.infer_shapes(skeleton(proto), data_prop=True).graph
        except (onnx.shape_inference.InferenceError, ValueError):  # a damaged file is refused elsewhere
            return
        for value in (*graph.input, *graph.value_info, *graph.output):
            dims = value.type.tensor_type.shape.dim
            if all(size.HasField("dim_value") for size in dims):
                self._shapes[value.name] = tuple(size.dim_value for size in dims)

    def fold(self, node: onnx.NodeProto, values: list[np.ndarray | None], results: list[np.ndarray], opset: int) -> None:
        """Follow a node that was folded for batch 1: its `values` and `results`."""
        inputs = [self._read(name, value, node) for name, value in zip(node.input, values, strict=True)]
        if all(one is value for one, value in zip(inputs, values, strict=True)):
            return
        for name, one, value in zip(node.output, folding.evaluate(node, inputs, opset), results, strict=True):
            if name and not np.array_equal(one, value):
                self._values[name] = one

    def _read(self, name: str, value: np.ndarray | None, node: onnx.NodeProto) -> np.ndarray | None:
        if value is None or name in self._values:
            return self._values.get(name, value)
        if node.op_type not in folding.SHAPE_READERS or any(value.strides):
            return value
        guess = (self.batch, *value.shape[1:]) if value.shape[:1] == (1,) else value.shape
        shape = self._shapes.get(name, guess)
        return value if shape == value.shape else np.broadcast_to(value.reshape(-1)[:1].reshape(()), shape)

    def get(self, name: str, default: np.ndarray | None) -> np.ndarray | None:
        """The constant of the file."""
        return self._values.get(name, default)

    def of(self, node: onnx.NodeProto, constants: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The constants that a node has to read as the file has them.

        Raises:
            Unsupported: where images side by side are not what the node computes.
        """
        found = {}
        for at, name in enumerate(node.input):
            if name not in self._values:
                continue
            one, value = self._values[name], constants[name]
            if _SHAPES.get(node.op_type) == at:
                fits = one.shape == value.shape and one[0] == self.batch * value[0] and np.array_equal(one[1:], value[1:])
            elif node.op_type in _PLACES and at:
                fits = False
            elif one.shape == value.shape:
                found[name], fits = one, True
            else:  # the same for every image
                fits = one.shape[1:] == value.shape[1:] and len(value) == 1 and bool(np.all(one == value))
            if not fits:
                raise Unsupported("it uses the batch size as a number", "export the model with batch 1")
        return found
