"""ONNX files that grow node by node, with weights drawn by seed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper


class Net:
    """A network from the input x; methods return the name of what they add."""

    def __init__(self, seed: int):
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.random = np.random.default_rng(seed)

    def constant(self, *values: float | np.ndarray) -> str:
        """Adds an array, or numbers; real ones become float32."""
        name = f"constant{len(self.constants)}"
        array = values[0] if isinstance(values[0], np.ndarray) else np.array(values)
        self.constants.append(numpy_helper.from_array(array.astype(np.float32) if array.dtype.kind == "f" else array, name))
        return name

    def drawn(self, deviation: float, *shape: int) -> str:
        """Adds a constant of normal values."""
        return self.constant(self.random.normal(0, deviation, shape))

    def add(self, kind: str, *inputs: str, outputs: Sequence[str] = (), **attributes: object) -> str:
        """Adds a node; `outputs`: their names, the last one is returned."""
        outputs = outputs or [f"{kind.lower()}{len(self.nodes)}"]
        self.nodes.append(helper.make_node(kind, inputs, outputs, **attributes))
        return outputs[-1]

    def save(self, path: Path, shape: list, output: str, opset: int = 17) -> None:
        """Writes the file; `shape`: that of x."""
        ends = [[helper.make_tensor_value_info(name, 1, dims)] for name, dims in (("x", shape), (output, None))]
        graph = helper.make_graph(self.nodes, path.stem, *ends, self.constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
