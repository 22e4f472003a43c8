"""Operators on arrays of ranks 1 to 5: one-layer networks over shapes, types of elements and attributes. Seeded.

Results have to be Python's bit for bit, in floating point too.
"""

from collections.abc import Iterator
from itertools import cycle
from math import prod
from typing import Any

import numpy as np

from n2d2py.arithmetic import FLOAT32, FLOAT64, NumType, plain_type
from n2d2py.contracts.operator import Op
from n2d2py.graph import Node, Real
from n2d2py.operators.arrays.reduce import REDUCTIONS
from support import ops
from support.kernel_cases import S8, S16, U8, U16, Sweep
from support.kernel_harness import Case

__all__ = ["everything"]

INTEGERS = tuple(f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u"))
REALS = ("float32", "float64")
NUMBERS = (*INTEGERS, *REALS)
QUANTIZED = (U8, NumType(8, False, scale=0.1, zero_point=77), S8, NumType(8, scale=0.1, zero_point=-9, full=True), U16, S16)
LAYOUT = "apart"  # arrays are vectors: there are no lines to wrap or to put apart


def element(kind: str) -> NumType:
    """The type of the elements of a kind, of a real one by its NumPy name."""
    return {"float32": FLOAT32, "float64": FLOAT64}.get(kind) or plain_type(kind)


def result_kind(kind: str) -> str:
    """The `result` of an operator whose result has the kind of its operand."""
    return "" if kind in REALS else kind


class Arrays:
    """Draws arrays and makes cases of them."""

    def __init__(self, seed: int):
        self.sweep = Sweep(seed)
        self.rng = self.sweep.rng
        self.ranks = cycle((1, 2, 3, 4, 5))

    def dims(self, rank: int | None = None, most: int = 5) -> tuple[int, ...]:
        """The dimensions of an array of the next rank."""
        return tuple(int(n) for n in self.rng.integers(1, most, rank or next(self.ranks), endpoint=True))

    def values(self, size: int, kind: str, pattern: str = "") -> np.ndarray:
        """Elements: small and large ones, the ends of the range, equal ones; `pattern` "small", "positive", "wide"."""
        if kind == "bool":
            return self.rng.integers(0, 2, size).astype(np.uint8)
        dtype = np.dtype(kind)
        if dtype.kind == "f":
            x = np.round(self.rng.normal(size=size, scale=3), int(self.rng.integers(0, 6)))
            x = np.abs(x) + 0.125 if pattern == "positive" else x
            if pattern in ("unit", "above"):
                x = np.sin(x) if pattern == "unit" else 1 + np.abs(x) * 10.0 ** self.rng.integers(-6, 25, size)
                x[:3] = [1, -1 if pattern == "unit" else np.inf, np.nan][:size]
            if pattern == "wide":
                x = x * 10.0 ** self.rng.integers(-3, 25, size)
                x[:4] = [np.nan, np.inf, -np.inf, -0.0][:size]
            return x.astype(dtype)
        limits = np.iinfo(dtype)
        low, high = (max(limits.min, -6), 7) if pattern == "small" else (limits.min, limits.max)
        x = self.rng.integers(low, high, size, dtype=dtype, endpoint=True)
        if pattern == "positive":
            x = np.maximum(x & limits.max, 1).astype(dtype)
        elif pattern != "small" and size > 3:
            x[self.rng.permutation(size)[:3]] = [limits.min, limits.max, 0]
        return x

    def case(
        self, op: Op, operands: list[np.ndarray], kinds: list[NumType], output: NumType, note: str = "", exact: bool = True
    ) -> Case:
        """A layer of one output; operands whose slot is below 0 are constants."""
        inputs, params, tensors = {}, {}, {}
        slots = getattr(op, "slots", (0,))
        for index, (slot, values, kind) in enumerate(zip(slots, operands, kinds, strict=True)):
            if slot >= 0:
                name = f"x{slot}" if slot else "x"
                inputs[name], tensors[name] = values.reshape(1, -1), ((1, values.size), kind)
            else:
                params[f"operand{index}"] = values
        (result,) = op.output_shapes([shape for shape, _ in tensors.values()], Node("layer", op, list(tensors), ["y"], params))
        graph = self.sweep.graph(op, tensors, (result, output), form=Real(params))
        case = self.sweep.case(f"{op.kind} {getattr(op, 'function', '')} {note}", graph, inputs, LAYOUT)
        case.exact = exact
        return case

    # ---- element by element ------------------------------------------------------------------------
    def map(self, function: str, kinds: tuple[str, ...], result: str, patterns: tuple[str, ...] = ()) -> Case:
        """Operands of kinds `kinds`, broadcast along random axes; sometimes one of them constant."""
        dims = self.dims()
        shapes = [tuple(1 if self.rng.integers(3) == 0 else n for n in dims) for _ in kinds]
        dims = tuple(max(axis) for axis in zip(*shapes, strict=True))
        slots = [0]
        for _ in kinds[1:]:
            slots.append(-1 if self.rng.integers(4) == 0 else max(slots) + 1)
        op = ops.ArrayMap(function, dims, tuple(shapes), tuple(slots), result_kind(result))
        operands = [
            self.values(prod(shape), kind, pattern)
            for shape, kind, pattern in zip(shapes, kinds, (*patterns, *[""] * 3), strict=False)
        ]
        return self.case(
            op, operands, [element(kind) for kind in kinds], element(result), f"{' '.join(kinds)} -> {result} {shapes}"
        )

    def maps(self, share: int) -> Iterator[Case]:
        """Every function, on one of `share` kinds each."""
        turn = cycle(range(share))

        def kinds_of(all_kinds):
            return [kind for kind in all_kinds if next(turn) == 0]

        for function in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Mod", "Fmod", "Right"):
            yield from [self.map(function, (kind, kind), kind) for kind in kinds_of(NUMBERS)]
        for function in ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"):
            yield from [self.map(function, (kind, kind), "bool", ("small", "small")) for kind in kinds_of(NUMBERS)]
        yield from [
            self.map("Pow", (kind, other), kind, ("small", "small"))
            for kind in kinds_of(NUMBERS)
            for other in kinds_of(("int32", "float32", "uint8"))
        ]
        for function in ("And", "Or", "Xor"):
            yield self.map(function, ("bool", "bool"), "bool")
        for function in ("ShiftLeft", "ShiftRight"):
            yield from [self.map(function, (kind, kind), kind, ("", "small")) for kind in kinds_of(INTEGERS)]
        for function in ("BitAnd", "BitOr", "BitXor"):
            yield from [self.map(function, (kind, kind), kind) for kind in kinds_of(INTEGERS)]
        yield from [self.map("BitNot", (kind,), kind) for kind in kinds_of(INTEGERS)]
        yield from [self.map("Where", ("bool", kind, kind), kind) for kind in kinds_of((*NUMBERS, "bool"))]
        yield from [self.map("PRelu", (kind, kind), kind) for kind in kinds_of(("int32", "int64", *REALS))]
        yield self.map("Not", ("bool",), "bool")
        for function in ("Neg", "Abs", "Sign"):
            yield from [self.map(function, (kind,), kind) for kind in kinds_of(NUMBERS)]
        for function in (
            *"Floor Ceil Round IsNaN IsPosInf IsNegInf Exp Erf Sigmoid Tanh Softplus Expm1 Sin Cos Tan".split(),
            *"Atan Sinh Cosh Asinh Asin Acos Acosh Atanh".split(),
        ):
            result = "bool" if function.startswith("Is") else None
            pattern = {"Sinh": "", "Cosh": "", "Asin": "unit", "Acos": "unit", "Atanh": "unit", "Acosh": "above"}.get(
                function, "wide"
            )
            yield from [self.map(function, (kind,), result or kind, (pattern,)) for kind in kinds_of(REALS)]
        for function in ("Sqrt", "Reciprocal", "Log"):
            yield from [self.map(function, (kind,), kind, ("positive",)) for kind in kinds_of(REALS)]
        for source in (*NUMBERS, "bool"):
            yield from [
                self.map("Cast", (source,), target, ("wide",)) for target in kinds_of((*NUMBERS, "bool")) if target != source
            ]

    # ---- in another order --------------------------------------------------------------------------
    def take(self, kind: NumType, form: str) -> Case:
        """A transposition, slice, choice of lines, repetition or padding."""
        dims = self.dims(most=6)
        steps = [prod(dims[axis + 1 :]) for axis in range(len(dims))]
        axes = [np.arange(n) * step for n, step in zip(dims, steps, strict=True)]
        at = int(self.rng.integers(len(dims)))
        if form == "transpose":
            axes = [axes[axis] for axis in self.rng.permutation(len(dims))]
        elif form == "slice":
            axes = [axis[::-1] if self.rng.integers(2) else axis[::2] for axis in axes]
        elif form == "lines":
            axes[at] = self.rng.choice(axes[at], 1 + 2 * len(axes[at]))
        elif form == "repeat":
            axes[at] = np.tile(axes[at], 3)
        else:
            axes = [np.concatenate([[-1] * self.rng.integers(3), axis, [-1] * self.rng.integers(1, 3)]) for axis in axes]
        fill = 1.0 if form == "pad" and self.rng.integers(2) else 0.0
        op = ops.IndexSelect(tuple(tuple(int(i) for i in axis) for axis in axes), fill)
        x = self.values(prod(dims), kind.dtype.name)
        x = x if kind.is_float or kind.plain else np.clip(x, kind.qmin, kind.qmax)
        return self.case(op, [x], [kind], kind, f"{form} of {dims}")

    def moves(self, share: int) -> Iterator[Case]:
        """Orders, joins, chosen and updated elements."""
        kinds = cycle((*(element(kind) for kind in (*NUMBERS, "bool")), *QUANTIZED))
        for form in ("transpose", "slice", "lines", "repeat", "pad") * (-(-20 // share)):
            yield self.take(next(kinds), form)
        for kind in [kind for i, kind in enumerate((*NUMBERS, "bool")) if i % share == 0]:
            outer, lengths = int(self.rng.integers(1, 7)), tuple(map(int, self.rng.integers(1, 9, self.rng.integers(1, 5))))
            slots = tuple(i if i == 0 or self.rng.integers(3) else -1 for i in range(len(lengths)))
            order = iter(range(len(lengths)))
            slots = tuple(next(order) if slot >= 0 else -1 for slot in slots)
            yield self.case(
                ops.Concat(1, outer, slots, result_kind(kind)),
                [self.values(outer * n, kind) for n in lengths],
                [element(kind)] * len(lengths),
                element(kind),
                kind,
            )
            yield from [self.gather(kind, each) for each in (False, True)]
            yield from [
                self.scatter(kind, combine)
                for combine in (("none", "add", "mul", "max", "min") if kind != "bool" else ("none",))
            ]

    def gather(self, kind: str, each: bool) -> Case:
        outer, size, inner, count = (int(n) for n in self.rng.integers(1, 6, 4))
        op = ops.ArrayGather(outer, size, inner, count, each, (0, 1), result_kind(kind))
        index = str(self.rng.choice(["int32", "int64"]))
        indices = self.rng.integers(-size - 2, size + 2, op.operand_sizes()[1]).astype(index)
        return self.case(
            op,
            [self.values(op.operand_sizes()[0], kind), indices],
            [element(kind), element(index)],
            element(kind),
            f"{kind} {op}",
        )

    def scatter(self, kind: str, combine: str) -> Case:
        size, inner, count = (int(n) for n in self.rng.integers(1, 7, 3))
        op = ops.ArrayScatter(size, inner, count, combine=combine, result=result_kind(kind))
        indices = self.rng.integers(-size, size, count).astype(np.int64)
        return self.case(
            op,
            [self.values(size * inner, kind), indices, self.values(count * inner, kind)],
            [element(kind), element("int64"), element(kind)],
            element(kind),
            f"{kind} {combine}",
        )

    # ---- reductions --------------------------------------------------------------------------------
    def reductions(self, share: int) -> list[Case]:
        """Every reduction over random axes; running sums."""
        made, turn = [], cycle(range(share))
        for function in REDUCTIONS:
            real = function in ("L2", "LogSum", "LogSumExp")
            kinds = REALS if real else NUMBERS
            for kind in [kind for kind in kinds if next(turn) == 0] or kinds[:1]:
                made.append(self.reduction(function, element(kind), result_kind(kind)))
            if function.startswith("Arg"):
                made.append(self.reduction(function, QUANTIZED[len(made) % len(QUANTIZED)], "int64"))
        for kind in NUMBERS:
            for flags in ((False, False, False), (True, False, False), (False, True, True), (True, True, False)):
                if next(turn) == 0:
                    outer, size, inner = (int(n) for n in self.rng.integers(1, 6, 3))
                    made.append(
                        self.case(
                            ops.ArrayCumSum(outer, size, inner, *flags, result_kind(kind)),
                            [self.values(outer * size * inner, kind)],
                            [element(kind)],
                            element(kind),
                            kind,
                        )
                    )
        for kind in (*NUMBERS, *(kind.dtype.name for kind in QUANTIZED)):
            for largest in (False, True):
                if next(turn) == 0:
                    made.append(self.order(kind, largest))
        return [*made, *self.suppressions()]

    def order(self, kind: str, largest: bool) -> Case:
        outer, size, inner = (int(n) for n in self.rng.integers(1, 9, 3))
        op = ops.ArrayTopK(outer, size, inner, int(self.rng.integers(1, size, endpoint=True)), largest)
        x = self.values(outer * size * inner, kind, str(self.rng.choice(["", "small", "wide"])))
        x = np.round(x) if kind in REALS else x  # so that some are equal
        return self.case(op, [x], [element(kind)], element("int64"), f"{kind} {op}")

    def suppressions(self) -> Iterator[Case]:
        """Boxes of few sizes, so that limits are met exactly, and scores that are equal, infinite or no numbers."""
        rng = np.random.default_rng(7)
        for kind, centered, constant, overlap, least in (
            ("float32", False, False, 0.5, 0.25),
            ("float32", True, False, 0.0, -np.inf),
            ("float64", True, True, 1 / 3, -np.inf),
            ("float64", False, False, 1.0, 0.9),
        ):
            images, classes, boxes = (int(n) for n in rng.integers(1, (3, 4, 30)))
            slots = (-1, 0) if constant else (0, 1)
            count = int(rng.integers(1, boxes, endpoint=True))
            op = ops.ArrayNonMaxSuppression(images, classes, boxes, count, overlap, least, centered, slots)
            given = np.round(rng.uniform(0, 6, images * boxes * 4)).astype(kind)
            scores = np.round(rng.uniform(0, 1, images * classes * boxes), 1).astype(kind)
            scores[:3] = [np.nan, np.inf, 1][: scores.size]
            yield self.case(op, [given, scores], [element(kind)] * 2, element("int64"), f"{kind} {op}")

    def reduction(self, function: str, kind: NumType, result: str) -> Case:
        dims = self.dims()
        rank = len(dims)
        single = function.startswith("Arg")
        chosen = self.rng.permutation(rank)[: 1 if single else int(self.rng.integers(1, rank + 1))]
        op = ops.ArrayReduce(function, dims, tuple(sorted(int(a) for a in chosen)), "int64" if single else result)
        pattern = "positive" if function == "LogSum" else "small" if self.rng.integers(2) else ""
        x = self.values(prod(dims), kind.dtype.name, pattern)
        x = x if kind.is_float or kind.plain else np.clip(x, kind.qmin, kind.qmax)
        return self.case(op, [x], [kind], element("int64") if single else kind, f"{kind.name} {dims} over {op.axes}")

    # ---- products and windows ----------------------------------------------------------------------
    def products(self, share: int) -> list[Case]:
        """Matrix products of all kinds with broadcast leading axes, and convolutions and pools of up to 3 axes."""
        made, turn = [], cycle(range(share))
        for kind in NUMBERS:
            for lead in (0, 1, 3):
                if next(turn) == 0:
                    made.append(self.product(kind, kind, kind, lead))
        for left, right in (("int8", "int8"), ("uint8", "int8"), ("uint8", "uint8"), ("int8", "uint8")):
            made.append(self.product(left, right, "int32", len(made) % 3))
            made.append(self.window("Conv", left, "int32", other=right))
        for function, kinds in (
            ("Conv", (*REALS, "int32", "int64", "int8")),
            ("Max", (*REALS, "int8", "uint8", "int32")),
            ("MaxIndex", (*REALS, "int8", "uint8")),
            ("Average", REALS),
            ("Lp", REALS),
        ):
            for kind in kinds:
                for _ in range(3):
                    if next(turn) == 0:
                        made.append(self.window(function, kind, "int64" if function == "MaxIndex" else kind))
        for kind in NUMBERS:  # whole tiles of 4 rows and 16 columns, and what is left of them
            for sizes in ((4, 3, 16), (6, 5, 37), (1, 9, 48))[:: 1 if kind in REALS else 2]:
                made.append(self.product(kind, kind, kind, 1, sizes))
        return made

    def product(self, left: str, right: str, result: str, lead: int, sizes: tuple[int, int, int] | None = None) -> Case:
        m, k, n = sizes or (int(v) for v in self.rng.integers(1, 8, 3))
        batch = self.dims(lead, 3) if lead else ()
        a, b = ((*(1 if self.rng.integers(3) == 0 else v for v in batch), *tail) for tail in ((m, k), (k, n)))
        scale, views = (0.3, ()) if result in REALS else (1.0, ())
        if self.rng.integers(2):  # the right matrices are transposed
            steps = [prod(b[axis + 1 :]) for axis in range(len(batch))]
            views = ((), (prod(b), 0, *steps, 1, k), ())
        op = ops.ArrayMatMul(a, b, (0, -1) if self.rng.integers(3) == 0 else (0, 1), result_kind(result), scale, views)
        return self.case(
            op,
            [self.values(prod(a), left), self.values(prod(b), right)],
            [element(left), element(right)],
            element(result),
            f"{left} {a} times {right} {b}",
        )

    def window(self, function: str, kind: str, result: str, other: str = "") -> Case:
        rank = int(self.rng.integers(1, 4))
        kernel, stride, dilation = ([1] * (3 - rank) + list(map(int, self.rng.integers(1, top, rank))) for top in (4, 3, 3))
        size = [1] * (3 - rank) + list(map(int, self.rng.integers(3, 8, rank)))
        pads = [0] * (3 - rank) + [int(self.rng.integers(0, 2)) if k > 1 else 0 for k in kernel[3 - rank :]]
        dilation = [d if (k - 1) * d < n + p else 1 for d, k, n, p in zip(dilation, kernel, size, pads, strict=True)]
        kernel = [k if k <= n else 1 for k, n in zip(kernel, size, strict=True)]
        results = [
            (n + p - (k - 1) * d - 1) // s + 1 for n, p, k, d, s in zip(size, pads, kernel, dilation, stride, strict=True)
        ]
        groups = int(self.rng.choice([1, 2])) if function == "Conv" else 1
        channels, batch = 2 * int(self.rng.integers(1, 3)), int(self.rng.integers(1, 3))
        outputs = groups * int(self.rng.integers(1, 4)) if function == "Conv" else channels
        counted = (0, 0, 0) if function == "Average" and self.rng.integers(2) else None
        windows: list[Any] = [(batch, channels, *size), *map(tuple, (results, kernel, stride, pads, dilation))]
        order, column_major, made = int(self.rng.choice([1, 2, 3])), bool(self.rng.integers(2)), result_kind(result)
        if function == "Conv":
            op = ops.Conv3D(*windows, outputs=outputs, groups=groups, result=made)
        else:
            pool = {"counted": counted, "order": order, "column_major": column_major}
            op = ops.Pool3D(*windows, function=function, result=made, **pool)
        kinds = [kind, other or kind] if function == "Conv" else [kind]
        return self.case(
            op,
            [self.values(n, k) for n, k in zip(op.operand_sizes(), kinds, strict=True)],
            [element(k) for k in kinds],
            element(result),
            f"{kinds} {op}",
        )

    # ---- normalisations ----------------------------------------------------------------------------
    def masked_softmax(self, kind: str) -> Case:
        """Lines of which some elements do not count, with masks that repeat."""
        rows, times, size = (int(n) for n in self.rng.integers(1, 5, 3))
        size = 4 * size + 1
        op, mask = ops.MaskedSoftmax(size), self.rng.random((rows, size)) < 0.5
        mask[:, int(self.rng.integers(size))] = True
        inputs = {"x": self.values(rows * times * size, kind).reshape(1, -1)}
        tensors = {"x": (inputs["x"].shape, element(kind))}
        graph = self.sweep.graph(op, tensors, (inputs["x"].shape, element(kind)), form=Real({"mask": mask}))
        return self.sweep.case(f"{op.kind} {kind}", graph, inputs, LAYOUT)

    def softmax(self, kind: str, log: bool, outer: int, size: int, inner: int) -> Case:
        op, x = ops.Softmax(size, log, inner), self.values(outer * size * inner, kind)
        return self.case(op, [x], [element(kind)], element(kind), kind)

    def norms(self, share: int) -> Iterator[Case]:
        """Softmax, normalisations and resampling along an axis."""
        for kind in REALS:
            for log in (False, True):
                drawn = tuple(int(n) for n in self.rng.integers(1, 7, 3))
                yield from [self.softmax(kind, log, *sizes) for sizes in (drawn, (2, 37, 1), (1, 530, 2))]
            yield self.masked_softmax(kind)
            for centred, part in ((True, ""), (False, ""), (True, "mean"), (True, "inverse"))[:: share if share < 4 else 2]:
                outer, inner = int(self.rng.integers(1, 6)), int(self.rng.integers(1, 40))
                for affine in (False, True)[: 1 if part else 2]:
                    case = self.case(
                        ops.Normalize(inner, 1e-5, centred, part),
                        [self.values(outer * inner, kind)],
                        [element(kind)],
                        element(kind),
                        f"{kind} {centred} {part} {affine}",
                    )
                    if affine:
                        case.node.form = Real({role: self.rng.normal(size=inner) for role in ("gain", "shift")})
                    yield case
            for taps in (1, 2, 4):
                outer, size, inner, lines = (int(n) for n in self.rng.integers(1, 7, 4))
                positions = self.rng.integers(0, size, (lines, taps)).tolist()
                weights = self.rng.normal(size=(lines, taps)).tolist()
                op = ops.ArrayInterpolate(outer, size, inner, tuple(map(tuple, positions)), tuple(map(tuple, weights)))
                yield self.case(op, [self.values(outer * size * inner, kind)], [element(kind)], element(kind), f"{kind} {taps}")


def everything(seed: int, share: int = 1) -> list[Case]:
    """The whole sweep, or about one of `share` of its combinations of operator and type."""
    arrays = Arrays(seed)
    return [*arrays.maps(share), *arrays.moves(share), *arrays.reductions(share), *arrays.products(share), *arrays.norms(share)]
