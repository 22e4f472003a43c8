"""Reshape, Flatten, Squeeze, Unsqueeze and Transpose, as long as the batch axis stays first."""

from __future__ import annotations

from math import prod

from n2d2py.frontend.onnx.contract import Builder, OnnxNode, Unsupported
from n2d2py.operators.identity import Identity
from n2d2py.operators.reshape import Reshape
from n2d2py.operators.transpose import Transpose

__all__ = ["CONVERTERS"]

_MIXES = "it mixes the batch axis with others"
_KEEP_BATCH = "keep the batch axis first"


def _emit(node: OnnxNode, builder: Builder, shape: list[int]) -> None:
    """A Reshape to `shape`, batch axis included."""
    if len(shape) < 2 or shape[0] != 1:
        raise Unsupported(_MIXES if len(shape) > 1 else "its result has no batch axis", _KEEP_BATCH)
    builder.layer(node, Reshape(tuple(shape[1:])), [node.tensor()])


def _reshape(node: OnnxNode, builder: Builder) -> None:
    given = node.shape()
    target = [int(size) for size in node.constant(1, "shape").reshape(-1)]
    if not node.attribute("allowzero", 0):
        if any(size == 0 and axis >= len(given) for axis, size in enumerate(target)):
            raise Unsupported("its shape copies an axis that its input does not have")
        target = [given[axis] if size == 0 else size for axis, size in enumerate(target)]
    if target and target[0] == builder.model.batch and -1 not in target and prod(target) == prod(given) * target[0]:
        target[0] = 1
    if -1 in target:
        rest = -prod(target)
        if target[0] == builder.model.batch and rest > 0 and prod(given) % rest:
            target[0], rest = 1, rest // target[0]
        if rest <= 0 or prod(given) % rest:
            raise Unsupported(f"its shape {target} does not fit its input of {prod(given)} elements")
        target[target.index(-1)] = prod(given) // rest
    _emit(node, builder, target)


def _flatten(node: OnnxNode, builder: Builder) -> None:
    shape = node.shape()
    axis = node.attribute("axis", 1)
    axis = len(shape) if axis == len(shape) else node.axis_of(axis, len(shape))
    if axis == 0 and builder.model.batch != 1:
        raise Unsupported(_MIXES, _KEEP_BATCH)
    _emit(node, builder, [prod(shape[:axis]), prod(shape[axis:])])


def _squeeze(node: OnnxNode, builder: Builder) -> None:
    shape = node.shape()
    axes = node.axes(len(shape))
    if axes is None:
        axes = [axis for axis, size in enumerate(shape) if size == 1]
    if any(shape[axis] != 1 for axis in axes):
        raise Unsupported("it removes an axis whose size is not 1")
    if 0 in axes:
        raise Unsupported("it removes the batch axis", "squeeze named axes only")
    _emit(node, builder, [size for axis, size in enumerate(shape) if axis not in axes])


def _unsqueeze(node: OnnxNode, builder: Builder) -> None:
    shape = node.shape()
    count = node.attribute("axes") or node.constant(1, "list of axes").reshape(-1)
    rank = len(shape) + len(count)
    axes = node.axes(rank) or []
    if 0 in axes:
        raise Unsupported("it adds an axis before the batch axis", _KEEP_BATCH)
    sizes = iter(shape)
    _emit(node, builder, [1 if axis in axes else next(sizes) for axis in range(rank)])


def _transpose(node: OnnxNode, builder: Builder) -> None:
    rank = len(node.shape())
    perm = tuple(int(axis) for axis in node.attribute("perm") or range(rank - 1, -1, -1))
    if sorted(perm) != list(range(rank)) or perm[0] != 0:
        raise Unsupported(f"its permutation {list(perm)} moves the batch axis", _KEEP_BATCH)
    tensor = node.tensor()
    producer = builder.graph.producer(tensor)
    if producer is not None and isinstance(producer.op, Transpose):
        before = producer.op.perm
        tensor, perm = producer.inputs[0], tuple(before[axis] for axis in perm)
    op = Identity() if perm == tuple(range(rank)) else Transpose(perm)
    builder.layer(node, op, [tensor])


CONVERTERS = {"Reshape": _reshape, "Flatten": _flatten, "Squeeze": _squeeze, "Unsqueeze": _unsqueeze, "Transpose": _transpose}
