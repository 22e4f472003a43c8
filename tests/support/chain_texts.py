"""Networks of several layers in ONNX's text form: the shapes of real ones, each small. Constants have their shape in their name."""

import re

import numpy as np
import onnx
from onnx import numpy_helper

from support.onnx_models import text_model

CONV = "<pads = [1,1,1,1]>"
TEXTS: dict[str, str] = {
    "residual": f"a = Conv {CONV} (x, w_4_4_3_3, b_4)\n r = Relu (a)\n c = Conv {CONV} (r, w_4_4_3_3, b_4)\n u = Add (c, x)\n v = Relu (u)\n"
    "d = Conv <strides = [2,2]> (v, w_8_4_1_1, b_8)\n e = Conv <strides = [2,2], pads = [1,1,1,1]> (v, w_8_4_3_3, b_8)\n f = Add (e, d)\n y = Relu (f)",
    "inverted residual": "a = Conv (x, w_12_4_1_1, b_12)\n r = Clip (a, zero, six)\n c = Conv <pads = [1,1,1,1], group = 12> (r, w_12_1_3_3, b_12)\n s = Clip (c, zero, six)\n"
    "d = Conv (s, w_4_12_1_1, b_4)\n u = Add (x, d)\n e = Conv <strides = [2,2]> (u, w_8_4_1_1, b_8)\n y = GlobalAveragePool (e)",
    "normalised": "a = Conv (x, w_8_4_3_3)\n n = BatchNormalization <epsilon = 0.01> (a, p_8, b_8, c_8, q_8)\n r = Relu (n)\n m = BatchNormalization (r, p_8, b_8, c_8, q_8)\n"
    "c = Conv (m, w_4_8_1_1, b_4)\n k = BatchNormalization (c, p_4, b_4, c_4, q_4)\n y = LeakyRelu <alpha = 0.125> (k)",
    "dense block": f"a = Conv {CONV} (x, w_3_4_3_3, b_3)\n r = Relu (a)\n j = Concat <axis = 1> (x, r)\n c = Conv {CONV} (j, w_3_7_3_3, b_3)\n s = Relu (c)\n"
    "k = Concat <axis = 1> (j, s)\n p = AveragePool <kernel_shape = [2,2], strides = [2,2]> (k)\n y = Conv (p, w_4_10_1_1)",
    "shuffle": "a = Conv <group = 2> (x, w_8_2_1_1, b_8)\n r = Reshape (a, i_0_2_4_8_8)\n t = Transpose <perm = [0,2,1,3,4]> (r)\n s = Reshape (t, i_0_8_8_8)\n"
    "b, c = Split <axis = 1> (s)\n d = Conv <group = 4, pads = [1,1,1,1]> (b, w_4_1_3_3, b_4)\n y = Concat <axis = 1> (d, c)",
    "squeezed and excited": "a = Conv (x, w_8_4_1_1, b_8)\n r = Relu (a)\n g = GlobalAveragePool (r)\n c = Conv (g, w_2_8_1_1, b_2)\n s = Relu (c)\n"
    "d = Conv (s, w_8_2_1_1, b_8)\n h = HardSigmoid <alpha = 0.2> (d)\n m = Mul (r, h)\n y = Conv (m, w_4_8_1_1)",
    "u shape": f"a = Conv {CONV} (x, w_4_4_3_3, b_4)\n r = Relu (a)\n p = MaxPool <kernel_shape = [2,2], strides = [2,2]> (r)\n c = Conv {CONV} (p, w_8_4_3_3, b_8)\n s = Relu (c)\n"
    'u = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (s, , f_1_1_2_2)\n j = Concat <axis = 1> (u, r)\n'
    f"d = Conv {CONV} (j, w_4_12_3_3, b_4)\n e = ConvTranspose <strides = [2,2]> (s, w_8_4_2_2, b_4)\n y = Add (d, e)",
    "lines": f"a = Conv {CONV} (x, w_6_4_3_3, b_6)\n r = Relu (a)\n c = Conv {CONV} (r, w_6_6_3_3, b_6)\n s = Relu (c)\n d = Conv <strides = [2,2], pads = [1,1,0,0]> (s, w_3_6_3_3, b_3)\n"
    "t = Relu (d)\n p = MaxPool <kernel_shape = [2,2]> (t)\n y = Conv (p, w_2_3_2_2)",
    "separable lines": "a = Conv <pads = [1,1,1,1], group = 4> (x, w_4_1_3_3, b_4)\n r = Relu (a)\n c = Conv (r, w_16_4_1_1, b_16)\n s = Relu (c)\n d = Conv <pads = [2,2,2,2], dilations = [2,2], group = 16> (s, w_16_1_3_3, b_16)\n"
    "t = Relu (d)\n e = Conv <strides = [1,2]> (t, w_4_16_1_2, b_4)\n p = AveragePool <kernel_shape = [3,1], strides = [2,1], pads = [1,0,0,0]> (e)\n y = Sigmoid (p)",
    "padded": "q = Pad (x, i_0_0_1_0_0_0_1_2)\n a = Conv (q, w_4_4_3_3, b_4)\n r = Relu (a)\n t = Pad (r, i_0_0_1_1_0_0_1_1)\n p = MaxPool <kernel_shape = [2,2], strides = [2,2]> (t)\n"
    "z = Pad (p, i_0_0_0_1_0_0_0_0, half)\n y = Conv <strides = [2,1]> (z, w_4_4_2_2)",
    "sum of pools": "a = Conv (x, w_4_4_1_1, b_4)\n p = MaxPool <kernel_shape = [2,2], strides = [2,2]> (a)\n c = Conv <strides = [2,2]> (x, w_4_4_1_1, b_4)\n u = Add (p, c)\n y = Relu (u)",
    "gelu": "a = Conv (x, w_4_4_1_1, b_4)\n d = Div (a, root2)\n e = Erf (d)\n f = Add (e, one)\n m = Mul (a, f)\n y = Mul (m, half)",
    "gelu by tanh": "f = Reshape (x, i_0_4_64)\n a = MatMul (f, w_64_8)\n c = Mul (a, a)\n d = Mul (c, a)\n e = Mul (d, cube)\n g = Add (a, e)\n h = Mul (g, root)\n t = Tanh (h)\n u = Add (t, one)\n v = Mul (a, u)\n y = Mul (v, half)",
    "swish and others": "a = Conv (x, w_4_4_1_1, b_4)\n s = Sigmoid (a)\n m = Mul (a, s)\n c = Conv (m, w_4_4_1_1)\n p = Softplus (c)\n t = Tanh (p)\n n = Mul (c, t)\n d = Conv (n, w_4_4_1_1)\n e = Add (d, three)\n f = Clip (e, zero, six)\n g = Mul (d, f)\n y = Div (g, six)",
    "softplus by parts": "a = Conv (x, w_4_4_1_1, b_4)\n e = Exp (a)\n o = Add (e, one)\n l = Log (o)\n g = Greater (a, twenty)\n w = Where (g, a, l)\n y = Conv (w, w_2_4_1_1)",
    "attention": "f = Reshape (x, i_0_16_16)\n q = MatMul (f, w_16_8)\n k = MatMul (f, v_16_8)\n v = MatMul (f, u_16_8)\n kt = Transpose <perm = [0,2,1]> (k)\n s = MatMul (q, kt)\n"
    "d = Div (s, eight)\n a = Softmax <axis = 2> (d)\n o = MatMul (a, v)\n p = MatMul (o, w_8_16)\n r = Add (p, f)\n n = LayerNormalization <axis = -1, epsilon = 0.001> (r, p_16, b_16)\n y = MatMul (n, w_16_4)",
    "heads": "f = Reshape (x, i_0_16_16)\n q = MatMul (f, w_16_16)\n qb = Add (q, b_16)\n qh = Reshape (qb, i_0_16_2_8)\n qt = Transpose <perm = [0,2,1,3]> (qh)\n k = MatMul (f, v_16_16)\n kh = Reshape (k, i_0_16_2_8)\n"
    "kt = Transpose <perm = [0,2,3,1]> (kh)\n s = MatMul (qt, kt)\n m = Mul (s, eighth)\n u = Add (m, mask)\n a = Softmax <axis = -1> (u)\n v = MatMul (f, u_16_16)\n vh = Reshape (v, i_0_16_2_8)\n vt = Transpose <perm = [0,2,1,3]> (vh)\n"
    "o = MatMul (a, vt)\n ot = Transpose <perm = [0,2,1,3]> (o)\n r = Reshape (ot, i_0_16_16)\n y = MatMul (r, w_16_3)",
    "mask by where": "f = Reshape (x, i_0_16_16)\n k = Transpose <perm = [0,2,1]> (f)\n s = MatMul (f, k)\n w = Where (truth, s, far)\n a = Softmax <axis = -1> (w)\n y = MatMul (a, f)",
    "spelled norm": "f = Reshape (x, i_0_16_16)\n m = ReduceMean <axes = [-1]> (f)\n d = Sub (f, m)\n q = Mul (d, d)\n v = ReduceMean <axes = [-1]> (q)\n e = Add (v, tiny)\n s = Sqrt (e)\n n = Div (d, s)\n g = Mul (n, p_16)\n h = Add (g, b_16)\n y = MatMul (h, w_16_5)",
    "norm of Flax": "f = Reshape (x, i_0_16_16)\n m = ReduceMean <axes = [-1]> (f)\n q = Mul (f, f)\n s = ReduceMean <axes = [-1]> (q)\n h = Mul (m, m)\n d = Sub (s, h)\n v = Max (d, zero)\n"
    "e = Add (v, tiny)\n r = Sqrt (e)\n i = Reciprocal (r)\n k = Mul (i, p_16)\n a = Sub (f, m)\n n = Mul (a, k)\n b = Add (n, b_16)\n y = MatMul (b, w_16_5)",
    "root mean square": "f = Reshape (x, i_0_16_16)\n q = Pow (f, two)\n v = ReduceMean <axes = [-1]> (q)\n e = Add (v, tiny)\n s = Sqrt (e)\n i = Reciprocal (s)\n n = Mul (f, i)\n g = Mul (n, p_16)\n y = MatMul (g, w_16_5)",
    "length 1 by parts": "a = Conv (x, w_4_4_1_1, b_4)\n n = ReduceL2 <axes = [1]> (a)\n c = Clip (n, tiny)\n y = Div (a, c)",
    "linear layers": "f = Flatten (x)\n a = MatMul (f, w_256_8)\n c = Add (a, b_8)\n r = Relu (c)\n d = Gemm <transB = 1, alpha = 0.5, beta = 2.0> (r, w_6_8, b_6)\n t = Tanh (d)\n e = Gemm (t, w_6_4, b_4)\n y = Softmax (e)",
    "left product": "f = Reshape (x, i_0_16_16)\n a = MatMul (w_5_16, f)\n r = Relu (a)\n c = MatMul (r, w_16_4)\n d = Mul (c, p_4)\n e = Add (d, c_4)\n y = Relu (e)",
    "product of two": 'f = Reshape (x, i_0_4_64)\n g = Sigmoid (f)\n a = Einsum <equation = "bij,bkj->bik"> (f, g)\n r = Relu (a)\n y = MatMul (r, f)',
    "arrays summed": "f = Reshape (x, i_0_16_16)\n a = Relu (f)\n c = Add (a, f)\n d = Mul (c, p_16)\n e = Add (d, v_16)\n g = Sub (e, a)\n h = Mul (g, c)\n k = ReduceMean <axes = [1], keepdims = 0> (h)\n y = Gemm (k, w_16_3, b_3)",
    "gains of channels": "f = Reshape (x, i_0_4_64)\n g = Mul (f, p_4_1)\n h = Add (g, b_4_1)\n r = Relu (h)\n s = Mul (r, half)\n d = Reshape (s, i_0_4_8_8)\n y = Conv (d, w_2_4_1_1)",
    "one dimension": "f = Reshape (x, i_0_4_64)\n a = Conv <pads = [1,1], strides = [2]> (f, w_6_4_3, b_6)\n r = Relu (a)\n p = MaxPool <kernel_shape = [2], strides = [2]> (r)\n c = ConvTranspose <strides = [2]> (p, w_6_3_2, b_3)\n g = GlobalAveragePool (c)\n y = Flatten (g)",
    "three dimensions": "f = Reshape (x, i_0_2_2_8_8)\n a = Conv <pads = [0,1,1,0,1,1]> (f, w_3_2_2_3_3, b_3)\n r = Relu (a)\n p = MaxPool <kernel_shape = [1,2,2], strides = [1,2,2]> (r)\n y = AveragePool <kernel_shape = [1,2,2]> (p)",
    "lstm": "f = Reshape (x, i_8_1_32)\n a, h, c = LSTM <hidden_size = 3> (f, w_1_12_32, w_1_12_3, b_1_24)\n s = Squeeze (a, i_1)\n y = Reshape (s, i_1_24)",
    "gru both ways": 'f = Reshape (x, i_8_1_32)\n a, h = GRU <hidden_size = 3, direction = "bidirectional", linear_before_reset = 1> (f, w_2_9_32, w_2_9_3, b_2_18)\n y = Reshape (h, i_1_6)',
    "lstm backwards": 'f = Reshape (x, i_8_1_32)\n a, h, c = LSTM <hidden_size = 3, direction = "reverse", input_forget = 0> (f, w_1_12_32, w_1_12_3)\n j = Concat <axis = 0> (h, c)\n y = Reshape (j, i_1_6)',
    "detector": "a = Conv (x, w_10_4_1_1, b_10)\n o, s = Split <axis = 1> (a, i_4_6)\n g = Sigmoid (s)\n m = Mul (o, f_1_4_1_1)\n j = Concat <axis = 1> (m, g)\n t = Transpose <perm = [0,2,3,1]> (j)\n y = Reshape (t, i_0_64_10)",
    "sides of boxes": "a = Conv (x, w_8_4_1_1, b_8)\n r = Reshape (a, i_0_2_4_64)\n t = Transpose <perm = [0,2,1,3]> (r)\n s = Softmax <axis = 1> (t)\n y = Conv (s, w_1_4_1_1)",
    "chosen": "a = Conv (x, w_6_4_1_1, b_6)\n i = ArgMax <axis = 1> (a)\n k = Cast <to = 1> (i)\n y = Relu (k)",
    "picked": "a = Conv (x, w_6_4_1_1, b_6)\n s = Slice (a, i_1, i_5, i_1)\n g = Gather <axis = 1> (s, i_3_0_1)\n d = SpaceToDepth <blocksize = 2> (g)\n e = DepthToSpace <blocksize = 2> (d)\n y = Tile (e, i_1_1_1_2)",
    "channels last": "t = Transpose <perm = [0,2,3,1]> (x)\n a = MatMul (t, w_4_6)\n b = Add (a, b_6)\n r = Relu (b)\n s = Transpose <perm = [0,3,1,2]> (r)\n y = Conv (s, w_2_6_1_1)",
    "rounded": "xq = QuantizeLinear (x, step, z8)\n xd = DequantizeLinear (xq, step, z8)\n wd = DequantizeLinear <axis = 0> (k_6_4_3_3, s_6)\n bd = DequantizeLinear <axis = 0> (l_6, t_6)\n a = Conv <pads = [1,1,1,1]> (xd, wd, bd)\n r = Relu (a)\n"
    "aq = QuantizeLinear (r, step2, u0)\n ad = DequantizeLinear (aq, step2, u0)\n p = AveragePool <kernel_shape = [2,2], strides = [2,2]> (ad)\n pq = QuantizeLinear (p, step2, u0)\n pd = DequantizeLinear (pq, step2, u0)\n"
    "vd = DequantizeLinear (k_4_6_1_1, step)\n c = Conv (pd, vd)\n cq = QuantizeLinear (c, step2, z5)\n cd = DequantizeLinear (cq, step2, z5)\n f = Flatten (cd)\n fd = DequantizeLinear (k_5_64, step)\n"
    "g = Gemm <transB = 1> (f, fd)\n gq = QuantizeLinear (g, step2, z5)\n y = DequantizeLinear (gq, step2, z5)",
    "rounded sums": "xq = QuantizeLinear (x, step, z8)\n xd = DequantizeLinear (xq, step, z8)\n wd = DequantizeLinear (k_4_4_1_1, step)\n a = Conv (xd, wd)\n aq = QuantizeLinear (a, step2, z5)\n ad = DequantizeLinear (aq, step2, z5)\n"
    "u = Add (ad, xd)\n uq = QuantizeLinear (u, step2, z8)\n ud = DequantizeLinear (uq, step2, z8)\n j = Concat <axis = 1> (ud, xd)\n jq = QuantizeLinear (j, step, z5)\n jd = DequantizeLinear (jq, step, z5)\n"
    "s = Sigmoid (jd)\n sq = QuantizeLinear (s, fine, low)\n sd = DequantizeLinear (sq, fine, low)\n m = Mul (sd, jd)\n mq = QuantizeLinear (m, step, z8)\n md = DequantizeLinear (mq, step, z8)\n p = MaxPool <kernel_shape = [2,2], strides = [2,2]> (md)\n"
    "pq = QuantizeLinear (p, step, z8)\n y = DequantizeLinear (pq, step, z8)",
    "integer operators": "xq = QuantizeLinear (x, step, u128)\n a = QLinearConv (xq, step, u128, m_6_4_3_3, s_6, n_6, step2, u9, l_6)\n ad = DequantizeLinear (a, step2, u9)\n f = Flatten (ad)\n fq = QuantizeLinear (f, step2, u9)\n"
    "g = QLinearMatMul (fq, step2, u9, m_216_4, step, u128, step2, u0)\n y = DequantizeLinear (g, step2, u0)",
    "lstm, batch first": "f = Reshape (x, i_1_8_32)\n a, h, c = LSTM <hidden_size = 3, layout = 1> (f, w_1_12_32, w_1_12_3, b_1_24)\n d = Reshape (a, i_1_24)\n e = Reshape (c, i_1_3)\n y = Concat <axis = 1> (d, e)",
    "unlike dilations": "a = Conv <pads = [2,1,2,1], dilations = [2,1]> (x, w_4_4_3_3, b_4)\n r = Relu (a)\n c = Conv <pads = [0,3,0,3], dilations = [1,3]> (r, w_4_4_1_3)\n s = Relu (c)\n y = Concat <axis = 1> (s, r)",
    "embedding": "f = Reshape (x, i_0_256)\n i = Cast <to = 7> (f)\n e = Gather (w_9_6, i)\n a = Add (e, b_6)\n t = Tanh (a)\n y = MatMul (t, w_6_3)",
    "positions added": "f = Reshape (x, i_0_16_16)\n a = MatMul (f, w_16_16)\n e = Add (a, v_16_16)\n n = LayerNormalization <axis = -1, epsilon = 0.001> (e, p_16, b_16)\n"
    "c = MatMul (n, w_16_16)\n r = Add (c, e)\n m = LayerNormalization <axis = -1> (r, q_16, c_16)\n y = MatMul (m, w_16_4)",
}
"""The nodes of networks from x (1, 4, 8, 8) to y."""
REAL = (
    "positions added", "attention", "heads", "mask by where", "spelled norm", "root mean square", "length 1 by parts", "left product",
    "arrays summed", "lstm", "gru both ways", "picked", "chosen", "sum of pools", "shuffle", "gelu by tanh", "one dimension", "three dimensions",
)  # fmt: skip
"""Those whose code in real numbers is another than that of integers."""
ROUNDED = ("rounded", "rounded sums", "integer operators")
"""Those that come quantized."""
SCALARS = {
    "zero": 0.0,
    "one": 1.0,
    "two": 2.0,
    "three": 3.0,
    "six": 6.0,
    "eight": 8.0,
    "twenty": 20.0,
    "half": 0.5,
    "eighth": 0.35355338,
    "root2": 1.41421356,
    "root": 0.7978845608,
    "cube": 0.044715,
    "near": 0.70710677,
    "tiny": 1e-3,
    "far": -1e9,
    "step": 0.031,
    "step2": 0.087,
    "fine": 1 / 256,
}
BYTES = {"z8": np.int8(-8), "z5": np.int8(5), "low": np.int8(-128), "u0": np.uint8(0), "u9": np.uint8(9), "u128": np.uint8(128)}


def _constant(name: str, rng: np.random.Generator) -> np.ndarray | None:
    """By the first letter: w, u, v weights; b, c shifts; p, q gains above 0; f the numbers themselves; i the same of int64; k, m weights
    of int8 and uint8; l biases of int32; s, t scales, n zero points.
    """
    if name in SCALARS:
        return np.array(SCALARS[name], np.float32)
    if name in BYTES:
        return np.array(BYTES[name])
    if name == "mask":
        return np.where(np.tri(16, dtype=bool), 0, -1e9).astype(np.float32)
    if name == "relative":
        return np.where(np.tri(16, dtype=bool), np.sin(np.arange(256)).reshape(16, 16), -1e9).astype(np.float32)
    if name == "truth":
        return np.tri(16, dtype=bool)[None]
    if not re.fullmatch(r"[a-z](_\d+)+", name):
        return None
    kind, *sizes = name.split("_")
    dims = [int(size) for size in sizes]
    if kind in "fi":
        return (
            np.array(dims, np.int64)
            if kind == "i"
            else np.array(dims, np.float32).reshape((-1, 1, 1) if len(dims) == 4 and dims[1] > 1 else -1)
        )
    made = {
        **dict.fromkeys("wuv", lambda: rng.normal(0, 0.4, dims).astype(np.float32)),
        **dict.fromkeys("bc", lambda: rng.normal(0.1, 0.3, dims).astype(np.float32)),
        **dict.fromkeys("pq", lambda: rng.uniform(0.4, 1.9, dims).astype(np.float32)),
        "k": lambda: rng.integers(-127, 128, dims).astype(np.int8),
        "m": lambda: rng.integers(0, 256, dims).astype(np.uint8),
        "l": lambda: rng.integers(-3000, 3000, dims).astype(np.int32),
        "n": lambda: np.full(dims, 128, np.uint8),
        **dict.fromkeys("st", lambda: rng.uniform(0.002, 0.02, dims).astype(np.float32)),
    }
    return made[kind]()


def model(name: str) -> onnx.ModelProto:
    """The model of a name."""
    return network(TEXTS[name])


def network(text: str) -> onnx.ModelProto:
    """The model of a text."""
    built = text_model("float[1,4,8,8] x => float[N] y", text, has_shapes=False)
    rng = np.random.default_rng(len(text))
    made = {output for node in built.graph.node for output in node.output}
    words = dict.fromkeys(word for node in built.graph.node for word in node.input if word and word not in made)
    held = {word: _constant(word, rng) for word in words if word != "x"}
    built.graph.initializer.extend(numpy_helper.from_array(value, word) for word, value in held.items() if value is not None)
    return built
