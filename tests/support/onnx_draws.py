"""Nodes of one ONNX operator with attributes, ranks and kinds of inputs that are drawn by seed: for each operator a function that draws."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from support.onnx_models import ModelBuilder

F = np.float32


@dataclass(frozen=True)
class Fed:
    """An input of the node that is computed in the network: real numbers, or -1, 0 and 1, or truth values."""

    shape: tuple[int, ...]
    kind: str = "float32"
    above: float | None = None

    @property
    def is_direct(self) -> bool:
        return len(self.shape) > 1 and self.shape[0] == 1

    def source(self, free: bool) -> list:
        """The sizes of the input of the network; `free`: of a batch of free size."""
        return ["N" if free else 1, *self.shape[1:]] if self.is_direct else [1, int(np.prod(self.shape))]

    def add_to(self, build: ModelBuilder, x: str) -> str:
        """The nodes that make it of an input of real numbers."""
        if self.above is not None:
            x = build.add("Add", build.add("Abs", x), self.above)
        if self.kind == "bool":
            x = build.add("Greater", x, 0.0)
        elif self.kind != "float32":
            x = build.add("Cast", build.add("Sign", x), to=helper.np_dtype_to_tensor_dtype(np.dtype(self.kind)))
        return x if self.is_direct else build.add("Reshape", x, np.array(self.shape, np.int64))


Given = Fed | np.ndarray | None
"""What an input is: fed, constant, absent."""


@dataclass(frozen=True)
class Drawn:
    """A node. `outputs`: how many of them are read. `free`: whether the first axis of what is fed is a batch of free size."""

    type: str
    inputs: tuple[Given, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    opset: int = 17
    outputs: int = 1
    free: bool = False

    def model(self) -> onnx.ModelProto:
        """What is fed is an input of the network as it stands where its first axis is 1, a reshaped line of it elsewhere."""
        build, sources = ModelBuilder(opset=self.opset), {}
        free = self.free and all(x.is_direct for x in self.inputs if isinstance(x, Fed))
        names = []
        for at, given in enumerate(self.inputs):
            if isinstance(given, Fed):
                sources[f"x{at}"] = given.source(free)
                names.append(given.add_to(build, f"x{at}"))
            else:
                names.append("" if given is None else build.constant(given))
        results = [f"y{at}" for at in range(self.outputs)]
        build.add(self.type, *names, name="y0", more=results[1:], **self.attributes)
        return build.proto(sources, *(build.add("Cast", name, to=TensorProto.FLOAT) for name in results))


class Numbers(random.Random):
    """The random numbers that a node is drawn with."""

    image: tuple[int, ...] | None = None
    """The shape of the only input that is fed, where it is given: (1, C, H, W)."""


Draw = Callable[[Numbers, str], Drawn]


def _node(rng: Numbers, name: str, shape, attributes=None, *more: Given, opset: int = 17, outputs: int = 1) -> Drawn:
    """A node whose first input is fed; half of those with a batch of one have a batch of free size."""
    return Drawn(name, (Fed(shape), *more), attributes or {}, opset, outputs, _free(rng, shape))


def _free(rng: Numbers, shape) -> bool:
    return len(shape) > 1 and shape[0] == 1 and rng.random() < 0.5


def _normal(rng: Numbers, shape, scale: float = 1.0) -> np.ndarray:
    return np.array(np.random.default_rng(rng.randrange(1 << 30)).normal(size=shape, scale=scale), F)


def _numbers(rng: Numbers, shape, low: int, high: int) -> np.ndarray:
    """Whole numbers."""
    return np.array([rng.randint(low, high) for _ in range(int(np.prod(shape)))], np.int64).reshape(shape)


def _shape(rng: Numbers, low: int, high: int, largest: int = 4) -> tuple[int, ...]:
    """Mostly a batch of one before the other axes."""
    if rng.image is not None:
        return rng.image
    rank = rng.randint(low, high)
    shape = tuple(rng.randint(1, largest) for _ in range(rank))
    return (1, *shape[1:]) if shape and rng.random() < 0.7 else shape


def _image(rng: Numbers, low: int, high: int, channels: int = 3, axes: tuple[int, ...] = (1, 2, 2, 3)) -> tuple[int, ...]:
    """A batch of one, channels, and lines of one axis to three."""
    if rng.image is not None:
        return rng.image
    return (1, rng.randint(1, channels), *(rng.randint(low, high) for _ in range(rng.choice(axes))))


def _maybe(rng: Numbers, **attributes) -> dict[str, Any]:
    """Each attribute that is not None, given or left out."""
    return {name: value for name, value in attributes.items() if value is not None and rng.random() < 0.7}


def _operand(rng: Numbers, shape, fed: float = 0.3, scale: float = 1.0) -> Given:
    return Fed(tuple(shape)) if rng.image is None and rng.random() < fed else _normal(rng, shape, scale)


def _bias(rng: Numbers, share: float, shape) -> list[Given]:
    """An operand that may be left out."""
    return [_operand(rng, shape, 0.2)] if rng.random() < share else []


def _any_axis(rng: Numbers, shape) -> int:
    return rng.randint(-len(shape), len(shape) - 1)


def _axis(rng: Numbers, axis: int, shape) -> int:
    """The axis, counted from the one end or the other."""
    return axis - rng.choice((0, len(shape)))


def _maybe_axis(rng: Numbers, axis: int, shape, default: int = 0) -> dict[str, int]:
    """The attribute, which may be left out if it is the default."""
    return {"axis": _axis(rng, axis, shape)} if axis != default or rng.random() < 0.5 else {}


def _windows(rng: Numbers, size, kernel, dilations: bool = True) -> dict[str, Any]:
    mode = rng.choice(["NOTSET"] * 4 + ["VALID", "SAME_UPPER", "SAME_LOWER"])
    pads = [rng.randint(0, 2) for _ in (*size, *size)]
    found = {
        **_maybe(rng, strides=[rng.randint(1, 4) for _ in size]),
        **(_maybe(rng, dilations=[rng.choice((1, 1, 2)) for _ in size]) if dilations else {}),
        **({"auto_pad": mode} if mode != "NOTSET" else _maybe(rng, pads=pads)),
    }
    # ONNX Runtime pads dilated windows as if they were not, and some apart from each other less than none
    if mode.startswith("SAME"):
        found.pop("dilations", None)
        if "strides" in found:
            found["strides"] = [min(s, k) for s, k in zip(found["strides"], kernel, strict=True)]
    return found


def _groups(rng: Numbers, channels: int) -> int:
    """One group, or several that divide the channels."""
    return rng.choice([1, 1, *(count for count in {2, 3, channels} if channels % count == 0)])


def _weighted(rng: Numbers, size, kernel, groups: int) -> dict[str, Any]:
    """The attributes of a convolution."""
    return _maybe(rng, kernel_shape=kernel) | _windows(rng, size, kernel) | ({"group": groups} if groups > 1 else {})


def _conv(rng: Numbers, name: str) -> Drawn:
    shape = _image(rng, 4, 7, 6)
    _, inputs, *size = shape
    groups, kernel = _groups(rng, inputs), [rng.randint(1, min(3, n)) for n in size]
    outputs = groups * rng.randint(1, 2)
    more = [_operand(rng, (outputs, inputs // groups, *kernel), 0.2), *_bias(rng, 0.6, (outputs,))]
    return _node(rng, name, shape, _weighted(rng, size, kernel, groups), *more)


def _deconv(rng: Numbers, name: str) -> Drawn:
    shape = _image(rng, 2, 4, 4)
    _, inputs, *size = shape
    groups, kernel, outputs = _groups(rng, inputs), [rng.randint(1, 4) for _ in size], rng.randint(1, 2)
    more = [_operand(rng, (inputs, outputs, *kernel), 0.2), *_bias(rng, 0.4, (outputs * groups,))]
    attributes = _weighted(rng, size, kernel, groups)
    strides = attributes.get("strides", [1] * len(size))
    if not attributes.get("auto_pad", "").startswith("SAME") and rng.random() < 0.3:
        attributes["output_padding"] = [rng.randint(0, s - 1) for s in strides]
    if rng.random() < 0.25:
        attributes.pop("pads", None)
        lengths = [(n - 1) * s + k - rng.randint(0, 1) for n, s, k in zip(size, strides, kernel, strict=True)]
        attributes["output_shape"] = [max(1, value) for value in lengths]
    return _node(rng, name, shape, attributes, *more)


def _pool(rng: Numbers, name: str) -> Drawn:
    shape = _image(rng, 3, 7)
    size, kernel = shape[2:], [rng.randint(1, min(3, n)) for n in shape[2:]]
    opset = rng.choice((11, 17, 19)) if name == "AveragePool" else 17
    attributes = {"kernel_shape": kernel, **_windows(rng, size, kernel, name == "MaxPool" or opset == 19)}
    if "pads" in attributes:
        attributes["pads"] = [min(pad, k - 1) for pad, k in zip(attributes["pads"], kernel * 2, strict=True)]
    if name != "LpPool" and rng.random() < 0.4:
        attributes["ceil_mode"] = 1
    if name == "AveragePool":
        attributes |= _maybe(rng, count_include_pad=rng.randint(0, 1))
    elif name == "LpPool":
        attributes |= _maybe(rng, p=rng.randint(1, 3))
    elif rng.random() < 0.3:
        return Drawn(name, (Fed(shape),), attributes | _maybe(rng, storage_order=rng.randint(0, 1)), outputs=2)
    return _node(rng, name, shape, attributes, opset=opset)


def _whole(rng: Numbers, name: str) -> Drawn:
    attributes = _maybe(rng, p=rng.randint(1, 3)) if "Lp" in name else {}
    return _node(rng, name, _image(rng, 1, 5), attributes)


def _norm(rng: Numbers, name: str) -> Drawn:
    shape = _image(rng, 1, 4, 4, (0, 1, 2, 3))
    epsilon = _maybe(rng, epsilon=rng.choice((1e-3, 0.25)))
    vector = [_operand(rng, (shape[1],), 0.15) for _ in range(3)]
    constant = rng.image or rng.random() < 0.8
    spread = np.array(np.abs(_normal(rng, (shape[1],))) + F(0.1)) if constant else Fed((shape[1],), above=0.25)
    if name == "BatchNormalization":
        return _node(rng, name, shape, epsilon, *vector, spread, opset=rng.choice((9, 15, 17)))
    return _node(rng, name, shape, epsilon, *vector[:2])


def _group_norm(rng: Numbers, name: str) -> Drawn:
    shape = _image(rng, 1, 4, 6)
    opset, groups = rng.choice((18, 21)), _groups(rng, shape[1])
    size = groups if opset == 18 else shape[1]
    gains = [_operand(rng, (size,), 0.2) for _ in range(2)]
    return _node(rng, name, shape, {"num_groups": groups, **_maybe(rng, epsilon=0.05)}, *gains, opset=opset)


def _layer_norm(rng: Numbers, name: str) -> Drawn:
    shape = _shape(rng, 2, 5)
    axis = rng.randint(1, len(shape) - 1)
    gains = [_operand(rng, shape[axis:], 0.2), *_bias(rng, 0.6, shape[axis:])]
    attributes = {"axis": rng.choice((axis, axis - len(shape))), **_maybe(rng, epsilon=0.03)}
    return _node(rng, name, shape, attributes, *gains, outputs=rng.choice((1, 1, 1, 3)))


def _lp_norm(rng: Numbers, name: str) -> Drawn:
    shape = _shape(rng, 1, 5)
    return _node(rng, name, shape, _maybe(rng, axis=_any_axis(rng, shape), p=rng.randint(1, 2)))


def _mean_variance(rng: Numbers, name: str) -> Drawn:
    shape = rng.image or (1, *(rng.randint(2, 4) for _ in range(rng.randint(2, 3))))
    axes = [*rng.sample(range(1 - len(shape), 0), rng.randint(1, 2)), *([-len(shape)] if rng.random() < 0.3 else [])]
    attributes = {"axes": [axis + rng.choice((0, len(shape))) for axis in axes]} if len(shape) < 4 or rng.random() < 0.6 else {}
    return _node(rng, name, shape, attributes)


def _softmax(rng: Numbers, name: str) -> Drawn:
    shape, opset = _shape(rng, 1, 5), rng.choice((11, 13))
    attributes = _maybe(rng, axis=_any_axis(rng, shape))
    return _node(rng, name, shape, attributes if len(shape) > 1 else {"axis": 0}, opset=opset)


def _lrn(rng: Numbers, name: str) -> Drawn:
    shape = _image(rng, 1, 4, 6, (2,))
    return _node(rng, name, shape, {"size": rng.choice((1, 3, 5)), **_maybe(rng, alpha=0.3, beta=0.6, bias=1.5)})


def _reduce(rng: Numbers, name: str) -> Drawn:
    shape = _shape(rng, 1, 5)
    opset = rng.choice((11, 13, 18))
    axes = [axis + rng.choice((0, len(shape))) for axis in rng.sample(range(-len(shape), 0), rng.randint(1, len(shape)))]
    form = rng.choice(("axes",) * 4 + ("none", "empty"))
    attributes = _maybe(rng, keepdims=rng.randint(0, 1))
    kind = "float32" if "L" in name or rng.random() < 0.8 else "int32"
    given: list[Given] = [Fed(shape, kind, 0.2 if "Log" in name and "Exp" not in name else None)]
    if opset == 18 or (opset == 13 and name == "ReduceSum"):
        attributes |= _maybe(rng, noop_with_empty_axes=rng.randint(0, 1))
        given += [np.array(axes if form == "axes" else [], np.int64)] if form != "none" else []
    elif form == "axes":
        attributes["axes"] = axes
    return Drawn(name, tuple(given), attributes, opset, free=_free(rng, shape) and kind == "float32")


def _argument(rng: Numbers, name: str) -> Drawn:
    shape = _shape(rng, 1, 5)
    attributes = _maybe(rng, axis=_any_axis(rng, shape), keepdims=rng.randint(0, 1))
    kind = rng.choice(("float32", "int32"))
    if kind == "int32":  # with equal elements
        attributes |= _maybe(rng, select_last_index=rng.randint(0, 1))
    return Drawn(name, (Fed(shape, kind),), attributes, 13, free=_free(rng, shape) and kind == "float32")


def _running(rng: Numbers, name: str) -> Drawn:
    shape = _shape(rng, 1, 5)
    attributes = _maybe(rng, exclusive=rng.randint(0, 1), reverse=rng.randint(0, 1))
    kind = rng.choice(("float32", "float32", "int32"))
    return Drawn(name, (Fed(shape, kind), np.array(_any_axis(rng, shape))), attributes)


def _gather(rng: Numbers, name: str) -> Drawn:
    shape = rng.image or tuple(max(2, size) for size in _shape(rng, 1, 4))
    shape = (1, *shape) if rng.random() < 0.6 and len(shape) < 4 else shape
    axis = rng.randint(1 if shape[0] == 1 else 0, len(shape) - 1)
    places = tuple(rng.randint(1, 3) for _ in range(rng.randint(0, 2)))
    size = shape[axis]
    if name == "GatherElements":
        places = tuple(rng.randint(1, n) if at != axis else rng.randint(1, 4) for at, n in enumerate(shape))
    lines = _numbers(rng, places, -size, size - 1)
    indices = Fed(places, rng.choice(("int64", "int32"))) if rng.random() < 0.4 and places and not rng.image else lines
    attributes = _maybe_axis(rng, axis, shape)
    return Drawn(name, (Fed(shape), indices), attributes, free=name == "Gather" and _free(rng, shape))


def _gather_nd(rng: Numbers, name: str) -> Drawn:
    shape = tuple(rng.randint(2, 3) for _ in range(rng.randint(1, 4)))
    batch = rng.randint(0, min(2, len(shape) - 1))
    depth = rng.randint(1, len(shape) - batch)
    places = (*shape[:batch], *(rng.randint(1, 3) for _ in range(rng.randint(0, 1))), depth)
    lines = _numbers(rng, places, -2, 1)
    indices = Fed(places, "int64") if rng.random() < 0.4 else lines
    return Drawn(name, (Fed(shape), indices), {"batch_dims": batch} if batch else {})


def _scatter(rng: Numbers, name: str) -> Drawn:
    shape = tuple(rng.randint(2, 4) for _ in range(rng.randint(1, 4)))
    reduction = rng.choice((None, "none", "add", "mul", "max", "min"))
    attributes: dict[str, Any] = {} if reduction is None else {"reduction": reduction}
    once = reduction in (None, "none")
    if name == "ScatterND":
        depth = rng.randint(1, len(shape))
        places: tuple[int, ...] = (rng.randint(1, 1 if once else 3), depth)
        lines = np.array([[rng.randint(-size, size - 1) for size in shape[:depth]] for _ in range(places[0])], np.int64)
        updates = (places[0], *shape[depth:])
    else:
        axis = rng.randint(0, len(shape) - 1)
        updates = places = tuple(rng.randint(1, n) for n in shape)
        if once:
            updates = places = tuple(1 if at == axis else n for at, n in enumerate(places))
        lines = _numbers(rng, places, -shape[axis], shape[axis] - 1)
    indices: Given = lines if rng.random() < 0.6 else Fed(places, "int64")
    if name == "ScatterElements":
        attributes |= _maybe_axis(rng, axis, shape)
    return Drawn(name, (Fed(shape), indices, _operand(rng, updates)), attributes, 18)


def _one_hot(rng: Numbers, name: str) -> Drawn:
    shape = _shape(rng, 1, 3)
    depth = rng.choice((np.array(3), np.array([4])))
    attributes = _maybe(rng, axis=rng.randint(-len(shape) - 1, len(shape)))
    return Drawn(name, (Fed(shape, "int64"), depth, _operand(rng, (2,))), attributes)


def _top(rng: Numbers, name: str) -> Drawn:
    shape = _shape(rng, 1, 4)
    axis = rng.randint(0, len(shape) - 1)
    count = rng.randint(1, shape[axis])
    attributes = _maybe_axis(rng, axis, shape, len(shape) - 1)
    if rng.random() < 0.2:
        return _node(rng, name, shape, {**attributes, "k": count}, opset=9, outputs=2)
    attributes |= _maybe(rng, largest=rng.randint(0, 1), sorted=1)
    return _node(rng, name, shape, attributes, np.array([count]), outputs=2)


def _reshape(rng: Numbers, name: str) -> Drawn:
    shape = _shape(rng, 1, 4)
    target = list(rng.choice((shape, shape[::-1], (*shape[:-2], int(np.prod(shape[-2:]))), (shape[0], -1), (-1,), (*shape, 1))))
    if rng.random() < 0.4 and -1 not in target:
        target[rng.randrange(len(target))] = -1
    if rng.random() < 0.4 and target[0] == shape[0]:
        target[0] = 0
    attributes = {"allowzero": rng.randint(0, 1)} if rng.random() < 0.3 else {}
    return _node(rng, name, shape, attributes, np.array(target, np.int64))


def _flatten(rng: Numbers, name: str) -> Drawn:
    shape = _shape(rng, 1, 5)
    return _node(rng, name, shape, _maybe(rng, axis=rng.randint(-len(shape), len(shape))))


def _squeeze(rng: Numbers, name: str) -> Drawn:
    rank = rng.randint(2, 5)
    ones = sorted(rng.sample(range(rank), rng.randint(1, rank - 1)))
    shape = tuple(1 if axis in ones else rng.randint(2, 4) for axis in range(rank))
    axes = [axis - rng.choice((0, rank)) for axis in rng.sample(ones, rng.randint(1, len(ones)))]
    opset, given = rng.choice((11, 13)), rng.random() < 0.7
    attributes = {"axes": axes} if given and opset == 11 else {}
    return _node(rng, name, shape, attributes, *([np.array(axes)] if given and opset == 13 else []), opset=opset)


def _unsqueeze(rng: Numbers, name: str) -> Drawn:
    shape = _shape(rng, 1, 3)
    rank = len(shape) + rng.randint(1, 2)
    axes = [axis - rng.choice((0, rank)) for axis in rng.sample(range(rank), rank - len(shape))]
    if rng.random() < 0.5:
        return _node(rng, name, shape, {"axes": axes}, opset=11)
    return _node(rng, name, shape, {}, np.array(axes), opset=13)


def _transpose(rng: Numbers, name: str) -> Drawn:
    shape = _shape(rng, 1, 5)
    attributes = _maybe(rng, perm=rng.sample(range(len(shape)), len(shape)))
    return Drawn(name, (Fed(shape),), attributes, free=_free(rng, shape) and attributes.get("perm", [1])[0] == 0)


def _slice(rng: Numbers, name: str) -> Drawn:
    shape = _shape(rng, 1, 4, 6)
    axes = rng.sample(range(len(shape)), rng.randint(1, len(shape)))
    steps, starts, ends = [], [], []
    for axis in axes:  # mostly something is left
        size, step = shape[axis], rng.choice((1, 1, 2, -1, -2))
        first, last = sorted((rng.randint(0, size - 1), rng.randint(0, size - 1)))
        start, end = (first, last + 1) if step > 0 else (last, first - 1)
        far = rng.random() < 0.3
        steps.append(step)
        starts.append(start - size if rng.random() < 0.3 else start)
        if far or end < 0:
            ends.append(2**31 - 1 if step > 0 else -(2**31))
        else:
            ends.append(end - size if end < size and rng.random() < 0.3 else end)
    if rng.random() < 0.5:
        axes = [_axis(rng, axis, shape) for axis in axes]
    free = _free(rng, shape)
    form = rng.choice(("steps", "axes", "none", "old") if min(steps) > 0 else ("steps",))
    if form == "old":
        return Drawn(name, (Fed(shape),), {"starts": starts, "ends": ends, "axes": axes}, 9, free=free)
    given = [np.array(values, np.int64) for values in (starts, ends, axes, steps)]
    return Drawn(name, (Fed(shape), *given[: {"steps": 4, "axes": 3, "none": 2}[form]]), free=free)


def _split(rng: Numbers, name: str) -> Drawn:
    shape = _shape(rng, 1, 4, 6)
    axis = rng.randint(0, len(shape) - 1)
    count = rng.randint(1, min(3, shape[axis]))
    cuts = sorted(rng.sample(range(1, shape[axis]), count - 1))
    sizes = [int(size) for size in np.diff([0, *cuts, shape[axis]])]
    attributes: dict[str, Any] = _maybe_axis(rng, axis, shape)
    free, opset = _free(rng, shape), rng.choice((11, 13, 18))
    more: list[Given] = []
    if opset == 18 and rng.random() < 0.5:
        attributes["num_outputs"] = count
    elif opset < 18 and shape[axis] % count == 0 and rng.random() < 0.4:
        pass  # equal parts, one for each output
    elif opset == 11:
        attributes["split"] = sizes
    else:
        more = [np.array(sizes)]
    return Drawn(name, (Fed(shape), *more), attributes, opset, count, free)


def _expand(rng: Numbers, name: str) -> Drawn:
    target = _shape(rng, 1, 4)
    shape = rng.image or tuple(rng.choice((1, size)) for size in target[rng.randint(0, len(target) - 1) :])
    target = tuple(rng.choice((1, size)) if at == size else size for at, size in enumerate(target))
    return Drawn(name, (Fed(shape), np.array(target)), free=_free(rng, shape) and len(target) == len(shape))


def _tile(rng: Numbers, name: str) -> Drawn:
    shape = _shape(rng, 1, 4)
    times = [rng.randint(1, 3) for _ in shape]
    times[0] = rng.choice((1, 1, 2))
    return _node(rng, name, shape, {}, np.array(times))


def _pad(rng: Numbers, name: str) -> Drawn:
    shape = rng.image or tuple(max(3, size) if at else size for at, size in enumerate(_shape(rng, 1, 4)))
    mode = rng.choice((None, "constant", "reflect", "edge", "wrap"))
    every = list(range(len(shape)))
    axes = rng.sample(every, rng.randint(1, len(shape))) if rng.random() < 0.4 else every
    moved = -1 if mode in (None, "constant") else 0
    pads = [0 if shape[axis] == 1 else rng.randint(moved, 2) for axis in axes * 2]
    attributes = {} if mode is None else {"mode": mode}
    free = _free(rng, shape)
    if axes == every and rng.random() < 0.3 and mode != "wrap":
        return Drawn(name, (Fed(shape),), {**attributes, "pads": pads, **_maybe(rng, value=0.75)}, 10, free=free)
    given: list[Given] = [Fed(shape), np.array(pads), rng.choice((None, np.array(-0.5, F), np.array(2, F)))]
    if axes != every:
        given.append(np.array([_axis(rng, axis, shape) for axis in axes]))
    elif given[-1] is None:
        given.pop()
    return Drawn(name, tuple(given), attributes, 19, free=free)


def _blocks(rng: Numbers, name: str) -> Drawn:
    block, (_, c, h, w) = rng.randint(1, 3), _image(rng, 1, 3, 2, (2,))
    to_space = name == "DepthToSpace"
    shape = (1, c * block * block, h, w) if to_space else (1, c, h * block, w * block)
    attributes = {"blocksize": block, **(_maybe(rng, mode=rng.choice(("DCR", "CRD"))) if to_space else {})}
    return _node(rng, name, rng.image or shape, attributes)


def _triangle(rng: Numbers, name: str) -> Drawn:
    shape = tuple(max(2, size) if at else size for at, size in enumerate(_shape(rng, 2, 4)))
    given: tuple[Given, ...] = (Fed(shape),) if rng.random() < 0.3 else (Fed(shape), np.array(rng.randint(-2, 2)))
    return Drawn(name, given, _maybe(rng, upper=rng.randint(0, 1)))


def _concat(rng: Numbers, name: str) -> Drawn:
    shape = _shape(rng, 1, 4)
    axis = rng.randint(0, len(shape) - 1)
    given: list[Given] = []
    for _ in range(rng.randint(1, 3)):
        dims = tuple(rng.randint(1, 3) if at == axis and given else size for at, size in enumerate(shape))
        given.append(_operand(rng, dims, 0.7) if given else Fed(dims))
    rng.shuffle(given)
    attributes = {"axis": _axis(rng, axis, shape)}
    free = axis > 0 and all(isinstance(x, Fed) for x in given) and _free(rng, shape)
    return Drawn(name, tuple(given), attributes, free=free)


def _broadcast(rng: Numbers, shape) -> tuple[int, ...]:
    """A shape that broadcasts with `shape`, mostly to it."""
    other = tuple(size if rng.random() < 0.6 else 1 for size in shape)
    return other[rng.randint(0, len(other)) :] if rng.random() < 0.4 else other


def _binary(rng: Numbers, name: str) -> Drawn:
    shape, bits = _shape(rng, 1, 5), name.startswith("Bitwise")
    kind = "bool" if name in ("And", "Or", "Xor") else "float32"
    if bits or (not rng.image and name in ("Add", "Sub", "Mul", "Mod", "Equal", "Less") and rng.random() < 0.2):
        kind = rng.choice(("int32", "int64"))
    other = _broadcast(rng, shape)
    constant = np.array(_normal(rng, other, 2) + F(0.01), F)
    if kind != "float32":
        constant = np.array(np.sign(constant) if name == "Mod" else np.rint(constant)).astype(kind)
    if name == "Pow":
        constant = rng.choice((constant, np.array(rng.choice((0.5, 1, 2, 3, 1.5)), F), np.array([2], F)))
    attributes = {"fmod": 1} if name == "Mod" and kind == "float32" else _maybe(rng, fmod=1) if name == "Mod" else {}
    above = 0.3 if name in ("Pow", "Div", "Mod") and kind == "float32" else None
    second: Given = Fed(other, kind, above) if not rng.image and rng.random() < 0.5 else constant
    given: tuple[Given, ...] = (Fed(shape, kind, 0.1 if name == "Pow" else None), second)
    if kind != "float32" and name == "Mod":
        given = (given[0], constant)
    free = _free(rng, shape) and not (isinstance(given[1], Fed) and len(other) not in (0, 1, len(shape)))
    if rng.random() < 0.4 and name not in ("Div", "Mod", "Pow"):
        given = given[::-1]
    elif name == "Div" and rng.random() < 0.3:
        given, free = (constant, Fed(shape, kind, 0.3)), _free(rng, shape)
    return Drawn(name, given, attributes, 18 if bits else 17, free=free)


def _several(rng: Numbers, name: str) -> Drawn:
    shape = _shape(rng, 1, 4)
    given: list[Given] = [Fed(shape)]
    for _ in range(rng.randint(0, 3)):
        dims = _broadcast(rng, shape)
        dims = shape if rng.random() < 0.5 else () if rng.random() < 0.3 else dims
        given.append(_operand(rng, dims, 0.5 if dims else 0.0))
    rng.shuffle(given)
    aligned = all(not isinstance(x, Fed) or len(x.shape) in (1, len(shape)) for x in given)
    return Drawn(name, tuple(given), free=_free(rng, shape) and aligned)


def _where(rng: Numbers, name: str) -> Drawn:
    shape = _shape(rng, 1, 4)
    condition = Fed(_broadcast(rng, shape) or shape, "bool")
    return Drawn(name, (condition, _operand(rng, shape, 0.6), _operand(rng, _broadcast(rng, shape), 0.3)))


def _clip(rng: Numbers, name: str) -> Drawn:
    shape, opset = _shape(rng, 1, 5), rng.choice((10, 13))
    limits = {"min": rng.choice((None, -0.5, 0.0, 0.25)), "max": rng.choice((None, 0.75, 6.0, 0.3))}
    if opset == 10:
        return _node(rng, name, shape, {key: value for key, value in limits.items() if value is not None}, opset=opset)
    given = [None if value is None else np.array(value, F) for value in limits.values()]
    while given and given[-1] is None:
        given.pop()
    return _node(rng, name, shape, {}, *given)


def _prelu(rng: Numbers, name: str) -> Drawn:
    shape = _shape(rng, 1, 5)
    slope = rng.choice(((), (1,), (shape[1], *(1,) * (len(shape) - 2)) if len(shape) > 1 else (1,), _broadcast(rng, shape)))
    return _node(rng, name, shape, {}, _operand(rng, slope, 0.2 if slope else 0))


def _shift(rng: Numbers, name: str) -> Drawn:
    shape = _shape(rng, 1, 3)
    amount = _numbers(rng, shape[-1:], 0, 3).astype(np.uint8)
    return Drawn(name, (Fed(shape, "uint8", 1.0), amount), {"direction": rng.choice(("LEFT", "RIGHT"))})


def _unary(rng: Numbers, name: str) -> Drawn:
    shape = _shape(rng, 1, 5)
    attributes = {
        "LeakyRelu": {"alpha": 0.2},
        "Elu": {"alpha": 0.6},
        "Celu": {"alpha": 1.7},
        "Selu": {"alpha": 1.5, "gamma": 1.2},
        "ThresholdedRelu": {"alpha": 0.4},
        "HardSigmoid": {"alpha": 0.3, "beta": 0.45},
        "IsInf": {"detect_negative": rng.randint(0, 1)},
        "Gelu": {"approximate": rng.choice(("none", "tanh"))},
    }.get(name, {})
    opset = {"Gelu": 20, "Mish": 18, "BitwiseNot": 18}.get(name, 17)
    above = {"Log": 0.1, "Sqrt": 0.05, "Reciprocal": 0.3, "Acosh": 1.1}.get(name)
    kind = {"Not": "bool", "BitwiseNot": "int32"}.get(name, "float32")
    attributes = _maybe(rng, **attributes)
    return Drawn(name, (Fed(shape, kind, above),), attributes, opset, free=_free(rng, shape) and kind == "float32")


def _cast(rng: Numbers, name: str) -> Drawn:
    shape = _shape(rng, 1, 4)
    to = rng.choice((TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.DOUBLE, TensorProto.INT8))
    if name == "CastLike":
        return Drawn(name, (Fed(shape), np.zeros(1, helper.tensor_dtype_to_np_dtype(to))))
    return _node(rng, name, shape, {"to": to})


def _factors(rng: Numbers, shape) -> list[float]:
    """Factors of a Resize; ONNX Runtime copies a tensor that stays as large."""
    factors = [1.0, 1.0, *(rng.choice((1.0, 2.0, 3.0, 0.5, 1.5, 0.6, 0.7, 1.2)) for _ in shape[2:])]
    if any(1 < scale < 1.5 and int(scale * size) == size for scale, size in zip(factors, shape, strict=True)):
        factors = [2.0 if scale == 1.2 else scale for scale in factors]
    return factors


def _upsample(rng: Numbers, name: str) -> Drawn:
    shape = _image(rng, 2, 9)
    free, factors = rng.random() < 0.5, [max(1.0, scale) for scale in _factors(rng, shape)]
    mode = rng.choice(("nearest", "linear")) if len(shape) == 4 else "nearest"
    if rng.random() < 0.4:
        return Drawn(name, (Fed(shape),), {"mode": mode, "scales": factors}, 7, free=free)
    return Drawn(name, (Fed(shape), np.array(factors, F)), {"mode": mode}, 9, free=free)


def _resize(rng: Numbers, name: str) -> Drawn:
    shape = _image(rng, 2, 9)
    rank, free, factors = len(shape), rng.random() < 0.5, _factors(rng, shape)
    opset = rng.choice((10, 11, 13, 18, 19))
    mode = rng.choice(("nearest", "nearest", "linear", "cubic" if rank == 4 else "linear"))
    attributes: dict[str, Any] = {"mode": mode}
    if opset == 10:
        return Drawn(name, (Fed(shape), np.array(factors, F)), {"mode": "linear" if mode == "cubic" else mode}, 10, free=free)
    ways = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"] + (
        ["half_pixel_symmetric"] if opset >= 19 else ["tf_half_pixel_for_nn"] if opset == 11 and mode == "nearest" else []
    )
    attributes |= _maybe(rng, coordinate_transformation_mode=rng.choice(ways))
    if attributes.get("coordinate_transformation_mode") == "align_corners":
        # The definition counts lengths that are no whole numbers, ONNX Runtime does not.
        factors = [scale if (scale * size).is_integer() else 2.0 for scale, size in zip(factors, shape, strict=True)]
    if mode == "nearest":
        attributes |= _maybe(rng, nearest_mode=rng.choice(("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")))
    if mode == "cubic":
        attributes |= _maybe(rng, cubic_coeff_a=-0.5, exclude_outside=rng.randint(0, 1))
    axes = list(range(rank))
    if opset >= 18:
        if mode != "nearest":
            attributes |= _maybe(rng, antialias=rng.randint(0, 1))
        if rng.random() < 0.4:
            axes = list(range(2, rank))
            attributes["axes"] = [axis - rng.choice((0, rank)) for axis in axes]
    sizes = [shape[axis] if axis < 2 else rng.randint(1, 8) for axis in axes]
    absent = np.zeros(0, F) if opset == 11 else None
    if rng.random() < 0.5:
        return Drawn(name, (Fed(shape), absent, np.array([factors[axis] for axis in axes], F)), attributes, opset, free=free)
    free &= len(axes) < rank  # a size for the batch is one for a batch of one
    if opset >= 18 and len(axes) < rank and rng.random() < 0.5:
        attributes |= {"axes": axes, "keep_aspect_ratio_policy": rng.choice(("stretch", "not_larger", "not_smaller"))}
    return Drawn(name, (Fed(shape), absent, absent, np.array(sizes, np.int64)), attributes, opset, free=free)


def _matmul(rng: Numbers, name: str) -> Drawn:
    m, k, n = (rng.randint(1, 4) for _ in range(3))
    left = rng.choice(((m, k), (1, k), (k,), (1, m, k), (1, 2, m, k)))
    right = rng.choice(((k, n), (k, n), (k,), (1, k, n), (1, 2, k, n), (2, k, n)))
    form = rng.choice(("left", "both", "both", "right"))
    if rng.image is not None:
        left, right, form = rng.image, (rng.image[-1], n), "left"
    given = (Fed(left) if form != "right" else _normal(rng, left), Fed(right) if form != "left" else _normal(rng, right))
    return Drawn(name, given, free=_free(rng, left))


def _gemm(rng: Numbers, name: str) -> Drawn:
    m, k, n = rng.choice((1, 1, 3)), rng.randint(1, 4), rng.randint(1, 4)
    attributes = _maybe(rng, transA=rng.choice((0, 0, 1)), transB=rng.randint(0, 1), alpha=0.5, beta=2.0)
    left, right = ((k, m) if attributes.get("transA") else (m, k)), ((n, k) if attributes.get("transB") else (k, n))
    given: list[Given] = [Fed(left), _operand(rng, right, 0.3)]
    if rng.random() < 0.7:
        given.append(_operand(rng, rng.choice(((n,), (1, n), (m, n), (1,), (m, 1), ())), 0.0))
    return Drawn(name, tuple(given), attributes, free=m == 1 and "transA" not in attributes and rng.random() < 0.5)


EQUATIONS = (
    *"bij,bjk->bik bij,jk->bik bij,bkj->bik bijk,bijl->bikl bij->bji bij->b ij,kj->ik bi,bj->bij".split(),
    *"bij,bij->bij ij,jk bijk,bilk->bijl bij,bjk->bki bijk->bkij".split(),
    *("bij -> bj", "ijk,ikl->ijl", "bi,bi->b", "bij,ik->bjk"),
)


def _einsum(rng: Numbers, name: str) -> Drawn:
    sizes = dict(zip("bijkl", (1, 2, 3, 4, 2), strict=True))
    text = rng.choice(EQUATIONS)
    terms = text.replace(" ", "").split("->")[0].split(",")
    shapes = [tuple(sizes[letter] for letter in term) for term in terms]
    second = _normal(rng, shapes[1]) if len(shapes) > 1 and rng.random() < 0.4 else None
    given = [Fed(shape) if number == 0 or second is None else second for number, shape in enumerate(shapes)]
    return Drawn(name, tuple(given), {"equation": text})


def _quantize(rng: Numbers, name: str) -> Drawn:
    shape = (1, rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 3))[: rng.randint(2, 4)]
    kind = rng.choice((np.uint8, np.int8))
    axis, form = rng.randint(1, len(shape) - 1), rng.choice(("one", "one", "axis", "none"))
    size = (shape[axis],) if form == "axis" else ()
    scale = np.array(np.abs(_normal(rng, size)) / 20 + F(0.01), F)
    zero = np.full(size, rng.choice((0, 3, 100 if kind is np.uint8 else -20)), kind)
    attributes = {"axis": _axis(rng, axis, shape)} if form == "axis" else {}
    return _node(rng, name, shape, attributes, scale, *([zero] if form != "none" else []), opset=rng.choice((13, 19)))


UNARY = (
    "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish IsInf IsNaN"
    " LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh ThresholdedRelu"
).split()
BINARY = (
    "Add And BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Mod Mul Or Pow Sub Xor".split()
)
REDUCTIONS = [f"Reduce{name}" for name in "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()]
DRAWS: dict[str, Draw] = {
    "Conv": _conv,
    "ConvTranspose": _deconv,
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), _pool),
    **dict.fromkeys(("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"), _whole),
    **dict.fromkeys(("BatchNormalization", "InstanceNormalization"), _norm),
    "GroupNormalization": _group_norm,
    "LayerNormalization": _layer_norm,
    "LpNormalization": _lp_norm,
    "MeanVarianceNormalization": _mean_variance,
    **dict.fromkeys(("Hardmax", "LogSoftmax", "Softmax"), _softmax),
    "LRN": _lrn,
    **dict.fromkeys(REDUCTIONS, _reduce),
    **dict.fromkeys(("ArgMax", "ArgMin"), _argument),
    "CumSum": _running,
    **dict.fromkeys(("Gather", "GatherElements"), _gather),
    "GatherND": _gather_nd,
    **dict.fromkeys(("ScatterElements", "ScatterND"), _scatter),
    "OneHot": _one_hot,
    "TopK": _top,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Transpose": _transpose,
    "Slice": _slice,
    "Split": _split,
    "Expand": _expand,
    "Tile": _tile,
    "Pad": _pad,
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _blocks),
    "Trilu": _triangle,
    "Concat": _concat,
    **dict.fromkeys(BINARY, _binary),
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), _several),
    "Where": _where,
    "Clip": _clip,
    "PRelu": _prelu,
    "BitShift": _shift,
    **dict.fromkeys(UNARY, _unary),
    **dict.fromkeys(("Cast", "CastLike"), _cast),
    "Resize": _resize,
    "Upsample": _upsample,
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Einsum": _einsum,
    "QuantizeLinear": _quantize,
}


def draw(operator: str, number: int) -> Drawn:
    """The node of that number."""
    return DRAWS[operator](Numbers(f"{operator} {number}"), operator)


def draw_of_image(operator: str, seed: object, image: tuple[int, ...]) -> Drawn:
    """A node of one input, an image (1, C, H, W) of a batch of free size, and constants."""
    numbers = Numbers(f"{operator} {seed}")
    numbers.image = image
    return replace(DRAWS[operator](numbers, operator), free=True)
