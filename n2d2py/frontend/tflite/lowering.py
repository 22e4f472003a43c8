"""Helpers for operator translations: options, checks of inputs and outputs, results of a node."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from n2d2py.frontend.tflite.file import RefusedOperator, TfliteOperator
from n2d2py.frontend.tflite.schema import ACTIVATIONS, SAME, VALID
from n2d2py.frontend.tflite.translation import Translation, graph_axis
from n2d2py.graph import Shape

LIMITS = {"RELU": (0.0, np.inf), "RELU_N1_TO_1": (-1.0, 1.0), "RELU6": (0.0, 6.0), "RELU_0_TO_1": (0.0, 1.0)}
"""Limits of the activations that are clamps."""


class Emitter:
    """Writer of nodes with generated result names."""

    def __init__(self, t: Translation, name: str):
        self._t, self._name = t, name

    def __call__(self, kind: str, *inputs: str, **attributes: Any) -> str:
        return self._t.emit(kind, inputs, self._t.fresh(f"{self._name}_{kind.lower()}"), **attributes)

    def emit_two(self, kind: str, *inputs: str, **attributes: Any) -> tuple[str, str]:
        """Add a node with two results."""
        first, second = (self._t.fresh(f"{self._name}_{kind.lower()}") for _ in range(2))
        self._t.emit_many(kind, inputs, [first, second], **attributes)
        return first, second

    def numbers(self, values: object, kind: type = np.int64) -> str:
        """Add a constant."""
        return self._t.constant(f"{self._name}_numbers", np.asarray(values, kind))

    def slice(self, x: str, begin: int, end: int, axis: int) -> str:
        """Add a slice from `begin` to `end` along an axis."""
        return self("Slice", x, *(self.numbers([value]) for value in (begin, end, axis)))

    def reshape(self, x: str, *shape: int) -> str:
        """Return the same elements."""
        return self("Reshape", x, self.numbers(shape))

    def gather(self, x: str, positions: str) -> str:
        """Add a gather of elements or rows; a negative position reads the first one."""
        return self("Gather", x, self("Max", positions, self.numbers([0])))

    def suppress(self, boxes: str, scores: str, count: int, limits: tuple[float, float]) -> tuple[str, str]:
        """Return class and position (R) of the boxes that NonMaxSuppression keeps; TFLite includes scores equal to the limit.

        `limits`: largest overlap, smallest score.
        """
        overlap, score = limits
        least = np.nextafter(np.float32(score), np.float32(-np.inf))
        bounds = [self.numbers([value], np.float32) for value in (overlap, least)]
        rows = self("NonMaxSuppression", boxes, scores, self.numbers([count]), *bounds)
        number, box = (self("Squeeze", self.slice(rows, index, index + 1, 1), self.numbers([1])) for index in (1, 2))
        return number, box


def fused_limits(operator: TfliteOperator, slot: int) -> tuple[float, float] | None:
    """Return the limits of the fused activation."""
    number = operator.option(slot, "<b")
    name = ACTIVATIONS[number] if 0 <= number < len(ACTIVATIONS) else f"number {number}"
    if name == "NONE":
        return None
    if name not in LIMITS:
        raise RefusedOperator(f"its fused activation {name} is not supported")
    return LIMITS[name]


def check_arity(operator: TfliteOperator, inputs: int, outputs: int = 1) -> None:
    """Raise RefusedOperator for too few inputs, or another number of outputs."""
    if len(operator.inputs) < inputs or len(operator.outputs) != outputs:
        raise operator.arity_error()


def input_shapes(t: Translation, operator: TfliteOperator, inputs: int) -> list[Shape]:
    """Return the shapes of the first `inputs` inputs; raise RefusedOperator if there are fewer."""
    check_arity(operator, inputs, len(operator.outputs))
    return [t.tensor(index).shape for index in operator.inputs[:inputs]]


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """Return the broadcast shape; raise RefusedOperator if there is none."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise RefusedOperator(f"its inputs {' and '.join(map(str, shapes))} cannot be broadcast") from None


def layer(
    t: Translation,
    operator: TfliteOperator,
    kind: str,
    inputs: Sequence[str | None],
    shape: Sequence[int] | None,
    limits: tuple[float, float] | None = None,
    **attributes: Any,
) -> None:
    """Add an ONNX node that produces the result, with the limits of a fused activation; inputs of None are dropped.

    `shape`: that of the result, in the order of the file; None if it is checked already.
    """
    if shape is not None:
        t.expect_shape(operator.output, shape)
    names = [name for name in inputs if name is not None]
    t.result(operator.output, lambda name: t.emit(kind, names, name, **attributes), limits)


def slices(
    t: Translation, operator: TfliteOperator, begins: list[int], ends: list[int], steps: list[int], drop: set[int]
) -> None:
    """Add slices of every axis of the file; the axes `drop` are removed."""
    shape = t.tensor(operator.inputs[0]).shape
    ranges = [range(size)[begin:end:step] for size, begin, end, step in zip(shape, begins, ends, steps, strict=True)]
    full = tuple(map(len, ranges))
    declared = tuple(size for axis, size in enumerate(full) if axis not in drop)
    t.expect_shape(operator.output, declared)
    cut = [axis for axis, one in enumerate(ranges) if one != range(shape[axis])]
    rows = [
        t.constant(f"slice_{what}", np.array([function(axis) for axis in cut], np.int64))
        for what, function in (
            ("begins", lambda axis: ranges[axis].start),
            ("ends", lambda axis: ranges[axis].stop if ranges[axis].stop >= 0 else -(2**31)),
            ("axes", lambda axis: graph_axis(axis, len(shape))),
            ("steps", lambda axis: ranges[axis].step),
        )
    ]
    name = t.real(operator.inputs[0])
    kind, inputs = ("Slice", [name, *rows]) if cut else ("Identity", [name])
    t.result(operator.output, partial(t.emit_shaped, kind, inputs, shape=full, wanted=declared, inner="kept"))


def slice_axis(t: Translation, operator: TfliteOperator, axis: int, begin: int, end: int, drop: bool = False) -> None:
    """Add a slice of input 0 along one axis of the file; with `drop`, the axis is removed."""
    shape = t.tensor(operator.inputs[0]).shape
    begins, ends = [0] * len(shape), list(shape)
    begins[axis], ends[axis] = begin, end
    slices(t, operator, begins, ends, [1] * len(shape), {axis} if drop else set())


def find_windows(
    padding: int, sizes: Sequence[int], kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Return (result sizes, ONNX pads)."""
    if min(*kernel, *stride, *dilation) < 1:
        raise RefusedOperator(f"its kernel {kernel}, stride {stride} or dilation {dilation} is below 1")
    if padding not in (SAME, VALID):
        raise RefusedOperator(f"padding number {padding} is not defined")
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    if padding == VALID:
        if any(n < e for n, e in zip(sizes, extents, strict=True)):
            window, size = (" x ".join(map(str, each)) for each in (extents, sizes))
            raise RefusedOperator(f"its window {window} is larger than its input {size}")
        return [(n - e) // s + 1 for n, e, s in zip(sizes, extents, stride, strict=True)], [0] * 2 * len(sizes)
    outputs = [-(-n // s) for n, s in zip(sizes, stride, strict=True)]
    total = [max((o - 1) * s + e - n, 0) for o, s, e, n in zip(outputs, stride, extents, sizes, strict=True)]
    return outputs, [amount // 2 for amount in total] + [amount - amount // 2 for amount in total]
