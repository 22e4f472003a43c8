"""Operators of ONNX Runtime's own domain, by ONNX Runtime."""

import numpy as np
import pytest
from support.onnx_models import text_forms
from support.tables import every

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.executor import run_graph

F = np.float32
RNG = np.random.default_rng(8)
ROWS = "float[1,5,8] x => float[1,5,?] y"


def real(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(F)


def whole(high: int, *shape: int, dtype: type = np.uint8) -> np.ndarray:
    return RNG.integers(0, high, shape).astype(dtype)


ANGLES = RNG.uniform(0, 6, (9, 2))
SKIP, GAIN, SHIFT = real(1, 5, 8), real(8), real(8)
CONSTANTS = {
    "kernel": real(4, 4, 3, 3),
    "bias4": real(4),
    "w68": real(6, 8),
    "bias6": real(6),
    "bias8": real(8),
    "skip": SKIP,
    "gain": GAIN,
    "shift": SHIFT,
    "gain4": GAIN[:4],
    "shift4": SHIFT[:4],
    "segments": whole(2, 1, 5, dtype=np.int32),
    "words": real(9, 8),
    "places": real(7, 8),
    "kinds": real(2, 8),
    "scale": np.array(0.05, F),
    "zero": np.array(3, np.int8),
    "n8": whole(256, 3, 1, 8),
    "s8": real(3),
    "n40": whole(256, 3, 3, 8),
    "s40": real(9),
    "z40": whole(256, 6),
    "w88": real(8, 8),
    "w24": real(8, 24),
    "bias24": real(24),
    "seen": np.array([[1, 1, 0, 1, 0]], np.int32),
    "scores": real(1, 2, 5, 5),
    "cos": np.cos(ANGLES).astype(F),
    "sin": np.sin(ANGLES).astype(F),
    "from0": np.arange(5)[None],
    "from2": np.arange(2, 7)[None],
}
"""A model has those that it names."""
FORMS = text_forms("""
conv, relu, 17: float[1,4,6,6] x => float[1,?,?,?] y
  y = com.microsoft.FusedConv <activation = "Relu", pads = [1,1,1,1]> (x, kernel, bias4)
conv, sum, clip, 17: float[1,4,6,6] x => float[1,?,?,?] y
  r = Relu (x)
  y = com.microsoft.FusedConv <activation = "Clip", activation_params = [-0.5, 0.5], pads = [1,1,1,1]> (x, kernel, bias4, r)
conv, leaky, 17: float[1,4,6,6] x => float[1,?,?,?] y
  y = com.microsoft.FusedConv <activation = "LeakyRelu", activation_params = [0.2]> (x, kernel)
gemm, leaky, 17: float[N,8] x => float[N,6] y
  y = com.microsoft.FusedGemm <activation = "LeakyRelu", activation_alpha = 0.3, transB = 1> (x, w68, bias6)
product, 17: float[1,5,8] x => float[1,5,?] y
  y = com.microsoft.FusedMatMul <transB = 1, alpha = 0.25> (x, w68)
product of two, 17: float[1,5,8] x => float[1,5,?] y
  r = Tanh (x) y = com.microsoft.FusedMatMul <transA = 1, alpha = 1.0> (x, r)
gelu, 17: float[1,5,8] x => float[1,5,?] y
  y = com.microsoft.Gelu (x)
bias, gelu, 17: float[1,5,8] x => float[1,5,?] y
  y = com.microsoft.BiasGelu (x, bias8)
fast gelu, 17: float[1,5,8] x => float[1,5,?] y
  y = com.microsoft.FastGelu (x, bias8)
quick gelu, 17: float[1,5,8] x => float[1,5,?] y
  y = com.microsoft.QuickGelu <alpha = 1.5> (x)
simplified norm, 17: float[1,5,8] x => float[1,5,?] y
  y = SimplifiedLayerNormalization <axis = -1, epsilon = 0.001> (x, gain)
skip norm, 17: float[1,5,8] x => float[1,5,8] y, float[1,5,8] z
  y, m, d, z = com.microsoft.SkipLayerNormalization <epsilon = 0.001> (x, skip, gain, shift, bias8)
skip norm without bias, 17: float[1,5,8] x => float[1,5,?] y
  r = Relu (x) y = com.microsoft.SkipLayerNormalization (x, r, gain)
skip simplified norm, 17: float[1,5,8] x => float[1,5,?] y
  y = com.microsoft.SkipSimplifiedLayerNormalization <epsilon = 0.001> (x, skip, gain, bias8)
embeddings, 17: float[1,5] x => float[1,5,8] y
  i = Cast <to = 6> (x) a = Abs (i)
  y, m = com.microsoft.EmbedLayerNormalization <epsilon = 0.001> (a, segments, words, places, kinds, gain, shift)
pool, channels last, 17: float[1,6,6,4] x => float[1,?,?,4] y
  q = QuantizeLinear (x, scale, zero) p = com.microsoft.NhwcMaxPool <kernel_shape = [2,2], strides = [2,2]> (q)
  y = DequantizeLinear (p, scale, zero)
4-bit weights, 17: float[1,5,8] x => float[1,5,?] y
  y = com.microsoft.MatMulNBits <K = 8, N = 3, bits = 4, block_size = 16> (x, n8, s8)
4-bit weights with zero points, 17: float[1,2,40] x => float[1,2,3] y
  y = com.microsoft.MatMulNBits <K = 40, N = 3, bits = 4, block_size = 16> (x, n40, s40, z40)
attention, 17: float[1,5,8] x => float[1,5,?] y
  y = com.microsoft.Attention <num_heads = 2> (x, w24, bias24)
causal attention, 17: float[1,5,8] x => float[1,5,?] y
  y = com.microsoft.Attention <num_heads = 2, unidirectional = 1, scale = 0.7> (x, w24, bias24)
attention with a mask, 17: float[1,5,8] x => float[1,5,?] y
  y = com.microsoft.Attention <num_heads = 4> (x, w24, bias24, seen)
attention of two, 17: float[1,5,8] x => float[1,5,?] y
  k = MatMul (x, w88) v = Tanh (k) y = com.microsoft.MultiHeadAttention <num_heads = 2> (x, k, v, bias24, , scores)
turned, 17: float[1,5,8] x => float[1,5,?] y
  y = com.microsoft.RotaryEmbedding <num_heads = 2> (x, from0, cos, sin)
turned pairs, 17: float[1,5,8] x => float[1,5,?] y
  y = com.microsoft.RotaryEmbedding <interleaved = 1, num_heads = 2> (x, from0, cos, sin)
turned heads, 17: float[1,3,5,4] x => float[1,3,5,4] y
  y = com.microsoft.RotaryEmbedding (x, from2, cos, sin)
""")


@every("form", FORMS)
def test_as_onnx_runtime(model, check, form):
    ends, body, opset = FORMS[form]
    check(model(ends, body, opset, **CONSTANTS), tolerance=2e-5)


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def group_norm(x: np.ndarray) -> np.ndarray:
    """Of N x H x W x 4 in two groups, followed by SiLU."""
    groups = x.reshape(len(x), -1, 2, 2)
    centred = groups - groups.mean((1, 3), keepdims=True)
    y = (centred / np.sqrt(np.square(centred).mean((1, 3), keepdims=True) + 1e-3)).reshape(x.shape) * GAIN[:4] + SHIFT[:4]
    return y / (1 + np.exp(-y))


@every(
    "sizes, body, formula",
    [
        ("5,8", "y = com.microsoft.BiasSoftmax <axis = 2, is_inner_broadcast = 0> (x, skip)", lambda x: softmax(x + SKIP)),
        ("6,6,4", "y = com.microsoft.GroupNorm <groups = 2, activation = 1, epsilon = 0.001> (x, gain4, shift4)", group_norm),
    ],
)
def test_as_their_formulas(model, sizes, body, formula):
    """Operators that ONNX Runtime has for graphics processors alone."""
    graph = import_onnx(model(f"float[1,{sizes}] x => float[1,{sizes}] y", body, 17, **CONSTANTS))
    x = real(2, *map(int, sizes.split(",")))
    np.testing.assert_allclose(run_graph(graph, {"x": x})["y"], formula(x.astype(np.float64)), rtol=1e-4, atol=1e-5)


@every("signed", [False, True])
def test_dynamic_products_are_near(model, check, signed):
    """ONNX Runtime rounds the input to 8 bits, which the import leaves to the calibration."""
    weights = whole(255, 8, 6) if not signed else whole(127, 8, 6, dtype=np.int8)
    constants = {"w": weights, "s": np.array(0.01, F), "z": np.array(100, weights.dtype), "b": real(6)}
    check(model(ROWS, "y = com.microsoft.DynamicQuantizeMatMul (x, w, s, z, b)", 17, **constants), tolerance=2e-2)


@every(
    "body, reason",
    [
        ('y = com.microsoft.FusedConv <activation = "Mish"> (x, w)', "activation"),
        ("y, p = com.microsoft.Attention <num_heads = 2> (x, a, b, , q)", "past"),
        ("y = com.microsoft.Attention <num_heads = 5> (x, a, b)", "8 values per query .* 5 heads"),
        ("y = com.microsoft.FusedMatMul <transBatchA = 1> (x, w)", "batch"),
        ("y = com.microsoft.LongformerAttention (x, w)", "not supported"),
    ],
)
def test_refused(model, body, reason):
    built = model("float[1,4,8] x, float[2,1,2,3,4] q => float[1,?,?] y", body, 17, w=(4, 4, 3), a=(8, 24), b=(24,))
    with pytest.raises(N2D2Error, match=reason) as error:
        import_onnx(built)
    assert error.value.code == "E310"
