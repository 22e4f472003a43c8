"""Constant gains and shifts of row-major arrays become integer layers, if the layers next to them are integer too.

A layer between float layers stays in floating point, to avoid a needless quantization.

Gains g and shifts s are merged into their weighted consumers: W' = W g, b' = b + sum of W s. Layers that move elements may lie
between. A shift needs consumers without padding, which adds zeros after it. Gains of arrays may differ by at most a factor of
two, because the weights of an output share one scale; channel equalization handles wider gains (quant/correct/channels.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from n2d2py.graph import Graph, Node
from n2d2py.operators import Affine, Concat, ElemWise, Identity, Normalize, Reshape, is_quantized
from n2d2py.operators.arrays.map import ArrayMap, gains_and_shifts, scalar_factor
from n2d2py.operators.linear import axis_numbers, gain_and_shift, padded_reader, scale_inputs, weighted_readers
from n2d2py.passes.array_layers import integer_rewrite, over_images, reason_for_float
from n2d2py.passes.base import Done, Outcome, drop, rewrite


@rewrite("weigh-sums", "factors of arrays made weights of sums", ArrayMap)
def weigh_sums(graph: Graph, node: Node) -> Outcome:
    """ElemWise Sum(g x, y), g x an ArrayMap that only sums consume => ElemWise Sum with the weight g."""
    factor, sums = scalar_factor(node), graph.consumers(node.output)
    if not factor or not np.isfinite(factor) or node.output in graph.outputs:
        return None
    if not sums or not all(isinstance(total.op, ElemWise) and total.op.operation == "Sum" for total in sums):
        return None
    reason = reason_for_float(graph, node)
    if reason is not None:
        return reason
    for total in sums:
        weights, shifts = total.op.coefficients(len(total.inputs))
        weighed = [w * factor if name == node.output else w for w, name in zip(weights, total.inputs, strict=True)]
        total.op = replace(total.op, weights=tuple(weighed), shifts=tuple(shifts))
    drop(graph, node)
    return Done(f"the factor {factor:g} is a weight of " + ", ".join(total.name for total in sums))


_LARGEST_GAIN_RATIO = 4.0
"""Ratio of gains above which the parts of a Concat need different scales."""
_LONGEST_ROW = 4096
"""Largest number of elements in a row of several axes: each has a gain and a shift in the program."""


@dataclass(frozen=True)
class Gains:
    """y = gain * x + shift, both (C): of rows (..., C), or of (C, *pixels)."""

    gain: np.ndarray
    shift: np.ndarray
    pixels: tuple[int, ...] = ()

    @property
    def params(self) -> dict[str, np.ndarray]:
        """Return the constants of an Affine."""
        return {"weights": self.gain.astype(np.float32), "bias": self.shift.astype(np.float32)}

    @property
    def changes_nothing(self) -> bool:
        """True if y = x."""
        return bool((self.gain == 1).all() and not self.shift.any())


def _finite_gains(node: Node) -> tuple[tuple[int, ...], np.ndarray, np.ndarray] | None:
    gains = gains_and_shifts(node)
    return gains if gains is not None and np.isfinite(gains[1]).all() and np.isfinite(gains[2]).all() else None


def gains_of_rows(node: Node) -> Gains | None:
    """Return a layer's gain and shift for each element of a row; None if it computes something else.

    The row is the last axis, or several last axes if the constants vary along an earlier axis and no other layer has a form for
    them.
    """
    gains = _finite_gains(node)
    if gains is None:
        return None
    shape, gain, shift = gains
    dims = node.op.dims or (1,)
    padded = (1,) * (len(dims) - len(shape)) + shape
    first = next((axis for axis, size in enumerate(padded) if size > 1), len(dims) - 1)
    row = dims[min(first, len(dims) - 1) :]
    if len(row) > 1:
        added_alone = padded[first:] == row and (gain == 1).all()
        if added_alone or prod(row) > _LONGEST_ROW or gains_of_channels(node) is not None:
            return None
    gain, shift = (np.broadcast_to(each.reshape(padded[first:]), row).reshape(-1) for each in (gain, shift))
    return Gains(gain, shift)


def gains_of_channels(node: Node) -> Gains | None:
    """Return a layer's gain and shift for each of the channels (C) before its pixels; None if it computes something else."""
    gains = _finite_gains(node)
    if gains is None:
        return None
    shape, gain, shift = gains
    dims, padded = node.op.dims, (1,) * (len(node.op.dims) - len(shape)) + shape
    axes = [axis for axis, size in enumerate(padded) if size > 1]
    first, end = (axes[0], axes[-1] + 1) if axes else (0, 0)
    if padded[first:end] != dims[first:end] or prod(dims[:first]) > 1 or len(gain) == 1:
        return None
    return Gains(gain, shift, dims[end:] if prod(dims[end:]) > 1 else ())


@rewrite("remove-gain", "gains of 1 and shifts of 0 removed", ArrayMap)
def remove_gain(graph: Graph, node: Node) -> Outcome:
    """ArrayMap that changes nothing => Identity; not in pre-quantized networks."""
    gains = _finite_gains(node)
    if gains is None or is_quantized(graph) or not Gains(*gains[1:]).changes_nothing:
        return None
    node.op, node.params = Identity(), {}
    return Done("it changes nothing")


def _find_gains(node: Node) -> Gains | None:
    return gains_of_rows(node) or gains_of_channels(node)


@integer_rewrite("gains-of-arrays", "gains and shifts of arrays turned into layers that have integers", _find_gains, ArrayMap)
def gains_of_arrays(graph: Graph, node: Node, gains: Gains) -> Outcome:
    """ArrayMap Mul, Div, Add or Sub of rows (W, N) and a constant (N), or a number => MemoryView(Affine(MemoryView(x))); of
    (C, H, W) and a constant (C, 1, 1) => Reshape(Affine(Reshape(x)))."""
    count = len(gains.gain)
    rows = graph.shape(node.output)[1] // count
    if gains.pixels:
        view = Reshape((count, prod(gains.pixels[:-1]), gains.pixels[-1]))
        image = graph.add_before(node, view, node.inputs[0], f"{node.output}_channels")
        scaled = _add_gains(graph, node, image, f"{node.output}_scaled", gains.params, node.source)
        node.op, node.inputs, node.params = Reshape(graph.shape(node.output)[1:]), [scaled], {}
        return Done(f"gains of {count} channels")
    node.op, node.params = Affine(), gains.params
    if rows > 1:
        over_images(graph, node, [(count, 1, rows)], (count, 1, rows))
    return Done(f"gains of {rows} rows of {count} elements")


def _add_gains(
    graph: Graph, node: Node, tensor: str, name: str, params: dict[str, np.ndarray], source: Sequence[str] = ()
) -> str:
    """Add an Affine of a tensor before a layer; return its result, `name` or a fresh name like it."""
    name = graph.fresh_name(name)
    layer = Node(name, Affine(), [tensor], [name], params, None, node.location, [name, *source])
    return graph.add(layer, at=graph.nodes.index(node)).output


@rewrite("gains-of-parts", "gains moved in front of Concats", Affine)
def gains_of_parts(graph: Graph, node: Node) -> Outcome:
    """Affine(Concat(x, y)) => Concat(Affine(x), y) if gains of x and y differ. With one scale, scores would share that of boxes
    in pixels. Not in pre-quantized networks."""
    view = graph.producer(node.inputs[0])
    join = graph.producer(view.inputs[0]) if view is not None and isinstance(view.op, Reshape) else view
    if view is None or join is None or is_quantized(graph) or not isinstance(join.op, Concat):
        return None
    if any(graph.sole_consumer(one.output) is None or one.activation is not None for one in (join, view)):
        return None
    shape, gains = graph.shape(node.output), node.params["weights"]
    pixels = prod(shape) // len(gains)
    sizes = [prod(graph.shape(name)) for name in join.inputs]
    if not join.op.concatenates_pixels(graph.shape(join.output)) or any(size % pixels for size in sizes):
        return None
    ends = np.cumsum([size // pixels for size in sizes])[:-1]
    widest = [float(np.abs(part).max()) for part in np.split(gains, ends)]
    if max(widest) <= _LARGEST_GAIN_RATIO * min(widest):
        return None
    parts = []
    for name, gain, shift in zip(
        join.inputs, *(np.split(node.params[role], ends) for role in ("weights", "bias")), strict=True
    ):
        dims = (len(gain), *shape[2:])
        if graph.shape(name)[1:] != dims:
            name = graph.add_before(node, Reshape(dims), name, f"{name}_channels")
        if not Gains(gain, shift).changes_nothing:
            name = _add_gains(graph, node, name, f"{name}_scaled", {"weights": gain, "bias": shift})
        parts.append(name)
    node.op, node.inputs, node.params = Concat(), parts, {}
    graph.prune()
    return Done(f"its gains are those of {len(parts)} parts")


_LARGEST_RATIO = 2.0
"""Largest ratio of the gains of an array."""


_NumberedGains = tuple[np.ndarray, np.ndarray, np.ndarray]
"""(gain, shift, numbers) of a layer that computes gain[n] * x + shift[n], float64, with n of each element of its result (1, ...)
in `numbers`."""


def _numbered(gain: np.ndarray, shift: np.ndarray, numbers: np.ndarray) -> _NumberedGains:
    pairs, equal = np.unique(np.stack([gain, shift]), axis=1, return_inverse=True)
    return pairs[0], pairs[1], equal.reshape(-1)[numbers]


def _gains_of(graph: Graph, node: Node) -> _NumberedGains | None:
    """Return the gains of a normalization, or of a map without shift; None for others."""
    if isinstance(node.op, Normalize):
        if "gain" not in node.params:
            return None
        gain, shift = (node.params[role].astype(np.float64) for role in ("gain", "shift"))
        return _numbered(gain, shift, node.op.channel_numbers(graph.shape(node.output)))
    gains = gains_and_shifts(node)
    if gains is None or gains[2].any():
        return None
    constant, gain, shift = gains
    return _numbered(gain, shift, np.broadcast_to(np.arange(len(gain)).reshape(constant), node.op.dims).reshape(1, -1))


_SUMMARY = "constant gains and shifts merged into the weights after them"


@rewrite("merge-gains", _SUMMARY, Affine)
def merge_gains(graph: Graph, node: Node) -> Outcome:
    """Affine, then Conv, Fc or recurrent layers => these layers."""
    return _merge(graph, node, _numbered(*gain_and_shift(node), axis_numbers(graph.shape(node.output))))


@rewrite("merge-gains-of-arrays", _SUMMARY, ArrayMap, Normalize)
def merge_gains_of_arrays(graph: Graph, node: Node) -> Outcome:
    """ArrayMap Mul, Div or Neg by constants, or the gain and shift of a Normalize, then Conv, Fc or recurrent layers => these
    layers. Not in pre-quantized networks."""
    gains = None if is_quantized(graph) else _gains_of(graph, node)
    if gains is None:
        return None
    sizes = np.abs(gains[0])
    if not np.isfinite(sizes).all() or sizes.max() > _LARGEST_RATIO * sizes.min():
        return f"its gains differ by more than a factor of {_LARGEST_RATIO:g}"
    return _merge(graph, node, gains)


def _merge(graph: Graph, node: Node, gains: _NumberedGains) -> Outcome:
    if node.activation is not None:
        return f"it has the activation {node.activation.kind}"
    gain, shift, numbers = gains
    readers = weighted_readers(graph, node.output, numbers)
    if isinstance(readers, str):
        return readers
    padded = padded_reader(readers)
    if padded is not None and shift.any():
        return f"{padded.name} pads with zeros, which the shift would change"
    for reader, channels in readers:
        scale_inputs(reader, gain[channels], shift[channels])
    if isinstance(node.op, Normalize):
        node.params = {}
    else:
        drop(graph, node)
    return Done("gain and shift merged into " + ", ".join(reader.name for reader, _ in readers))
