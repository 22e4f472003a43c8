"""ONNX files with random weights from memory graphs, and the INI files that read them.

The graphs are those of `tests/support/memory_networks.py`: a network of a given topology, whatever its weights, runs through the
whole tool and its export.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from n2d2py.memory.format import graph_json
from n2d2py.memory.problem import MemoryProblem

__all__ = ["write_network"]

INI = """[database]
Type=Random_Database
NbStimuli=16
NbLabels=2

[sp]
SizeX={width}
SizeY={height}
NbChannels={channels}

[sp.Transformation]
Type=RangeAffineTransformation
FirstOperator=Multiplies
FirstValue=0.01

[onnx]
Type=ONNX
Input=sp
File={file}
"""


def write_network(problem: MemoryProblem, folder: Path, name: str) -> Path:
    """NAME.onnx with weights of He's distribution (seed 0), opset 13, and NAME.ini, whose path is returned.

    A rectifier follows every convolution that no sum reads, and every sum. Raises KeyError for an operator without
    an ONNX form here.
    """
    writer = _Writer(problem)
    for op in writer.ops:
        getattr(writer, f"_{op['type']}")(op)
    ends = [_port(problem, name) for name in problem.inputs], [_port(problem, name, False) for name in problem.outputs]
    graph = helper.make_graph(writer.nodes, name, *ends, writer.constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), folder / f"{name}.onnx")
    source = problem.tensors[problem.inputs[0]]
    path = folder / f"{name}.ini"
    path.write_text(
        INI.format(width=source.width, height=source.height, channels=source.channels, file=f"{name}.onnx")
        + "".join(f"\n[{name}.Target]\n" for name in problem.outputs)
    )
    return path


def _port(problem: MemoryProblem, name: str, sized: bool = True):
    tensor = problem.tensors[name]
    shape = [1, tensor.channels, tensor.height, tensor.width] if sized else None
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


class _Writer:
    """The nodes and constants of a graph; a method for each type of operator."""

    def __init__(self, problem: MemoryProblem):
        self.problem, self.nodes, self.constants = problem, [], []
        self._random = np.random.default_rng(0)
        self.ops = graph_json(problem)["ops"]
        self._summed = {name for op in self.ops if op["type"] == "add" for name in op["inputs"]}

    def _constant(self, name: str, values: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(values, name))
        return name

    def _weights(self, op: dict[str, Any], shape: tuple[int, ...]) -> list[str]:
        fan_in = int(np.prod(shape[1:]))
        values = self._random.normal(0, np.sqrt(2 / fan_in), shape).astype(np.float32)
        biases = self._random.normal(0, 0.05, shape[0]).astype(np.float32)
        return [self._constant(f"{op['name']}.w", values), self._constant(f"{op['name']}.b", biases)]

    def _node(self, type: str, op: dict[str, Any], *more: str, rectified: bool = False, **attributes) -> None:
        """Adds a node of the inputs of `op` and `more`."""
        made = f"{op['output']}.sum" if rectified else op["output"]
        self.nodes.append(helper.make_node(type, [*op["inputs"], *more], [made], name=op["name"], **attributes))
        if rectified:
            self.nodes.append(helper.make_node("Relu", [made], [op["output"]], name=f"{op['name']}.relu"))

    def _conv(self, op: dict[str, Any]) -> None:
        tensors = self.problem.tensors
        shape = (tensors[op["output"]].channels, tensors[op["inputs"][0]].channels // op["groups"], op["kh"], op["kw"])
        how = {"group": op["groups"], "dilations": [op["dil"]] * 2, "rectified": op["output"] not in self._summed}
        self._node("Conv", op, *self._weights(op, shape), **self._window(op), **how)

    def _window(self, op: dict[str, Any]) -> dict[str, Any]:
        return {"kernel_shape": [op["kh"], op["kw"]], "strides": [op["sh"], op["sw"]], "pads": op["pads"]}

    def _pool(self, op: dict[str, Any]) -> None:
        source = self.problem.tensors[op["inputs"][0]]
        whole = (op["kh"], op["kw"]) == (source.height, source.width)
        self._node("AveragePool" if whole else "MaxPool", op, **self._window(op))

    def _add(self, op: dict[str, Any]) -> None:
        self._node("Add", op, rectified=True)

    def _concat(self, op: dict[str, Any]) -> None:
        self._node("Concat", op, axis=1)

    def _softmax(self, op: dict[str, Any]) -> None:
        self._node("Softmax", op, axis=1)

    def _upsample(self, op: dict[str, Any]) -> None:
        scales = self._constant(f"{op['name']}.scales", np.array([1, 1, *[op["scale"]] * 2], np.float32))
        how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        self._node("Resize", op, "", scales, **how)

    def _fc(self, op: dict[str, Any]) -> None:
        flat = f"{op['output']}.flat"
        self.nodes.append(helper.make_node("Flatten", list(op["inputs"]), [flat], name=f"{op['name']}.flatten"))
        size = int(np.prod(self.problem.tensors[op["inputs"][0]].shape))
        weights = self._weights(op, (self.problem.tensors[op["output"]].channels, size))
        self._node("Gemm", {**op, "inputs": [flat]}, *weights, transB=1)
