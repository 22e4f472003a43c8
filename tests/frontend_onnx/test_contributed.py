"""Operators of ONNX Runtime's own domain, by ONNX Runtime."""

import numpy as np
import pytest
from support.tables import every

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.executor import run_graph

F = np.float32
RNG = np.random.default_rng(8)
IMAGE, ROWS = "float[1,4,6,6] x => float[1,?,?,?] y", "float[1,5,8] x => float[1,5,?] y"


def real(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(F)


def whole(high: int, *shape: int, dtype: type = np.uint8) -> np.ndarray:
    return RNG.integers(0, high, shape).astype(dtype)


W, B = real(4, 4, 3, 3), real(4)
GAIN = {"g": real(8), "b": real(8), "c": real(8), "k": real(1, 5, 8)}
PROJECTED = {"w": real(8, 24), "b": real(24)}
ANGLES = RNG.uniform(0, 6, (9, 2))
TURNS = {"p": np.arange(5)[None], "cos": np.cos(ANGLES).astype(F), "sin": np.sin(ANGLES).astype(F)}
FORMS = {
    "conv, relu": (IMAGE, 'y = com.microsoft.FusedConv <activation = "Relu", pads = [1,1,1,1]> (x, w, b)', {"w": W, "b": B}),
    "conv, sum, clip": (
        IMAGE,
        'r = Relu (x) y = com.microsoft.FusedConv <activation = "Clip", activation_params = [-0.5, 0.5], pads = [1,1,1,1]> (x, w, b, r)',
        {"w": W, "b": B},
    ),
    "conv, leaky": (
        IMAGE,
        'y = com.microsoft.FusedConv <activation = "LeakyRelu", activation_params = [0.2]> (x, w)',
        {"w": W},
    ),
    "gemm, leaky": (
        "float[N,8] x => float[N,6] y",
        'y = com.microsoft.FusedGemm <activation = "LeakyRelu", activation_alpha = 0.3, transB = 1> (x, w, b)',
        {"w": real(6, 8), "b": real(6)},
    ),
    "product": (ROWS, "y = com.microsoft.FusedMatMul <transB = 1, alpha = 0.25> (x, w)", {"w": real(6, 8)}),
    "product of two": (ROWS, "r = Tanh (x) y = com.microsoft.FusedMatMul <transA = 1, alpha = 1.0> (x, r)", {}),
    "gelu": (ROWS, "y = com.microsoft.Gelu (x)", {}),
    "bias, gelu": (ROWS, "y = com.microsoft.BiasGelu (x, b)", {"b": real(8)}),
    "fast gelu": (ROWS, "y = com.microsoft.FastGelu (x, b)", {"b": real(8)}),
    "quick gelu": (ROWS, "y = com.microsoft.QuickGelu <alpha = 1.5> (x)", {}),
    "simplified norm": (ROWS, "y = SimplifiedLayerNormalization <axis = -1, epsilon = 0.001> (x, g)", {"g": GAIN["g"]}),
    "skip norm": (
        "float[1,5,8] x => float[1,5,8] y, float[1,5,8] z",
        "y, m, d, z = com.microsoft.SkipLayerNormalization <epsilon = 0.001> (x, k, g, b, c)",
        GAIN,
    ),
    "skip norm without bias": (ROWS, "r = Relu (x) y = com.microsoft.SkipLayerNormalization (x, r, g)", {"g": GAIN["g"]}),
    "skip simplified norm": (
        ROWS,
        "y = com.microsoft.SkipSimplifiedLayerNormalization <epsilon = 0.001> (x, k, g, c)",
        {name: GAIN[name] for name in "kgc"},
    ),
    "embeddings": (
        "float[1,5] x => float[1,5,8] y",
        "i = Cast <to = 6> (x) a = Abs (i) y, m = com.microsoft.EmbedLayerNormalization <epsilon = 0.001> (a, s, w, p, t, g, b)",
        {
            "s": whole(2, 1, 5, dtype=np.int32),
            "w": real(9, 8),
            "p": real(7, 8),
            "t": real(2, 8),
            "g": GAIN["g"],
            "b": GAIN["b"],
        },
    ),
    "pool, channels last": (
        "float[1,6,6,4] x => float[1,?,?,4] y",
        "q = QuantizeLinear (x, s, z) p = com.microsoft.NhwcMaxPool <kernel_shape = [2,2], strides = [2,2]> (q) y = DequantizeLinear (p, s, z)",
        {"s": np.array(0.05, F), "z": np.array(3, np.int8)},
    ),
    "4-bit weights": (
        ROWS,
        "y = com.microsoft.MatMulNBits <K = 8, N = 3, bits = 4, block_size = 16> (x, w, s)",
        {"w": whole(256, 3, 1, 8), "s": real(3)},
    ),
    "4-bit weights with zero points": (
        "float[1,2,40] x => float[1,2,3] y",
        "y = com.microsoft.MatMulNBits <K = 40, N = 3, bits = 4, block_size = 16> (x, w, s, z)",
        {"w": whole(256, 3, 3, 8), "s": real(9), "z": whole(256, 6)},
    ),
    "attention": (ROWS, "y = com.microsoft.Attention <num_heads = 2> (x, w, b)", PROJECTED),
    "causal attention": (
        ROWS,
        "y = com.microsoft.Attention <num_heads = 2, unidirectional = 1, scale = 0.7> (x, w, b)",
        PROJECTED,
    ),
    "attention with a mask": (
        ROWS,
        "y = com.microsoft.Attention <num_heads = 4> (x, w, b, m)",
        {**PROJECTED, "m": np.array([[1, 1, 0, 1, 0]], np.int32)},
    ),
    "attention of two": (
        ROWS,
        "k = MatMul (x, w) v = Tanh (k) y = com.microsoft.MultiHeadAttention <num_heads = 2> (x, k, v, b, , a)",
        {"w": real(8, 8), "b": real(24), "a": real(1, 2, 5, 5)},
    ),
    "turned": (ROWS, "y = com.microsoft.RotaryEmbedding <num_heads = 2> (x, p, cos, sin)", TURNS),
    "turned pairs": (ROWS, "y = com.microsoft.RotaryEmbedding <interleaved = 1, num_heads = 2> (x, p, cos, sin)", TURNS),
    "turned heads": (
        "float[1,3,5,4] x => float[1,3,5,4] y",
        "y = com.microsoft.RotaryEmbedding (x, p, cos, sin)",
        {**TURNS, "p": np.arange(2, 7)[None]},
    ),
}


@every("form", FORMS)
def test_as_onnx_runtime(model, check, form):
    signature, body, constants = FORMS[form]
    check(model(signature, body, 17, **constants), tolerance=2e-5)


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def group_norm(x: np.ndarray) -> np.ndarray:
    """Of N x H x W x 4 in two groups, followed by SiLU."""
    groups = x.reshape(len(x), -1, 2, 2)
    centred = groups - groups.mean((1, 3), keepdims=True)
    y = (centred / np.sqrt(np.square(centred).mean((1, 3), keepdims=True) + 1e-3)).reshape(x.shape) * GAIN["g"][:4] + GAIN["b"][
        :4
    ]
    return y / (1 + np.exp(-y))


@every(
    "sizes, body, formula",
    [
        ("5,8", "y = com.microsoft.BiasSoftmax <axis = 2, is_inner_broadcast = 0> (x, k)", lambda x: softmax(x + GAIN["k"])),
        ("6,6,4", "y = com.microsoft.GroupNorm <groups = 2, activation = 1, epsilon = 0.001> (x, g, b)", group_norm),
    ],
)
def test_as_their_formulas(model, sizes, body, formula):
    """Operators that ONNX Runtime has for graphics processors alone."""
    graph = import_onnx(
        model(f"float[1,{sizes}] x => float[1,{sizes}] y", body, 17, k=GAIN["k"], g=GAIN["g"][:4], b=GAIN["b"][:4])
    )
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
        ("y = com.microsoft.Attention <num_heads = 5> (x, a, b)", "heads"),
        ("y = com.microsoft.FusedMatMul <transBatchA = 1> (x, w)", "batch"),
        ("y = com.microsoft.LongformerAttention (x, w)", "not supported"),
    ],
)
def test_refused(model, body, reason):
    built = model("float[1,4,8] x, float[2,1,2,3,4] q => float[1,?,?] y", body, 17, w=(4, 4, 3), a=(8, 24), b=(24,))
    with pytest.raises(N2D2Error, match=reason) as error:
        import_onnx(built)
    assert error.value.code == "E310"
