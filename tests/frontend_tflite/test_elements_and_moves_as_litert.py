"""Elements, moves and what joins arrays in .tflite files, in ONNX Runtime as in LiteRT: one axis to five, several stimuli.

They look at `n2d2py.frontend.tflite.lowering`, `n2d2py.frontend.tflite.operators` and `n2d2py.frontend.tflite.array_operators`.
"""

from itertools import combinations, permutations

import numpy as np
import pytest
from support.tables import every

pytest.importorskip("ai_edge_litert", reason="the referee, ai-edge-litert, is not installed")

from support.tflite_files import IN, Small, compare, kinds, translated, written

SHAPE = (2, 5, 7, 3)
SHAPES = [(6,), (4, 6), (2, 4, 6), SHAPE, (2, 2, 4, 3, 5)]
LIMITS = {1: (0, np.inf), 2: (-1, 1), 3: (0, 6)}
"""Of the fused activations RELU, RELU_N1_TO_1 and RELU6."""


def shapes(text: str) -> list[tuple[tuple[int, ...], ...]]:
    """Rows of shapes: "4x6>24 6>2x3" are ((4, 6), (24,)) and ((6,), (2, 3))."""
    return [tuple(tuple(map(int, shape.split("x"))) for shape in row.split(">")) for row in text.split()]


def numbers(*shape: int, seed: int = 5, width: float = 2) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, width, shape).astype(np.float32)


def real(m: Small, name: str, *shape: int) -> int:
    """A constant of real numbers."""
    return m.tensor(name, shape, values=m.rng.normal(size=shape).astype(np.float32))


def _one(
    tmp_path, code: str, shape, made, *constants, options: str = "", x: np.ndarray | None = None, network: bool = True, **fields
):
    """An operator of x and of constants of int32: the result of both, and the file."""
    m = Small(shape, None)
    inputs = [m.x, *(m.constant(f"c{at}", values) for at, values in enumerate(constants))]
    path = written(m, tmp_path, m.add(code, inputs, made, None, options, name="y", **fields))
    (found,) = compare(path, [numbers(*shape) if x is None else x], real=True, network=network)
    return found, path


# ---- elements -----------------------------------------------------------------------------------
PLAIN = "RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 LOGISTIC TANH HARD_SWISH FLOOR CEIL ROUND SIN ELU SQRT LOG RSQRT".split()
"""Functions without options."""


def options_of(code: str) -> str:
    """The name of an operator's options."""
    return "MaximumMinimumOptions" if code in ("MAXIMUM", "MINIMUM") else f"{code.title().replace('_', '')}Options"


@every("shape", SHAPES)
@every("code", [*PLAIN, "ABS", "EXP", "NEG", "COS", "SQUARE", "SIGN"])
def test_functions(code, shape, tmp_path):
    x = numbers(*shape, width=4)
    if code in ("SQRT", "LOG", "RSQRT"):
        x = np.abs(x) + np.float32(0.1)
    _one(tmp_path, code, shape, shape, options="" if code in PLAIN else options_of(code), x=x)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 2.0])
def test_leaky_slopes(alpha, tmp_path):
    _one(tmp_path, "LEAKY_RELU", SHAPE, SHAPE, options="LeakyReluOptions", alpha=alpha)


def test_a_leaky_rectifier_without_options_has_the_slope_0(tmp_path):
    m = Small(SHAPE, None)
    (found,) = translated(written(m, tmp_path, m.add("LEAKY_RELU", [m.x], SHAPE, None)), [numbers(*SHAPE)])
    assert np.array_equal(found, np.maximum(numbers(*SHAPE), 0).transpose(0, 3, 1, 2))


@pytest.mark.parametrize("approximate", [False, True])
def test_gelu(approximate, tmp_path):
    """The two forms are up to 0.0005 apart."""
    found, _path = _one(tmp_path, "GELU", SHAPE, SHAPE, options="GeluOptions", approximate=approximate)
    x = numbers(*SHAPE).transpose(0, 3, 1, 2).astype(np.float64)
    tangent = x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    assert (np.abs(found - tangent).max() < 2e-6) == approximate


@every("code", ["SOFTMAX", "LOG_SOFTMAX"])
@every("shape", SHAPES[1:4])
def test_softmax_is_along_the_last_axis(shape, code, tmp_path):
    _, path = _one(tmp_path, code, shape, shape, options=options_of(code), **({"beta": 1.0} if code == "SOFTMAX" else {}))
    assert kinds(path) == ["Softmax" if code == "SOFTMAX" else "LogSoftmax"]


@every("beta", [1e-3, 0.5, 2.0, 3.5])
def test_softmax_of_a_factor(beta, tmp_path):
    _, path = _one(tmp_path, "SOFTMAX", SHAPE, SHAPE, options="SoftmaxOptions", beta=beta)
    assert kinds(path) == ["Mul", "Softmax"]


SLOPES = shapes(
    "6>6 6>1 4x6>6 4x6>1x6 2x4x6>6 2x4x6>4x6 2x4x6>1x4x1 2x5x7x3>3 2x5x7x3>1 2x5x7x3>1x1x3 2x5x7x3>5x7x3 "
    "2x5x7x3>5x1x1 2x5x7x3>1x5x7x1 2x5x7x3>1x1x7x3"
)


@every(("shape", "slopes"), SLOPES)
def test_slopes(shape, slopes, tmp_path):
    m = Small(shape, None)
    compare(written(m, tmp_path, m.add("PRELU", [m.x, real(m, "a", *slopes)], shape, None)), [numbers(*shape)])


@every("zero", [-100, 0, 77])
@every("slopes", [(3,), (1, 5, 7, 3)])
def test_slopes_that_are_stored_as_integers(slopes, zero, tmp_path):
    """A step apart at most: LiteRT rounds products twice."""
    m = Small(SHAPE, IN)
    a = m.tensor("a", slopes, (0.013, zero), np.int8, m.rng.integers(-128, 128, slopes).astype(np.int8))
    path = written(m, tmp_path, m.add("PRELU", [m.x, a], SHAPE, (0.0713, -9)))
    (found,) = compare(path, [numbers(*SHAPE, width=4)], step=1, network=False)
    assert len(np.unique(found)) > 40


ARITHMETIC = ("ADD", "SUB", "MUL", "DIV")
PAIRS = shapes("2x5x7x3>2x5x7x3 2x5x7x3>2x1x7x1 1x5x1x3>2x1x7x3 2x4x6>1x4x1 4x1>1x6 6>6")
FILLED = shapes("2x5x7x3>3 2x5x7x3>7x3 2x5x7x3>5x7x1 4x6>2x1x6 3>2x5x7x3 7x3>2x5x7x3 4x6>6")
"""Operands of fewer axes."""


@every("code", [*ARITHMETIC, "MAXIMUM", "MINIMUM"])
@every("shapes", PAIRS)
def test_two_tensors(shapes, code, tmp_path):
    m = Small(shapes[0], None)
    other = m.tensor("z", shapes[1])
    y = m.add(code, [m.x, other], np.broadcast_shapes(*shapes), None, options_of(code))
    z = numbers(*shapes[1], seed=6)
    compare(written(m, tmp_path, y, {"z": other}), [numbers(*shapes[0]), np.abs(z) + np.float32(0.3) if code == "DIV" else z])


@every("first", [False, True])
@every("code", ["SUB", "POW", "SQUARED_DIFFERENCE", "MINIMUM"])
@every("shapes", FILLED)
def test_constants_of_other_axes(shapes, code, first, tmp_path):
    m = Small(shapes[0], None)
    powers = code == "POW"  # of positive numbers
    values = numbers(*shapes[1], seed=6)
    constant = m.tensor("c", shapes[1], values=np.abs(values) + np.float32(0.5) if powers else values)
    inputs = [constant, m.x] if first else [m.x, constant]
    path = written(m, tmp_path, m.add(code, inputs, np.broadcast_shapes(*shapes), None, options_of(code)))
    x = numbers(*shapes[0])
    compare(path, [np.abs(x) + np.float32(0.5) if powers else x])


@every("activation", LIMITS)
@every("code", ARITHMETIC)
def test_arithmetic_with_an_activation(code, activation, tmp_path):
    m = Small(SHAPE, None)
    y = m.add(code, [m.x, real(m, "c", 3)], SHAPE, None, options_of(code), fusedActivationFunction=activation)
    (found,) = compare(written(m, tmp_path, y), [numbers(*SHAPE, width=30)])
    low, high = LIMITS[activation]
    assert found.min() == low and (found.max() == high or activation == 1)


COMPARISONS = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")


@every("code", COMPARISONS)
@every("shapes", [*PAIRS, *FILLED])
def test_comparisons(shapes, code, tmp_path):
    """Of numbers that are often the same; the result is one of truth values."""
    m = Small(shapes[0], None)
    other = m.tensor("z", shapes[1], values=np.rint(numbers(*shapes[1], seed=6)))
    y = m.file.tensor("y", np.broadcast_shapes(*shapes), np.bool_)
    m.file.operator(code, [m.x, other], y, options_of(code))
    (found,) = compare(written(m, tmp_path, y), [np.rint(numbers(*shapes[0]))])
    assert found.dtype == bool and found.any() and not found.all()


def _truths(m: Small, name: str, source: int, shape, code: str = "GREATER", limit: float = 0.0) -> int:
    y = m.file.tensor(name, shape, np.bool_)
    bound = m.tensor(f"{name}_limit", (1,), values=np.array([limit], np.float32))
    m.file.operator(code, [source, bound], y, options_of(code))
    return y


@every("code", ["LOGICAL_AND", "LOGICAL_OR"])
@every("shape", SHAPES[:4])
def test_truths_of_two(shape, code, tmp_path):
    m = Small(shape, None)
    y = m.file.tensor("y", shape, np.bool_)
    ends = _truths(m, "a", m.x, shape, limit=-0.5), _truths(m, "b", m.x, shape, "LESS", 0.5)
    m.file.operator(code, list(ends), y, options_of(code))
    (found,) = compare(written(m, tmp_path, [y, *ends]), [numbers(*shape)])[:1]
    assert found.dtype == bool and found.any()


def test_no_truth(tmp_path):
    m = Small(SHAPE, None)
    y = m.file.tensor("y", SHAPE, np.bool_)
    m.file.operator("LOGICAL_NOT", [_truths(m, "a", m.x, SHAPE)], y, "LogicalNotOptions")
    (found,) = compare(written(m, tmp_path, y), [numbers(*SHAPE)])
    assert np.array_equal(found, numbers(*SHAPE).transpose(0, 3, 1, 2) <= 0)


def test_truths_as_numbers(tmp_path):
    m = Small(SHAPE, None)
    y = m.add("CAST", [_truths(m, "a", m.x, SHAPE)], SHAPE, None, "CastOptions", inDataType=6, outDataType=0)
    (found,) = compare(written(m, tmp_path, y), [numbers(*SHAPE)])
    assert set(np.unique(found)) == {0, 1} and found.dtype == np.float32


@every("shape", SHAPES[:4])
def test_numbers_as_numbers(shape, tmp_path):
    _one(tmp_path, "CAST", shape, shape, options="CastOptions", inDataType=0, outDataType=0)


CHOICES = [
    ("SELECT", SHAPE, SHAPE, SHAPE),
    ("SELECT", (4, 6), (4, 6), (4, 6)),
    ("SELECT", (6,), (6,), (6,)),
    ("SELECT_V2", SHAPE, SHAPE, (3,)),
    ("SELECT_V2", SHAPE, (3,), SHAPE),
    ("SELECT_V2", SHAPE, (7, 3), (2, 1, 1, 1)),
    ("SELECT_V2", (7, 3), SHAPE, SHAPE),
    ("SELECT_V2", (2, 1, 7, 1), (5, 7, 3), SHAPE),
    ("SELECT_V2", (6,), (4, 6), (4, 1)),
]


@every(("code", "chosen", "left", "right"), CHOICES)
def test_choices(code, chosen, left, right, tmp_path):
    """Truth values of x choose between two constants."""
    m = Small(chosen, None)
    inputs = [_truths(m, "a", m.x, chosen), real(m, "left", *left), real(m, "right", *right)]
    made = np.broadcast_shapes(chosen, left, right)
    path = written(m, tmp_path, m.add(code, inputs, made, None, options_of(code)))
    (found,) = compare(path, [numbers(*chosen)])
    assert len(np.unique(found)) > 5


# ---- moves --------------------------------------------------------------------------------------
RESHAPES = shapes(
    "2x5x7x3>2x105 2x5x7x3>210 2x5x7x3>2x7x5x3 2x5x7x3>2x3x5x7 2x5x7x3>6x5x7 2x5x7x3>2x5x21 2x105>2x5x7x3 "
    "6x5x7>2x5x7x3 210>7x30 2x4x6>4x2x6 2x5x7x3>2x5x7x1x3 2x2x4x3x5>4x4x3x5 2x5x7x1>2x35 2x1x1x5>2x5 2x5>2x1x1x5 "
    "2x35>2x5x7x1 2x1x7x3>2x21 2x5x1x3>2x15 2x21>2x1x7x3 2x15>2x5x1x3"
)


@every(("shape", "made"), RESHAPES)
def test_reshapes(shape, made, tmp_path):
    _one(tmp_path, "RESHAPE", shape, made, made)


@every(
    ("shape", "made", "axes"),
    [((2, 1, 7, 3), (2, 7, 3), [1]), ((2, 5, 7, 1), (2, 5, 7), [3]), ((2, 1, 1, 3), (2, 3), [1, 2]), ((4, 1, 6), (4, 6), [])],
)
def test_axes_left_out(shape, made, axes, tmp_path):
    _one(tmp_path, "SQUEEZE", shape, made, options="SqueezeOptions", squeezeDims=np.array(axes, np.int32))


@every(("shape", "axis"), [((5, 7, 3), 0), ((5, 7, 3), 1), ((5, 7, 3), 3), ((4, 6), -1), ((4, 6), 1), ((6,), 0)])
def test_axes_put_in(shape, axis, tmp_path):
    made = np.expand_dims(np.zeros(shape), axis).shape
    _one(tmp_path, "EXPAND_DIMS", shape, made, axis, options="ExpandDimsOptions")


def _at(shape, axis: int, size: int) -> tuple[int, ...]:
    """A shape with another size."""
    return tuple(size if at == axis % len(shape) else n for at, n in enumerate(shape))


JOINED = [(shape, axis) for shape in SHAPES[1:] for axis in (*range(len(shape)), -1, -len(shape))]


@every(("shape", "axis"), JOINED)
def test_joined(shape, axis, tmp_path):
    m = Small(shape, None)
    z = m.tensor("z", _at(shape, axis, 4))
    y = m.add("CONCATENATION", [m.x, z, m.x], _at(shape, axis, 4 + 2 * shape[axis]), None, "ConcatenationOptions", axis=axis)
    compare(written(m, tmp_path, y, {"z": z}), [numbers(*shape), numbers(*_at(shape, axis, 4), seed=6)])


@pytest.mark.parametrize("activation", LIMITS)
def test_joined_with_an_activation(activation, tmp_path):
    """LiteRT has none here: as its own clamp behind."""
    m = Small(SHAPE, None)
    fields = {"axis": 3, "fusedActivationFunction": activation}
    y = m.add("CONCATENATION", [m.x, m.x], (2, 5, 7, 6), None, "ConcatenationOptions", **fields)
    (found,) = translated(written(m, tmp_path, y), [numbers(*SHAPE, width=9)])
    x = numbers(*SHAPE, width=9).transpose(0, 3, 1, 2)
    assert np.array_equal(found, np.clip(np.concatenate([x, x], axis=1), *LIMITS[activation]))


@every(
    ("shape", "pads"),
    [
        (SHAPE, [[0, 0], [1, 2], [3, 4], [0, 0]]),
        (SHAPE, [[0, 0], [0, 1], [2, 0], [0, 3]]),
        (SHAPE, [[1, 2], [0, 0], [0, 0], [2, 1]]),
        ((2, 4, 6), [[0, 0], [1, 2], [3, 0]]),
        ((4, 6), [[1, 0], [2, 3]]),
        ((6,), [[2, 3]]),
        ((2, 2, 4, 3, 5), [[0, 0], [1, 0], [0, 2], [3, 1], [1, 2]]),
        (SHAPE, [[0, 0]] * 4),
    ],
)
@every("fill", [None, -1.75, 0.5])
def test_pads(shape, pads, fill, tmp_path):
    m = Small(shape, None)
    made = [n + sum(ends) for n, ends in zip(shape, pads, strict=True)]
    inputs = [m.x, m.constant("pads", pads)]
    if fill is None:
        y = m.add("PAD", inputs, made, None, "PadOptions")
    else:
        y = m.add("PADV2", [*inputs, m.tensor("fill", (1,), values=np.array([fill], np.float32))], made, None, "PadV2Options")
    compare(written(m, tmp_path, y), [numbers(*shape)])


@every(("scale", "zero"), [(0.0513, 3), (0.0513, -100), (0.0513, 127)])
@every("value", [-128, 5, 127])
def test_pads_of_an_integer(value, scale, zero, tmp_path):
    m = Small(SHAPE, (scale, zero))
    fill = m.tensor("fill", (1,), (scale, zero), np.int8, np.array([value], np.int8))
    inputs = [m.x, m.constant("pads", [[0, 0], [1, 2], [3, 4], [0, 0]]), fill]
    path = written(m, tmp_path, m.add("PADV2", inputs, (2, 8, 14, 3), (scale, zero)))
    (found,) = compare(path, [numbers(*SHAPE)], network=False)
    assert (found[:, :, 0] == value).all()


@every(
    ("shape", "pads"),
    [
        (SHAPE, [[0, 0], [1, 2], [3, 4], [0, 0]]),
        (SHAPE, [[0, 0], [4, 0], [0, 6], [2, 1]]),
        ((2, 4, 6), [[0, 1], [3, 0], [2, 5]]),
        ((6,), [[2, 5]]),
    ],
)
def test_reflections(shape, pads, tmp_path):
    made = [n + sum(ends) for n, ends in zip(shape, pads, strict=True)]
    _one(tmp_path, "MIRROR_PAD", shape, made, pads, options="MirrorPadOptions", mode=0)


REDUCED = [(shape, list(axes)) for shape in SHAPES[1:] for n in (1, 2) for axes in combinations(range(-1, len(shape) - 1), n)]
REDUCED += [(SHAPE, [1, 2, 3]), (SHAPE, [2, -2]), (SHAPE, [3, 1])]


@every("kept", [False, True])
@every("code", ["MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"])
@every(("shape", "axes"), REDUCED)
def test_reductions(shape, axes, code, kept, tmp_path):
    made = np.zeros(shape).sum(axis=tuple({axis % len(shape) for axis in axes}), keepdims=kept).shape
    _one(tmp_path, code, shape, made, axes, options="ReducerOptions", keepDims=kept)


def test_a_reduction_without_options_drops_its_axes(tmp_path):
    m = Small(SHAPE, None)
    path = written(m, tmp_path, m.add("SUM", [m.x, m.constant("axes", [1])], (2, 7, 3), None))
    (found,) = translated(path, [numbers(*SHAPE)])
    np.testing.assert_allclose(found, numbers(*SHAPE).sum(axis=1), rtol=1e-5, atol=1e-5)


@every("size", [(11, 15), (4, 3), (5, 7), (1, 9), (10, 14), (3, 1)])
@every(("aligned", "centred"), [(False, False), (True, False), (False, True)])
@every("code", ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
def test_resizes(code, aligned, centred, size, tmp_path):
    _one(tmp_path, code, SHAPE, (2, *size, 3), size, options=options_of(code), alignCorners=aligned, halfPixelCenters=centred)


@every("order", list(permutations(range(4))))
def test_orders_of_four_axes(order, tmp_path):
    _one(tmp_path, "TRANSPOSE", SHAPE, [SHAPE[axis] for axis in order], order, options="TransposeOptions")


@every("order", [*permutations(range(3)), (1, 0), (0,), (4, 2, 0, 3, 1), (0, 1, 2, 4, 3)])
def test_orders_of_other_axes(order, tmp_path):
    shape = (2, 4, 6, 3, 5)[: len(order)]
    _one(tmp_path, "TRANSPOSE", shape, [shape[axis] for axis in order], order, options="TransposeOptions")


# ---- parts --------------------------------------------------------------------------------------
SLICES = [
    (SHAPE, [0, 1, 2, 0], [2, 3, 4, 2]),
    (SHAPE, [1, 0, 0, 1], [1, 5, -1, -1]),
    (SHAPE, [0, 4, 6, 2], [-1, 1, 1, 1]),
    (SHAPE, [0, 0, 0, 0], [2, 5, 7, 3]),
    (SHAPE, [0, 0, 0, 0], [1, 2, 3, 1]),
    ((2, 4, 6), [0, 3, 1], [-1, 1, 5]),
    ((4, 6), [2, 0], [2, 5]),
    ((6,), [1], [4]),
    ((2, 2, 4, 3, 5), [0, 1, 1, 0, 3], [2, 1, 2, -1, 2]),
]


@every(("shape", "begins", "sizes"), SLICES)
def test_slices(shape, begins, sizes, tmp_path):
    made = [n - begin if size == -1 else size for n, begin, size in zip(shape, begins, sizes, strict=True)]
    _one(tmp_path, "SLICE", shape, made, begins, sizes, options="SliceOptions")


STRIDED = [
    (SHAPE, [0, 0, 0, 0], [2, 5, 7, 3], [1, 2, 3, 2], {}, np.s_[:, ::2, ::3, ::2]),
    (SHAPE, [0, 1, 2, 0], [2, 4, 6, 3], [1, 1, 2, 1], {}, np.s_[:, 1:4, 2:6:2]),
    (SHAPE, [0, -4, -5, 0], [2, -1, -2, 3], [1, 1, 1, 1], {}, np.s_[:, -4:-1, -5:-2]),
    (SHAPE, [0, 4, 6, 2], [2, 0, 1, 0], [1, -1, -2, -1], {}, np.s_[:, 4:0:-1, 6:1:-2, 2:0:-1]),
    (SHAPE, [1, 3, 3, 1], [1, 4, 4, 2], [1, 1, 1, 1], {"beginMask": 1, "endMask": 1}, np.s_[:, 3:4, 3:4, 1:2]),
    (SHAPE, [0, 3, 3, 1], [2, 4, 4, 2], [1, 1, 1, 1], {"beginMask": 2}, np.s_[:, :4, 3:4, 1:2]),
    (SHAPE, [0, 3, 3, 1], [2, 4, 4, 2], [1, 1, 1, 1], {"beginMask": 4}, np.s_[:, 3:4, :4, 1:2]),
    (SHAPE, [0, 3, 3, 1], [2, 4, 4, 2], [1, 1, 1, 1], {"beginMask": 8}, np.s_[:, 3:4, 3:4, :2]),
    (SHAPE, [0, 3, 3, 1], [2, 4, 4, 2], [1, 1, 1, 1], {"endMask": 2}, np.s_[:, 3:, 3:4, 1:2]),
    (SHAPE, [0, 3, 3, 1], [2, 4, 4, 2], [1, 1, 1, 1], {"endMask": 4}, np.s_[:, 3:4, 3:, 1:2]),
    (SHAPE, [0, 3, 3, 1], [2, 4, 4, 2], [1, 1, 1, 1], {"endMask": 8}, np.s_[:, 3:4, 3:4, 1:]),
    (SHAPE, [0, 3, 3, 1], [2, 1, 1, 0], [1, -1, -1, -1], {"beginMask": 14}, np.s_[:, :1:-1, :1:-1, :0:-1]),
    (SHAPE, [0, 3, 3, 1], [2, 1, 1, 0], [1, -1, -2, -1], {"endMask": 14}, np.s_[:, 3::-1, 3::-2, 1::-1]),
    (SHAPE, [0, 2, 2, 1], [2, 3, 3, 2], [1, 1, 1, 1], {"shrinkAxisMask": 2}, np.s_[:, 2, 2:3, 1:2]),
    (SHAPE, [0, 2, 2, 1], [2, 3, 3, 2], [1, 1, 1, 1], {"shrinkAxisMask": 4}, np.s_[:, 2:3, 2, 1:2]),
    (SHAPE, [0, 2, 2, 1], [2, 3, 3, 2], [1, 1, 1, 1], {"shrinkAxisMask": 8}, np.s_[:, 2:3, 2:3, 1]),
    (SHAPE, [1, 0, 0, 0], [2, 5, 7, 3], [1, 1, 1, 1], {"shrinkAxisMask": 1}, np.s_[1]),
    (SHAPE, [0, 0, -1, 2], [2, 5, 7, 3], [1, 2, 1, 1], {"shrinkAxisMask": 12}, np.s_[:, ::2, -1, 2]),
    (SHAPE, [0, 0, 0, -3], [2, 5, 7, 3], [1, 1, 1, 1], {"shrinkAxisMask": 8}, np.s_[:, :, :, 0]),
    (SHAPE, [0, 4, 0, 0], [2, 5, 7, 3], [1, 1, 1, 1], {"shrinkAxisMask": 2, "beginMask": 2, "endMask": 2}, np.s_[:, 4]),
    ((2, 4, 6), [0, 1, 5], [2, 4, 0], [1, 2, -2], {}, np.s_[:, 1:4:2, 5:0:-2]),
    ((2, 4, 6), [0, 1, 2], [2, 4, 3], [1, 1, 1], {"shrinkAxisMask": 4}, np.s_[:, 1:, 2]),
    ((4, 6), [3, 1], [0, 6], [-2, 3], {}, np.s_[3:0:-2, 1:6:3]),
    ((6,), [5], [0], [-3], {"endMask": 1}, np.s_[5::-3]),
    ((2, 2, 4, 3, 5), [0, 1, 0, 0, 1], [2, 2, 4, 3, 5], [1, 1, 2, 1, 2], {"shrinkAxisMask": 2}, np.s_[:, 1, ::2, :, 1::2]),
]


@every(("shape", "begins", "ends", "steps", "masks", "part"), STRIDED)
def test_strided_slices(shape, begins, ends, steps, masks, part, tmp_path):
    made = np.zeros(shape)[part].shape
    _one(tmp_path, "STRIDED_SLICE", shape, made, begins, ends, steps, options="StridedSliceOptions", **masks)


@every("by_sizes", [False, True])
@every(("shape", "axis"), [((4, 6, 8, 2), axis) for axis in (0, 1, 2, 3, -1, -4)] + [((4, 6), 1), ((4, 6, 8), -2), ((6,), 0)])
def test_parts(shape, axis, by_sizes, tmp_path):
    m, size = Small(shape, None), shape[axis]
    sizes = (1, size - 1) if by_sizes else (size // 2, size // 2)
    parts = [m.tensor(f"part{at}", _at(shape, axis, each)) for at, each in enumerate(sizes)]
    if by_sizes:
        inputs = [m.x, m.constant("sizes", sizes), m.constant("axis", axis)]
        m.file.operator("SPLIT_V", inputs, parts[0], "SplitVOptions", numSplits=2)
    else:
        m.file.operator("SPLIT", [m.constant("axis", axis), m.x], parts[0], "SplitOptions", numSplits=2)
    m.file._operators[-1].outputs = np.array(parts, np.int32)
    assert len(compare(written(m, tmp_path, parts), [numbers(*shape)])) == 2


@every("axis", [0, 1, 2, 3, -1, -4])
@every("count", [1, 3])
def test_packed(count, axis, tmp_path):
    m = Small((2, 4, 6), None)
    made = [2, 4, 6]
    made.insert(axis % 4, count)
    others = [m.tensor(f"z{at}", (2, 4, 6)) for at in range(count - 1)]
    y = m.add("PACK", [m.x, *others], made, None, "PackOptions", valuesCount=count, axis=axis)
    path = written(m, tmp_path, y, {f"z{at}": z for at, z in enumerate(others)})
    compare(path, [numbers(2, 4, 6, seed=at) for at in range(count)])


@every(("shape", "axis"), JOINED)
def test_unpacked(shape, axis, tmp_path):
    m, made = Small(shape, None), list(shape)
    count = made.pop(axis)
    parts = [m.tensor(f"part{at}", made) for at in range(count)]
    m.file.operator("UNPACK", [m.x], parts[0], "UnpackOptions", num=count, axis=axis)
    m.file._operators[-1].outputs = np.array(parts, np.int32)
    assert len(compare(written(m, tmp_path, parts), [numbers(*shape)])) == count


REVERSED = [
    ((100,), [0]),
    (SHAPE, [0]),
    (SHAPE, [1]),
    (SHAPE, [3]),
    (SHAPE, [-2]),
    (SHAPE, [1, 2]),
    ((2, 4, 6), [0]),
    ((2, 4, 6), [1, 2]),
    ((4, 6), [-1]),
    ((6,), [0]),
]


@every(("shape", "axes"), REVERSED)
def test_reversed(shape, axes, tmp_path):
    _one(tmp_path, "REVERSE_V2", shape, shape, axes, options="ReverseV2Options")


@every(
    ("shape", "counts"),
    [(SHAPE, [1, 2, 3, 4]), (SHAPE, [3, 1, 1, 2]), ((2, 4, 6), [2, 1, 3]), ((4, 6), [3, 2]), ((6,), [4]), (SHAPE, [1] * 4)],
)
def test_repeated(shape, counts, tmp_path):
    made = [n * count for n, count in zip(shape, counts, strict=True)]
    _one(tmp_path, "TILE", shape, made, counts, options="TileOptions")


@every(
    ("shape", "made"),
    shapes(
        "2x5x1x3>2x5x4x3 1x5x1x3>2x5x4x3 1x1x7x1>2x5x7x3 7x3>2x5x7x3 7x1>5x7x3 3>2x5x7x3 1x6>4x6 1>4x6 4x1>2x4x6 "
        "2x5x7x3>2x5x7x3 4x1x6>2x4x3x6"
    ),
)
def test_broadcast(shape, made, tmp_path):
    _one(tmp_path, "BROADCAST_TO", shape, made, made)


@every(("shape", "axis"), [*JOINED, ((6,), 0)])
@every("chosen", [[1], [1, 0, 1, 1]])
def test_gathered(shape, axis, chosen, tmp_path):
    last = shape[axis] - 1
    made = _at(shape, axis, len(chosen) + 1)
    _one(tmp_path, "GATHER", shape, made, [*chosen, last], options="GatherOptions", axis=axis)


@every("cast", [True, False])
@every(("table", "axis", "places"), [((9, 4), 0, (1, 5)), ((9, 4), 0, (2, 3)), ((2, 9, 3), 1, (1,)), ((9, 3), 0, (1, 2, 3))])
def test_embedded(table, axis, places, cast, tmp_path):
    """Rows of a table whose numbers are real inputs, as Keras converts an Embedding, or integers."""
    m = Small(places, None)
    words = np.random.default_rng(3).integers(0, 9, places).astype(np.float32)
    if cast:
        chosen = m.file.tensor("chosen", places, np.int32)
        m.file.operator("CAST", [m.x], chosen)
    else:
        m.x = chosen = m.file.tensor("words", places, np.int32)
        words = words.astype(np.int32)
    rows = m.tensor("rows", table, values=numbers(*table))
    made = (*table[:axis], *places, *table[axis + 1 :])
    y = m.add("GATHER", [rows, chosen], made, None, "GatherOptions", name="y", axis=axis)
    compare(written(m, tmp_path, y), [words], real=True)


PRODUCTS = shapes(
    "4x6>6x5 2x4x6>2x6x5 2x4x6>1x6x5 1x4x6>3x6x5 2x3x4x6>2x3x6x5 2x1x4x6>1x3x6x5 1x3x4x6>2x3x6x5 2x2x3x4x6>2x2x3x6x5"
)


@every(("left", "right"), [(False, False), (True, False), (False, True), (True, True)])
@every("shapes", PRODUCTS)
def test_products(shapes, left, right, tmp_path):
    first, second = (
        (*shape[:-2], shape[-1], shape[-2]) if turned else shape for shape, turned in zip(shapes, (left, right), strict=True)
    )
    made = (*np.broadcast_shapes(shapes[0][:-2], shapes[1][:-2]), 4, 5)
    m = Small(first, None)
    z = m.tensor("z", second)
    y = m.add("BATCH_MATMUL", [m.x, z], made, None, "BatchMatMulOptions", adjX=left, adjY=right)
    compare(written(m, tmp_path, y, {"z": z}), [numbers(*first), numbers(*second, seed=6)])


@every("width", [2.0, 2e-7])
@every("shape", SHAPES[:4])
def test_unit_length(shape, width, tmp_path):
    """Along the last axis; lengths below a millionth count as that, which the network leaves out as a mere guard."""
    x = numbers(*shape, width=width)
    _one(tmp_path, "L2_NORMALIZATION", shape, shape, options="L2NormOptions", x=x, network=width > 1)


@pytest.mark.parametrize("block", [1, 2, 3])
def test_blocks(block, tmp_path):
    wide, deep = (2, 2 * block, 3 * block, 5), (2, 2, 3, 5 * block * block)
    _one(tmp_path, "SPACE_TO_DEPTH", wide, deep, options="SpaceToDepthOptions", blockSize=block)
    _one(tmp_path, "DEPTH_TO_SPACE", deep, wide, options="DepthToSpaceOptions", blockSize=block)
