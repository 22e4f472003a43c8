"""The table of layers: shapes, cost, number types, rescale and geometry of each; that of the page, and that of `-describe`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from n2d2py.exports import KernelChoice
from n2d2py.graph import Aligned, QuantGraph, QuantNode, dims_text, n2d2_dims
from n2d2py.operators.conv import Conv
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.pool import Pool
from n2d2py.report.comparison import WEAK_DB, loss_shares
from n2d2py.report.data import ReportData
from n2d2py.report.text import csv_text, decimal, grouped
from n2d2py.runtime import LayerTime
from n2d2py.targets import text_table


@dataclass(frozen=True)
class LayerRow:
    """One layer. Dimensions are X x Y x C (width, height, channels); several inputs are joined by " + ".

    `parameters` counts weights, biases and tables, `parameter_bytes` their bytes as stored integers;
    rescale factors are not among them. `flash_bytes` are those after the packing of weights, of `weight_bits` bits each where
    several are in a byte. `activation_bytes` is the size of the output. Pads are top,
    left, bottom, right; kernel, stride and dilation are vertical x horizontal. `implementation` runs the layer on the
    `instruction_sets` (all where it is empty, the portable one elsewhere), `why` says what chose it.
    """

    name: str
    type: str
    inputs: str
    input_dims: str
    output_dims: str
    macs: int
    parameters: int
    parameter_bytes: int
    activation_bytes: int
    input_types: str
    weight_type: str
    accumulator: str
    output_type: str
    output_scale: float | None
    rescale_min: float | None
    rescale_max: float | None
    clamp: str
    kernel: str
    stride: str
    pads: str
    dilation: str
    groups: str
    implementation: str = ""
    instruction_sets: str = ""
    why: str = ""
    weight_bits: int = 0
    flash_bytes: int = 0


@dataclass(frozen=True)
class Totals:
    """Sums over the layers."""

    layers: int
    macs: int
    parameters: int
    parameter_bytes: int
    flash_bytes: int = 0


def layer_type(node: QuantNode) -> str:
    """Return the operator with what tells it apart at a glance, such as "Conv depthwise" or "Pool Max"."""
    op = node.op
    if isinstance(op, Conv):
        text = "Conv depthwise" if op.is_depthwise(node) and op.groups > 1 else ("Conv grouped" if op.groups > 1 else "Conv")
        return text if node.residual is None else f"{text} + Sum"
    if isinstance(op, Pool):
        return f"Pool {op.mode}"
    if isinstance(op, ElemWise):
        return f"ElemWise {op.operation}"
    return op.kind


def kernel_size(node: QuantNode) -> tuple[int, ...]:
    """Return height and width of the kernel of a convolution or pooling; () for others."""
    return (
        node.params["weights"].shape[2:] if isinstance(node.op, Conv) else node.op.kernel if isinstance(node.op, Pool) else ()
    )


def stored_parameters(node: QuantNode) -> list[np.ndarray]:
    """Return the weights, biases and tables of a layer; the multipliers of inputs are part of the code."""
    return [] if isinstance(node.form, Aligned) else list(node.params.values())


def _row(node: QuantNode, graph: QuantGraph, choice: KernelChoice | None) -> LayerRow:
    op = node.op
    shapes = [graph.shape(name) for name in node.inputs]
    out = graph.tensors[node.outputs[0]]
    integer = graph.is_integer(node)
    weights = node.params.get("weights")
    stored = stored_parameters(node)
    factors = node.rescale.effective() if node.rescale is not None else None
    conv, kernel = isinstance(op, Conv), kernel_size(node)
    size = sum(int(a.nbytes) for a in stored)
    bits, flash = 0 if weights is None else 8 * weights.itemsize, size
    if choice is not None and choice.weight_bits and weights is not None:
        bits, flash = choice.weight_bits, size - int(weights.nbytes) + choice.weight_bytes
    return LayerRow(
        node.name,
        layer_type(node),
        " + ".join(node.inputs),
        " + ".join(dims_text(n2d2_dims(shape)) for shape in shapes),
        dims_text(n2d2_dims(out.shape)),
        int(op.macs(shapes, out.shape, node)),
        sum(int(a.size) for a in stored),
        size,
        sum(graph.tensors[name].bytes for name in node.outputs),
        " + ".join(graph.type(name).name for name in node.inputs),
        weights.dtype.name if weights is not None else "",
        f"int{node.acc_bits}" if integer and node.rescale is not None else "",
        out.type.name,
        out.type.scale if integer else None,
        float(factors.min()) if factors is not None else None,
        float(factors.max()) if factors is not None else None,
        f"{node.clamp[0]}..{node.clamp[1]}" if node.clamp else "",
        dims_text(kernel),
        dims_text(op.stride) if kernel else "",
        " ".join(map(str, op.pads)) if hasattr(op, "pads") else "",
        dims_text(op.dilation) if conv else "",
        str(op.groups) if conv else "",
        *((choice.kernel, " ".join(choice.sets), choice.reason) if choice else ("", "", "")),
        bits,
        flash,
    )


def layer_rows(graph: QuantGraph, kernels: Mapping[str, KernelChoice] | None = None) -> list[LayerRow]:
    """Return the rows in execution order, with what runs each layer where that is known."""
    return [_row(node, graph, (kernels or {}).get(node.name)) for node in graph.nodes]


def layer_times(data: ReportData, rows: Sequence[LayerRow]) -> dict[int, LayerTime]:
    """Return the measured time of rows by their number; the clock's name of a layer holds that of the sum which it does too."""
    if data.latency is None:
        return {}
    sums = {node.name: node.residual.layer for node in data.qgraph.nodes if node.residual is not None}
    measured = {time.layer: time for time in data.latency.layers}
    named = {k: f"{row.name}+{sums[row.name]}" if row.name in sums else row.name for k, row in enumerate(rows)}
    return {k: measured[name] for k, name in named.items() if name in measured}


def totals(rows: Sequence[LayerRow]) -> Totals:
    """Return the sums of a table."""
    names = "macs", "parameters", "parameter_bytes", "flash_bytes"
    return Totals(len(rows), *(sum(getattr(row, name) for row in rows) for name in names))


def layers_csv(rows: Sequence[LayerRow]) -> str:
    """All columns, one line per layer, no totals."""
    return csv_text(
        [f.name for f in fields(LayerRow)],
        ([decimal(v, 9) if isinstance(v, float) or v is None else v for v in asdict(row).values()] for row in rows),
    )


def _types(row: LayerRow) -> str:
    few = ""
    if row.weight_bits and row.flash_bytes != row.parameter_bytes:
        few = f" in {row.weight_bits} bit{'s' if row.weight_bits > 1 else ''}"
    return f"{row.input_types}{' * ' + row.weight_type + few if row.weight_type else ''} -> {row.output_type}"


def rescale_text(row: LayerRow, between: str = "..") -> str:
    """Return the factors of a layer: one, or the ends of their range."""
    low, high = decimal(row.rescale_min, 4), decimal(row.rescale_max, 4)
    return low if low == high else f"{low}{between}{high}"


_COLUMNS: dict[str, Callable[[LayerRow], str]] = {
    "layer": lambda row: row.name,
    "type": lambda row: row.type,
    "input": lambda row: row.input_dims,
    "output": lambda row: row.output_dims,
    "MACs": lambda row: grouped(row.macs),
    "parameters": lambda row: grouped(row.parameters),
    "bytes": lambda row: grouped(row.parameter_bytes),
    "packed": lambda row: grouped(row.flash_bytes),
    "output bytes": lambda row: grouped(row.activation_bytes),
    "types": _types,
    "scale": lambda row: decimal(row.output_scale),
    "rescale": rescale_text,
    "kernel": lambda row: row.kernel,
    "stride": lambda row: row.stride,
    "pads": lambda row: row.pads,
}
"""The columns that fit a wide terminal; `layers_text` has their sums."""


def layers_text(rows: Sequence[LayerRow]) -> str:
    """Return the columns that fit a wide terminal, then the totals."""
    sums = totals(rows)
    figures = (sums.macs, sums.parameters, sums.parameter_bytes, sums.flash_bytes)
    total = ["total", f"{sums.layers} layers", "", "", *map(grouped, figures)]
    body = [[cell(row) for cell in _COLUMNS.values()] for row in rows]
    body.append([*total, *[""] * (len(_COLUMNS) - len(total))])
    return (
        "# dimensions X x Y x C; bytes: weights, biases, tables; packed: with packed low-bit weights; pads top left bottom right\n"
        + text_table(list(_COLUMNS), body, left=4)
        + _kernels_text(rows)
    )


def _kernels_text(rows: Sequence[LayerRow]) -> str:
    if not any(r.implementation for r in rows):
        return ""
    body = [[r.name, r.implementation, r.instruction_sets or "all", r.why] for r in rows]
    title = "\n# what runs each layer on these instruction sets (the portable kernel elsewhere), and why\n"
    return title + text_table(["layer", "implementation", "instruction sets", "why"], body, left=4)


def describe_text(described: Mapping[str, Any], width: int | None = None) -> str:
    """Return the table of what `graph.describe` gives, without a last line break; names are shortened to a `width`.

    Dimensions are width x height x channels, as the header says.
    """

    rows = [
        [one["name"], one["type"], *(dims_text(one[key]) for key in ("input_dims", "output_dims")), one["macs"], one["params"]]
        for one in described["layers"]
    ]
    rows.append(["total", f"{len(rows)} layers", "", "", described["macs"], described["params"]])
    rows = [[*texts, grouped(macs), grouped(count)] for *texts, macs, count in rows]
    inputs = ", ".join(f"{name} {dims_text(shape)}" for name, shape in described["inputs"].items())
    head = f"{described['name']}: inputs {inputs}; outputs {', '.join(described['outputs'])}"
    header = ["layer", "type", "input WxHxC", "output WxHxC", "MACs", "parameters"]
    return head + "\n" + text_table(header, rows, left=2, width=width).rstrip("\n")


_UNPACKED = "bytes of weights, biases and tables with a byte or more for each"
_LIMIT = "share of what the machine's multiplier or its memory would allow"
_SETS = "instruction sets; elsewhere the portable kernel"
_LOSS = "share of all squared errors at the outputs when this layer alone is in integers"


@dataclass(frozen=True)
class Cell:
    """A figure; `share` is the length of its bar, in percent."""

    text: str
    share: float | None = None
    bad: bool = False


@dataclass(frozen=True)
class Column:
    """A column: `room` is 1 where it is always shown, 2 and 3 on wider screens, 4 on request; `found`: the search reads it."""

    title: str
    tip: str
    cells: list[Cell]
    room: int = 1
    left: bool = False
    total: str = ""
    found: bool = True


def layer_table(data: ReportData, rows: Sequence[LayerRow]) -> list[Column]:
    """Return the columns after the names; those that nothing was measured for are left out."""
    sums, times = totals(rows), layer_times(data, rows)
    took = sum(time.median_us for time in times.values()) or 1.0
    losses = loss_shares(data.losses)
    compared = {c.layer: c for c in data.comparisons}

    def column(
        title: str,
        tip: str,
        room: int,
        values: Sequence[Any],
        form: Callable[[Any], str] = str,
        total: str = "",
        found: bool = True,
    ) -> list[Column]:
        """Return the column of these values, with bars if they are numbers; none without values."""
        known = [value for value in values if value not in (None, "")]
        is_text = bool(known) and isinstance(known[0], str)
        most = 0.0 if is_text else max(known, default=0.0)
        cells = [Cell("") if value is None else Cell(form(value), 100 * value / most if most > 0 else None) for value in values]
        return [Column(title, tip, cells, room, is_text, total, found)] if known else []

    def of(name: str) -> list[Any]:
        return [getattr(row, name) for row in rows]

    def counts(title: str, tip: str, room: int, name: str) -> list[Column]:
        return column(title, tip, room, of(name), grouped, grouped(sum(of(name))))

    spent = [times[k].median_us if k in times else None for k in range(len(rows))]
    limits = [times[k].limit if k in times else None for k in range(len(rows))]
    sets = [(row.instruction_sets or "all") if row.implementation else "" for row in rows]
    return [
        *column("type", "operator", 2, of("type")),
        *column("output", "width × height × channels", 2, of("output_dims")),
        *counts("MACs", "multiply-accumulates", 2, "macs"),
        *counts("flash bytes", "weights, biases and tables as stored", 1, "flash_bytes"),
        *(counts("before packing", _UNPACKED, 2, "parameter_bytes") if sums.flash_bytes != sums.parameter_bytes else ()),
        *column("output bytes", "bytes of the output", 3, of("activation_bytes"), grouped),
        *column("time µs", "median, measured on this machine", 1, spent, "{:.2f}".format, f"{took:.2f}"),
        *column("limit %", _LIMIT, 3, limits, "{:.1f}".format),
        *_noise([compared[row.name].sqnr_db if row.name in compared else None for row in rows]),
        *column("loss %", _LOSS, 3, [losses.get(row.name) for row in rows], "{:.1f}".format),
        *column("types", "inputs * weights -> output", 3, [_types(row) for row in rows]),
        *column("input", "width × height × channels", 4, of("input_dims")),
        *column("inputs", "layers that are read", 4, of("inputs"), found=False),
        *counts("parameters", "weights, biases, table entries", 4, "parameters"),
        *column("kernel", "height × width", 4, of("kernel")),
        *column("stride", "vertical × horizontal", 4, of("stride")),
        *column("pads", "top left bottom right", 4, of("pads")),
        *column("accumulator", "type of the sums", 4, of("accumulator")),
        *column("scale", "real value of a step of the output", 4, [decimal(row.output_scale, 5) for row in rows]),
        *column("rescale", "factor from sums to the output", 4, [rescale_text(row, " … ") for row in rows]),
        *column("runs in", "kernel of the layer", 4, of("implementation")),
        *column("on", _SETS, 4, sets),
        *column("why", "why that kernel", 4, of("why"), found=False),
    ]


def _noise(values: Sequence[float | None]) -> list[Column]:
    """Signal to quantization noise; small is bad, so that it has no bars."""
    cells = [Cell("") if value is None else Cell(f"{value:.2f}", bad=value < WEAK_DB) for value in values]
    about = "signal to quantization noise of the output, against the float network"
    return [Column("SQNR dB", about, cells, 2)] if any(cell.text for cell in cells) else []
