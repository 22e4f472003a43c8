"""Element-wise combination of several tensors; axes of length 1 are broadcast."""

from functools import reduce
from math import prod
from typing import ClassVar

import numpy as np

from n2d2py.arithmetic import NumType, StepRescale
from n2d2py.contracts.cpp import BYTE_SUMS, Call, Expression, Layer, LayerCode, cpp, epilogue, vectors
from n2d2py.contracts.facets import OnnxWriter, Op, onnx_emitter, register
from n2d2py.contracts.quant import quantizer as quant
from n2d2py.contracts.quant.file_rounding import byte_form, sums_rescale
from n2d2py.graph import TWICE, Aligned, Dequantized, Node, QuantNode, Shape, dims_text
from n2d2py.memory.access import memory_access, pointwise


def broadcasts(shape: Shape, full: Shape) -> bool:
    """True if a shape differs from another one of its rank only in axes of length 1."""
    return len(shape) == len(full) and all(size in (1, whole) for size, whole in zip(shape, full, strict=True))


@register
class ElemWise(Op):
    """Combination of inputs T_i with weights w_i and shifts s_i (one per input).

    Sum: sum of w_i T_i + s_i. AbsSum: sum of w_i |T_i|. EuclideanSum: sqrt of the sum of (w_i T_i + s_i)^2. Prod: product of
    T_i. Max, Min: largest, smallest T_i. One input has the shape of the output; axes of length 1 of the others are broadcast.
    """

    operation: str
    weights: tuple[float, ...] = ()
    shifts: tuple[float, ...] = ()
    OPERATIONS: ClassVar[tuple[str, ...]] = ("Sum", "AbsSum", "EuclideanSum", "Prod", "Max", "Min")

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        full = max(inputs, key=prod)
        for shape in inputs:
            if not broadcasts(shape, full):
                dims = " and ".join(dims_text(s[1:]) for s in dict.fromkeys([inputs[0], shape, full]))
                remedy = "use inputs of equal shape; axes of length 1 are broadcast"
                raise self.error("E205", node, f"has inputs of different shapes {dims}", remedy)
        return [full]

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return int(np.prod(output)) * len(inputs)

    def coefficients(self, count: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return (weights, shifts), completed with 1 and 0 for `count` inputs."""
        weights = tuple(self.weights) or (1.0,) * count
        shifts = tuple(self.shifts) or (0.0,) * count
        return weights, shifts

    @property
    def is_plain_sum(self) -> bool:
        """True for a Sum without factors other than 1 and -1, and without shifts."""
        return self.operation == "Sum" and {1.0}.issuperset(map(abs, self.weights)) and not any(self.shifts)

    @property
    def combine(self) -> np.ufunc:
        """The function that combines two terms."""
        return {"Prod": np.multiply, "Max": np.maximum, "Min": np.minimum}.get(self.operation, np.add)

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        if self.operation in ("Prod", "Max", "Min"):
            return [reduce(self.combine, inputs)]
        dtype, (weights, shifts) = inputs[0].dtype.type, self.coefficients(len(inputs))
        if self.operation == "AbsSum":
            terms = [dtype(w) * np.abs(x) for w, x in zip(weights, inputs, strict=True)]
        else:
            terms = [dtype(w) * x + dtype(s) for w, s, x in zip(weights, shifts, inputs, strict=True)]
        return [self._sum(terms)]

    def _sum(self, terms: list[np.ndarray]) -> np.ndarray:
        if self.operation == "EuclideanSum":
            return np.sqrt(reduce(np.add, (t * t for t in terms)))
        return reduce(self.combine, terms)

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Bring the inputs to one scale by integer multipliers m_i, combine them, and requantize.

        Sum: acc = sum of m_i q_i + offset. AbsSum: sum of m_i |q_i|. Max, Min: largest, smallest m_i q_i. Prod: product of q_i.
        Dequantized, for operators of pre-quantized networks and every EuclideanSum: the same of real numbers scale_i q_i in
        float32.
        """
        zero_points = [graph.type(name).zero_point for name in node.inputs]
        if isinstance(node.form, Dequantized):
            operands = zip(inputs, zero_points, node.form.scales, strict=True)
            real = self._sum([(x.astype(np.float32) - np.float32(zero)) * scale for x, zero, scale in operands])
            return [node.requantize(real, graph.type(node.output))]
        form = node.form_as(Aligned)
        kind = np.int32 if node.bound < 2**31 else np.int64
        x = [np.subtract(a, z, dtype=kind) for a, z in zip(inputs, zero_points, strict=True)]
        if self.operation != "Prod":
            m = [int(v) for v in form.multipliers]
            x = [k * (np.abs(a) if self.operation == "AbsSum" else a) for k, a in zip(m, x, strict=True)]
        acc = reduce(self.combine, x) + int(form.offset[0])
        return [node.requantize(acc, graph.type(node.output))]


memory_access("ElemWise")(pointwise)


@quant.quantizer("ElemWise")
class ElemWiseQuantizer(quant.Quantizer):
    """Sum: acc = sum of m_i q_i + offset, m_i ~ w_i s_i / (s_y unit) in 14 bits (22 with a 16-bit tensor).

    The unit is a power of two, which makes the rescale exact in every mode. EuclideanSum: the root of real numbers, in float32.
    """

    def refuses(self, node: Node) -> str | None:
        op = node.op
        weights, shifts = op.coefficients(len(node.inputs))
        weighted = any(weight != 1 for weight in weights) or any(shifts)
        if (op.operation == "EuclideanSum" and any(shifts)) or (op.operation in ("Max", "Min") and weighted):
            return f"ElemWise {op.operation}"
        return None

    def quantize(self, node: Node, types: quant.LayerTypes) -> QuantNode:
        op, count, step = node.op, len(types.inputs), types.output.scale
        peaks = [quant.peak(kind) for kind in types.inputs]
        scales = np.array([kind.scale for kind in types.inputs])
        if op.operation == "EuclideanSum":
            return dequantize_and_combine(node, types)
        if op.operation == "Prod":
            bound = int(np.prod([float(p) for p in peaks]))
            form = Aligned(np.ones(count, np.int32), np.zeros(1, np.int32))
            return quant.rescaled_layer(node, types, np.array([float(np.prod(scales)) / step]), bound, form)
        weights, shifts = (np.array(v, np.float64) for v in op.coefficients(count))
        multipliers, unit = quant.common_multipliers(weights * scales / step, 22 if types.wide else 14)
        offset = round(float(shifts.sum()) / (unit * step)) if op.operation == "Sum" else 0
        bound = sum(abs(m) * p for m, p in zip(multipliers, peaks, strict=True)) + abs(offset)
        acc_type = np.int32 if bound < 2**31 else np.int64
        form = Aligned(np.array(multipliers, acc_type), np.array([offset], acc_type))
        return quant.rescaled_layer(node, types, np.array([unit]), bound, form)

    def prequantized(self, node: Node, types: quant.LayerTypes) -> QuantNode:
        if node.rounding == TWICE and types.follows_file(node) and (result := _tflite(node, types)) is not None:
            return result
        types.remark(node, "no integers were found that agree for all pairs of bytes")
        fixed = types.options.rescaling != "Floating-point" and node.op.operation != "Prod"
        if fixed and max(kind.bits for kind in types.inputs) <= 16:
            return quant.quantize_layer(node, types)
        return dequantize_and_combine(node, types)


def _tflite(node: Node, types: quant.LayerTypes) -> QuantNode | None:
    """Return the integer form of TFLite's kernels ADD, SUB and MUL; None if no form here is bit-exact."""
    op, inputs, output, clamp = node.op, types.inputs, types.output, quant.file_clamp(node, types.output)
    weights, shifts = op.coefficients(len(inputs))
    if len(inputs) != 2 or any(shifts):
        return None
    if op.operation == "Prod":
        factors = np.array([np.float64(inputs[0].scale) * np.float64(inputs[1].scale) / np.float64(output.scale)])
        bound = int(np.prod([quant.peak(kind) for kind in inputs]))
        rescale = sums_rescale(node, factors, bound, clamp)
        form = Aligned(np.ones(2, np.int32), np.zeros(1, np.int32))
        return None if rescale is None else quant.integer_layer(node, form, clamp, rescale, bound)
    if op.operation != "Sum" or set(map(abs, weights)) != {1}:
        return None
    scales, fixed = _scales(inputs, weights), types.options.rescaling != "Floating-point"
    result = byte_form("Sum", scales, inputs, output, clamp, fixed, tflite=True)
    return result and quant.integer_layer(node, Aligned(result.multipliers, result.offset), clamp, result.rescale, result.bound)


def _scales(inputs: list[NumType], weights: tuple[float, ...]) -> np.ndarray:
    return np.array([np.float32(kind.scale) * np.float32(weight) for kind, weight in zip(inputs, weights, strict=True)])


def dequantize_and_combine(node: Node, types: quant.LayerTypes) -> QuantNode:
    """Return a float32 combination of scale_i (q_i - zero point); for two 8-bit tensors, an integer form with equal results."""
    op = node.op
    weights, shifts = op.coefficients(len(types.inputs))
    plain = op.operation in ("Prod", "Max", "Min") and set(weights) == {1}
    if any(shifts) or not (plain or op.operation in ("Sum", "EuclideanSum")):
        raise quant.refusal(node, f"ElemWise {op.operation}", "replace it by sums, products or limits of tensors")
    scales = _scales(types.inputs, weights)
    clamp = quant.file_clamp(node, types.output)
    result = byte_form(op.operation, scales, types.inputs, types.output, clamp)
    if result is not None:
        return quant.integer_layer(node, Aligned(result.multipliers, result.offset), clamp, result.rescale, result.bound)
    return quant.integer_layer(node, Dequantized(scales), clamp, StepRescale(np.float32(types.output.scale)))


def _coefficients(layer: Layer) -> tuple[list, list]:
    """Return (weights, shifts): multipliers and offset in integers, scales of dequantized integers, or the operator's own."""
    op, count = layer.op, len(layer.inputs)
    weights, shifts = [1] * count, [0] * count
    if layer.has("scales"):
        weights = list(layer.values("scales"))
    elif layer.integer and op.operation != "Prod":
        weights = [int(m) for m in layer.values("multipliers")]
        if op.operation == "Sum":
            shifts[0] = int(layer.values("offset")[0])
    elif not layer.integer and op.operation not in ("Prod", "Max", "Min"):
        weights, shifts = op.coefficients(count)
    return weights, shifts


@cpp("ElemWise")
def lower(layer: Layer) -> LayerCode:
    layer, operation, selection = layer.pointwise(), layer.op.operation, vectors(layer, BYTE_SUMS)
    sum_type = "float" if layer.has("scales") else layer.sum_type()
    operands = []
    for i, (plane, weight, shift) in enumerate(zip(layer.input_planes, *_coefficients(layer), strict=True)):
        functions = {"zero": layer.inputs[i].zero_point, "weight": weight, "shift": shift}
        planes = {"Plane": plane, "Extent": layer.output_plane}
        operands.append(layer.constants(f"operand{i}", sum_type, functions, planes))
    terms = f"n2d2::{'Euclidean' if operation == 'EuclideanSum' else operation}Terms"
    combined = Expression.type("n2d2::Terms", sum_type, terms, *operands)
    types = {"Output": layer.output_plane, "Operands": combined, "Epilogue": epilogue(layer, selection)}
    constants = {"PerChannel": layer.integer and layer.node.rescaling.count > 1, "Serial": layer.serial}
    config = layer.config(f"{operation} of {len(operands)}", types, constants, selection)
    declared = f"const unsigned char* const operands[] = {{{', '.join(layer.bases)}}};"
    return layer.code("elemwise", Call("n2d2::elemwise", (config,), ("operands", "out"), (declared,)), selection=selection)


@onnx_emitter("ElemWise")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    if op.operation in ("Max", "Min"):
        writer.emit(op.operation, node.inputs, output)
        return
    if op.operation == "Prod":
        _emit_chain(writer, "Mul", node.inputs, output)
        return
    terms = []
    for x, weight, shift in zip(node.inputs, *op.coefficients(len(node.inputs)), strict=True):
        if op.operation == "AbsSum":
            x, shift = writer.emit("Abs", [x]), 0.0
        x = x if weight == 1 else writer.emit("Mul", [x, writer.constant(float(weight))])
        x = x if shift == 0 else writer.emit("Add", [x, writer.constant(float(shift))])
        terms.append(writer.emit("Mul", [x, x]) if op.operation == "EuclideanSum" else x)
    if op.operation == "EuclideanSum":
        writer.emit("Sqrt", [_emit_chain(writer, "Add", terms, writer.fresh(f"{output}_sum"))], output)
    else:
        _emit_chain(writer, "Add", terms, output)


def _emit_chain(writer: OnnxWriter, op_type: str, terms: list[str], output: str) -> str:
    """Emit ((t0 op t1) op t2) ..., named `output`."""
    if len(terms) == 1:
        return writer.emit("Identity", terms, output)
    result = terms[0]
    for index, term in enumerate(terms[1:], 2):
        result = writer.emit(op_type, [result, term], output if index == len(terms) else None)
    return result
