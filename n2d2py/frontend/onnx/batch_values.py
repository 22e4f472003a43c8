"""Constants that a file of a fixed batch computes from the size of its batch.

Images of such a file are imported side by side, each with batch 1, and shapes are folded so. What a graph computes from the size of the
batch as a number is another constant then: this module keeps that of the file too.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx

from n2d2py.frontend.onnx import folding
from n2d2py.frontend.onnx.skeleton import skeleton
from n2d2py.frontend.onnx.unsupported import Unsupported
from n2d2py.graph.shapes import Shape

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
