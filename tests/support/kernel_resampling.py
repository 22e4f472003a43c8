"""Transposed convolutions, resampling, unpooling, normalisations and steps, for the sweeps of kernels."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle

import numpy as np

from n2d2py.arithmetic import FLOAT32, FLOAT64, NumType
from n2d2py.contracts.functions import Clip, LeakyRectifier, Step
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.contracts.quant.quantizer import LayerTypes, prequantize_layer
from n2d2py.graph import Node, QuantNode
from n2d2py.operators.normalize.op import lp_normalize
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_cases import CHANNELS, K1, S8, S16, U8, U16, Sweep, Window
from support.ops import LRN, Deconv, Resize, Unpool

WINDOWS = (
    Window((2, 2), (2, 2)),
    Window((3, 3), (2, 2), (1, 1, 1, 1)),
    Window((4, 4), (2, 2), (1, 1, 1, 1)),
    Window((3, 3), (2, 2), (1, 1, 0, 0)),
    K1,
    Window((2, 3), (3, 1), (0, 2, 0, 1)),
    Window((3, 2), (1, 2), (2, 0, 1, -1), (2, 1)),
    Window((1, 2), (4, 3), (0, 0, -2, -1), (1, 3)),
)


LAYOUTS = (*cases.POINTWISE_LAYOUTS, "over", "ring")


def deconv(
    sweep: Sweep, channels: int, outputs: int, window: Window, groups: int, kinds, layout: str, zero: int = 0
) -> harness.Case:
    kernel, stride, pads, dilation = window
    kind = NumType(kinds[0].bits, kinds[0].signed, kinds[0].is_float, 1.0, zero)
    shape, op = (1, channels, 4, 5), Deconv(stride, pads, dilation, groups)
    weights = sweep.weights((outputs, channels // groups, *kernel), kind)
    x = sweep.stored(shape, kind)
    node = sweep.linear(weights, x, kind, kinds[1])
    if zero:
        flat = np.abs(weights.astype(np.int64)).reshape(outputs, -1).sum(axis=1).max()
        node["bound"] += int(flat) * zero
    result = op.output_shapes([shape], QuantNode("probe", op, ["x"], ["y"], node["form"]))[0]
    graph = sweep.graph(op, {"x": (shape, kind)}, (result, kinds[1]), **node)
    title = f"deconv {shape[1:]}->{result[1:]} k{kernel} s{stride} p{pads} d{dilation} g{groups}"
    safe_distances = (kernel[0] - 1) * dilation[0]
    return sweep.case(title, graph, {"x": x}, layout, dead=lambda y: -((safe_distances - y - pads[0]) // stride[0]))


def deconvolutions(sweep: Sweep) -> Iterator[harness.Case]:
    placed = cycle(LAYOUTS)
    for i, (channels, window) in enumerate(zip((*CHANNELS, *CHANNELS), cycle(WINDOWS))):
        groups, outputs = 1, int(sweep.rng.choice([*CHANNELS, 33, 70]))
        if i % 3 == 1:
            groups = outputs = channels
        elif i % 6 == 2:
            groups = next(g for g in (4, 2, 1) if channels % g == 0)
            outputs = groups * int(sweep.rng.integers(1, 7))
        zero = int(sweep.rng.integers(1, 100)) if i % 4 == 3 else 0
        yield deconv(sweep, channels, outputs, window, groups, next(sweep.kinds), next(placed), zero)
    yield deconv(sweep, 70, 70, WINDOWS[1], 70, (U8, U8), "apart")
    for window, kind, groups in zip(WINDOWS, cycle((FLOAT32, FLOAT64)), cycle((1, 8, 2))):
        yield deconv(sweep, 8, 8, window, groups, (kind, kind), next(placed))


def resize(sweep: Sweep, op: Resize, shape, kind: NumType, layout: str) -> harness.Case:
    result, node = op.output_shapes([shape], QuantNode("probe", op, ["x"], ["y"]))[0], {}
    output = kind
    if kind.is_float:
        node["activation"] = sweep.rng.choice([None, Clip(0.0), LeakyRectifier(0.1)])
    else:
        node["clamp"] = (kind.qmin // 2, kind.qmax // 2 + 3) if sweep.rng.integers(2) else (kind.qmin, kind.qmax)
        if op.mode == "Bilinear":
            output = replace(kind, scale=kind.scale * float(sweep.rng.uniform(0.8, 2)))
            kind, output = (replace(one, zero_point=int(sweep.rng.integers(one.qmin, one.qmax))) for one in (kind, output))
            types = LayerTypes([kind], output, QuantOptions(rescaling=next(sweep.modes)), input_shape=shape)
            made = prequantize_layer(Node("y", op, ["x"], ["y"]), types)
            node.update(bound=made.bound, rescale=made.rescale)
    x = sweep.stored(shape, kind)
    graph = sweep.graph(op, {"x": (shape, kind)}, (result, output), **node)
    first = op.taps(shape[2], op.size[0])[0]
    return sweep.case(f"{op} of {shape[1:]}", graph, {"x": x}, layout, dead=lambda y: int(first[y]))


def resizes(sweep: Sweep) -> Iterator[harness.Case]:
    placed, kinds = cycle(LAYOUTS), cycle((U8, S8, U16, FLOAT32, S16, FLOAT64))
    sizes = [
        ((5, 7), (10, 14)),
        ((5, 7), (11, 9)),
        ((8, 6), (4, 3)),
        ((3, 4), (1, 1)),
        ((1, 1), (3, 5)),
        ((6, 5), (4, 20)),
        ((7, 3), (7, 3)),
    ]
    for (size, target), channels in zip(sizes, cycle(CHANNELS)):
        shape = (1, channels, *size)
        yield resize(sweep, Resize(target), shape, next(kinds), next(placed))
        for coordinates in ("HalfPixel", "AlignCorners", "Asymmetric"):
            yield resize(sweep, Resize(target, "Bilinear", coordinates), shape, next(kinds), next(placed))


def unpool(sweep: Sweep, op: Unpool, size, channels: int, kind: NumType, pooled: NumType, layout: str) -> harness.Case:
    shape = (
        1,
        channels,
        *((n + p + q - k) // s + 1 for n, k, s, p, q in zip(size, op.kernel, op.stride, op.pads[:2], op.pads[2:], strict=True)),
    )
    z = (1, channels, *size)
    result = op.output_shapes([shape, z], QuantNode("probe", op, ["x", "z"], ["y"]))[0]
    node = {} if kind.is_float else {"clamp": (kind.qmin // 2, kind.qmax)}
    graph = sweep.graph(op, {"x": (shape, kind), "z": (z, pooled)}, (result, kind), **node)
    few = NumType(pooled.bits, pooled.signed, pooled.is_float)
    values = sweep.stored(z, few, "random")
    values = np.round(values * 2) if kind.is_float else values // 64 * 64  # with ties
    return sweep.case(
        f"{op} of {shape[1:]}", graph, {"x": sweep.stored(shape, kind, "random"), "z": values.astype(few.dtype)}, layout
    )


def unpools(sweep: Sweep) -> list[harness.Case]:
    placed = cycle(cases.POINTWISE_LAYOUTS)
    apart = [
        (Unpool((2, 2), (2, 2)), (6, 8)),
        (Unpool((2, 2), (2, 2)), (7, 5)),
        (Unpool((2, 3), (3, 4)), (8, 11)),
        (Unpool((2, 2), (2, 2), (1, 1, 1, 1)), (6, 7)),
        (Unpool((3, 1), (3, 1)), (6, 4)),
    ]
    kinds = [(U8, U8), (S8, U8), (NumType(8, False, zero_point=7), S8), (S16, S16), (U16, S16)]
    made = [
        unpool(sweep, op, size, c, *pair, next(placed))
        for (op, size), pair, c in zip(apart, kinds, CHANNELS[: len(apart)], strict=True)
    ]
    overlapping = [
        (Unpool((3, 3), (2, 2)), (7, 9)),
        (Unpool((3, 3), (1, 1), (1, 1, 1, 1)), (5, 4)),
        (Unpool((2, 2), (2, 2)), (6, 4)),
    ]
    return made + [
        unpool(sweep, op, size, 5, kind, kind, next(placed))
        for (op, size), kind in zip(overlapping, (FLOAT32, FLOAT64, FLOAT32), strict=True)
    ]


def float_layers(sweep: Sweep) -> list[harness.Case]:
    made = []
    for kind, shape, layout in zip(
        (FLOAT32, FLOAT64, FLOAT32), ((1, 7, 3, 4), (1, 12), (1, 4, 2, 5)), ("apart", "strided", "wrapped"), strict=True
    ):
        for op in (LRN(), LRN(4, 0.5, 0.5, 1.0), LRN(3, 2.0, 1.25, 0.5)):
            made.append(sweep.move(op, shape, kind, layout))
        made += [sweep.move(lp_normalize(shape[1], power), shape, kind, "apart") for power in (1, 2)]
    zeros = made[4]
    zeros.inputs["x"][:] = 0
    steps = [Step(0.1), Step(0.2, 3.0, 0.0), Step(-0.3, None, 0.0), Step(0.4, 0.0, None)]
    made += [
        sweep.activation(step, (1, 13, 5, 3), (kind, kind), "strided")
        for step, kind in zip(steps, (FLOAT32, FLOAT64, FLOAT32, FLOAT32), strict=True)
    ]
    return made


def resampling_cases(seed: int) -> list[harness.Case]:
    sweep = Sweep(seed)
    return [
        *deconvolutions(sweep),
        *resizes(sweep),
        *unpools(sweep),
        *float_layers(sweep),
        sweep.activation(Step(0.5), (1, 7, 3, 3), (S8, U8), "apart"),
    ]
