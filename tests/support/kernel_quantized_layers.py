"""Layers of networks that come quantized, for the sweeps of kernels."""

from collections.abc import Iterator
from itertools import cycle

import numpy as np

from n2d2py.arithmetic import FloatRescale, FractionRescale, NumType, StepRescale
from n2d2py.contracts.functions import Tanh
from n2d2py.graph import Dequantized, QuantNode, Real, Table, Weighted
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_cases import CHANNELS, Sweep
from support.kernel_rescale import doubling
from support.ops import Activation, Affine, Conv, Deconv, ElemWise, Fc, Pool

TYPES = (
    NumType(8, True, full=True),
    NumType(8, False, zero_point=77),
    NumType(8, True, zero_point=-3, full=True),
    NumType(8, False, zero_point=255),
    NumType(16, True, full=True),
    NumType(8, False, zero_point=1),
)


WIDE = NumType(32, True, full=True, scale=2.0**-20)
"""What results hold that a file does not round; they stay below 2^29."""


def weighted(sweep: Sweep, op, shape, weights_shape, kinds, layout: str, fraction: str) -> harness.Case:
    """A layer of weighted sums whose bias holds the zero point of its input."""
    kind, output = kinds
    weights = sweep.rng.integers(-128, 128, weights_shape).astype(np.int8)
    flat = weights.reshape(len(weights), -1).astype(np.int64)
    bias = sweep.rng.integers(-3000, 3000, len(weights)) - (0 if isinstance(op, Deconv) else kind.zero_point * flat.sum(1))
    safe_distances = np.abs(flat).sum(axis=1) * (max(kind.qmax, -kind.qmin) + abs(kind.zero_point))
    bound = int((safe_distances + np.abs(bias)).max())
    factors = sweep.rng.uniform(0.3, 2.0, len(weights)) * output.qmax / np.sqrt(safe_distances.max() * 255.0)
    if output is WIDE:
        factors = sweep.rng.uniform(0.3, 1.0, len(weights)) * 2**29 / bound
    rescale = FloatRescale(factors)
    if fraction == "bias":
        rescale = FractionRescale(factors, sweep.rng.uniform(-0.5, 0.5, len(weights)))
    elif fraction and output is not WIDE:
        rescale = doubling(factors, fraction == "twice")
    low = int(sweep.rng.choice([output.qmin, output.zero_point]))
    probe = QuantNode("probe", op, ["x"], ["y"], Real({"weights": weights}))
    result = op.output_shapes([shape], probe)[0]
    graph = sweep.graph(
        op,
        {"x": (shape, kind)},
        (result, output),
        rescale=rescale,
        clamp=(low, output.qmax),
        bound=bound,
        form=Weighted(weights, bias.astype(np.int32)),
    )
    stride, top = (op.stride[0], op.pads[0]) if isinstance(op, Conv) else (1, 0)
    title = f"{op.kind} {shape[1:]}->{result[1:]} {kind.name} {kind.zero_point} -> {output.name} {output.zero_point}"
    return sweep.case(title, graph, {"x": sweep.stored(shape, kind)}, layout, stride, top)


def weighted_cases(sweep: Sweep) -> Iterator[harness.Case]:
    kinds = cycle([(a, b) for a in TYPES for b in (*TYPES[::-1], WIDE)])
    windows, fraction = cycle(cases.WINDOWS), cycle(("", "twice", "once", "twice", "bias"))
    placed, pointwise = cycle(cases.LAYOUTS), cycle(cases.POINTWISE_LAYOUTS)
    for channels in (*CHANNELS, 48, 64):
        kernel, *form = next(windows)
        shape = (1, channels, 9, 8)
        outputs = int(sweep.rng.choice([*CHANNELS, 33, 50]))
        for op, sizes in ((Conv(*form), (outputs, channels)), (Conv(*form, channels), (channels, 1))):
            yield weighted(sweep, op, shape, (*sizes, *kernel), next(kinds), next(placed), next(fraction))
        yield weighted(sweep, Fc(), (1, channels, 3, 2), (outputs, channels * 6), next(kinds), "apart", next(fraction))
        yield weighted(sweep, Affine(), (1, channels, 4, 5), (channels,), next(kinds), next(pointwise), next(fraction))
        yield weighted(
            sweep, Deconv((2, 2)), (1, channels, 3, 4), (outputs, channels, 2, 3), next(kinds), next(pointwise), next(fraction)
        )


def real_sum(sweep: Sweep, operation: str, shape, count: int, layout: str) -> harness.Case:
    kinds = [TYPES[int(i)] for i in sweep.rng.integers(0, len(TYPES), count)]
    output = TYPES[int(sweep.rng.integers(len(TYPES)))]
    scales = sweep.rng.uniform(0.01, 0.2, count).astype(np.float32) * (
        sweep.rng.choice([1, -1], count) if operation == "Sum" else 1
    )
    if sweep.rng.integers(2):
        kinds[-1], scales[-1] = WIDE, np.copysign(np.float32(WIDE.scale), scales[-1])
    inputs = {f"x{i}" if i else "x": (shape, kind) for i, kind in enumerate(kinds)}
    step = np.float32(np.abs(scales).sum() * 100 / output.qmax if operation != "Prod" else np.prod(np.abs(scales) * 60) / 60)
    graph = sweep.graph(
        ElemWise(operation),
        inputs,
        (shape, output),
        rescale=StepRescale(step),
        clamp=(output.qmin, output.qmax),
        form=Dequantized(scales.astype(np.float32)),
    )
    values = {name: sweep.stored(shape, kind, "random") for name, (_, kind) in inputs.items()}
    return sweep.case(f"real {operation} of {count} {shape[1:]}", graph, values, layout)


def mean(sweep: Sweep, op: Pool, shape, layout: str) -> harness.Case:
    kind, output = (TYPES[int(i)] for i in sweep.rng.integers(0, len(TYPES), 2))
    result = op.output_shapes([shape], QuantNode("probe", op, ["x"], ["y"]))[0]
    step = np.float32(0.0173) if output.bits == 8 else np.float32(0.0001)
    graph = sweep.graph(
        op,
        {"x": (shape, kind)},
        (result, output),
        rescale=StepRescale(step),
        clamp=(output.qmin, output.qmax),
        form=Dequantized(np.array([step / 4], np.float32)),
    )
    title = f"mean {shape[1:]} k{op.kernel} s{op.stride} p{op.pads}"
    return sweep.case(title, graph, {"x": sweep.stored(shape, kind, "random")}, layout, op.stride[0], op.pads[0])


def real_cases(sweep: Sweep) -> Iterator[harness.Case]:
    placed, windows = cycle(cases.POINTWISE_LAYOUTS), cycle(cases.LAYOUTS)
    for channels, operation in zip((*CHANNELS, 70), cycle(("Sum", "Prod", "Max", "Sum", "Min"))):
        yield real_sum(sweep, operation, (1, channels, 5, 7), int(sweep.rng.integers(1, 4)), next(placed))
        yield mean(sweep, Pool("Average", (5, 7)), (1, channels, 5, 7), "apart")
        yield mean(sweep, Pool("Average", (3, 2), (2, 2), (1, 0, 1, 1), channels % 2 == 0), (1, channels, 8, 9), next(windows))
        yield mean(sweep, Pool("Average", (3, 3), (3, 3)), (1, channels, 9, 9), next(windows))


def table_cases(sweep: Sweep) -> Iterator[harness.Case]:
    """Functions by table, from every type to others, wider ones among them; every stored value occurs."""
    for kind, output, layout in zip(TYPES, (*TYPES[1:], WIDE), cycle(cases.POINTWISE_LAYOUTS)):
        shape = (1, 3, 8, 32)
        table = sweep.stored((2**kind.bits,), output, "random")
        graph = sweep.graph(Activation(Tanh()), {"x": (shape, kind)}, (shape, output), form=Table(table))
        values = np.resize(np.arange(kind.qmin, kind.qmax + 1), shape).astype(kind.dtype)
        yield sweep.case(f"table {kind.name} -> {output.name}", graph, {"x": values}, layout)


def length_cases(sweep: Sweep) -> list[harness.Case]:
    """Roots of sums of squares."""
    placed = cycle(cases.POINTWISE_LAYOUTS)
    shapes = [(1, channels, 5, 7) for channels in (*CHANNELS, 70)]
    return [real_sum(sweep, "EuclideanSum", shape, 1 + number % 3, next(placed)) for number, shape in enumerate(shapes)]


def quantized_cases(seed: int) -> list[harness.Case]:
    sweep = Sweep(seed)
    return [*weighted_cases(sweep), *real_cases(sweep), *table_cases(sweep), *length_cases(sweep)]
