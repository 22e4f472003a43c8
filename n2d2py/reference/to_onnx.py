"""Writes a float Graph as an ONNX model (opset 17) with a free batch dimension."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx
from onnx import TensorProto, helper

from n2d2py.graph import Graph
from n2d2py.reference.contract import OnnxWriter

OPSET = 17
IR_VERSION = 8


def to_onnx(graph: Graph, taps: Iterable[str] = ()) -> onnx.ModelProto:
    """An ONNX model with the same inputs and outputs; `taps` names tensors that become outputs too.

    Raises:
        NoOnnxForm: when a layer cannot be written.
    """
    writer = OnnxWriter(graph)
    for node in graph.nodes:
        writer.write(node)
    outputs = [name for name in dict.fromkeys([*graph.outputs, *taps]) if name not in graph.inputs]
    model = helper.make_model(
        helper.make_graph(
            writer.nodes,
            graph.name or "network",
            [_value(graph, name) for name in graph.inputs],
            [_value(graph, name) for name in outputs],
            writer.initializers,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="n2d2py",
    )
    return model


def _value(graph: Graph, name: str) -> onnx.ValueInfoProto:
    kind = graph.kind(name)
    element = TensorProto.FLOAT if not kind else helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    return helper.make_tensor_value_info(name, element, ["N", *graph.shape(name)[1:]])
