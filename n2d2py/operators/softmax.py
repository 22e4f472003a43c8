"""Softmax along rows of a tensor, in floating point and in integers."""

from math import prod

import numpy as np

from n2d2py.arithmetic import FloatRescale, make_rescale
from n2d2py.arithmetic.attention import exponentials, mask_bits, powers_of, shares, taken_of
from n2d2py.arithmetic.exact import by_lines
from n2d2py.arithmetic.float32 import functions_of
from n2d2py.arithmetic.functions import lane_sum, log
from n2d2py.contracts.cpp import Expression, Layer, LayerCode, cpp
from n2d2py.contracts.facets import OnnxWriter, Op, onnx_emitter, register
from n2d2py.contracts.ini import NB_OUTPUTS, WINDOW_KEYS, LayerContext, ini
from n2d2py.contracts.quant.quantizer import LayerTypes, Quantizer, activation_clamp, integer_layer, quantizer, refusal
from n2d2py.graph import Node, QuantGraph, QuantNode
from n2d2py.graph.forms import Exponentials, MaskedExponentials
from n2d2py.graph.shapes import Shape, axis_along, channels, elements, in_memory_order, of_memory_order, rows_along
from n2d2py.ini import TRAINING, Key, Kind
from n2d2py.memory.access import memory_access, rows
from n2d2py.operators.arrays.base import kernel_call
from n2d2py.operators.arrays.values import Arrays, onnx
from n2d2py.operators.reshape import transpose_source

_MAX_ELEMENTS = 65535
"""Largest number of elements in an integer row."""


@register
class Softmax(Op):
    """exp(x - max) / sum along rows of `size` elements with stride `inner` in memory; `log`: the logarithm of that.

    Images are channels-last in memory: with `inner` 1, `size` channels are a row. Size 0 means all channels.
    """

    size: int = 0
    log: bool = False
    inner: int = 1
    same_bits = True
    macs_per_output = 1

    def rows(self, shape: Shape) -> tuple[int, int, int]:
        """Return (outer, size, inner) of the rows of a tensor, in memory order."""
        size = self.size or channels(shape)
        return elements(shape) // (size * self.inner), size, self.inner

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        if prod(self.rows(inputs[0])) != elements(inputs[0]):
            what = f"requires rows of {self.size} elements, but its input has {elements(inputs[0])} elements"
            raise self.error("E208", node, what)
        return [inputs[0]]

    def to_rows(self, x: np.ndarray) -> np.ndarray:
        """Return the rows (N, outer, inner, size)."""
        return np.moveaxis(in_memory_order(x).reshape(-1, *self.rows(x.shape)), 2, 3)

    @staticmethod
    def _from_rows(values: np.ndarray, like: np.ndarray) -> np.ndarray:
        return of_memory_order(np.moveaxis(values, 3, 2).reshape(len(like), -1), like.shape)

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [self._from_rows(by_lines(self._normalized, self.to_rows(inputs[0])), inputs[0])]

    def _normalized(self, x: np.ndarray) -> np.ndarray:
        highest = x.max(-1, keepdims=True)
        with np.errstate(all="ignore"):
            powers = functions_of(x.dtype).exp(x - highest)
            total = lane_sum(powers)[..., None]
            if self.log:
                return (x.astype(np.float64) - highest.astype(np.float64) - log(total)).astype(x.dtype)
            return powers * (1 / total).astype(x.dtype)

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Compute as specified in `arithmetic/attention.py`."""
        form, kind = node.form_as(Exponentials), graph.type(node.output)
        factor = node.rescale.factors[0] if isinstance(node.rescale, FloatRescale) else None
        low, high = (limit - kind.zero_point for limit in node.limits)
        unmasked = self.unmasked(form, inputs[0].shape)

        def normalized(lines: np.ndarray) -> np.ndarray:
            powers = powers_of(lines, form.powers, unmasked)
            return (shares(powers, factor, int(form.numerator[0]), low, high) + kind.zero_point).astype(kind.dtype)

        x = self.to_rows(inputs[0])
        return [self._from_rows(normalized(x) if unmasked is not None else by_lines(normalized, x), inputs[0])]

    def unmasked(self, form: Exponentials, shape: Shape) -> np.ndarray | None:
        """Return the mask of elements that count, bool (outer, 1, size); None if all count."""
        return None


@register
class MaskedSoftmax(Softmax):
    """Softmax of contiguous rows of `size` elements; masked elements count as minus infinity and get 0.

    Parameter "mask" (rows, size), bool: row i % rows marks the elements of row i that count, at least one.
    """

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0].reshape(len(inputs[0]), -1, self.size)
        masked = np.where(_repeat_mask(node.params["mask"], x.shape[1]), x, np.finfo(x.dtype).min)
        return super().run([masked.reshape(inputs[0].shape)], node)

    def unmasked(self, form: Exponentials, shape: Shape) -> np.ndarray | None:
        assert isinstance(form, MaskedExponentials)
        return _repeat_mask(taken_of(form.mask, self.size), self.rows(shape)[0])[:, None]


def _repeat_mask(mask: np.ndarray, rows: int) -> np.ndarray:
    return np.tile(mask, (rows // len(mask), 1))


memory_access("Softmax", "MaskedSoftmax")(rows)


@onnx("Softmax", "LogSoftmax")
def _from_onnx(a: Arrays) -> None:
    node, x, is_log = a.node, a.input(), a.node.type == "LogSoftmax"
    flattens = node.opset < 13
    axis = node.axis_of(node.attribute("axis", 1 if flattens else -1), len(x.dims)) if x.dims else 0
    a.builder.guard_batch(node, 0, axis, "normalises over")
    size, inner = (prod(x.dims[axis:]), 1) if flattens or not x.dims else (x.dims[axis], prod(x.dims[axis + 1 :]))
    if x.image is None or axis == 0 or size != x.dims[axis]:
        x = a.tensor(x)
        a.bind(a.add(Softmax(size, is_log, inner), [x], x.dims, label="softmax"))
    elif transpose_source(x.image, a.builder.graph)[1][axis] == 1 != axis:
        a.bind(a.before_transpose(lambda _: Softmax(size, is_log), x))
    else:
        _, size, inner = rows_along(x.dims, axis)
        a.bind(a.layer(Softmax(size, is_log, inner), x, "rows"))


@ini(
    "Softmax",
    NB_OUTPUTS,
    *WINDOW_KEYS,
    Key("WithLoss", Kind.BOOL, False, "training", ignored=TRAINING),
    Key("GroupSize", Kind.UINT, 0, "Number of channels normalized together. 0: all."),
    doc="Softmax over the channels of each position.",
)
def _from_ini(context: LayerContext) -> None:
    tensor = context.concat_inputs()
    count, size = context.require_channels(tensor), context.values["GroupSize"]
    if size and count % size:
        what = f"GroupSize={size} does not divide the {count} channels"
        raise context.fail("E218", what, "choose a divisor of the number of channels", "GroupSize")
    context.add(Softmax(size or count), [tensor])


@onnx_emitter("Softmax")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    kind, shape = "LogSoftmax" if node.op.log else "Softmax", writer.graph.shape(node.output)
    lines = node.op.rows(shape)
    axis = axis_along(shape, *lines[1:])
    if axis is not None:
        writer.emit(kind, node.inputs, output, axis=axis)
    else:
        writer.flat(writer.emit(kind, [writer.array(node.inputs[0], lines)], axis=2), output)


@onnx_emitter("MaskedSoftmax")
def _emit_masked(writer: OnnxWriter, node: Node, output: str) -> None:
    mask = node.params["mask"]
    x = writer.array(node.inputs[0], (-1, len(mask), node.op.size))
    lowest = writer.constant(float(np.finfo(np.float32).min))
    masked = writer.emit("Where", [writer.exact(mask.astype(bool)), x, lowest])
    writer.flat(writer.emit("Softmax", [masked], axis=3), output)


@quantizer("Softmax", "MaskedSoftmax")
class SoftmaxQuantizer(Quantizer):
    """Exponentials, the reciprocal of the output scale, and the mask in bits."""

    def refuses(self, node: Node) -> str | None:
        if node.op.log:
            return "the logarithm of a softmax"
        return f"a softmax of more than {_MAX_ELEMENTS} elements" if node.op.size > _MAX_ELEMENTS else None

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        x, y = types.inputs[0], types.output
        if types.input_shape is not None and node.op.rows(types.input_shape)[1] > _MAX_ELEMENTS:
            raise refusal(node, f"a softmax of more than {_MAX_ELEMENTS} elements")
        form = Exponentials(exponentials(x.scale, x.bits), np.array([round(2.0**32 / y.scale)], np.int64))
        if "mask" in node.params:
            form = MaskedExponentials(form.powers, form.numerator, mask_bits(node.params["mask"]))
        floating = types.options.rescaling == "Floating-point"
        rescale = make_rescale("Floating-point", np.array([1 / y.scale]))[0] if floating else None
        return integer_layer(node, form, activation_clamp(node, y), rescale)

    def real_params(self, node: QuantNode, graph: QuantGraph) -> dict[str, np.ndarray] | None:
        if isinstance(node.form, MaskedExponentials):
            return {"mask": taken_of(node.form.mask, node.op.size)}
        return super().real_params(node, graph)


@cpp("Softmax", "MaskedSoftmax")
def _lower(layer: Layer) -> LayerCode:
    layer, (outer, size, inner), masked = layer.requiring_whole_input(), layer.op.rows(layer.input_shape), layer.has("mask")
    if not layer.has("powers"):
        if not masked:
            return kernel_call(layer, "array_norm", "arraySoftmax", (outer, size, inner, bool(layer.op.log)))
        mask = layer.array("mask", mask_bits(layer.values("mask")), "std::uint8_t")
        source = f"n2d2::elements<{layer.input_planes[0]}>(in0)"
        return kernel_call(layer, "array_norm", "arrayMaskedSoftmax", (outer, size, len(layer.values("mask"))), [source, mask])
    low, high = layer.node.limits
    if layer.node.rescale is None:
        inverse = layer.array("numerator", layer.values("numerator"), "std::int64_t")
        share = Expression.type("n2d2::FixedShare", inverse)
    else:
        inverse = layer.array("factor", layer.node.rescale.effective(), "float")
        share = Expression.type("n2d2::FloatShare", inverse)
    sizes = {"Outer": outer, "Size": size, "Inner": inner, "Low": low, "High": high, "OutZero": layer.output.zero_point}
    powers, tables = layer.values("powers"), ()
    if powers.dtype == np.uint16:
        tables = (layer.array("powers", powers, "std::uint16_t"),)
    else:
        sizes.update(zip(("Multiplier", "Shift", "Limit"), powers.tolist(), strict=True))
    if masked:
        sizes["Masks"] = len(layer.values("mask"))
    config = layer.config(f"softmax of {size} integers", {**layer.planes, "Share": share}, sizes)
    if masked:
        tables = (*tables, layer.array("mask", layer.values("mask"), "std::uint8_t"))
    kernel = "integerMaskedSoftmax" if masked else "integerSoftmax"
    return layer.code("integer_softmax", layer.call(kernel, config, constants=tables))
