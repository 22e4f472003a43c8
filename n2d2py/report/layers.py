"""The table of layers: shapes, cost, number types, rescale and geometry of each; that of `-describe`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from n2d2py.exports import KernelChoice
from n2d2py.graph import Aligned, QuantGraph, QuantNode, n2d2_dims
from n2d2py.operators.conv import Conv
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.pool import Pool
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


def _dims(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, n2d2_dims(shape)))


def _pair(values: Sequence[int]) -> str:
    return "x".join(map(str, values))


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
    kernel = node.params["weights"].shape[2:] if isinstance(op, Conv) else op.kernel if isinstance(op, Pool) else ()
    conv = isinstance(op, Conv)
    size = sum(int(a.nbytes) for a in stored)
    bits, flash = 0 if weights is None else 8 * weights.itemsize, size
    if choice is not None and choice.weight_bits and weights is not None:
        bits, flash = choice.weight_bits, size - int(weights.nbytes) + choice.weight_bytes
    window = conv or isinstance(op, Pool)
    return LayerRow(
        node.name,
        layer_type(node),
        " + ".join(node.inputs),
        " + ".join(map(_dims, shapes)),
        _dims(out.shape),
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
        _pair(kernel),
        _pair(op.stride) if window else "",
        " ".join(map(str, op.pads)) if hasattr(op, "pads") else "",
        _pair(op.dilation) if conv else "",
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
    """Kernel of each layer, and why; empty where the target has no choice."""
    if not any(r.implementation for r in rows):
        return ""
    body = [[r.name, r.implementation, r.instruction_sets or "all", r.why] for r in rows]
    return "\n# what runs each layer on these instruction sets (the portable kernel elsewhere), and why\n" + text_table(
        ["layer", "implementation", "instruction sets", "why"], body, left=4
    )


def describe_text(described: Mapping[str, Any], width: int | None = None) -> str:
    """Return the table of what `graph.describe` gives, without a last line break; names are shortened to a `width`.

    Dimensions are width x height x channels, as the header says.
    """

    def dims(values: list[int]) -> str:
        return "x".join(map(str, values))

    def counts(values: Mapping[str, Any]) -> list[str]:
        return [grouped(values["macs"]), grouped(values["params"])]

    rows = [
        [layer["name"], layer["type"], *(dims(layer[key]) for key in ("input_dims", "output_dims")), *counts(layer)]
        for layer in described["layers"]
    ]
    rows.append(["total", f"{len(rows)} layers", "", "", *counts(described)])
    inputs = ", ".join(f"{name} {dims(shape)}" for name, shape in described["inputs"].items())
    head = f"{described['name']}: inputs {inputs}; outputs {', '.join(described['outputs'])}"
    header = ["layer", "type", "input WxHxC", "output WxHxC", "MACs", "parameters"]
    return head + "\n" + text_table(header, rows, left=2, width=width).rstrip("\n")
