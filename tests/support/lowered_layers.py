"""The C++ of a layer alone in its network, as types, constants and arrays."""

from __future__ import annotations

import numpy as np

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.identifiers import Identifiers
from n2d2py.exports.cpp.layer import layer_code
from n2d2py.exports.cpp.parts import LayerConfig
from n2d2py.graph import QuantGraph, QuantNode, QuantTensor
from n2d2py.memory.from_graph import memory_problem
from n2d2py.memory.planning import plan_memory

__all__ = ["code_of", "lowered"]


def code_of(op, shapes, output, kind, kinds=None, **fields) -> LayerCode:
    """The C++ of a layer alone in its network; `kinds`: the types of its inputs, where they differ from that of its output."""
    names = [f"x{index}" for index in range(len(shapes))]
    graph = QuantGraph("g", 8 if not kind.is_float else -32, inputs=names, outputs=["y"])
    types = kinds or [kind] * len(names)
    graph.tensors = {name: QuantTensor(name, shape, each) for name, shape, each in zip(names, shapes, types, strict=True)}
    graph.tensors["y"] = QuantTensor("y", output, kind)
    graph.nodes = [QuantNode("y", op, names, ["y"], **fields)]
    return layer_code(graph.nodes[0], graph, plan_memory(memory_problem(graph)), Identifiers(graph))


def lowered(op, shapes, output, kind, **fields) -> tuple[dict, dict, dict[str, np.ndarray]]:
    """(types, constants of each struct, arrays) of the C++ of a layer alone in its network."""
    code = code_of(op, shapes, output, kind, **fields)
    config = next(struct for struct in code.structs if isinstance(struct, LayerConfig))
    functions = {struct.name: struct.functions for struct in code.structs if not isinstance(struct, LayerConfig)}
    return {**config.types, **config.constants}, functions, {array.name: array.values for array in code.arrays}
