"""Evaluates nodes whose inputs are all known, with the reference implementation of the onnx package."""
from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from n2d2py.frontend.onnx.registry import Unsupported

__all__ = ["evaluate", "is_foldable", "SHAPE_READERS", "SHAPE_ARITHMETIC"]

SHAPE_READERS = ("Shape", "Size")
"""Operators whose result depends on the shape of their input only."""
SHAPE_ARITHMETIC = (*SHAPE_READERS, "Constant", "ConstantOfShape", "Equal", "Expand", "Gather", "Greater", "If", "Less",
                    "Not", "Range", "Slice", "Split", "Where")
"""Operators that exporters use to compute shapes; they need no converter where that succeeds."""

_RANDOM = ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli")
_QUANTIZED = ("QuantizeLinear", "DequantizeLinear")


def is_foldable(proto: onnx.NodeProto) -> bool:
    """Whether the result is the same in every run, the node has no inner graphs and belongs to no quantized network."""
    return (proto.domain in ("", "ai.onnx") and proto.op_type not in (*_RANDOM, *_QUANTIZED)
            and not any(a.type in (a.GRAPH, a.GRAPHS) for a in proto.attribute))


def evaluate(proto: onnx.NodeProto, values: list[np.ndarray | None], opset: int) -> list[np.ndarray]:
    """The outputs of a node for input values (None: absent).

    Raises:
        Unsupported: when the node cannot be evaluated.
    """
    from onnx.reference import ReferenceEvaluator

    known = {name: value for name, value in zip(proto.input, values) if name and value is not None}
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), None)
              for name, value in known.items()]
    names = [name for name in proto.output if name]
    graph = helper.make_graph([proto], "fold", inputs, [onnx.ValueInfoProto(name=name) for name in names])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    try:
        results = ReferenceEvaluator(model).run(None, known)
    except Exception as error:  # the evaluator raises whatever NumPy or its operators raise
        raise Unsupported(f"its constant value cannot be computed ({str(error).splitlines()[0][:80]})") from None
    by_name = dict(zip(names, (np.asarray(result) for result in results)))
    return [by_name.get(name, np.empty(0)) for name in proto.output]
