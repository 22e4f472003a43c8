"""Constant folding with the reference implementation of the onnx package."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx
from onnx import helper

from n2d2py.contracts.onnx.skeleton import has_graphs
from n2d2py.contracts.onnx.tensors import Unsupported

SHAPE_READERS = ("Shape", "Size")
"""Operators whose result depends only on the shape of their input."""
_ARITHMETIC = "Constant ConstantOfShape Equal Expand Gather Greater If Less Not Range Slice Split Where"
SHAPE_ARITHMETIC = (*SHAPE_READERS, *_ARITHMETIC.split())
"""Operators that exporters use to compute shapes; they need no converter if they are folded."""

MAX_SHAPE_SIZE = 1 << 12
"""Largest number of elements of a constant that determines a result shape."""
MAX_GROWTH = 1 << 25
"""Total size in elements of the constants folded for a small file: 128 MiB of float32. It grows by 4 for each stored element."""
_RANDOM = ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli")
_QUANTIZED = ("QuantizeLinear", "DequantizeLinear")


def is_foldable(proto: onnx.NodeProto) -> bool:
    """True if the node is deterministic, has no subgraphs and is not part of a quantized network."""
    return not (proto.domain or proto.op_type in (*_RANDOM, *_QUANTIZED) or has_graphs(proto))


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


def evaluate(proto: onnx.NodeProto, values: Sequence[np.ndarray | None], opset: int) -> list[np.ndarray]:
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
        text = str(error).splitlines()[0][:80]
        raise Unsupported(f"its constant value cannot be computed ({text})") from None
    by_name = dict(zip(names, results, strict=True))
    return [by_name.get(name, np.empty(0)) for name in proto.output]
