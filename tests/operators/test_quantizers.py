"""Quantized layers alone: their integers follow the real numbers, their constants stand for those that were given, others are refused."""

import numpy as np
from support.errors import error_line
from support.ops import AddConstants, ArrayMatMul, ArrayRecurrent, Concat, Convert, MaskedSoftmax, Normalize, Softmax, Unpool
from support.tables import every

from n2d2py.arithmetic import FLOAT32, FLOAT64, NumType
from n2d2py.contracts.operator import Op
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.contracts.quant.quantizer import QUANTIZERS, LayerTypes, quantize_layer, refused
from n2d2py.graph import Node, QuantGraph, QuantNode, QuantTensor

RNG = np.random.default_rng(5)
CONSTANTS = RNG.normal(size=12).astype(np.float32)
MASK = np.array([[1, 1, 0, 0], [1, 0, 1, 1], [0, 0, 0, 1]], bool)
GAIN = {"gain": RNG.uniform(0.5, 2, 4).astype(np.float32), "shift": RNG.normal(size=4).astype(np.float32)}

LAYERS: dict[str, tuple[Op, tuple[tuple[int, ...], ...], dict[str, np.ndarray]]] = {
    "constants added": (AddConstants(), ((12,),), {"constants": CONSTANTS}),
    "joined with constants": (Concat(1, 3, (0, -1)), ((12,),), {"operand1": CONSTANTS[:6]}),
    "constants first": (Concat(1, 3, (-1, 0)), ((12,),), {"operand0": CONSTANTS[:6]}),
    "joined": (Concat(1, 3, (1, 0)), ((12,), (6,)), {}),
    "masked softmax": (MaskedSoftmax(4), ((24,),), {"mask": MASK}),
    "softmax": (Softmax(4, inner=2), ((24,),), {}),
    "norm": (Normalize(4, 1e-3), ((24,),), GAIN),
    "norm of a large epsilon": (Normalize(8, 2.0), ((24,),), {}),
    "norm without gains": (Normalize(8, 1e-3, False), ((24,),), {}),
    "unpool": (Unpool((2, 2), (2, 2)), ((2, 3, 3), (2, 6, 6)), {}),
    "convert": (Convert(), ((12,),), {}),
}


def quantized(op: Op, shapes, params, bits: int, zero_point: int = 0) -> tuple[np.ndarray, np.ndarray, QuantNode, QuantGraph]:
    """Real results, those of the integers, the layer and its network."""
    names, rng = [f"x{index}" for index in range(len(shapes))], np.random.default_rng(8)
    reals = [rng.normal(size=(9, *shape)).astype(np.float32) for shape in shapes]
    node = Node("y", op, names, ["y"], dict(params))
    if isinstance(op, Unpool):  # no two of a window are one step of 8 bits
        reals[1] = rng.permuted(np.tile(np.arange(72) / 72 - 0.5, (9, 1)), axis=1).reshape(reals[1].shape).astype(np.float32)
    real = op.run(reals, node)[0]
    top = 2 ** (bits - 1) - 1
    kinds = [NumType(bits, scale=float(np.abs(x).max()) / (top - abs(zero_point)), zero_point=zero_point) for x in reals]
    result = NumType(bits, scale=float(np.abs(real).max()) / top)
    if isinstance(op, Unpool):
        result = kinds[0]
    made = quantize_layer(node, LayerTypes(kinds, result, QuantOptions(bits=bits)))
    tensors = {name: QuantTensor(name, (1, *x.shape[1:]), kind) for name, x, kind in zip(names, reals, kinds, strict=True)}
    graph = QuantGraph("g", bits, {**tensors, "y": QuantTensor("y", (1, *real.shape[1:]), result)}, [made], names, ["y"])
    stored = [kind.quantize(x.astype(np.float64)) for kind, x in zip(kinds, reals, strict=True)]
    return real, result.dequantize(op.run_integer(stored, made, graph)[0]), made, graph


@every("zero_point", [0, 9])
@every("bits", [8, 16])
@every("layer", LAYERS)
def test_integers_and_constants_stand_for_real_numbers(layer, bits, zero_point):
    op, shapes, params = LAYERS[layer]
    real, found, made, graph = quantized(op, shapes, params, bits, zero_point)
    assert found.shape == real.shape
    decibels = 10 * np.log10(np.mean(real.astype(np.float64) ** 2) / np.mean((found - real) ** 2))
    assert decibels > (28 if bits == 8 else 60), decibels
    back = QUANTIZERS[op.kind].real_params(made, graph)
    if back is None:
        return
    assert set(back) == set(params) or (not params and isinstance(op, Normalize))
    for role, values in params.items():
        assert back[role].shape == values.shape
        step = 1 / 64 if bits == 8 else 1 / 4096
        np.testing.assert_allclose(back[role].astype(np.float64), values.astype(np.float64), atol=step * np.abs(values).max())


@every(
    "source, target",
    [
        (FLOAT32, FLOAT64),
        (FLOAT64, FLOAT32),
        (FLOAT32, NumType(8, scale=0.02)),
        (NumType(8, scale=0.02, zero_point=5), FLOAT64),
        (NumType(16, scale=0.001), NumType(8, scale=0.03, zero_point=-4)),
    ],
)
def test_conversions(source, target):
    """Between real numbers they change the width alone, between integers the steps, with ties to the nearest."""
    node = Node("y", Convert(), ["x"], ["y"])
    made = quantize_layer(node, LayerTypes([source], target, QuantOptions()))
    graph = QuantGraph("g", 8, {n: QuantTensor(n, (1, 40), k) for n, k in (("x", source), ("y", target))}, [made], ["x"], ["y"])
    x = np.linspace(-2, 2, 40)[None]
    stored = x.astype(source.dtype) if source.is_float else source.quantize(x)
    (y,) = Convert().run_integer([stored], made, graph)
    assert y.dtype == target.dtype and QUANTIZERS["Convert"].real_params(made, graph) == {}
    values = y if target.is_float else target.dequantize(y)
    step = (0 if source.is_float else source.scale) + (0 if target.is_float else target.scale)
    np.testing.assert_allclose(values, x, atol=0.51 * step + 1e-6)


S8, S16 = NumType(8, scale=1 / 127), NumType(16, scale=1 / 32767)


def _recurrent(spread: float, bias: float = 0.0, size: int = 3) -> tuple[Op, dict[str, np.ndarray]]:
    op = ArrayRecurrent("LSTM", 2, size, 4)
    ones = {"input_weights": (16, size), "recurrent_weights": (16, 4)}
    params = {role: np.full(shape, spread, np.float32) for role, shape in ones.items()}
    params |= {"gate_bias": np.full(16, bias, np.float32), "recurrent_bias": np.zeros(4, np.float32)}
    return op, params | {"initial_h": np.zeros(4, np.float32), "initial_c": np.zeros(4, np.float32)}


REFUSED = {
    "product of integers": (ArrayMatMul((2, 3), (3, 2), (0, 1), "int32"), {}, "a product of integers of a fixed type"),
    "product of constants": (ArrayMatMul((2, 3), (3, 2), (0, -1)), {}, "a product of an array and constant matrices"),
    "product of a factor of 0": (
        ArrayMatMul((2, 3), (3, 2), (0, 1), scale=0.0),
        {},
        "a product times a factor that is not positive",
    ),
    "logarithm": (Softmax(4, True), {}, "the logarithm of a softmax"),
    "softmax": (Softmax(65536), {}, "a softmax of more than 65535 elements"),
    "long softmax": (Softmax(65535), {}, None),
    "product": (ArrayMatMul((2, 3), (3, 2), (0, 1)), {}, None),
}


@every("layer", REFUSED)
def test_what_has_no_integers_says_why(layer):
    op, params, reason = REFUSED[layer]
    assert refused(Node("y", op, ["a", "b"], ["y"], params)) == reason


@every(
    "op, params, kinds, words",
    [
        (ArrayMatMul((1, 2**23), (2**23, 1), (0, 1)), {}, [S16, S16], None),
        (ArrayMatMul((1, 2**23 + 1024), (2**23 + 1024, 1), (0, 1)), {}, [S16, S16], "a product whose sums exceed 53 bits"),
        (*_recurrent(1.0), [S8], None),
        (*_recurrent(1.0, 1e30), [S8], "a recurrent layer whose weights or biases are too large"),
        (Normalize(4, 1e-3), GAIN | {"shift": np.full(4, 1e25, np.float32)}, [S8], "a normalisation whose bias is beyond 53 bits of its gains"),
    ],
    ids=str,
)  # fmt: skip
def test_what_integers_do_not_hold(op, params, kinds, words):
    node = Node("y", op, [f"x{index}" for index in range(len(kinds))], ["y"], params)
    types = LayerTypes(kinds, NumType(8, scale=0.05), QuantOptions())
    if words is None:
        quantize_layer(node, types)
        return
    assert words in error_line(quantize_layer, node, types)
