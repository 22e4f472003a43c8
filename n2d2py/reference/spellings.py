"""How each operator is written in ONNX."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Node
from n2d2py.operators.batchnorm import BatchNorm
from n2d2py.reference.contract import NoOnnxForm, OnnxWriter, onnx_emitter

__all__: list[str] = []

_LOWEST = float(np.finfo(np.float32).min)


def _conv(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    x, pads = writer.padded(node.inputs[0], op.pads, None)
    weights = node.params["weights"]
    writer.emit(
        "Conv",
        [x, writer.constant(weights, f"{node.name}_weights"), writer.constant(node.params["bias"], f"{node.name}_bias")],
        output,
        kernel_shape=list(weights.shape[2:]),
        strides=list(op.stride),
        pads=pads,
        dilations=list(op.dilation),
        group=op.groups,
    )


def _fc(writer: OnnxWriter, node: Node, output: str) -> None:
    x = node.inputs[0]
    if len(writer.graph.shape(x)) > 2:
        x = writer.emit("Flatten", [x], axis=1)
    writer.emit(
        "Gemm",
        [
            x,
            writer.constant(node.params["weights"], f"{node.name}_weights"),
            writer.constant(node.params["bias"], f"{node.name}_bias"),
        ],
        output,
        transB=1,
    )


def _pool(writer: OnnxWriter, node: Node, output: str) -> None:
    op, x = node.op, node.inputs[0]
    counts = np.asarray(type(op)("Average", op.kernel, op.stride, op.pads, False).window_counts(writer.graph.shape(x)[2:]))
    if not counts.all() and not (op.mode == "Average" and op.count_pad):
        raise NoOnnxForm(f"the layer {node.name} has windows outside the image")
    if op.mode == "Max":
        x, pads = writer.padded(x, op.pads, op.kernel, _LOWEST)
        writer.emit("MaxPool", [x], output, kernel_shape=list(op.kernel), strides=list(op.stride), pads=pads)
        return
    if op.count_pad:
        x, pads = (writer.pad(x, op.pads) if any(op.pads) else x), [0, 0, 0, 0]
    else:
        if min(op.pads) < 0 or any(p >= op.kernel[i % 2] for i, p in enumerate(op.pads)):
            raise NoOnnxForm(f"the pads of layer {node.name} are too large for an ONNX pool")
        pads = list(op.pads)
    writer.emit(
        "AveragePool", [x], output, kernel_shape=list(op.kernel), strides=list(op.stride), pads=pads, count_include_pad=0
    )


def _quantize(writer: OnnxWriter, node: Node, output: str) -> None:
    """16-bit integers stand for numbers that the file does not quantize: the reference keeps them."""
    kind, x = node.op.type, node.inputs[0]
    if kind.bits > 8:
        writer.emit("Identity", [x], output)
        return
    scale, zero = writer.constant(kind.scale), writer.exact(np.array(kind.zero_point, kind.dtype), "integer")
    writer.emit("DequantizeLinear", [writer.emit("QuantizeLinear", [x, scale, zero]), scale, zero], output)


def _pool_sum(writer: OnnxWriter, node: Node, output: str) -> None:
    pooled = writer.fresh(f"{output}_pooled")
    _pool(writer, Node(node.name, node.op.pool, node.inputs[:1], [pooled]), pooled)
    writer.emit("Add", [pooled, node.inputs[1]], output)


def _affine(writer: OnnxWriter, node: Node, output: str) -> None:
    _gain_and_shift(writer, node, node.params["weights"], node.params["bias"], output)


def _batchnorm(writer: OnnxWriter, node: Node[BatchNorm], output: str) -> None:
    gain, shift = node.op.factors(node)
    _gain_and_shift(writer, node, gain, shift, output)


def _gain_and_shift(writer: OnnxWriter, node: Node, gain: np.ndarray, shift: np.ndarray, output: str) -> None:
    shape = writer.graph.shape(node.inputs[0])
    scaled = writer.emit("Mul", [node.inputs[0], writer.per_channel(gain, shape)])
    writer.emit("Add", [scaled, writer.per_channel(shift, shape)], output)


def _elemwise(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    if op.operation in ("Max", "Min"):
        writer.emit(op.operation, node.inputs, output)
        return
    if op.operation == "Prod":
        _chain(writer, "Mul", node.inputs, output)
        return
    terms = []
    for x, weight, shift in zip(node.inputs, *op.coefficients(len(node.inputs)), strict=True):
        if op.operation == "AbsSum":
            x, shift = writer.emit("Abs", [x]), 0.0
        x = x if weight == 1 else writer.emit("Mul", [x, writer.constant(float(weight))])
        x = x if shift == 0 else writer.emit("Add", [x, writer.constant(float(shift))])
        terms.append(writer.emit("Mul", [x, x]) if op.operation == "EuclideanSum" else x)
    if op.operation == "EuclideanSum":
        writer.emit("Sqrt", [_chain(writer, "Add", terms, writer.fresh(f"{output}_sum"))], output)
    else:
        _chain(writer, "Add", terms, output)


def _chain(writer: OnnxWriter, op_type: str, terms: list[str], output: str) -> str:
    """((t0 op t1) op t2) ..., named `output`."""
    if len(terms) == 1:
        return writer.emit("Identity", terms, output)
    result = terms[0]
    for index, term in enumerate(terms[1:], 2):
        result = writer.emit(op_type, [result, term], output if index == len(terms) else None)
    return result


def _softmax(writer: OnnxWriter, node: Node, output: str) -> None:
    kind = "LogSoftmax" if node.op.log else "Softmax"
    shape = writer.graph.shape(node.inputs[0])
    size = node.op.group_size or shape[1]
    if size == shape[1]:
        writer.emit(kind, node.inputs, output, axis=1)
        return
    grouped = writer.emit("Reshape", [node.inputs[0], writer.constant([0, shape[1] // size, size, *shape[2:]])])
    result = writer.emit(kind, [grouped], axis=2)
    writer.emit("Reshape", [result, writer.constant([0, *shape[1:]])], output)


def _concat(writer: OnnxWriter, node: Node, output: str) -> None:
    writer.emit("Concat", node.inputs, output, axis=1)


def _padding(writer: OnnxWriter, node: Node, output: str) -> None:
    writer.pad(node.inputs[0], node.op.pads, 0.0, output)


def _take(writer: OnnxWriter, node: Node, output: str) -> None:
    chosen = [(axis, taken) for axis, taken in enumerate(node.op.indices, 1) if taken is not None]
    x = node.inputs[0]
    for axis, taken in chosen:
        last = axis == chosen[-1][0]
        x = writer.emit("Gather", [x, writer.constant(list(taken))], output if last else None, axis=axis)
    if not chosen:
        _identity(writer, node, output)


def _blocks(writer: OnnxWriter, node: Node, output: str) -> None:
    """A Reshape to blocks, a Transpose, a Reshape: the SpaceToDepth of ONNX has one order only."""
    op, (_, c, h, w) = node.op, writer.graph.shape(node.inputs[0])
    b = op.block
    if op.kind == "DepthToSpace":
        writer.emit("DepthToSpace", node.inputs, output, blocksize=b, mode="CRD" if op.channels_first else "DCR")
        return
    split = writer.emit("Reshape", [node.inputs[0], writer.constant([0, c, h // b, b, w // b, b])])
    order = [0, 1, 3, 5, 2, 4] if op.channels_first else [0, 3, 5, 1, 2, 4]
    turned = writer.emit("Transpose", [split], perm=order)
    writer.emit("Reshape", [turned, writer.constant([0, c * b * b, h // b, w // b])], output)


def _reshape(writer: OnnxWriter, node: Node, output: str) -> None:
    writer.emit("Reshape", [node.inputs[0], writer.constant([0, *node.op.dims])], output)


def _transpose(writer: OnnxWriter, node: Node, output: str) -> None:
    writer.emit("Transpose", node.inputs, output, perm=list(node.op.perm))


def _identity(writer: OnnxWriter, node: Node, output: str) -> None:
    writer.emit("Identity", node.inputs, output)


def _activation(writer: OnnxWriter, node: Node, output: str) -> None:
    writer.apply(node.op.function, node.inputs[0], output)


for _kind, _spelling in {
    "Conv": _conv,
    "Fc": _fc,
    "Pool": _pool,
    "PoolSum": _pool_sum,
    "Affine": _affine,
    "BatchNorm": _batchnorm,
    "ElemWise": _elemwise,
    "Softmax": _softmax,
    "Concat": _concat,
    "Padding": _padding,
    "Take": _take,
    "DepthToSpace": _blocks,
    "SpaceToDepth": _blocks,
    "Reshape": _reshape,
    "Transpose": _transpose,
    "Identity": _identity,
    "Dropout": _identity,
    "Convert": _identity,
    "Activation": _activation,
    "Quantize": _quantize,
}.items():
    onnx_emitter(_kind)(_spelling)
