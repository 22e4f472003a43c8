"""The table of layers on the page: every figure of a layer in a column, the less asked for hidden where there is no room."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from n2d2py.report.comparison import WEAK_DB, loss_shares
from n2d2py.report.data import ReportData
from n2d2py.report.layers import LayerRow, layer_times, rescale_text, totals
from n2d2py.report.text import decimal, grouped

_UNPACKED = "bytes of weights, biases and tables with a byte or more for each"
_LIMIT = "share of what the machine's multiplier or its memory would allow"
_LOSS = "share of all squared errors at the outputs when this layer alone is in integers"


@dataclass(frozen=True)
class Cell:
    """A figure; `share` is the length of its bar, in percent."""

    text: str
    share: float | None = None
    bad: bool = False


@dataclass(frozen=True)
class Column:
    """A column: `room` is 1 where it is always shown, 2 and 3 on wider screens, 4 on request and for the chosen layer.

    `found`: whether the search reads it.
    """

    title: str
    tip: str
    cells: list[Cell]
    room: int = 1
    left: bool = False
    total: str = ""
    found: bool = True


@dataclass(frozen=True)
class FigureTable:
    """The columns; the name of each layer is not among them."""

    names: list[str]
    columns: list[Column]


def layer_table(data: ReportData, rows: Sequence[LayerRow]) -> FigureTable:
    """Return the table; columns that nothing was measured for are left out."""
    sums, times = totals(rows), layer_times(data, rows)
    took = sum(time.median_us for time in times.values()) or 1.0
    losses = loss_shares(data.losses)
    compared = {c.layer: c for c in data.comparisons}

    def texts(title: str, tip: str, text: Callable[[LayerRow], str], room: int, found: bool = True) -> list[Column]:
        cells = [Cell(text(row)) for row in rows]
        return [Column(title, tip, cells, room, True, found=found)] if any(cell.text for cell in cells) else []

    def figures(
        title: str, tip: str, values: Sequence[float | None], form: Callable[[float], str], room: int, total: str = ""
    ) -> list[Column]:
        most = max((value for value in values if value is not None), default=0.0)
        if all(value is None for value in values):
            return []
        cells = [Cell("") if value is None else Cell(form(value), 100 * value / most if most > 0 else None) for value in values]
        return [Column(title, tip, cells, room, total=total)]

    def counts(title: str, tip: str, name: str, room: int, total: bool = True) -> list[Column]:
        values = [getattr(row, name) for row in rows]
        return figures(title, tip, values, lambda value: grouped(int(value)), room, grouped(sum(values)) if total else "")

    spent = [times[k].median_us if k in times else None for k in range(len(rows))]
    limits = [times[k].limit if k in times else None for k in range(len(rows))]
    return FigureTable(
        [row.name for row in rows],
        [
            *texts("type", "operator", lambda row: row.type, 2),
            *texts("output", "width × height × channels", lambda row: row.output_dims, 2),
            *counts("MACs", "multiply-accumulates", "macs", 2),
            *counts("flash bytes", "weights, biases and tables as stored", "flash_bytes", 1),
            *(counts("before packing", _UNPACKED, "parameter_bytes", 2) if sums.flash_bytes != sums.parameter_bytes else ()),
            *counts("output bytes", "bytes of the output", "activation_bytes", 3, total=False),
            *figures("time µs", "median, measured on this machine", spent, "{:.2f}".format, 1, f"{took:.2f}"),
            *figures("limit %", _LIMIT, limits, "{:.1f}".format, 3),
            *_noise([compared[row.name].sqnr_db if row.name in compared else None for row in rows]),
            *figures("loss %", _LOSS, [losses.get(row.name) for row in rows], "{:.1f}".format, 3),
            *texts(
                "types",
                "inputs × weights → output",
                lambda row: f"{row.input_types}{' × ' + row.weight_type if row.weight_type else ''} → {row.output_type}",
                3,
            ),
            *texts("input", "width × height × channels", lambda row: row.input_dims, 4),
            *texts("inputs", "layers that are read", lambda row: row.inputs, 4, False),
            *counts("parameters", "weights, biases, table entries", "parameters", 4),
            *texts("kernel", "height × width", lambda row: row.kernel, 4),
            *texts("stride", "vertical × horizontal", lambda row: row.stride, 4),
            *texts("pads", "top left bottom right", lambda row: row.pads, 4),
            *texts("accumulator", "type of the sums", lambda row: row.accumulator, 4),
            *texts("scale", "real value of a step of the output", lambda row: decimal(row.output_scale, 5), 4),
            *texts("rescale", "factor from sums to the output", lambda row: rescale_text(row, " … "), 4),
            *texts("runs in", "kernel of the layer", lambda row: row.implementation, 4),
            *texts(
                "on",
                "instruction sets; elsewhere the portable kernel",
                lambda row: (row.instruction_sets or "all") if row.implementation else "",
                4,
            ),
            *texts("why", "why that kernel", lambda row: row.why, 4, False),
        ],
    )


def _noise(values: Sequence[float | None]) -> list[Column]:
    """Signal to quantization noise; small is bad, so that it has no bars."""
    if all(value is None for value in values):
        return []
    cells = [
        Cell("") if value is None else Cell("inf" if math.isinf(value) else f"{value:.2f}", bad=value < WEAK_DB)
        for value in values
    ]
    return [Column("SQNR dB", "signal to quantization noise of the output, against the float network", cells, 2)]
