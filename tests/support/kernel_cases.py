"""The sweep: one-layer networks of every operator over shapes, types, rescales, values and layouts. Seeded."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, product
from typing import NamedTuple

import numpy as np

from n2d2py.arithmetic import FLOAT32, FLOAT64, RESCALING_MODES, NumType, make_rescale
from n2d2py.contracts.functions import Clip, LeakyRectifier, Logistic, Softplus, Swish, Tanh
from n2d2py.graph import Aligned, QuantGraph, QuantNode, QuantTensor, Real, Table, Weighted
from n2d2py.graph.forms import form_of
from n2d2py.memory.plan import Plane
from n2d2py.operators.packed_channels import PACKED
from support import kernel_layouts as layouts
from support import ops
from support.kernel_harness import Case

CHANNELS = (1, 3, 4, 7, 8, 13, 16, 24, 32)
U8, S8, U16, S16 = NumType(8, False), NumType(8), NumType(16, False), NumType(16)
INTEGERS = (U8, S8, U16, S16)


class Window(NamedTuple):
    """Kernel, stride, pads (top, left, bottom, right) and dilation of a convolution or pool; each as (lines, columns)."""

    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)


K1, K3 = Window((1, 1)), Window((3, 3), pads=(1, 1, 1, 1))


class Sweep:
    """Draws cases from a seeded generator; every list below is cycled through, so that all of it occurs."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.modes = cycle(RESCALING_MODES)
        self.kinds = cycle([(U8, U8), (S8, U8), (U8, S8), (S8, S8), (U16, S16), (S16, U16), (S8, S16)])
        self.values = cycle(("random", "random", "high", "low", "random"))
        self.per_output = cycle((True, False, True))
        self.channels = cycle(CHANNELS)

    def stored(self, shape, kind: NumType, pattern: str | None = None) -> np.ndarray:
        """Values of a type: random ones, or all at one end of the range."""
        if kind.is_float:
            return self.rng.normal(size=shape).astype(kind.dtype)
        pattern = pattern or next(self.values)
        if pattern != "random":
            return np.full(shape, kind.qmax if pattern == "high" else kind.qmin, kind.dtype)
        return self.rng.integers(kind.qmin, kind.qmax, shape, endpoint=True).astype(kind.dtype)

    def weights(self, shape, kind: NumType) -> np.ndarray:
        """Weights of a layer whose input has type `kind`; some all at an end of the range."""
        if kind.is_float:
            return self.rng.normal(size=shape).astype(kind.dtype)
        signed = NumType(kind.bits)
        return self.stored(shape, signed, self.rng.choice(["random", "random", "random", "low"]))

    def graph(self, op, inputs: dict, output, **node) -> QuantGraph:
        """A network of one layer; `inputs` and `output` are (shape, type)."""
        graph = QuantGraph("sweep", 8)
        for name, (shape, kind) in [*inputs.items(), ("y", output)]:
            graph.tensors[name] = QuantTensor(name, shape, kind)
        graph.inputs, graph.outputs = list(inputs), ["y"]
        form = node.pop("form", None) or form_of({}, not output[1].is_float, node.get("rescale") is not None)
        graph.nodes.append(QuantNode("layer", op, list(inputs), ["y"], form, **node))
        return graph

    def requantize(self, bound: int, kind: NumType, count: int, largest: float | None = None) -> dict:
        """rescale, clamp and bound of an integer layer: outputs use the range, some saturate."""
        top = kind.qmax * 1.3 / max(1.0, largest if largest is not None else bound)
        factors = top * self.rng.uniform(0.3, 1.0, count)
        rescale, _ = make_rescale(next(self.modes), factors, acc_bits=min(55, max(32, bound.bit_length() + 1)))
        low = self.rng.choice([kind.qmin, 0, kind.qmin // 2])
        high = self.rng.choice([kind.qmax, kind.qmax, kind.qmax // 3])
        return {"rescale": rescale, "clamp": (int(low), int(high)), "bound": int(bound)}

    def linear(self, weights: np.ndarray, x: np.ndarray, kind: NumType, output: NumType) -> dict:
        """form and rescale of a layer of weighted sums, or its floating-point form."""
        if kind.is_float:
            return {
                "form": Real({"weights": weights, "bias": self.stored((len(weights),), kind)}),
                "activation": self.rng.choice([None, Clip(0.0), Clip(-0.5, 0.75), LeakyRectifier(0.1)]),
            }
        flat = np.abs(weights.astype(np.int64)).reshape(len(weights), -1).sum(axis=1)
        safe_distances = int(flat.max()) * max(abs(kind.qmin), kind.qmax)
        bias = self.rng.integers(-safe_distances // 4 - 1, safe_distances // 4 + 1, len(weights))
        bound = safe_distances + int(np.abs(bias).max())
        count = len(weights) if next(self.per_output) else 1
        typical = max(1.0, safe_distances / 3)
        return {"form": Weighted(weights, bias), **self.requantize(bound, output, count, typical)}

    def place(self, layout: str, tensors: dict, dead: layouts.Dead) -> dict:
        """Planes of the tensors in one of the layouts."""
        if layout in ("over", "ring"):
            place = layouts.before_input if layout == "over" else layouts.ring
            return place(tensors["x"], tensors["y"], dead)
        return {
            "apart": layouts.apart,
            "wrapped": layouts.wrapped,
            "columns": layouts.columns,
            "strided": lambda t: layouts.apart(t, gap=3),
            "strided wrapped": lambda t: layouts.wrapped(t, gap=5),
        }[layout](tensors)

    def case(
        self,
        title: str,
        graph: QuantGraph,
        inputs: dict,
        layout: str,
        stride: int = 1,
        top: int = 0,
        dead: layouts.Dead | None = None,
    ) -> Case:
        """The finished case; `dead` where it is no window that moves by `stride` from `top` lines above the input."""
        tensors = {name: (t.shape, t.type) for name, t in graph.tensors.items()}
        planes = self.place(layout, tensors, dead or layouts.window_dead(stride, top))
        spans = [(begin, end) for begin, end in planes["y"].intervals()]
        inplace = any(
            begin < other_end and other < end
            for name in inputs
            for begin, end in planes[name].intervals()
            for other, other_end in spans
        )
        return Case(f"{title} {layout}", graph, planes, inputs, inplace)

    # ---- operators ------------------------------------------------------------------------
    def conv(
        self,
        shape,
        outputs: int,
        window: Window,
        kinds,
        layout="apart",
        *,
        groups: int = 1,
        zero: int = 0,
        weight_bits: int = 0,
    ) -> Case:
        """`weight_bits`: of the weights, where these have not as many as the inputs."""
        (kernel, stride, pads, dilation), (kind, out_kind) = window, kinds
        kind = NumType(kind.bits, kind.signed, kind.is_float, 1.0, zero)
        op = ops.Conv(stride, pads, dilation, groups)
        weights = self.weights(
            (outputs, shape[1] // groups, *kernel), NumType(8 if weight_bits == 8 else 16) if weight_bits else kind
        )
        if weight_bits > 8:
            weights >>= 16 - weight_bits
        x = self.stored(shape, kind)
        node = self.linear(weights, x, kind, out_kind)
        probe = QuantNode("probe", op, ["x"], ["y"], node["form"])
        result = op.output_shapes([shape], probe)[0]
        graph = self.graph(op, {"x": (shape, kind)}, (result, out_kind), **node)
        title = f"conv {shape[1:]}->{result[1:]} k{kernel} s{stride} p{pads} d{dilation} g{groups}"
        return self.case(title, graph, {"x": x}, layout, stride[0], pads[0])

    def depthwise(self, shape, window: Window, kinds, layout="apart", **form: int) -> Case:
        """A convolution of each channel by itself."""
        return self.conv(shape, shape[1], window, kinds, layout, groups=shape[1], **form)

    def fc(self, shape, outputs: int, kinds, layout) -> Case:
        kind, out_kind = kinds
        weights = self.weights((outputs, int(np.prod(shape[1:]))), kind)
        x = self.stored(shape, kind)
        node = self.linear(weights, x, kind, out_kind)
        graph = self.graph(ops.Fc(), {"x": (shape, kind)}, ((1, outputs), out_kind), **node)
        return self.case(f"fc {shape[1:]}->{outputs}", graph, {"x": x}, layout)

    def pool(self, mode, shape, window: Window, count_pad: bool, kinds, layout="apart", *, zero: int = 0) -> Case:
        kernel, stride, pads, _ = window
        kind, out_kind = kinds if mode == "Average" else (kinds[0], kinds[0])
        kind = NumType(kind.bits, kind.signed, kind.is_float, 1.0, zero)
        out_kind = kind if mode == "Max" else out_kind
        op = ops.Pool(mode, kernel, stride, pads, count_pad)
        result = op.output_shapes([shape], QuantNode("probe", op, ["x"], ["y"]))[0]
        taps = kernel[0] * kernel[1]
        node = {}
        if mode == "Max" and not kind.is_float:
            node = {"clamp": (kind.qmin // 2, kind.qmax // 2 + 3)}
        elif not kind.is_float:
            safe_distances = max(kind.qmax, abs(kind.qmin)) + abs(zero)
            counts = np.unique(op.window_counts(shape[2:]))
            node = self.requantize(taps * safe_distances, out_kind, 1, taps * safe_distances)
            if counts.size > 1 or next(self.per_output):
                factors = 1.2 * out_kind.qmax / safe_distances / np.arange(1, taps + 1)
                node["rescale"] = make_rescale(next(self.modes), factors)[0]
        else:
            node = {"activation": self.rng.choice([None, Clip(0.0)])}
        x = self.stored(shape, kind)
        graph = self.graph(op, {"x": (shape, kind)}, (result, out_kind), **node)
        title = f"pool {mode} {shape[1:]} k{kernel} s{stride} p{pads} count_pad {count_pad}"
        return self.case(title, graph, {"x": x}, layout, stride[0], pads[0])

    def affine(self, shape, kinds, layout) -> Case:
        kind, out_kind = kinds
        x, weights = self.stored(shape, kind), self.weights((shape[1],), kind)
        graph = self.graph(ops.Affine(), {"x": (shape, kind)}, (shape, out_kind), **self.linear(weights, x, kind, out_kind))
        return self.case(f"affine {shape[1:]}", graph, {"x": x}, layout)

    def elemwise(self, operation, shape, count: int, kinds, layout) -> Case:
        inputs = {f"x{i}" if i else "x": (shape, kinds[i % len(kinds)]) for i in range(count)}
        out_kind = kinds[-1]
        if out_kind.is_float:
            weights = () if operation in ("Max", "Prod") else tuple(self.rng.normal(size=count).tolist())
            shifts = () if operation in ("Max", "Prod", "AbsSum") else tuple(self.rng.normal(size=count).tolist())
            op, node = ops.ElemWise(operation, weights, shifts), {"activation": self.rng.choice([None, Clip(0.0)])}
        else:
            op = ops.ElemWise(operation)
            node = self._integer_elemwise(operation, [k for _, k in inputs.values()], out_kind, shape)
        graph = self.graph(op, inputs, (shape, out_kind), **node)
        values = {name: self.stored(shape, kind) for name, (_, kind) in inputs.items()}
        return self.case(f"elemwise {operation} {count} x {shape[1:]}", graph, values, layout)

    def _integer_elemwise(self, operation: str, kinds: list[NumType], out_kind: NumType, shape) -> dict:
        multipliers = self.rng.integers(1, 2**12, len(kinds))
        safe_distances = [int(m) * max(kind.qmax, -kind.qmin) for m, kind in zip(multipliers, kinds, strict=True)]
        bound = int(np.prod([max(kind.qmax, -kind.qmin) for kind in kinds])) if operation == "Prod" else sum(safe_distances)
        offset = int(self.rng.integers(-bound // 8 - 1, bound // 8 + 1)) if operation == "Sum" else 0
        count = shape[1] if self.rng.integers(4) == 0 else 1
        return {"form": Aligned(multipliers, np.array([offset])), **self.requantize(bound + abs(offset), out_kind, count)}

    def repeated(self, operation: str, shape, other, kinds, layout: str, swap: bool) -> Case:
        """Two operands, the one with axes of length 1 first or second."""
        kind, out_kind = kinds
        shapes = (other, shape) if swap else (shape, other)
        inputs = {name: (s, kind) for name, s in zip(("x", "x1"), shapes, strict=True)}
        node = {} if kind.is_float else self._integer_elemwise(operation, [kind, kind], out_kind, shape)
        graph = self.graph(ops.ElemWise(operation), inputs, (shape, out_kind), **node)
        values = {name: self.stored(s, k) for name, (s, k) in inputs.items()}
        return self.case(f"{operation} of {shapes[0][1:]} and {shapes[1][1:]}", graph, values, layout)

    def activation(self, function, shape, kinds, layout) -> Case:
        kind, out_kind = kinds
        form = Real() if kind.is_float else Table(self.stored((kind.qmax - kind.qmin + 1,), out_kind, "random"))
        graph = self.graph(ops.Activation(function), {"x": (shape, kind)}, (shape, out_kind), form=form)
        x = self.stored(shape, kind, "random")
        return self.case(f"activation {function.kind} {shape[1:]}", graph, {"x": x}, layout)

    def concat(self, parts, size, kinds, out_kind, layout, rescaled: bool) -> Case:
        inputs = {f"x{i}" if i else "x": ((1, c, *size), kinds[i % len(kinds)]) for i, c in enumerate(parts)}
        node = {}
        if rescaled:
            safe_distances = max(max(k.qmax, -k.qmin) for k in kinds)
            node = self.requantize(safe_distances, out_kind, len(parts))
        graph = self.graph(ops.Concat(), inputs, ((1, sum(parts), *size), out_kind), **node)
        values = {name: self.stored(shape, kind) for name, (shape, kind) in inputs.items()}
        return self.case(f"concat {parts} {size}", graph, values, layout)

    def move(self, op, shape, kind, layout, activation=None, top: int = 0) -> Case:
        result = op.output_shapes([shape], QuantNode("probe", op, ["x"], ["y"]))[0]
        graph = self.graph(op, {"x": (shape, kind)}, (result, kind), activation=activation)
        x = self.stored(shape, kind, "random")
        return self.case(f"{op.kind} {shape[1:]}->{result[1:]}", graph, {"x": x}, layout, 1, top)

    def packed(self, shape, bits: int, low: int, layout: str, unpacks: bool) -> Case:
        """Channels packed into bytes, or unpacked."""
        kind = NumType(8, low < 0, least=low, most=low + 2**bits - 1)
        pack = ops.PackChannels(bits, low)
        narrow = pack.output_shapes([shape], None)[0]
        op = ops.UnpackChannels(bits, low, shape[1]) if unpacks else pack
        forms = [(narrow, PACKED), (shape, kind)] if unpacks else [(shape, kind), (narrow, PACKED)]
        graph = self.graph(op, {"x": forms[0]}, forms[1])
        x = self.stored(*forms[0])
        return self.case(f"{op.kind} {bits} bits from {low} on {shape[1:]}", graph, {"x": x}, layout, 1, 0)


LAYOUTS = ("apart", "strided", "wrapped", "over", "ring", "strided wrapped", "columns")
POINTWISE_LAYOUTS = ("apart", "strided", "wrapped", "strided wrapped", "columns")
WINDOWS = (
    K1,
    K3,
    Window((3, 3), (2, 2), (0, 0, 1, 1)),
    Window((3, 3), (2, 2), (1, 1, 1, 1)),
    Window((1, 1), (2, 2)),
    Window((5, 3), (1, 2), (2, 1, 2, 0)),
    Window((3, 3), (1, 1), (2, 2, 2, 2), (2, 2)),
    Window((2, 4), (2, 1), (0, 3, 1, 0), (1, 2)),
    Window((1, 5), (1, 1), (0, 2, 0, 2)),
    Window((4, 1), (3, 1), (3, 0, 0, 0)),
    Window((1, 1), (1, 1), (1, 0, 0, 1)),
)


def convolutions(sweep: Sweep, count: int) -> Iterator[Case]:
    """Dense, grouped and depthwise convolutions of integers."""
    sizes, windows, placed = cycle([(5, 5), (7, 5), (6, 9), (5, 8), (11, 7)]), cycle(WINDOWS), cycle(LAYOUTS)
    for i in range(count):
        c, size, window = next(sweep.channels), next(sizes), next(windows)
        kinds, layout = next(sweep.kinds), next(placed)
        groups, outputs = 1, int(sweep.rng.choice([*CHANNELS, 33, 70]))
        if i % 3 == 1:
            groups = outputs = c
        elif i % 6 == 2:
            groups = next(g for g in (4, 2, 1) if c % g == 0)
            outputs = groups * int(sweep.rng.integers(1, 7))
        zero = int(sweep.rng.integers(1, 100)) if i % 4 == 3 else 0
        yield sweep.conv((1, c, *size), outputs, window, kinds, layout, groups=groups, zero=zero)
    u8 = (U8, U8)
    yield from [
        sweep.conv((1, 3, 1, 1), 5, K1, u8),
        sweep.depthwise((1, 4, 1, 1), K3, u8),
        sweep.conv((1, 1, 1, 9), 7, Window((1, 3), (1, 2)), (S8, S8), "strided"),
        sweep.depthwise((1, 96, 5, 5), K3, u8),
        sweep.conv((1, 8, 6, 6), 24, Window((3, 3)), (S8, S8), "strided", groups=8),
        sweep.conv((1, 32, 5, 5), 40, Window((3, 3), pads=(-1, 0, 0, -1)), u8),
        sweep.conv((1, 7, 5, 5), 7, Window((1, 1), (2, 1), (0, -1, -2, 0)), (S8, U8)),
        sweep.conv((1, 32, 5, 5), 40, Window((3, 3)), u8, "over"),
    ]


def fully_connected(sweep: Sweep) -> list[Case]:
    """Fully connected layers over vectors and over images in every layout."""
    shapes = [(1, 1), (1, 37), (1, 64), (1, 7, 3, 5), (1, 16, 5, 1), (1, 3, 4, 4), (1, 13, 5)]
    return [
        sweep.fc(shape, outputs, next(sweep.kinds), layout)
        for shape, outputs, layout in zip(shapes * 3, cycle((1, 10, 4, 33, 17)), cycle(POINTWISE_LAYOUTS))
    ]


def pools(sweep: Sweep) -> Iterator[Case]:
    """Max and average pools; global ones; windows partly outside the input."""
    windows = [
        Window((2, 2), (2, 2)),
        Window((3, 3), (2, 2), (1, 1, 1, 1)),
        Window((3, 2), (1, 2), (0, 1, 1, 0)),
        Window((5, 5), pads=(2, 2, 2, 2)),
        Window((1, 3), pads=(0, 0, 0, 2)),
    ]
    placed, channels = cycle(LAYOUTS), cycle((*CHANNELS, 70))
    for mode in ("Max", "Average"):
        for i in range(14):
            yield sweep.pool(
                mode,
                (1, next(channels), *((5, 5), (7, 6), (9, 5))[i % 3]),
                windows[i % len(windows)],
                i % 2 == 0,
                next(sweep.kinds),
                next(placed),
                zero=int(sweep.rng.integers(1, 90)) if mode == "Average" and i % 3 == 2 else 0,
            )
        yield sweep.pool(mode, (1, 24, 7, 7), Window((7, 7)), True, (U8, U8))
        yield sweep.pool(mode, (1, 13, 5, 3), Window((5, 3)), False, (S16, S16), "wrapped")
    yield sweep.pool("Average", (1, 5, 4, 6), Window((1, 2), pads=(0, 0, 0, 1)), False, (U8, U8))


def in_place(case: Case, target: str = "x", shift: int = 0) -> Case:
    """The same pointwise case with the output over an input, `shift` bytes before it."""
    distance = max(0, shift - case.planes[target].offset)
    planes = {name: _moved(plane, plane, distance) for name, plane in case.planes.items()}
    planes["y"] = _moved(planes["y"], planes[target], -shift)
    return Case(f"{case.title}, over {target} by {shift}", case.graph, planes, case.inputs, True)


def _moved(plane: Plane, start: Plane, distance: int) -> Plane:
    """The plane with dense lines, where `start` lies, `distance` bytes later."""
    wrap_offset = 0 if start.limit is None else start.wrap_offset + distance
    return replace(plane, offset=start.offset + distance, limit=start.limit, wrap_offset=wrap_offset, pitch=None)


def pointwise(sweep: Sweep) -> Iterator[Case]:
    """Element-wise, affine, table and copy layers, apart and in place."""
    placed = cycle(POINTWISE_LAYOUTS)
    shapes = [(1, c, h, w) for c, (h, w) in zip(CHANNELS, cycle([(5, 5), (1, 1), (7, 3), (3, 11)]))]
    kinds = [(U8, U8), (S8, U8, U8), (U8, S8), (S16, S16), (U8, S8, S16), (U16, S16)]
    for i, operation in enumerate(("Sum", "AbsSum", "Max", "Prod") * 4):
        chosen = kinds[i % len(kinds)] if operation != "Prod" else kinds[i % 3]
        yield sweep.elemwise(operation, shapes[i % 9], (2, 3, 1)[i % 3] if i % 3 < 2 or i > 6 else 2, chosen, next(placed))
    yield in_place(sweep.elemwise("Sum", (1, 13, 5, 5), 2, (U8, U8), "apart"))
    yield in_place(sweep.elemwise("Sum", (1, 32, 7, 5), 2, (S8, S8), "strided"), "x1")
    yield in_place(sweep.elemwise("Max", (1, 16, 5, 9), 3, (U8, S8), "wrapped"))
    yield in_place(sweep.elemwise("Sum", (1, 8, 5, 9), 2, (S16, S16), "apart"), "x", 6)
    yield sweep.elemwise("Sum", (1, 19), 2, (U8, U8), "apart")
    yield sweep.elemwise("Sum", (1, 16, 3, 8), 2, (U8, S8), "apart")  # lines of whole tiles of 64
    yield sweep.affine((1, 64, 2, 2), (U8, U8), "apart")
    for shape in [*shapes, (1, 70, 3, 3), (1, 12)]:
        yield sweep.affine(shape, next(sweep.kinds), next(placed))
    yield in_place(sweep.affine((1, 24, 5, 5), (U8, S8), "apart"), "x", 3)
    for kinds_, shape in zip([(U8, U8), (S8, U8), (U8, S8), (S8, S16), (U16, S16), (S16, U8)], shapes, strict=False):
        yield sweep.activation(Swish(), shape, kinds_, next(placed))
    yield in_place(sweep.activation(Logistic(), (1, 13, 5, 5), (S8, U8), "strided"))
    yield in_place(sweep.activation(Tanh(), (1, 32, 5, 5), (U8, U8), "apart"), "x", 17)
    yield sweep.move(ops.Identity(), (1, 7, 5, 3), S8, "strided")
    yield in_place(sweep.move(ops.Identity(), (1, 24, 5, 3), U16, "apart"), "x", 4)


def moves(sweep: Sweep) -> Iterator[Case]:
    """Concatenations, paddings, reshapes and transpositions."""
    yield from [
        sweep.concat((3, 8), (5, 5), (U8,), U8, "apart", False),
        sweep.concat((1, 7, 16), (1, 3), (S8,), S8, "strided", False),
        sweep.concat((4, 13), (5, 3), (U8, S8), S8, "wrapped", True),
        sweep.concat((24, 1, 1), (3, 3), (S8, U8), U8, "apart", True),
        sweep.concat((5, 6), (), (U8, U8), U8, "apart", True),
        sweep.concat((8, 8), (7, 2), (S16, U16), S16, "strided wrapped", True),
    ]
    for kind, layout, pads in zip(
        cycle(INTEGERS),
        ("apart", "strided", "wrapped", "over", "ring"),
        [(1, 1, 1, 1), (0, 2, 1, 0), (2, 0, 0, 3), (1, 0, 2, 1), (-1, -2, -1, 0)],
    ):
        shape = (1, int(sweep.rng.choice(CHANNELS)), 5, 7)
        if layout in ("over", "ring") and pads[0] < 0:
            layout = "apart"
        kind = NumType(kind.bits, kind.signed, zero_point=11)
        yield sweep.move(ops.Padding(pads), shape, kind, layout, top=pads[0])
    yield sweep.move(ops.Padding((2, 1, 0, 1)), (1, 8, 7, 5), U8, "over", top=2)
    for kind, layout, shape, dims in zip(
        cycle(INTEGERS),
        cycle(POINTWISE_LAYOUTS),
        [(1, 3, 4, 5), (1, 24), (1, 8, 3, 1), (1, 4, 6), (1, 2, 3, 4), (1, 5, 5, 5)],
        [(60,), (2, 3, 4), (4, 6), (2, 2, 6), (24, 1, 1), (25, 5)],
    ):
        yield sweep.move(ops.Reshape(dims), shape, kind, layout)
    for kind, layout, shape, perm in zip(
        cycle(INTEGERS),
        cycle(POINTWISE_LAYOUTS),
        [(1, 3, 4, 5)] * 5 + [(1, 7, 4), (1, 9)],
        [(0, 2, 3, 1), (0, 3, 1, 2), (0, 1, 3, 2), (0, 3, 2, 1), (0, 2, 1, 3), (0, 2, 1), (0, 1)],
    ):
        yield sweep.move(ops.Transpose(perm), shape, kind, layout)


def packed_channels(sweep: Sweep) -> Iterator[Case]:
    """Channels in the bits of bytes, and back: whole and half-filled bytes, one run of a line and pixel by pixel."""
    placed = cycle(LAYOUTS)
    sizes = cycle([(5, 7), (1, 1), (7, 3), (4, 11)])
    for bits, (c, low), unpacks in product(
        (1, 2, 4), [(1, 0), (3, -2), (7, 0), (8, -7), (13, 0), (16, -1), (70, 0), (96, -8)], (False, True)
    ):
        yield sweep.packed((1, c, *next(sizes)), bits, low, next(placed), unpacks)
    yield from [
        sweep.packed((1, c), bits, 0, "apart", unpacks) for c in (5, 64) for bits in (2, 4) for unpacks in (False, True)
    ]


def floats(sweep: Sweep) -> list[Case]:
    """Every operator in floating point, mostly float32."""
    f, d = (FLOAT32, FLOAT32), (FLOAT64, FLOAT64)
    cases, placed = [], cycle(LAYOUTS)
    for i, (window, c) in enumerate(zip(WINDOWS, cycle(CHANNELS))):
        groups = c if i % 3 == 1 else 1
        outputs = c if groups > 1 else (5, 16, 33)[i % 3]
        kinds = d if i % 5 == 4 else f
        cases.append(sweep.conv((1, c, 7, 5), outputs, window, kinds, next(placed), groups=groups))
    cases += [
        sweep.fc((1, 7, 3, 5), 10, f, "strided"),
        sweep.fc((1, 64), 17, d, "apart"),
        sweep.pool("Max", (1, 13, 5, 7), Window((3, 3), (2, 2), (1, 1, 1, 1)), True, f, "over"),
        sweep.pool("Average", (1, 8, 5, 7), Window((3, 3), (2, 2), (1, 1, 1, 1)), False, f, "ring"),
        sweep.pool("Average", (1, 8, 5, 7), Window((3, 3), (1, 2), (1, 0, 1, 1)), True, d),
        sweep.affine((1, 13, 5, 3), f, "wrapped"),
        in_place(sweep.affine((1, 13, 5, 3), f, "apart")),
    ]
    for operation, kind in product(ops.ElemWise.OPERATIONS, (FLOAT32, FLOAT64)):
        cases.append(sweep.elemwise(operation, (1, 7, 5, 5), 3, (kind,), "strided" if kind.bits == 64 else "apart"))
    functions = (
        Clip(0.0),
        Clip(0.0, 6.0),
        Clip(-1.0, 1.0),
        LeakyRectifier(0.1),
        LeakyRectifier(0.25, 0.5),
        Logistic(),
        Softplus(),
        Swish(),
        Tanh(),
        Tanh(1.1439),
    )
    for function, kind in zip(functions, cycle((FLOAT32, FLOAT32, FLOAT64))):
        cases.append(sweep.activation(function, (1, 13, 5, 3), (kind, kind), "strided"))
        cases.append(sweep.conv((1, 3, 5, 5), 4, K3, (kind, kind)))
        cases[-1].node.activation = function
    cases += [
        sweep.move(ops.Softmax(), (1, 10), FLOAT32, "apart"),
        sweep.move(ops.Softmax(4), (1, 12, 3, 2), FLOAT64, "apart"),
        sweep.move(ops.Padding((1, 2, 0, 1)), (1, 5, 5, 5), FLOAT32, "over", Logistic(), top=1),
        sweep.move(ops.Reshape((4, 15)), (1, 3, 4, 5), FLOAT32, "apart", Clip(0.0)),
        sweep.move(ops.Transpose((0, 2, 3, 1)), (1, 3, 4, 5), FLOAT64, "wrapped"),
        sweep.concat((3, 8), (5, 5), (FLOAT32,), FLOAT32, "strided", False),
    ]
    return cases


def sweep_cases(seed: int, count: int) -> list[Case]:
    """The whole sweep."""
    sweep = Sweep(seed)
    return [
        *convolutions(sweep, count),
        *fully_connected(sweep),
        *pools(sweep),
        *pointwise(sweep),
        *moves(sweep),
        *floats(sweep),
        *packed_channels(sweep),
    ]
