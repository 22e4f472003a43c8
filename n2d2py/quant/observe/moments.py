"""Second moments of what a weighted layer reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.exact import sliding_windows
from n2d2py.concurrency import run_both
from n2d2py.contracts.windows import pad
from n2d2py.graph import Node
from n2d2py.operators import ArrayRecurrent, Conv, Fc

_MIN_COLUMNS = 4096
_MAX_COLUMNS = 16384
_COLUMNS_PER_INPUT = 8
_THOROUGH = 4
"""Factor on these for low-bit weights."""
_SHARED = 1024
"""Inputs from which on two threads multiply them."""
_FEW = 4
"""The sampled inputs are kept instead of their products where the layer has so many times as many inputs."""


@dataclass
class Moments:
    """Sums over `count` sampled positions, for each of G groups of K inputs that the same outputs read: G = 1 for dense layers,
    the number of channels for depthwise ones. A layer of many inputs and few positions has `columns` instead of their product
    `square`.

    Attributes:
        square: sums of products of two inputs (G, K, K), of a single batch in float32.
        columns: sampled inputs (G, count, K) in float32.
        mixed: whether the inputs are of several kinds, so that the size of one says nothing about another's.
        drift: the same of an input's deviation from the float network (rows) and an input (columns); None if not asked for.
    """

    count: int
    square: np.ndarray | None = None
    drift: np.ndarray | None = None
    columns: np.ndarray | None = None
    mixed: bool = False

    def merge(self, other: Moments) -> None:
        """Add the sums of other positions."""
        self.count += other.count
        if self.columns is not None and other.columns is not None:
            self.columns = np.concatenate([self.columns, other.columns], axis=1)
        if self.square is not None and other.square is not None:
            self.square = np.add(self.square, other.square, dtype=np.float64)
        if self.drift is not None and other.drift is not None:
            self.drift = self.drift + other.drift


def has_moments(node: Node) -> bool:
    """True if the layer computes sums of several weighted inputs that `observe` can gather."""
    return isinstance(node.op, (Conv, Fc, ArrayRecurrent))


def observe(
    node: Node, stored: Sequence[np.ndarray], kinds: Sequence[NumType], stimuli: int, real: Sequence[np.ndarray] | None = None
) -> Moments:
    """Return the moments over a batch of stored inputs (n, ...) of number types `kinds`, in steps of the first one's scale; of
    a recurrent layer those of its inputs, in units of that type's reach, then of the hidden states that they lead to. `real`
    are the inputs in the float network, for `drift`.

    At most a fixed number of positions is taken from all `stimuli` together, at even distances; more of them with `real`.
    """
    times = 1 if real is None else _THOROUGH
    recurrent = isinstance(node.op, ArrayRecurrent)
    if recurrent:
        restored = [kind.dequantize(x) for kind, x in zip(kinds, stored, strict=True)]
        columns = _steps(node, restored, kinds[0].max_abs, stimuli, times)
    else:
        zero = kinds[0].zero_point
        columns = _columns(node, stored[0], zero, stimuli, times).astype(np.float32) - np.float32(zero)
    positions = columns.shape[1]
    if real is None and _FEW * stimuli * (positions // len(stored[0])) <= columns.shape[2]:
        return Moments(positions, columns=columns.astype(np.float32), mixed=recurrent)
    square = products(columns)
    if real is None:
        return Moments(positions, square, mixed=recurrent)
    if recurrent:
        exact = _steps(node, real, kinds[0].max_abs, stimuli, times)
    else:
        exact = _columns(node, real[0], 0, stimuli, times).astype(np.float32) / np.float32(kinds[0].scale)
    drift = np.matmul((exact - columns).transpose(0, 2, 1), columns).astype(np.float64)
    return Moments(positions, square, drift, mixed=recurrent)


def products(columns: np.ndarray) -> np.ndarray:
    """Return the sums over P of the products of two of K columns (G, P, K) -> (G, K, K); of many columns by two threads."""
    count = columns.shape[2]
    if count < _SHARED:
        return np.matmul(columns.transpose(0, 2, 1), columns)
    result = np.empty((len(columns), count, count), columns.dtype)
    half = count // 2
    first, second = columns[:, :, :half], columns[:, :, half:]

    def squares() -> None:
        for part, place in ((first, slice(None, half)), (second, slice(half, None))):
            np.matmul(part.transpose(0, 2, 1), part, out=result[:, place, place])

    def beside() -> None:
        np.matmul(second.transpose(0, 2, 1), first, out=result[:, half:, :half])
        result[:, :half, half:] = result[:, half:, :half].transpose(0, 2, 1)

    run_both(squares, beside)
    return result


def _columns(node: Node, x: np.ndarray, fill: int, stimuli: int, times: int) -> np.ndarray:
    """Return the sampled inputs of the layer's sums (G, P, K)."""
    if isinstance(node.op, Fc):
        return x.reshape(1, len(x), -1)
    op, weights = node.op, node.params["weights"]

    def windows(stimulus: int) -> np.ndarray:  # one by one: large images are not padded together
        padded = pad(x[stimulus : stimulus + 1], op.pads, fill)
        return sliding_windows(padded, weights.shape[2:], op.stride, op.dilation)

    lines, columns = windows(0).shape[2:4]
    inputs = int(np.prod(weights.shape[1:]))
    chosen = _positions(lines * columns, _wanted(inputs, times), stimuli)
    picked = np.concatenate([windows(index)[:, :, chosen // columns, chosen % columns] for index in range(len(x))])
    return picked.transpose(0, 2, 1, 3, 4).reshape(len(x) * len(chosen), op.groups, inputs).transpose(1, 0, 2)


def _steps(node: Node, inputs: Sequence[np.ndarray], reach: float, stimuli: int, times: int) -> np.ndarray:
    """Return the inputs of sampled steps of a recurrent layer, inputs in units of `reach` and hidden state (1, P, K), in
    float64: real numbers have sums that depend on their order, which is that of the processor."""
    op, x = node.op, node.op.to_sequences(inputs[0])
    both = np.concatenate([x / reach, op.previous_states(list(inputs), node)], axis=2)
    chosen = _positions(op.steps, _wanted(both.shape[2], times), stimuli)
    return both[:, chosen].astype(np.float64).reshape(1, -1, both.shape[2])


def _wanted(inputs: int, times: int) -> int:
    return times * min(max(_COLUMNS_PER_INPUT * inputs, _MIN_COLUMNS), _MAX_COLUMNS)


def _positions(available: int, wanted: int, stimuli: int) -> np.ndarray:
    """Return indices at even distances, so that `stimuli` stimuli give about `wanted` positions together."""
    count = min(available, -(-wanted // stimuli))
    return ((np.arange(count) + 0.5) * available / count).astype(np.int64)
