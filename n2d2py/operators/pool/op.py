"""Max and average pooling."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from n2d2py.arithmetic import NumType, StepRescale
from n2d2py.arithmetic.exact import sliding_windows
from n2d2py.contracts.cpp import BYTE_SUMS, Layer, LayerCode, Reference, cpp, epilogue, moving_epilogue, vectors, window
from n2d2py.contracts.facets import NoOnnxForm, OnnxWriter, Op, Pads, onnx_emitter, output_extent, pad, register
from n2d2py.contracts.quant import quantizer as quant
from n2d2py.contracts.quant.file_rounding import mean_rescale, pool_rescale, stored_origin
from n2d2py.graph import INT8, TWICE, UINT8, Dequantized, Node, QuantGraph, QuantNode, Rescaled, Shape, StoredSums
from n2d2py.memory.access import Access, PoolWindow, memory_access


@register
class Pool(Op):
    """Maximum or mean ("Max", "Average") over a window, channel by channel; pads never win a maximum.

    `count_pad`: the mean divides by the whole window (INI pools), else by the part inside the input (ONNX default). Pairs are
    (vertical, horizontal).
    """

    mode: str
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    count_pad: bool = True

    @property
    def moves_values(self) -> bool:  # type: ignore[override]
        return self.mode == "Max"

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        shape = inputs[0]
        self.require_rank(shape, 4, node)
        return [(*shape[:2], *output_extent(shape[2:], self.kernel, self.stride, self.pads, node))]

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        window = self.kernel[0] * self.kernel[1]
        return window * output[1] * output[2] * output[3] if self.mode == "Average" else 0

    def window_counts(self, size: Sequence[int]) -> np.ndarray:
        """Return the divisors of the mean at each output position, (OH, OW) int64, for an input of (H, W)."""
        return self._windows(np.ones((1, 1, *size), np.int64), self.count_pad).sum(axis=(4, 5))[0, 0]

    def _windows(self, x: np.ndarray, fill: float) -> np.ndarray:
        return sliding_windows(pad(x, self.pads, fill), self.kernel, self.stride, (1, 1))

    def _taps(self, x: np.ndarray) -> np.ndarray:
        """Return the positions of the windows, (taps, N, C, OH, OW)."""
        windows = self._windows(x, 0)
        return np.moveaxis(windows.reshape(*windows.shape[:4], -1), 4, 0)

    def _max(self, x: np.ndarray) -> np.ndarray:
        lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        return self._windows(x, lowest).max(axis=(4, 5))

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0]
        if self.mode == "Max":
            return [self._max(x)]
        sums = _sum_in_order(self._taps(x)).astype(x.dtype)  # in the kernel's order, bit-exact
        return [sums / self.window_counts(x.shape[2:]).astype(x.dtype)]

    def order(self, size: tuple[int, int]) -> str:
        """Return the order of float32 sums over an input of (H, W), which follows ONNX Runtime.

        "lanes": a window over the whole input with stride 1 has four sums, of positions 0, 4, ..., positions 1, 5, ... and so
        on; they are added as (0 + 2) + (1 + 3), then the remaining positions one by one. "columns": each column from the top,
        then the columns from the left. "rows": position by position.
        """
        if self.kernel == tuple(size) and self.stride == (1, 1) and not any(self.pads):
            return "lanes"
        return "columns" if self.stride[1] <= 2 else "rows"

    def _real_sums(self, x: np.ndarray) -> np.ndarray:
        taps, order = self._taps(x), self.order(x.shape[2:])
        if order == "lanes":
            whole = len(taps) // 4 * 4
            none = np.zeros((4, *taps.shape[1:]), np.float32)  # the only lanes of windows with fewer than four positions
            lanes = _sum_in_order([none, *taps[:whole].reshape(-1, *none.shape)])
            return _sum_in_order([(lanes[0] + lanes[2]) + (lanes[1] + lanes[3]), *taps[whole:]])
        if order == "columns":
            taps = _sum_in_order(taps.reshape(*self.kernel, *taps.shape[1:]))
        return _sum_in_order(taps)

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Average: rescale sums by the factor of the window's count, factor k-1 for a count of k.

        Dequantized: compute the mean of the real numbers in float32.
        """
        x = inputs[0]
        kind = graph.type(node.output)
        if self.mode == "Max":
            return [np.clip(self._max(x), *node.limits).astype(kind.dtype)]
        if isinstance(node.form, Dequantized):
            real = (x.astype(np.float32) - np.float32(graph.type(node.inputs[0]).zero_point)) * node.form.scales[0]
            counts = self.window_counts(x.shape[2:]).astype(np.float32)
            return [node.requantize(self._real_sums(real) / counts, kind)]
        zero_point = graph.type(node.inputs[0]).zero_point
        if isinstance(node.form, StoredSums):
            zero_point = int(node.form.origin[0])
            kind = replace(kind, zero_point=zero_point)
        sums = self._windows(x.astype(np.int64) - zero_point, 0).sum(axis=(4, 5))
        if node.rescaling.count == 1:
            return [node.requantize(sums, kind)]
        result = np.zeros(sums.shape, kind.dtype)
        counts = self.window_counts(x.shape[2:])
        for count in np.unique(counts):
            where = counts == count
            picked = np.zeros((*sums.shape[:2], node.rescaling.count, int(where.sum())), np.int64)
            picked[:, :, count - 1] = sums[:, :, where]
            result[:, :, where] = node.requantize(picked, kind, axis=2)[:, :, count - 1]
        return [result]


def _sum_in_order(terms: Iterable[np.ndarray]) -> np.ndarray:
    return np.asarray(reduce(np.add, terms, np.float32(0)))


@memory_access("Pool")
def _pool(node: QuantNode, graph: QuantGraph) -> Access:
    op, kind = node.op, graph.type(node.inputs[0])
    if "scales" in node.params and op.order(graph.shape(node.inputs[0])[2:]) == "lanes":  # without row sums
        return PoolWindow(op.kernel, op.stride, op.pads, mode=op.mode.lower(), by_lines=False)
    if op.mode == "Max" or kind.is_float:
        partial_bytes = (kind if op.mode == "Max" else graph.type(node.output)).bytes
    else:
        partial_bytes = 4 if max(_sum_bound(op, kind), node.bound) < 2**31 else 8
    return PoolWindow(op.kernel, op.stride, op.pads, mode=op.mode.lower(), partial_bytes=partial_bytes)


def _sum_bound(op: Pool, kind: NumType) -> int:
    return op.kernel[0] * op.kernel[1] * max(quant.peak(kind), abs(kind.qmax))


@cpp("Pool")
def lower(layer: Layer) -> LayerCode:
    op, kind, selection = layer.op, layer.inputs[0], layer.portable
    types: dict[str, Reference] = dict(layer.planes)
    constants = {**window(op.kernel, op.stride, op.pads), "Serial": layer.serial}
    kernel = "poolMax" if op.mode == "Max" else "poolAverage"
    if layer.has("scales"):
        kernel, order = "poolMean", ("lanes", "columns", "rows").index(op.order(layer.input_shape[2:]))
        scale = layer.constants("scale", "float", {"scale": layer.values("scales")[0]})
        types.update(Scale=scale, Epilogue=epilogue(layer, selection))
        constants.update(InputZero=kind.zero_point, CountPad=op.count_pad, Order=order)
    elif op.mode == "Max":
        types["Epilogue"] = moving_epilogue(layer, clamped=True)
    else:
        selection = vectors(layer, BYTE_SUMS)
        types.update(Sum=layer.sum_type(_sum_bound(op, kind)), Epilogue=epilogue(layer, selection))
        per_count = layer.integer and layer.node.rescaling.count > 1
        constants.update(InputZero=layer.input_zero, CountPad=op.count_pad, PerCount=per_count)
    if layer.partial is not None:
        kernel, constants["Kept"] = f"{kernel}Lines", layer.partial
    config = layer.config(f"{op.mode.lower()} pool {op.kernel[0]} x {op.kernel[1]}", types, constants, selection)
    return layer.code("pool", layer.call(kernel, config), selection=selection)


@quant.quantizer("Pool")
class PoolQuantizer(quant.Quantizer):
    """Max: no arithmetic. Average: acc = sum of the window; factor s_x / (count s_y)."""

    def plain(self, node: Node) -> bool:
        return node.op.mode == "Max"

    def quantize(self, node: Node, types: quant.LayerTypes) -> QuantNode:
        if node.op.mode == "Max":
            return quant.moved_layer(node, types)
        x, counts = types.inputs[0], _possible_counts(node)
        return quant.rescaled_layer(node, types, x.scale / (counts * types.output.scale), int(counts[-1]) * quant.peak(x))

    def prequantized(self, node: Node, types: quant.LayerTypes) -> QuantNode:
        """Return a float32 mean of real numbers, in fixed-point modes of q - zero point, or the form of TFLite's kernels."""
        if node.op.mode == "Max":
            return quant.moved_layer(node, types)
        x, y, mode = types.inputs[0], types.output, types.options.rescaling
        counts = _possible_counts(node)
        factors = np.float64(x.scale) / (counts * np.float64(y.scale))
        bound = int(counts[-1]) * max(quant.peak(x), x.qmax, -x.qmin)
        if types.follows_file(node) and (result := _tflite(node, x, y, counts, bound)) is not None:
            return result
        types.remark(node, "it is a mean over windows of several sizes, or of many values")
        if mode == "Floating-point":
            scales = np.array([x.scale], np.float32)
            return quant.integer_layer(node, Dequantized(scales), quant.file_clamp(node, y), StepRescale(np.float32(y.scale)))
        return quant.integer_layer(
            node, Rescaled(), quant.file_clamp(node, y), quant.file_rescale(node, factors, bound, mode), bound
        )


def _tflite(node: Node, x: NumType, y: NumType, counts: np.ndarray, bound: int) -> QuantNode | None:
    """Return the integer form of TFLite's kernels MEAN and AVERAGE_POOL_2D; None if no form here is bit-exact."""
    if node.rounding == TWICE and len(counts) == 1:
        rescale = mean_rescale(float(np.float64(x.scale) / np.float64(y.scale)), int(counts[0]))
        return quant.integer_layer(node, Rescaled(), quant.file_clamp(node, y), rescale, bound)
    if node.rounding not in (INT8, UINT8) or (x.scale, x.zero_point) != (y.scale, y.zero_point):
        return None
    rescale = pool_rescale(counts)
    form = StoredSums(np.array([stored_origin(node, x)], np.int32))
    return rescale and quant.integer_layer(node, form, quant.file_clamp(node, y), rescale, int(counts[-1]) * 255)


def _possible_counts(node: Node) -> np.ndarray:
    window = node.op.kernel[0] * node.op.kernel[1]
    uniform = node.op.count_pad or not any(node.op.pads)
    return np.array([window]) if uniform else np.arange(1, window + 1)


_LOWEST = float(np.finfo(np.float32).min)


@onnx_emitter("Pool")
def emit_pool(writer: OnnxWriter, node: Node, output: str) -> None:
    """Emit a pool; NoOnnxForm for windows outside the image, or pads that no ONNX pool has."""
    op, x = node.op, node.inputs[0]
    inside = replace(op, mode="Average", count_pad=False).window_counts(writer.graph.shape(x)[2:])
    window = {"kernel_shape": list(op.kernel), "strides": list(op.stride)}
    if not inside.all() and not (op.mode == "Average" and op.count_pad):
        raise NoOnnxForm(f"the layer {node.name} has windows outside the image")
    if op.mode == "Max":
        x, pads = writer.padded(x, op.pads, op.kernel, _LOWEST)
        writer.emit("MaxPool", [x], output, **window, pads=pads)
        return
    pads = list(op.pads)
    if op.count_pad:
        x, pads = (writer.pad(x, op.pads) if any(op.pads) else x), [0, 0, 0, 0]
    elif min(pads) < 0 or any(p >= op.kernel[i % 2] for i, p in enumerate(pads)):
        raise NoOnnxForm(f"the pads of layer {node.name} are too large for an ONNX pool")
    writer.emit("AveragePool", [x], output, **window, pads=pads, count_include_pad=0)
