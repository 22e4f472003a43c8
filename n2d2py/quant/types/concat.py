"""Types of layers that store tensors of different ranges with one scale: Concat, and padding with a constant.

If one range is many times wider than another, the narrow one keeps few integer steps. The Concat then gets 16 bits, unless
weights multiply its output: 16-bit products are slower. In that case a warning names the layer.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.histogram import Histogram
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph, Node
from n2d2py.operators import Conv, Deconv, Fc, IndexSelect, is_real_concat
from n2d2py.quant.types.ranges import finer_type
from n2d2py.quant.types.widths import is_sequence, requested_bits

_JOIN_RATIO = 0.5
"""An input of a Concat whose range is at least this share of the output's range gets the output's scale."""

_FEWEST_STEPS = 16
"""Steps that each input of a Concat must keep on each side of zero: an eighth of an 8-bit range (127)."""

_FINE_STEPS = 256
"""With more steps between 0 and 1 than this, rounding does not decide which scores exceed one half."""

_FARTHEST_FILL = 8
"""A fill value above this multiple of the tensor's range is clipped instead of widening the range."""


def fill_values(graph: Graph, source: Mapping[str, str]) -> dict[str, list[Node]]:
    """Return, by computed tensor, the layers that pad it with a nonzero constant."""
    pads_by_tensor: dict[str, list[Node]] = {}
    for node in graph.nodes:
        pads = isinstance(node.op, IndexSelect) and node.op.fill != 0 and node.op.fills
        if pads and node.output in source:
            pads_by_tensor.setdefault(source[node.output], []).append(node)
    return pads_by_tensor


def widen_to_fills(threshold: float, padding: Iterable[Node]) -> tuple[float, list[N2D2Error]]:
    """Return the threshold widened to the fill values of `padding`, and a warning (W506) for each that is clipped instead."""
    widest, beyond = threshold, []
    for node in padding:
        fill = node.op.fill
        if abs(fill) < _FARTHEST_FILL * threshold:
            widest = max(widest, abs(fill))
        else:
            what = f"layer '{node.name}' pads with {fill:g} a tensor that reaches {threshold:.4g}: in integers the value is {np.sign(fill) * widest:.4g}"
            remedy = "pad with a value near the range of the tensor, or set Quantize=0 for the layer"
            beyond.append(N2D2Error("W506", what, where=node.location, remedy=remedy))
    return widest, beyond


def choose_concat_types(
    graph: Graph,
    source: Mapping[str, str],
    types: dict[str, NumType],
    positive: set[str],
    seen: Mapping[str, Histogram],
    options: QuantOptions,
) -> list[N2D2Error]:
    """Give each Concat the widest range of its inputs, and the same type to inputs of a similar range.

    `seen` holds the histograms of tensors. An 8-bit Concat does not inherit the headroom of 16-bit inputs. A network
    output whose inputs differ widely in range has no headroom, which would cost steps of the narrowest input. If it holds
    scores, no step crosses one half. Returns a warning (W505) for each Concat that remains too coarse for one of its inputs.
    """
    peaks = {name: histogram.largest for name, histogram in seen.items()}
    coarse, zero = [], {name for name, largest in peaks.items() if largest == 0}
    parts: dict[str, dict[str, float]] = {}
    for node in graph.nodes:
        if not is_real_concat(node) or node.output in types:
            continue
        origins = [source[name] for name in node.inputs]
        copies = [tensor for tensor, origin in source.items() if origin == node.output]
        magnitudes: dict[str, float] = {}
        for origin in origins:
            magnitudes.update(parts.get(origin) or {origin: types[origin].max_abs})
        parts[node.output] = magnitudes
        magnitude = max(magnitudes.values())
        finest = min((value for name, value in magnitudes.items() if name not in zero), default=magnitude)
        is_output = any(name in graph.outputs for name in copies)
        ends = max(min(value, peaks.get(name) or value) for name, value in magnitudes.items())
        if is_output and _is_coarse(NumType(8), finest / magnitude):
            magnitude = ends
        bits = requested_bits(graph, copies)
        states = options.bits == 8 and options.wide_concats and is_sequence(graph, node.output)
        wide = node.output in options.wide or states or (is_output and options.output_bits == 16)
        kind = NumType(bits or (16 if wide else options.bits), node.output not in positive)
        if _is_coarse(kind, finest / magnitude) and bits is None and _may_widen(graph, copies, options):
            kind = replace(kind, bits=16)
        if kind.bits == 8:
            magnitude = max(min(value, ends) if types[name].bits == 16 else value for name, value in magnitudes.items())
        intervals = [_interval(types[name], seen.get(name)) for name in magnitudes]
        low, high = min(interval[0] for interval in intervals), max(interval[1] for interval in intervals)
        readers = [reader for name in copies for reader in graph.consumers(name)]
        kind = finer_type(kind.with_scale(magnitude / kind.qmax), low, high, readers, options)
        scores = (name for name in magnitudes if name in positive and 0.5 < peaks.get(name, 0.0) <= 1)
        if is_output and any(scores):
            kind = kind.with_scale(_step_beside_half(kind.scale))
        types[node.output] = kind
        if _is_coarse(kind, finest / magnitude):
            coarse.append(_describe_coarse(node, kind, magnitudes, zero))
        types |= {name: kind for name in origins if name not in graph.inputs and _is_near(types[name], kind)}
    return coarse


def _is_near(part: NumType, kind: NumType) -> bool:
    same = (part.bits, part.signed) == (kind.bits, kind.signed)
    return same and _interval_width(part) >= _JOIN_RATIO * _interval_width(kind)


def _interval(kind: NumType, seen: Histogram | None) -> tuple[float, float]:
    """Return the interval of an 8-bit type, and that of the values seen of a 16-bit tensor, without its headroom."""
    return kind.interval if kind.bits == 8 or seen is None else (seen.minimum, seen.maximum)


def _step_beside_half(step: float) -> float:
    """Return the next larger step for which rounding never moves a score across one half."""
    count = int(1 / step)
    count -= count % 2 == 0
    return 1 / count if 0 < count < _FINE_STEPS else step


def _interval_width(kind: NumType) -> float:
    low, high = kind.interval
    return high - low


def _is_coarse(kind: NumType, share: float) -> bool:
    """True if a range of `share` of the whole keeps fewer than `_FEWEST_STEPS` steps."""
    return NumType(kind.bits).qmax * share < _FEWEST_STEPS


def _may_widen(graph: Graph, copies: list[str], options: QuantOptions) -> bool:
    """True if 16 bits cost only memory: no weights multiply the output, and 8-bit outputs were not requested."""
    if not options.wide_concats or (options.output_bits == 8 and any(name in graph.outputs for name in copies)):
        return False
    return not any(isinstance(reader.op, (Conv, Deconv, Fc)) for name in copies for reader in graph.consumers(name))


def _describe_coarse(node: Node, kind: NumType, magnitudes: Mapping[str, float], zero: set[str]) -> N2D2Error:
    widest = max(magnitudes, key=lambda name: magnitudes[name])
    least = min((name for name in magnitudes if name not in zero), key=lambda name: magnitudes[name])
    step = magnitudes[widest] / kind.qmax
    what = (
        f"layer '{node.name}' joins in {kind.bits} bits ranges that differ by a factor of {magnitudes[widest] / magnitudes[least]:.3g}: "
        f"'{widest}' reaches {magnitudes[widest]:.4g}, '{least}' {magnitudes[least]:.4g}, which is {magnitudes[least] / step:.3g} steps"
    )
    remedy = "set Quantize=0 for it" if kind.bits == 16 else "set QuantBits=16 or Quantize=0 for it"
    return N2D2Error("W505", what, where=node.location, remedy=f"{remedy}, or keep the tensors apart")
