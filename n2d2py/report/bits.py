"""Few bits: the search for them under a budget as a table, a CSV file and a plot of its front; the tensors that are packed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from n2d2py.figures import Drawing, Svg
from n2d2py.graph import QuantGraph
from n2d2py.passes.integer.pack_activations import LowBitTensor, low_bit_tensors
from n2d2py.report.text import Figures, column_text, csv_text


@dataclass(frozen=True)
class BitChoice:
    """A width of the weights of each layer, and what it gives.

    Attributes:
        name: why it was measured; "" for one of the front.
        widths: bits of the weights by layer.
        bytes: of the constants of its export.
        error: mean square of the outputs' error, as single layers predict it.
        sqnr_db: measured, of all roundings together, over some stimuli of the calibration: the variance of each row of each
            output over its squared error, by the mean of these.
        agreement: share of these, and of the outputs, whose largest value is that of the float network, 0..1.
    """

    name: str
    widths: Mapping[str, int]
    bytes: int
    error: float
    sqnr_db: float
    agreement: float


@dataclass(frozen=True)
class BitSearch:
    """Result of the search under a budget of bytes.

    `taken`: the choice of the export. `measured`: choices that were measured, that one among them. `front`: (bytes, predicted
    error) of all choices that no other beats. `weights`: number of weights by layer.
    """

    budget: int
    taken: BitChoice
    measured: Sequence[BitChoice]
    front: Sequence[tuple[int, float]]
    weights: Mapping[str, int]


def _ordered(search: BitSearch) -> list[BitChoice]:
    return sorted(search.measured, key=lambda one: (one.bytes, one.name))


def _counts(choice: BitChoice) -> str:
    """Such as "8: 3, 4: 9", layers by bits."""
    bits = sorted(set(choice.widths.values()), reverse=True)
    return ", ".join(f"{each}: {sum(one == each for one in choice.widths.values())}" for each in bits)


_CHOICES: tuple[Figures[BitChoice], ...] = (
    Figures(lambda one: one.name or "front", title="weights"),
    Figures(lambda one: f"{one.bytes:,}", title="bytes"),
    Figures(_counts, title="layers by bits"),
    Figures(lambda one: one.error, title="predicted"),
    Figures(lambda one: one.sqnr_db, title="SQNR dB", short=".1f"),
    Figures(lambda one: 100 * one.agreement, title="agreement %", short=".0f"),
)


def bits_text(search: BitSearch) -> str:
    """Return the measured choices by their bytes."""
    return column_text(_CHOICES, _ordered(search))


def bits_csv(search: BitSearch) -> str:
    """Return the whole front, then the widths of every measured choice."""
    rows = [["front", size, f"{error:.9g}", "", "", *("" for _ in search.weights)] for size, error in search.front]
    for one in _ordered(search):
        measured = f"{one.sqnr_db:.6g}", f"{100 * one.agreement:.6g}"
        widths = (one.widths[name] for name in search.weights)
        rows.append([one.name or "measured", one.bytes, f"{one.error:.9g}", *measured, *widths])
    return csv_text(["kind", "bytes", "predicted_error", "sqnr_db", "agreement_percent", *search.weights], rows)


_SIZE, _LEFT, _TOP, _BOTTOM = (640.0, 280.0), 60.0, 16.0, 40.0
_DECADES = 6


def draw_front(search: BitSearch, standalone: bool = True) -> Drawing:
    """SVG: bytes of constants against the predicted error (logarithmic); dots are measured, the line is the budget."""
    width, height = _SIZE
    points = [(size, error) for size, error in search.front if error > 0] + [(one.bytes, one.error) for one in search.measured]
    largest = max((error for _, error in points), default=1.0) or 1.0
    errors = [max(error, largest * 10.0**-_DECADES) for _, error in points] or [1.0]
    low, high = math.log10(min(errors)), math.log10(max(errors)) + 0.05
    sizes = [size for size, _ in points] + [search.budget]
    most = 1.03 * max(min(search.budget, 2 * max(size for size, _ in points)), *(size for size, _ in points))
    least = 0.97 * min(sizes)

    def place(size: float, error: float) -> tuple[float, float]:
        x = _LEFT + (size - least) / (most - least) * (width - _LEFT - 16)
        share = (math.log10(max(error, 10**low)) - low) / max(high - low, 1e-9)
        return x, height - _BOTTOM - share * (height - _TOP - _BOTTOM)

    svg = Svg(width, height, "front", standalone=standalone)
    for decade in range(math.ceil(low), math.floor(high) + 1):
        y = place(least, 10.0**decade)[1]
        svg.line(_LEFT, y, width, y, "axis")
        svg.text(_LEFT - 5, y + 3.5, f"1e{decade}", "tick", anchor="end")
    line = [place(size, error) for size, error in search.front[:: max(1, len(search.front) // 400)]]
    for (x1, y1), (x2, y2) in pairwise(line):
        svg.line(x1, y1, x2, y2, "candidate c1")
    if search.budget <= most:
        x = place(search.budget, 1.0)[0]
        svg.line(x, _TOP, x, height - _BOTTOM, "threshold", f"budget: {search.budget:,} bytes")
    for one in _ordered(search):
        x, y = place(one.bytes, one.error)
        title = f"{one.name or 'front'}: {one.bytes:,} bytes, {one.sqnr_db:.1f} dB, {_counts(one)}"
        svg.rect(x - 3.5, y - 3.5, 7, 7, "k-conv" if one is search.taken else "bars", 3.5, title)
        if one.name:
            svg.text(x, y - 7, one.name, "info")
    svg.line(_LEFT, height - _BOTTOM, width, height - _BOTTOM, "axis")
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        size = least + share * (most - least)
        svg.text(place(size, 1.0)[0], height - _BOTTOM + 14, f"{size / 1000:.4g} kB", "tick")
    svg.text((_LEFT + width) / 2, height - 8, "constants; above: predicted error of the outputs", "info")
    return svg.finish()


def packing_text(graph: QuantGraph) -> str:
    """One line per tensor of at most 4 bits of a network with packed ones; "" for another network."""
    return column_text(_TENSORS, low_bit_tensors(graph), left=2) if graph.packed else ""


_TENSORS: tuple[Figures[LowBitTensor], ...] = (
    Figures(lambda one: one.name, title="tensor"),
    Figures(
        lambda one: "packed" if one.packed else f"bytes: {one.refused or 'packing it does not reduce the arena'}",
        title="held as",
    ),
    Figures(lambda one: one.bits, title="bits"),
    Figures(lambda one: f"{one.bytes:,}", title="bytes"),
    Figures(lambda one: f"{one.packed_bytes:,}", title="packed"),
)
