"""What attention is made of, in integers: one-layer networks over shapes, types, strides and rescales. Seeded."""

from itertools import cycle
from math import prod

import numpy as np

from n2d2py.arithmetic import FLOAT32, FLOAT64, RESCALING_MODES, NumType
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.contracts.quant.quantizer import LayerTypes, quantize_layer
from n2d2py.graph import Node, Real, Rescaled
from support.kernel_cases import S8, S16, U8, U16, Sweep
from support.kernel_harness import Case
from support.ops import AddConstants, ArrayMatMul, Concat, MaskedSoftmax, Normalize, Softmax

__all__ = ["masked_softmaxes", "norms", "products", "real_products", "softmaxes", "sums"]

SHIFTED = (NumType(8, False, zero_point=77), NumType(8, zero_point=-9, full=True), NumType(8, False, zero_point=255))
KINDS = (
    (S8, S8, S8),
    (U8, S8, S8),
    (S8, U8, S16),
    (SHIFTED[0], S8, SHIFTED[0]),
    (SHIFTED[1], SHIFTED[0], U8),
    (U8, SHIFTED[2], S16),
    (S16, S8, S8),
    (U16, S16, S16),
)
PLACED = ("plain", "transposed", "heads", "result")
SHAPES = (
    (1, 1, 1, 1),
    (1, 5, 4, 16),
    (2, 6, 7, 17),
    (4, 13, 16, 15),
    (3, 7, 33, 32),
    (1, 25, 65, 40),
    (2, 97, 6, 3),
    (1, 3, 1030, 18),
    (1, 14, 513, 2),
)
"""Matrices, rows, depth, columns."""


def row_major(dims: tuple[int, ...]) -> tuple[int, ...]:
    """The view of an array that lies as it is."""
    return (prod(dims), 0, *(prod(dims[axis + 1 :]) for axis in range(len(dims))))


def placed_product(shape: tuple[int, int, int, int], placed: str, scale: float = 0.25) -> ArrayMatMul:
    """A product whose operands lie as matrices, transposed ones, heads of one array, or whose result lies by heads."""
    count, m, k, n = shape
    left, right = (count, m, k), (count, k, n)
    views = (row_major(left), row_major(right), row_major((count, m, n)))
    if placed == "transposed":
        views = (views[0], (count * k * n, 0, k * n, 1, k), views[2])
    elif placed == "heads":
        views = ((3 * m * count * k, k, k, 3 * count * k, 1), (2 * n * count * k, count * k, k, 1, 2 * count * k), views[2])
    elif placed == "result":
        views = (views[0], views[1], (count * m * n, 0, n, count * n, 1))
    elif placed == "columns":
        views = ((count * m * k, 0, m * k, 1, m), views[1], (count * m * n, 0, m * n, 1, m))
    return ArrayMatMul(left, right, scale=scale, views=() if placed == "plain" else views)


def product(sweep: Sweep, shape: tuple[int, int, int, int], kinds: tuple[NumType, NumType, NumType], placed: str) -> Case:
    """A product of integers."""
    count, m, k, n = shape
    op = placed_product(shape, placed)
    views = op.full_views()
    a, b, y = kinds
    bound = k * max(a.qmax - a.zero_point, a.zero_point - a.qmin) * max(b.qmax - b.zero_point, b.zero_point - b.qmin)
    inputs = {name: sweep.stored((1, view[0]), kind) for name, view, kind in (("x", views[0], a), ("x1", views[1], b))}
    tensors = {name: (inputs[name].shape, kind) for name, kind in (("x", a), ("x1", b))}
    scaling = sweep.requantize(bound, y, 1, max(1.0, bound / 4 / k**0.5))
    scaling["clamp"] = (max(scaling["clamp"][0], y.qmin), scaling["clamp"][1])
    graph = sweep.graph(op, tensors, ((1, count * m * n), y), form=Rescaled(), **scaling)
    return sweep.case(f"product {shape} {placed} {[kind.name for kind in kinds]}", graph, inputs, "apart")


def products(seed: int, every: int = 1) -> list[Case]:
    """Products of all shapes and types, every third of them if `every` is 3."""
    sweep, kinds, placed = Sweep(seed), cycle(KINDS), cycle(PLACED)
    made = [product(sweep, shape, next(kinds), next(placed)) for _ in range(8) for shape in SHAPES]
    return made[::every]


def real_products(seed: int, every: int = 1) -> list[Case]:
    """Products of float32 in networks without integers, also deeper than their panels."""
    sweep, scales, made = Sweep(seed), cycle((0.25, 1.0)), []
    for shape in (*SHAPES, (2, 65, 16, 65), (1, 7, 4097, 33)):
        for placed in (*PLACED, "columns"):
            op = placed_product(shape, placed, next(scales))
            inputs = {
                f"x{i or ''}": sweep.stored((1, view[0]), FLOAT32, "random") for i, view in enumerate(op.full_views()[:2])
            }
            tensors = {name: (x.shape, FLOAT32) for name, x in inputs.items()}
            graph = sweep.graph(op, tensors, ((1, op.output_size()), FLOAT32), form=Real())
            graph.bits = -32
            made.append(sweep.case(f"product {shape} {placed} in float32", graph, inputs, "apart"))
    return made[::every]


def sums(seed: int, every: int = 1) -> list[Case]:
    """Constants added, arrays joined with each other, and with constants."""
    sweep, made, modes = Sweep(seed), [], cycle(RESCALING_MODES)
    kinds = ((S8, S16), (S16, S16), (SHIFTED[0], S8), (U8, SHIFTED[1]), (U16, S8))
    for size, (x, y) in zip((1, 63, 64, 65, 300, 17, 128), cycle(kinds)):
        x, y = x.with_scale(0.01), y.with_scale(3 / y.qmax)
        constants = sweep.rng.normal(0, 1, size).astype(np.float32)
        for repeats, bits, largest in (
            (1, 8, 1),
            (3, 8, 300),
            (2, 16, 1),
        ):  # 300: constants of 16 bits, where the result has as many
            values = {"constants": constants * np.where(np.arange(size), 1, largest).astype(np.float32)}
            made.append(formed(sweep, AddConstants(), x, y, next(modes), sweep.stored((repeats * size,), x), values, bits))
        op = Concat(1, 2, (-1, 0, -1))
        parts = {f"operand{i}": sweep.rng.normal(0, 1, (2, length)).astype(np.float32) for i, length in ((0, 3), (2, 5))}
        made.append(formed(sweep, op, x, y, next(modes), sweep.stored((2 * size,), x), parts))
        op = Concat(1, 2, (0, 0))
        made += [formed(sweep, op, x, kind, next(modes), sweep.stored((2 * size,), x)) for kind in (x, y)]
    made = made[::every]
    for kind, repeats in ((FLOAT32, 3), (FLOAT64, 1)):
        x, constants = sweep.stored((1, 7 * repeats), kind, "random"), sweep.rng.normal(size=7)
        graph = sweep.graph(AddConstants(), {"x": (x.shape, kind)}, (x.shape, kind), form=Real({"constants": constants}))
        made.append(sweep.case(f"constants added in {kind.name}", graph, {"x": x}, "apart"))
    return made


def formed(
    sweep: Sweep, op, x: NumType, y: NumType, mode: str, stored: np.ndarray, params: dict | None = None, bits: int = 8
) -> Case:
    """A layer of one input with the integers that the quantizer gives it, in a network of `bits`."""
    stored = stored if stored.ndim > 1 else stored.reshape(1, -1)
    node = quantize_layer(Node("layer", op, ["x"], ["y"], params or {}), LayerTypes([x], y, QuantOptions(bits, rescaling=mode)))
    own = {"form": node.form, "rescale": node.rescale, "clamp": node.clamp, "bound": node.bound}
    graph = sweep.graph(op, {"x": (stored.shape, x)}, (op.output_shapes([stored.shape], node)[0], y), **own)
    title = f"{op} {x.name} {x.zero_point} {x.scale:.3g} to {y.name} {y.zero_point} {mode}"
    return sweep.case(title, graph, {"x": stored.astype(x.dtype)}, "apart")


def softmaxes(seed: int, every: int = 1) -> list[Case]:
    """Rows of 1 to 1300 elements along each axis, of images too: random ones, equal ones, one far above the others."""
    sweep, made = Sweep(seed), []
    sizes = ((1, 1, 1), (3, 65, 1), (7, 4, 5), (2, 300, 1), (5, 16, 1), (1, 1300, 2))
    kinds = (
        (S8, U8), (U8, U8), (SHIFTED[0], S8), (S16, U8), (U16, U16), (S8, U16), (SHIFTED[1], NumType(8, full=True, zero_point=-128)),
    )  # fmt: skip
    modes = cycle(RESCALING_MODES)
    for scale, safe_distances in ((0.05, 1.0), (0.002, 0.1), (0.7, 1.0), (1e-6, 0.02), (300.0, 1.0)):
        for (x, y), size in zip(kinds, cycle(sizes), strict=False):
            op, kind = Softmax(size[1], inner=size[2]), x.with_scale(scale / (256 if x.bits > 8 else 1))
            stored = sweep.stored((prod(size),), kind)
            if len(made) % 4 == 0:
                stored[:: size[1] * size[2]] = kind.qmax
            made.append(formed(sweep, op, kind, y.with_scale(safe_distances / (y.qmax - y.zero_point)), next(modes), stored))
        sizes = (*sizes[2:], *sizes[:2])
    shares, image = U8.with_scale(1 / 255), sweep.stored((1, 12, 5, 3), S8)
    for op in (Softmax(), Softmax(4), Softmax(5, inner=36), Softmax(3, inner=12)):
        made.append(formed(sweep, op, S8.with_scale(0.05), shares, next(modes), image))
    return made[::every]


def masked_softmaxes(seed: int, every: int = 1) -> list[Case]:
    """Lines of 1 to 1300 elements of which some do not count, the largest among them; masks that repeat and that do not."""
    sweep, made = Sweep(seed), []
    sizes = ((1, 1, 1), (6, 65, 3), (8, 7, 8), (4, 300, 2), (5, 16, 1), (2, 1300, 1), (9, 8, 9))
    kinds = (
        (S8, U8),
        (U8, U8),
        (SHIFTED[0], S8),
        (S16, U8),
        (U16, U16),
        (S8, U16),
        (SHIFTED[1], NumType(8, full=True, zero_point=-128)),
    )
    modes = cycle(RESCALING_MODES)
    for turn, scale in enumerate((0.05, 0.4)):
        for (x, y), (outer, size, rows) in zip(kinds, (*sizes[turn:], *sizes[:turn]), strict=True):
            kind = x.with_scale(scale / (256 if x.bits > 8 else 1))
            stored, mask = sweep.stored((outer * size,), kind), sweep.rng.random((rows, size)) < 0.5
            mask[np.arange(rows), sweep.rng.integers(0, size, rows)] = True
            if turn:
                stored[~np.tile(mask, (outer // rows, 1)).reshape(-1)] = kind.qmax
            op = MaskedSoftmax(size)
            made.append(formed(sweep, op, kind, y.with_scale(1 / (y.qmax - y.zero_point)), next(modes), stored, {"mask": mask}))
    return made[::every]


def norms(seed: int, every: int = 1) -> list[Case]:
    """Lines of 1 to 16384 elements: random ones, equal ones, ends of the range; gains of any sign, none, far apart."""
    sweep, made = Sweep(seed), []
    sizes, modes = cycle(((1, 1), (5, 64), (3, 7), (2, 130), (9, 63), (2, 769))), cycle(RESCALING_MODES)
    kinds = ((S16, S8), (S8, S8), (SHIFTED[0], U8), (U16, S16), (SHIFTED[1], SHIFTED[0]), (U8, S16), (S16, U16))
    for scale, epsilon in ((0.05, 1e-5), (1e-4, 1e-3), (1e-3, 1e-12), (0.01, 10.0)):
        for x, y in kinds:
            (outer, inner), turn = next(sizes), len(made)
            op = Normalize(inner, epsilon, turn % 3 != 2)
            gains = sweep.rng.normal(0, 1, inner) * 10.0 ** sweep.rng.uniform(-3, 0, inner)
            params = {"gain": gains * (turn % 5 != 4), "shift": sweep.rng.normal(0, 1, inner)} if turn % 4 else {}
            kind = x.with_scale(scale)
            made.append(
                formed(sweep, op, kind, y.with_scale(3 / y.qmax), next(modes), sweep.stored((outer * inner,), kind), params)
            )
    longest = Normalize(16384, 1e-5, True)
    ends = np.where(np.arange(16384) % 2, S16.qmax, S16.qmin)
    made.append(formed(sweep, longest, S16.with_scale(1e-4), S16.with_scale(1e-4), "Fixed-point32", ends))
    return made[::every]
