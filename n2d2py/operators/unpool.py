"""Max unpooling: each value returns to the position of the maximum in a max pool."""

from dataclasses import replace

import numpy as np

from n2d2py.arithmetic.exact import sliding_windows
from n2d2py.contracts.cpp import Layer, LayerCode, cpp, moving_epilogue, window
from n2d2py.contracts.facets import NoOnnxForm, OnnxWriter, Op, Pads, onnx_emitter, output_extent, pad, register
from n2d2py.contracts.ini.keys import ACTIVATED, NB_OUTPUTS, THIRD_AXIS, read_activation
from n2d2py.contracts.ini.layers import LayerContext, ini
from n2d2py.contracts.ini.mapping import read_mapping
from n2d2py.contracts.quant.quantizer import Moving, quantizer
from n2d2py.graph import Node, QuantGraph, QuantNode, Shape
from n2d2py.ini.schema import Key, Kind
from n2d2py.memory.access import Access, LineTable, memory_access
from n2d2py.operators.conv import Deconv, gathered_ranges, transposed_extent
from n2d2py.operators.pool import Pool
from n2d2py.operators.pool.ini import WINDOWS, read_windows


@register
class Unpool(Op):
    """y[c, argmax of window (i, j) of z[c]] = x[c, i, j], 0 elsewhere; inputs x and z.

    z is the input of the pool: the positions are computed again rather than stored. The first of equal values counts, in
    row-major order. Overlapping windows add values at the same position. Positions outside the output are dropped.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    moves_values = True

    @property
    def overlaps(self) -> bool:
        """True if a position may lie in several windows."""
        return any(s < k for s, k in zip(self.stride, self.kernel, strict=True))

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        x, z = inputs
        self.require_rank(x, 4, node)
        self.require_rank(z, 4, node)
        pooled = output_extent(z[2:], self.kernel, self.stride, self.pads, node)
        if x[1] != z[1] or pooled != x[2:]:
            size = f"{pooled[1]}x{pooled[0]}x{z[1]} (width x height x channels)"
            what = f"has an input of {x[3]}x{x[2]}x{x[1]}, but the pool of its ArgMax produces {size}"
            raise self.error("E210", node, what, "use an input of the shape of that pool's output")
        return [(*x[:2], *transposed_extent(x[2:], self.kernel, self.stride, self.pads, node))]

    def _positions(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (row, column) in the image of the largest element of each window of z, (N, C, OH, OW) each."""
        lowest = -np.inf if z.dtype.kind == "f" else int(z.min()) - 1
        wide = z if z.dtype.kind == "f" else z.astype(np.int64)
        windows = sliding_windows(pad(wide, self.pads, lowest), self.kernel, self.stride, (1, 1))
        best = windows.reshape(*windows.shape[:4], -1).argmax(axis=4)
        i, j = np.indices(best.shape)[2:]
        return (
            i * self.stride[0] - self.pads[0] + best // self.kernel[1],
            j * self.stride[1] - self.pads[1] + best % self.kernel[1],
        )

    def _spread(self, x: np.ndarray, z: np.ndarray, node) -> np.ndarray:
        size = transposed_extent(x.shape[2:], self.kernel, self.stride, self.pads, node)
        lines, columns = self._positions(z)
        inside = (lines >= 0) & (lines < size[0]) & (columns >= 0) & (columns < size[1])
        n, c = np.indices(x.shape)[:2]
        result = np.zeros((*x.shape[:2], *size), x.dtype)
        np.add.at(result, (n[inside], c[inside], lines[inside], columns[inside]), x[inside])
        return result

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [self._spread(inputs[0], inputs[1], node)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Move stored integers; other positions get the zero point. Windows do not overlap."""
        zero_point, kind = graph.type(node.inputs[0]).zero_point, graph.type(node.output)
        spread = self._spread(inputs[0].astype(np.int64) - zero_point, inputs[1], node) + zero_point
        return [np.clip(spread, *node.limits).astype(kind.dtype)]


_MODES = ("Max", "Average")


@ini(
    "Unpool",
    NB_OUTPUTS,
    Key("Pooling", Kind.ENUM, doc="Max: return values to the positions of their maxima. Average: spread them.", choices=_MODES),
    Key("ArgMax", Kind.STRING, "", "Max pool that provides the positions."),
    *WINDOWS,
    base=ACTIVATED,
    accepted=THIRD_AXIS,
    doc="Unpooling, channel by channel.",
)
def _from_ini(context: LayerContext) -> None:
    values, outputs = context.values, context.values["NbOutputs"]
    context.as_images()
    mapping, count = read_mapping(context)
    if outputs != count or (mapping is not None and not np.array_equal(mapping, np.eye(count, dtype=bool))):
        what = f"the unpooling maps {count} channels to {outputs} outputs"
        raise context.fail("E215", what, "use Mapping.Size=1 and as many outputs as channels", "NbOutputs")
    windows = kernel, stride, pads = read_windows(values)
    if values["Pooling"] == "Average":
        share = np.full((count, 1, *kernel), 1.0 / (kernel[0] * kernel[1]), np.float32)
        op, params = Deconv(stride, pads, groups=count), {"weights": share, "bias": np.zeros(count, np.float32)}
        context.add(op, [context.concat_inputs()], params, read_activation(values))
        return
    pool = _pool(context)
    if (pool.op.kernel, pool.op.stride, pool.op.pads) != windows:
        what = f"the window differs from that of the pool [{pool.name}] named by ArgMax"
        raise context.fail("E210", what, "give both layers the same PoolDims, Stride and Padding", "ArgMax")
    context.add(Unpool(*windows), [context.concat_inputs(), pool.inputs[0]], activation=read_activation(values))


def _pool(context: LayerContext) -> Node:
    name = context.values["ArgMax"]
    for node in context.graph.nodes:
        if node.name == name and isinstance(node.op, Pool) and node.op.mode == "Max":
            return node
    raise context.fail("E210", f"ArgMax='{name}' is not a max pool before this layer", "name the max pool to reverse", "ArgMax")


@onnx_emitter("Unpool")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op, (x, z) = node.op, node.inputs
    size = writer.graph.shape(node.output)
    if any(op.pads) or op.overlaps or size[2:] != writer.graph.shape(z)[2:]:
        raise NoOnnxForm(f"the layer {node.name} unpools padded or overlapping windows, or crops")
    window = {"kernel_shape": list(op.kernel), "strides": list(op.stride)}
    _, places = writer.emit_all("MaxPool", [z], 2, **window)
    writer.emit("MaxUnpool", [x, places], output, **window)


@memory_access("Unpool")
def _access(node: QuantNode, graph: QuantGraph) -> Access:
    """Return the access: a position depends on the pool windows that contain it, and on the whole area of these windows."""
    op, tables = node.op, []
    pooled, covered = (graph.shape(name)[2:] for name in node.inputs)
    for outputs, windows, size, k, s, p in zip(
        graph.shape(node.output)[2:], pooled, covered, op.kernel, op.stride, op.pads[:2], strict=True
    ):
        read = gathered_ranges(outputs, windows, k, s, p)
        over = ((max(0, first * s - p), min(size, (stop - 1) * s - p + k)) if first < stop else (0, 0) for first, stop in read)
        tables.append((read, tuple(over)))
    return LineTable(tables[0], tables[1])


@quantizer("Unpool")
class UnpoolQuantizer(Moving):
    """No arithmetic; overlapping windows would need sums beyond the range of the type."""

    remedy = "use a stride of the size of the window, set Quantize=0 for it, or export in floating point with -nbbits -32"

    def refuses(self, node: Node) -> str | None:
        return "Unpool with overlapping windows" if node.op.overlaps else None


@cpp("Unpool")
def _lower(layer: Layer) -> LayerCode:
    op, first, kind = layer.op, layer.inputs[0], layer.output
    # The input of the pool only determines positions; its type may differ.
    stored = moving_epilogue(replace(layer, inputs=(first,)), clamped=True)
    planes = {"Input": layer.input_planes[0], "Pooled": layer.input_planes[1], "Output": layer.output_plane}
    constants = {**window(op.kernel, op.stride, op.pads), "OutputZero": kind.zero_point, "Serial": layer.serial}
    config = layer.config(f"unpooling {op.kernel[0]} x {op.kernel[1]}", {**planes, "Epilogue": stored}, constants)
    return layer.code("unpool", layer.call("unpool", config, inputs=layer.bases))
