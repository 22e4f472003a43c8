"""Small ONNX models that are damaged: a few networks, and many models of one operator."""

import warnings
from functools import lru_cache

import onnx
from onnx import parser
from support.onnx_draws import DRAWS, draw

__all__ = ["models", "node_tests"]

_HEADER = '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>\n'

_NETWORK = """
net (float[1,3,8,8] x) => (float[1,5] y, float[1,4,4,4] p)
<float[4,3,3,3] w = {%s}, float[4] b = {0.1,0.2,-0.3,0.4}, float[64,5] v = {%s}, int64[2] s = {1,-1}>
{
  c = Conv <kernel_shape = [3,3], pads = [1,1,1,1], dilations = [1,1], strides = [1,1], group = 1> (x, w, b)
  r = Relu (c)
  p = MaxPool <kernel_shape = [2,2], strides = [2,2]> (r)
  f = Reshape (p, s)
  y = Gemm <alpha = 1.0, beta = 1.0, transA = 0, transB = 0> (f, v)
}
"""

_QUANTIZED = """
net (float[1,2,4,4] x) => (float[1,3,4,4] y)
<float s = {0.02}, int8 z = {3}, float t = {0.01}, int8 o = {0}, int8[3,2,1,1] w = {1,-2,3,-4,5,-6}, int32[3] b = {1,2,3}>
{
  q = QuantizeLinear (x, s, z)
  c = QLinearConv <kernel_shape = [1,1]> (q, s, z, w, t, o, s, z, b)
  d = DequantizeLinear (c, s, z)
  e = QuantizeLinear (d, s, z)
  y = DequantizeLinear (e, s, z)
}
"""

_IMAGE = "net (float[1,4,6,6] x) => (float[N,M,H,W] y)"
_NODES = (  # (signature, constants, body)
    (_IMAGE, "float[1,3,3,2] g = {%18}", 'y = GridSample <mode = "bilinear", align_corners = 1> (x, g)'),
    (_IMAGE, "int64[2] s = {3,5}", "c = ConstantOfShape (s)\n z = Shape <start = 0> (c)\n e = Cast <to = 1> (z)\n m = ReduceSum (e)\n y = Add (x, m)"),
    (_IMAGE, "int64 a = {0}, int64 b = {6}, int64 c = {1}", "r = Range (a, b, c)\n f = Cast <to = 1> (r)\n y = Add (x, f)"),
    (_IMAGE, "float[6,6] e = {%36}", "i = EyeLike <k = 1, dtype = 1> (e)\n y = MatMul (x, i)"),
    (_IMAGE, "int64[2] i = {0,1}, int64 d = {3}, float[2] v = {0,1}", "o = OneHot <axis = -1> (i, d, v)\n m = ReduceMax <keepdims = 0> (o)\n y = Mul (x, m)"),
    (_IMAGE, "", "z = Identity (x)\n y = Dropout (z)"),
    (_IMAGE, "float s = {0.02}, uint8 z = {3}", "q = QuantizeLinear (x, s, z)\n y = DequantizeLinear (q, s, z)"),
    (_IMAGE, "", "q, s, z = DynamicQuantizeLinear (x)\n y = DequantizeLinear (q, s, z)"),
    (_IMAGE, "", "y, i = MaxPool <kernel_shape = [2,2]> (x)\n z = MaxUnpool <kernel_shape = [2,2]> (y, i)"),
    (_IMAGE, "", 'y = DFT <axis = 2> (x)'),
    (_IMAGE, "float s = {0.1}, int8 o = {0}", "q = QuantizeLinear (x, s, o)\n p = com.microsoft.QLinearAdd (q, s, o, q, s, o, s, o)\n y = DequantizeLinear (p, s, o)"),
    (_IMAGE, "float[1,12,6] w = {%72}, float[1,12,3] r = {%36}", "s = ReduceSum <keepdims = 0> (x)\n y = Relu (x)"),
    ("net (float[3,1,4] x) => (float[S,D,N,H] y)", "float[1,12,4] w = {%48}, float[1,12,3] r = {%36}", "y = LSTM <hidden_size = 3> (x, w, r)"),
    ("net (float[2,3] x, float[2,3] z) => (float[N,M] y)", "", "y = Sub (x, z)"),
    ("net (int64[1,4] x) => (float[N,M,K] y)", "float[5,3] w = {%15}", "y = Gather (w, x)"),
    ("net (float[1,4] x) => (float[N,M] y)", "bool c = {1}", "y = If (c) <then_branch = t () => (float[1,4] a) { a = Relu (x) }, else_branch = e () => (float[1,4] b) { b = Abs (x) }>"),
    (_IMAGE, "int64 t = {3}, bool c = {1}", "y = Loop <body = b (int64 i, bool d, float[1,4,6,6] s) => (bool e, float[1,4,6,6] r) { e = Identity (d) r = Tanh (s) }> (t, c, x)"),
    (_IMAGE, "float[1,4,6] z = {%24}", "l, y = Scan <num_scan_inputs = 1, scan_input_axes = [2], body = b (float[1,4,6] s, float[1,4,6] p) => (float[1,4,6] t, float[1,4,6] o) { t = Add (s, p) o = Relu (t) }> (z, x)"),
    (_IMAGE, "int64 n = {2}, int64 a = {1}", "s = SplitToSequence <axis = 1, keepdims = 1> (x, n)\n p = SequenceAt (s, a)\n t = SequenceInsert (s, p)\n y = ConcatFromSequence <axis = 1, new_axis = 0> (t)"),
    (_IMAGE, "int64[2] i = {8,8}, int64[2] k = {2,2}", "f = Flatten (x)\n r = Col2Im <strides = [1,1]> (x, i, k)\n y = Relu (r)"),
    (_IMAGE, "float[4,4,3,3] w = {%144}", 'y = com.microsoft.FusedConv <activation = "LeakyRelu", activation_params = [0.1], pads = [1,1,1,1]> (x, w)'),
    (_IMAGE, "float[6,3] w = {%18}", "y = com.microsoft.FusedMatMul <alpha = 0.5, transA = 0> (x, w)"),
    (_IMAGE, "float[4] g = {1,1,1,1}", "t = Transpose <perm = [0,2,3,1]> (x)\n y = com.microsoft.GroupNorm <groups = 2, activation = 1> (t, g, g)"),
    ("net (float[1,5,8] x) => (float[1,5,8] y)", "float[8,24] w = {%192}, float[24] b = {%24}", "y = com.microsoft.Attention <num_heads = 2, unidirectional = 1> (x, w, b)"),
    ("net (float[1,5,8] x) => (float[1,5,8] y)", "float[8] g = {%8}, float[1,5,8] k = {%40}", "y, a, b, c = com.microsoft.SkipLayerNormalization <epsilon = 0.001> (x, k, g, g, g)"),
    ("net (float[1,5,8] x) => (float[1,5,3] y)", "uint8[3,1,8] w = {%24i}, float[3] s = {%3}", "y = com.microsoft.MatMulNBits <K = 8, N = 3, bits = 4, block_size = 16> (x, w, s)"),
    ("net (float[1,5,8] x) => (float[1,5,8] y)", "int64[1,5] p = {%5i}, float[9,2] c = {%18}", "y = com.microsoft.RotaryEmbedding <interleaved = 1> (x, p, c, c)"),
)  # fmt: skip


def _numbers(count: int, whole: bool = False) -> str:
    return ",".join(str(index % 3) if whole else f"{(index * 37 % 19 - 9) / 20}" for index in range(count))


def _filled(text: str) -> str:
    """`{%24}` becomes 24 reals, `{%24i}` 24 small whole numbers."""
    while "%" in text:
        before, _, after = text.partition("%")
        digits = after[: next(index for index, letter in enumerate(after) if not letter.isdigit())]
        whole = after[len(digits)] == "i"
        text = before + _numbers(int(digits), whole) + after[len(digits) + whole :]
    return text


@lru_cache
def models() -> list[tuple[str, bytes]]:
    """(name, bytes) of every model written here, and of one drawn node for each way to draw."""
    texts = [_NETWORK % (_numbers(108), _numbers(320)), _QUANTIZED]
    texts += [f"{head}\n" + (f"<{_filled(given)}>" if given else "") + f"\n{{\n {body}\n}}" for head, given, body in _NODES]
    made = [parser.parse_model(_HEADER + text) for text in texts]
    drawn = [(name, draw(name, 0).model()) for name in {function: name for name, function in DRAWS.items()}.values()]
    return [
        (name, model.SerializeToString())
        for name, model in [*((model.graph.node[-1].op_type, model) for model in made), *drawn]
    ]


@lru_cache
def node_tests() -> list[tuple[str, bytes]]:
    """(name, bytes) of the node tests of the onnx package; making them takes some seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        found = [(case.name, case.model) for case in collect_testcases(None) if isinstance(case.model, onnx.ModelProto)]
    return [(name, model.SerializeToString()) for name, model in sorted(found, key=lambda pair: pair[0])]


@lru_cache
def tflite_models() -> list[tuple[str, bytes]]:
    """(name, bytes) of .tflite files of one operator each."""
    from support.tflite_cases import CASES, REALS

    found = []
    for name, make in {**CASES, **{f"real {name}": make for name, make in REALS.items()}}.items():
        made, output = make()
        found.append((name, made.file.to_bytes("main", {"x": made.x}, {"y": output})))
    return found
