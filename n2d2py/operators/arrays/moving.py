"""Operators that move, repeat and crop elements along any axis of images and arrays."""

from math import prod

import numpy as np

from n2d2py.operators.arrays.values import Arrays, Unsupported, check_positions, onnx


@onnx("Reshape")
def _reshape(a: Arrays) -> None:
    x, batch = a.input(), a.builder.model.batch
    target = [int(d) for d in a.node.constant(1, "shape").reshape(-1)]
    if not a.node.attribute("allowzero", 0):
        if any(size == 0 and axis >= len(x.dims) for axis, size in enumerate(target)):
            raise Unsupported("its shape copies an axis that its input does not have")
        target = [x.dims[axis] if size == 0 else size for axis, size in enumerate(target)]
    if batch not in (None, 1) and target[:1] == [batch] and -1 not in target and prod(target) == x.size * batch:
        target[0] = 1
    if -1 in target:
        rest = -prod(target)
        if batch is not None and target[0] == batch and rest > 0 and x.size % rest:
            target[0], rest = 1, rest // batch
        if rest <= 0 or x.size % rest:
            raise Unsupported(f"its shape {target} does not match its input of {x.size} elements")
        target[target.index(-1)] = x.size // rest
    a.bind(a.reshape(x, target))


@onnx("Flatten")
def _flatten(a: Arrays) -> None:
    x = a.input()
    axis = a.node.attribute("axis", 1)
    axis = len(x.dims) if axis == len(x.dims) else a.node.axis_of(axis, len(x.dims))
    a.bind(a.reshape(x if axis else a.vector(x), (prod(x.dims[:axis]), prod(x.dims[axis:]))))


@onnx("Squeeze")
def _squeeze(a: Arrays) -> None:
    x = a.input()
    axes = a.node.axes(len(x.dims))
    axes = [axis for axis, size in enumerate(x.dims) if size == 1] if axes is None else axes
    if any(x.dims[axis] != 1 for axis in axes):
        raise Unsupported("it removes an axis whose size is not 1")
    dims = [size for axis, size in enumerate(x.dims) if axis not in axes]
    a.bind(a.reshape(a.vector(x) if 0 in axes else x, dims))


@onnx("Unsqueeze")
def _unsqueeze(a: Arrays) -> None:
    x = a.input()
    axes, sizes = a.node.new_axes(len(x.dims)), iter(x.dims)
    dims = [1 if axis in axes else next(sizes) for axis in range(len(x.dims) + len(axes))]
    a.bind(a.reshape(a.vector(x) if 0 in axes else x, dims))


@onnx("Transpose")
def _transpose(a: Arrays) -> None:
    x = a.input()
    order = [int(axis) for axis in a.node.attribute("perm") or range(len(x.dims) - 1, -1, -1)]
    if sorted(order) != list(range(len(x.dims))):
        raise Unsupported(f"its permutation {order} is invalid for rank {len(x.dims)}")
    a.bind(a.transpose(x, order))


_ALL_SAMPLES = 1_000_000
"""End of a Slice from which on it keeps every sample of a batch of any size."""


@onnx("Slice")
def _slice(a: Arrays) -> None:
    x, last = a.input(), a.builder.model.batch or _ALL_SAMPLES
    starts, ends = a.node.integers("starts", 1), a.node.integers("ends", 2)
    axes = a.node.integers("axes", 3, range(len(starts)))
    steps = a.node.integers("steps", 4, [1] * len(starts))
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise Unsupported("its starts, ends, axes and steps differ in number, or a step is 0")
    positions = {}
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        axis = a.node.axis_of(axis, len(x.dims))
        a.builder.guard_batch(a.node, 0, axis, "cuts", step == 1 and start == 0 and end >= last)
        positions[axis] = range(*slice(start, end, step).indices(x.dims[axis]))
    a.bind(a.select(x, positions))


@onnx("Split")
def _split(a: Arrays) -> None:
    x, count = a.input(), len(a.node.outputs)
    axis = a.node.axis_of(a.node.attribute("axis", 0), len(x.dims))
    a.builder.guard_batch(a.node, 0, axis, "cuts")
    sizes = a.node.integers("split", 1)
    if not sizes:
        size = -(-x.dims[axis] // count)
        sizes = [size] * (count - 1) + [x.dims[axis] - size * (count - 1)]
    if len(sizes) != count or sum(sizes) != x.dims[axis] or min(sizes) < 0:
        raise Unsupported(f"its sizes {sizes} do not divide an axis of {x.dims[axis]} among {count} outputs")
    first = 0
    for index, (name, size) in enumerate(zip(a.node.outputs, sizes, strict=True)):
        if name and (name == a.node.name or name in a.builder.read):
            a.bind(a.select(x, {axis: range(first, first + size)}), index)
        first += size


@onnx("Expand")
def _expand(a: Arrays) -> None:
    x = a.input()
    target = [int(size) for size in a.node.constant(1, "shape").reshape(-1)]
    if a.builder.is_batched and len(target) == len(x.dims) and target[0] == a.builder.model.batch:
        target[0] = 1
    try:
        dims = np.broadcast_shapes(x.dims, target)
    except ValueError:
        raise Unsupported(f"its shape {target} cannot be broadcast from {x.dims}") from None
    if len(dims) == len(x.dims):
        a.builder.guard_batch(a.node, 0, 0, "repeats", dims[:1] == tuple(x.dims[:1]))
    a.bind(a.expand(x, dims))


@onnx("Tile")
def _tile(a: Arrays) -> None:
    x = a.input()
    repeats = a.node.constant(1, "repeats").reshape(-1).tolist()
    if len(repeats) != len(x.dims):
        raise Unsupported("its repeats are not one for each axis")
    a.builder.guard_batch(a.node, 0, 0, "repeats", repeats[:1] == [1])
    check_positions(size * int(count) for size, count in zip(x.dims, repeats, strict=True))
    a.bind(a.select(x, {axis: list(range(size)) * int(repeats[axis]) for axis, size in enumerate(x.dims)}))


@onnx("Trilu")
def _trilu(a: Arrays) -> None:
    x = a.value(0)
    k = int(a.node.constant(1, "diagonal").item()) if a.node.has(1) else 0
    mask = (np.triu if a.node.attribute("upper", 1) else np.tril)(np.ones(x.dims[-2:], bool), k)
    a.bind(a.map("Where", a.const(mask), x, a.const(0, x), result=x.kind))
