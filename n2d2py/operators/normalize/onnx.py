"""Normalizations over any axes, also with parameters computed in the network."""

from __future__ import annotations

from math import prod

import numpy as np

from n2d2py.operators.arrays.reduce import reduce_axes
from n2d2py.operators.arrays.values import Arrays, Unsupported, Value, onnx
from n2d2py.operators.normalize import Normalize


def _add_norm(a: Arrays, x: Value, outer: int, epsilon: float, part: str = "", centred: bool = True) -> Value:
    x = a.tensor(x)
    op = Normalize(x.size // outer, float(epsilon), centred, part)
    return a.add(op, [x], (outer,) if part else x.dims, label=part or "normed")


def _affine(a: Arrays, x: Value, scale: Value | None, shift: Value | None) -> Value:
    x = x if scale is None else a.map("Mul", x, scale)
    return x if shift is None else a.map("Add", x, shift)


@onnx("LayerNormalization", "RMSNormalization")
def _layer(a: Arrays) -> None:
    x = a.value(0)
    axis = a.node.axis_of(a.node.attribute("axis", -1), len(x.dims))
    outer, epsilon = prod(x.dims[:axis]), a.node.attribute("epsilon", 1e-5)
    centred = a.node.type == "LayerNormalization"
    result = _add_norm(a, x, outer, epsilon, centred=centred)
    a.bind(_affine(a, result, a.value(1) if a.node.has(1) else None, a.value(2) if a.node.has(2) and centred else None))
    dims = tuple(size if i < axis else 1 for i, size in enumerate(x.dims))
    for index, part in ((1, "mean"), (2, "inverse")):
        if a.is_output_used(index):
            a.bind(a.reshape(_add_norm(a, x, outer, epsilon, part), dims), index)


@onnx("InstanceNormalization")
def _instance(a: Arrays) -> None:
    x = a.value(0)
    if len(x.dims) < 3:
        raise Unsupported("its input has no axes besides batch and channels")
    result = _add_norm(a, x, x.dims[0] * x.dims[1], a.node.attribute("epsilon", 1e-5))
    shape = (x.dims[1], *(1,) * (len(x.dims) - 2))
    a.bind(_affine(a, result, a.reshape(a.value(1), shape), a.reshape(a.value(2), shape)))


@onnx("GroupNormalization")
def _group(a: Arrays) -> None:
    x, groups = a.value(0), int(a.node.attribute("num_groups"))
    if len(x.dims) < 2 or groups < 1 or x.dims[1] % groups:
        raise Unsupported(f"num_groups={groups} does not divide the channels of its input")
    result = _add_norm(a, x, x.dims[0] * groups, a.node.attribute("epsilon", 1e-5))
    scale, shift = a.value(1), a.value(2)
    shape = (x.dims[1], *(1,) * (len(x.dims) - 2))
    if scale.size == groups != x.dims[1]:
        scale, shift = (
            a.reshape(a.expand(a.reshape(v, (groups, 1)), (groups, x.dims[1] // groups)), (x.dims[1],)) for v in (scale, shift)
        )
    a.bind(_affine(a, result, a.reshape(scale, shape), a.reshape(shift, shape)))


@onnx("MeanVarianceNormalization")
def _mean_variance(a: Arrays) -> None:
    """Add (x - mean) / (deviation + 1e-9) over the axes."""
    x = a.value(0)
    axes = a.node.axes(len(x.dims)) or [a.node.axis_of(axis, len(x.dims)) for axis in (0, 2, 3)]
    for axis in axes:
        a.builder.guard_batch(a.node, 0, axis, "normalises over")
    away = a.map("Sub", x, reduce_axes(a, "Mean", x, axes))
    deviation = a.map("Sqrt", reduce_axes(a, "Mean", a.map("Mul", away, away), axes))
    a.bind(a.map("Div", away, a.map("Add", deviation, a.const(1e-9, x))))


@onnx("LpNormalization")
def _lp(a: Arrays) -> None:
    x = a.value(0)
    axis = a.node.axis_of(a.node.attribute("axis", -1), len(x.dims))
    a.builder.guard_batch(a.node, 0, axis, "normalises over")
    if a.node.attribute("p", 2) not in (1, 2):
        raise Unsupported(f"p={a.node.attribute('p')} is not supported", "use p=1 or p=2")
    norm = reduce_axes(a, "L1" if a.node.attribute("p", 2) == 1 else "L2", x, [axis])
    zero = a.map("Equal", norm, a.const(0.0, norm), result="bool")
    safe = a.map("Where", zero, a.const(1.0, norm), norm, result="")
    a.bind(a.map("Where", zero, a.const(0.0, x), a.map("Div", x, safe), result=""))


@onnx("Hardmax")
def _hardmax(a: Arrays) -> None:
    x = a.value(0)
    flattens = a.node.opset < 13
    axis = a.node.axis_of(a.node.attribute("axis", 1 if flattens else -1), len(x.dims))
    a.builder.guard_batch(a.node, 0, axis, "compares")
    lines = a.reshape(x, (prod(x.dims[:axis]), prod(x.dims[axis:]))) if flattens else x
    axis = 1 if flattens else axis
    best = reduce_axes(a, "ArgMax", lines, [axis], True, "int64")
    places = np.arange(lines.dims[axis]).reshape([-1 if i == axis else 1 for i in range(len(lines.dims))])
    hit = a.map("Equal", best, a.const(places), result="bool")
    a.bind(a.reshape(a.cast(hit, x.kind), x.dims))
