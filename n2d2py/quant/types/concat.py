"""Layers that join tensors of different ranges in integers of one scale: Concat, and padding with a constant.

The smallest range has few of the integers when the largest is many times wider. A Concat then gets 16 bits where no weights
multiply its integers, for sums of 16-bit integers take more time; else the caller is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import NumType
from n2d2py.errors import Location
from n2d2py.graph import Graph, Node
from n2d2py.operators.concat import joins
from n2d2py.operators.conv import Conv
from n2d2py.operators.deconv import Deconv
from n2d2py.operators.fc import Fc
from n2d2py.operators.index_select import IndexSelect
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.types.ranges import ZERO_POINT_GAIN, interval_type
from n2d2py.quant.types.widths import asked_bits, is_sequence

_JOIN_RATIO = 0.5
"""A concat input whose range is at least this share of the widest shares the output's scale."""

_FEWEST_STEPS = 16
"""Integers that the range of each input of a Concat must keep on each side of zero: 127 / 16, about an 8-bit eighth."""

_FINE = 256
"""Steps between 0 and 1 from which on rounding decides no score."""

_APART = 8
"""A fill value beyond this many times the range of its tensor does not widen it."""


@dataclass(frozen=True)
class CoarseJoin:
    """A Concat (of arrays too), or a layer that pads, whose integers are too coarse for some of what it holds.

    `what` says for which, `remedy` what helps.
    """

    layer: str
    pads: bool
    what: str
    remedy: str
    location: Location | str | None


def warn_of_coarse_joins(found: Iterable[CoarseJoin]) -> None:
    """One warning for each."""
    for join in found:
        message = f"layer '{join.layer}' {join.what}"
        if join.pads:
            log.warning("W506", message, where=join.location, remedy=join.remedy)
        else:
            log.warning("W505", message, where=join.location, remedy=join.remedy)


# ---- padding with a constant ------------------------------------------------------------------------
def fill_values(graph: Graph, source: Mapping[str, str]) -> dict[str, list[Node]]:
    """By the tensor whose integers they move, the layers that pad it with a constant other than 0."""
    found: dict[str, list[Node]] = {}
    for node in graph.nodes:
        pads = isinstance(node.op, IndexSelect) and node.op.fill != 0 and node.op.fills
        if pads and node.output in source:
            found.setdefault(source[node.output], []).append(node)
    return found


def with_fills(threshold: float, padding: Iterable[Node]) -> tuple[float, list[CoarseJoin]]:
    """The range widened to the constants that pad the tensor; those far beyond it are clipped, and named."""
    widest, beyond = threshold, []
    for node in padding:
        fill = node.op.fill
        if abs(fill) < _APART * threshold:
            widest = max(widest, abs(fill))
        else:
            what = f"pads with {fill:g} a tensor that reaches {threshold:.4g}: in integers the value is {np.sign(fill) * widest:.4g}"
            remedy = "pad with a value near the range of the tensor, or set Quantize=0 for the layer"
            beyond.append(CoarseJoin(node.name, True, what, remedy, node.location))
    return widest, beyond


# ---- Concat -----------------------------------------------------------------------------------------
def type_concats(
    graph: Graph,
    source: Mapping[str, str],
    types: dict[str, NumType],
    positive: set[str],
    seen: Mapping[str, float],
    options: QuantOptions,
) -> list[CoarseJoin]:
    """Give each Concat output the widest range of its inputs, and that type to inputs that come near it.

    `seen` are the largest values of tensors; 8 bits do not take over the headroom that 16 have. An output of parts whose ranges are far apart ends at the largest one: headroom would be
    taken from the steps of the smallest. Its steps part at one half where it holds scores. Returns the Concats that stay too coarse for one of their inputs.
    """
    coarse, zero = [], {name for name, largest in seen.items() if largest == 0}
    parts: dict[str, dict[str, float]] = {}
    for node in graph.nodes:
        if not joins(node) or node.output in types:
            continue
        origins = [source[name] for name in node.inputs]
        held = [tensor for tensor, origin in source.items() if origin == node.output]
        reaches: dict[str, float] = {}
        for origin in origins:
            reaches.update(parts.get(origin) or {origin: types[origin].reach})
        parts[node.output] = reaches
        reach = max(reaches.values())
        finest = min((value for name, value in reaches.items() if name not in zero), default=reach)
        is_output = any(name in graph.outputs for name in held)
        ends = max(min(value, seen.get(name) or value) for name, value in reaches.items())
        if is_output and _is_coarse(NumType(8), finest / reach):
            reach = ends
        asked = asked_bits(graph, held)
        states = options.bits == 8 and options.wide_joins and is_sequence(graph, node.output)
        wide = node.output in options.wide or states or (is_output and options.output_bits == 16)
        kind = NumType(asked or (16 if wide else options.bits), node.output not in positive)
        if _is_coarse(kind, finest / reach) and asked is None and _may_widen(graph, held, options):
            kind = replace(kind, bits=16)
        if kind.bits == 8:
            reach = max(min(value, ends) if types[name].bits == 16 else value for name, value in reaches.items())
        step = reach / kind.qmax
        if is_output and any(_are_scores(name, positive, seen) for name in reaches):
            step = _parting(step)
        kind = _joined(kind.with_scale(step), [types[origin] for origin in origins], graph, held, options)
        types[node.output] = kind
        if _is_coarse(kind, finest / reach):
            coarse.append(_coarse(node, kind, reaches, zero))
        for origin in origins:
            near = _extent(types[origin]) >= _JOIN_RATIO * _extent(kind)
            same = (types[origin].bits, types[origin].signed) == (kind.bits, kind.signed)
            if near and same and origin not in graph.inputs:
                types[origin] = kind
    return coarse


def _are_scores(name: str, positive: set[str], seen: Mapping[str, float]) -> bool:
    """True if the values of a tensor lie between 0 and 1, and some above one half."""
    return name in positive and 0.5 < seen.get(name, 0.0) <= 1


def _parting(step: float) -> float:
    """Return the next larger step whose integers part at one half, so that rounding leaves each score on its side of it."""
    count = int(1 / step)
    count -= count % 2 == 0
    return 1 / count if 0 < count < _FINE else step


def _extent(kind: NumType) -> float:
    low, high = kind.interval
    return high - low


def _joined(symmetric: NumType, parts: Sequence[NumType], graph: Graph, held: Sequence[str], options: QuantOptions) -> NumType:
    """The type of a Concat of these parts: with a zero point where the steps become clearly finer, else symmetric."""
    fixed = any(name in graph.outputs for name in held) or any(
        isinstance(reader.op, Deconv) for name in held for reader in graph.consumers(name)
    )
    if fixed or not (options.unsigned and options.zero_points and symmetric.signed and symmetric.bits == 8):
        return symmetric
    shifted = interval_type(8, min(kind.interval[0] for kind in parts), max(kind.interval[1] for kind in parts))
    return shifted if shifted.scale**2 < ZERO_POINT_GAIN * symmetric.scale**2 else symmetric


def _is_coarse(kind: NumType, share: float) -> bool:
    """True if a range that is `share` of the whole keeps too few of the integers."""
    return NumType(kind.bits).qmax * share < _FEWEST_STEPS


def _may_widen(graph: Graph, held: list[str], options: QuantOptions) -> bool:
    """True if 16 bits cost only memory: no weights multiply the integers, and nobody asked for 8 of the outputs."""
    if not options.wide_joins or (options.output_bits == 8 and any(name in graph.outputs for name in held)):
        return False
    return not any(isinstance(reader.op, (Conv, Deconv, Fc)) for name in held for reader in graph.consumers(name))


def _coarse(node: Node, kind: NumType, reaches: Mapping[str, float], zero: set[str]) -> CoarseJoin:
    widest = max(reaches, key=lambda name: reaches[name])
    least = min((name for name in reaches if name not in zero), key=lambda name: reaches[name])
    step = reaches[widest] / kind.qmax
    what = (
        f"joins in {kind.bits} bits ranges that differ by a factor of {reaches[widest] / reaches[least]:.3g}: "
        f"'{widest}' reaches {reaches[widest]:.4g}, '{least}' {reaches[least]:.4g}, which is {reaches[least] / step:.3g} steps"
    )
    remedy = "set Quantize=0 for it" if kind.bits == 16 else "set QuantBits=16 or Quantize=0 for it"
    return CoarseJoin(node.name, False, what, f"{remedy}, or keep the tensors apart", node.location)
