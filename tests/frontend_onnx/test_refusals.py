"""Nodes that cannot be what they say, each with one line that says why: none of them is computed as something else."""

import pytest
from onnx import parser
from support.errors import error_of
from support.tables import every

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx

REFUSED = """
E310 | 13 | float[1,4] x | s = ReduceMax <keepdims = 0> (x)  y = QuantizeLinear (w, s) | float[4] w = {1,2,3,4}
E310 | 13 | float[1,4] x | f = ReduceMax <keepdims = 0> (x)  z = Cast <to = 2> (f)  y = QuantizeLinear (w, s, z) | float s = {1}, float[4] w = {1,2,3,4}
E310 | 17 | float[1,4,6] x | y = GatherElements <axis = 1> (x, i) | int64[2,2] i = {0,0,0,0}
E310 | 17 | float[1,4,6] x | y, j = TopK <axis = 1> (x, i) | int64[1] i = {9}
E310 | 11 | float[1,4,6] x | y = Unsqueeze <axes = [2, -3]> (x) |
E310 | 18 | float[N,4,6] x | y = Unsqueeze (x, i) | int64[2] i = {1, 1}
E310 | 17 | float[1,48] x | r = Reshape (x, s)  y = Slice (r, a, b, c, d) | int64[5] s = {-2,-2,-1,-2,-2}, int64[2] a = {-1,0}, int64[2] b = {-4,9}, int64[2] c = {2,4}, int64[2] d = {-2,1}
E314 | 9 | float[1,4,6] x | y, j = TopK <axis = 1> (x) |
E310 | 17 | float[1,4,6] x | y = GatherND <batch_dims = 3> (x, i) | int64[1,1] i = {0}
E310 | 17 | float[1,4,6] x | y = GatherND (x, i) | int64[1,4] i = {0,0,0,0}
E310 | 17 | float[1,4,6] x | y = ScatterElements <axis = 1> (x, i, u) | int64[1,1,1] i = {0}, float[1,1,2] u = {1,2}
E310 | 17 | float[1,4,6] x | y = ScatterElements <axis = 1> (x, i, u) | int64[1,1] i = {0}, float[1,1] u = {1}
E310 | 17 | float[1,4,6] x | y = ScatterElements <axis = 1> (x, i, u) | int64[1,1,7] i = {0,0,0,0,0,0,0}, float[1,1,7] u = {1,2,3,4,5,6,7}
E310 | 17 | float[1,4,6] x | y = ScatterND (x, i, u) | int64[1,4] i = {0,0,0,0}, float[1] u = {1}
E310 | 20 | float[1,4,6] x | y = IsInf <detect_negative = 0, detect_positive = 0> (x) |
E310 | 17 | float[1,4] x | y = MatMul (x, s) | float s = {2}
E204 | 17 | float[1,4] x | y = MatMul (x, s) | float[3,2] s = {1,2,3,4,5,6}
E310 | 17 | float[4,4] x | y = Einsum <equation = "ii->i"> (x) |
E310 | 17 | float[1,4] x | y = Einsum <equation = "ab,bc->ac"> (x,x,x) |
E310 | 17 | float[1,4] x | y = Einsum <equation = "ab->abc"> (x) |
E310 | 17 | float[1,4] x | y = InstanceNormalization (x, s, b) | float[4] s = {1,2,3,4}, float[4] b = {1,2,3,4}
E310 | 18 | float[1,2,300] x | y = Resize <mode = "cubic"> (x, , , s) | int64[3] s = {1,2,100000}
E310 | 18 | float[1,2,3,4] x | y = Resize (x, , , s) | int64[3] s = {1,2,3}
E310 | 18 | float[1,2,3,4] x | y = Resize (x, , s) | float[3] s = {1,2,3}
E310 | 18 | float[1,2,3,4] x | y = Resize (x, , s) | float[4] s = {1,1,0.01,1}
E310 | 18 | float[1,2,3,4] x | y = Resize <coordinate_transformation_mode = "tf_half_pixel"> (x, , s) | float[4] s = {1,1,2,2}
E310 | 18 | float[1,2,3,4] x | y = Resize <nearest_mode = "near"> (x, , s) | float[4] s = {1,1,2,2}
E310 | 18 | float[1,2,3,4] x | y = Resize <mode = "area"> (x, , s) | float[4] s = {1,1,2,2}
E310 | 17 | float[1,2,3,4] x | y = Reshape (x, s) | int64[6] s = {1,2,3,4,1,0}
E310 | 17 | float[1,2,3,4] x | y = Reshape (x, s) | int64[2] s = {5,-1}
E310 | 17 | float[1,2,3,4] x | y = Reshape (x, s) | int64[2] s = {5,7}
E310 | 17 | float[1,2,3,4] x | y = Squeeze (x, s) | int64[1] s = {1}
E310 | 17 | float[1,2,3,4] x | y = Transpose <perm = [0,1,2]> (x) |
E310 | 17 | float[1,2,3,4] x | y = Transpose <perm = [0,1,2,2]> (x) |
E310 | 17 | float[1,2,3,4] x | y = Slice (x, s, e, a) | int64[2] s = {0,0}, int64[1] e = {1}, int64[1] a = {1}
E310 | 17 | float[1,2,3,4] x | y = Slice (x, s, e, a, t) | int64[1] s = {0}, int64[1] e = {1}, int64[1] a = {1}, int64[1] t = {0}
E314 | 9 | float[1,2,3,4] x | y = Slice <starts = [0]> (x) |
E310 | 17 | float[1,2,3,4] x | y, z = Split <axis = 1> (x, s) | int64[2] s = {1,2}
E310 | 17 | float[1,2,3,4] x | y, z = Split <axis = 1> (x, s) | int64[3] s = {1,1,0}
E310 | 17 | float[1,2,3,4] x | y = Expand (x, s) | int64[4] s = {1,3,3,4}
E310 | 17 | float[1,2,3,4] x | y = Tile (x, s) | int64[3] s = {1,3,3}
E310 | 18 | float[1,2,3,4] x | y = Pad <mode = "mirror"> (x, s) | int64[8] s = {0,0,1,1,0,0,1,1}
E310 | 18 | float[1,2,3,4] x | y = Pad (x, s) | int64[4] s = {1,0,1,1}
E206 | 17 | float[1,2,3,4] x, float[1,2,3,5] z | y = Concat <axis = 1> (x, z) |
E310 | 17 | float[1,2,3,4] x | y = Gather <axis = 1> (x, s) | int64[1] s = {2}
E310 | 17 | float[1,2,3,4] x | y = Gather <axis = 1> (x, s) | int64[1] s = {-3}
E310 | 17 | float[1,2,3,4] x | y = Gather <axis = 7> (x, s) | int64[1] s = {0}
E310 | 17 | float[1,2,5,5] x | y = ConvTranspose <output_padding = [1]> (x, w) | float[2,1,1,1] w = {1,2}
E310 | 17 | float[1,2,5,5] x | y = ConvTranspose <output_shape = [9]> (x, w) | float[2,1,1,1] w = {1,2}
E310 | 17 | float[1,2,5,5] x | y = ConvTranspose <pads = [1,1]> (x, w) | float[2,1,1,1] w = {1,2}
E314 | 17 | float[1,2,5,5] x | y = ConvTranspose <pads = [-1,0,0,0]> (x, w) | float[2,1,1,1] w = {1,2}
E310 | 17 | float[1,2,5,5] x | y = ConvTranspose (x, w) | float[2,1,1,1,1] w = {1,2}
E310 | 17 | float[1,2,5,5] x | y = Conv (x, w) | float[2,2,1,1,1] w = {1,2,3,4}
E310 | 17 | float[1,2,5,5] x | y = Conv <kernel_shape = [3,3]> (x, w) | float[2,2,1,1] w = {1,2,3,4}
E310 | 17 | float[1,2,5,5] x | y = Conv <pads = [1,1]> (x, w) | float[2,2,1,1] w = {1,2,3,4}
E310 | 17 | float[1,2,5,5] x | y = Conv <strides = [1]> (x, w) | float[2,2,1,1] w = {1,2,3,4}
E310 | 17 | float[1,2,5,5] x | y = Conv <pads = [-1,0,0,0]> (x, w) | float[2,2,1,1] w = {1,2,3,4}
E202 | 17 | float[1,2,5,5] x | y = Conv (x, w) | float[2,3,1,1] w = {1,2,3,4,5,6}
E310 | 17 | float[1,2,5,5] x | y = BatchNormalization (x, w, w, w, w) | float[3] w = {1,2,3}
E310 | 17 | float[1,2,5,5] x | y = BatchNormalization <training_mode = 1> (x, w, w, w, w) | float[2] w = {1,2}
E310 | 17 | float[1,2] x | y = Gemm (x, w, b) | float[2,3] w = {1,2,3,4,5,6}, float[2] b = {1,2}
E310 | 17 | float[1,2,4,4] x | y = MaxPool <kernel_shape = [2,2], pads = [3,0,0,0]> (x) |
E310 | 17 | float[1,2,4,4] x | y = AveragePool <kernel_shape = [2,2], pads = [3,0,0,0]> (x) |
E310 | 17 | float[1,2,4,4] x | y = MaxPool <kernel_shape = [2,2,2]> (x) |
E310 | 17 | float[1,2,4,4] x | y = Softmax <axis = 5> (x) |
E310 | 17 | float[N,2,4] x | y = Unsqueeze (x, s) | int64[1] s = {9}
E310 | 17 | float[N,2,4] x | y = Flatten <axis = 7> (x) |
E310 | 17 | float[N,2,4] x | y = ReduceMean <axes = [4]> (x) |
E310 | 17 | float[1,2,4] x | y = CumSum (x, s) | int64 s = {5}
E310 | 21 | float[1,2,4] x | y = QuantizeLinear (x, s, z) | float s = {0.1}, int32 z = {3}
E314 | 21 | float[1,2,4] x | y = DequantizeLinear (x, s) | float s = {0.1}
E310 | 17 | float[1,2,4] x | q = QuantizeLinear (x, s, z)  y = DequantizeLinear (q, s2, z) | float s = {0.1}, float s2 = {0.2}, int8 z = {3}
E310 | 17 | float[1,2,4] x | q = QuantizeLinear <axis = 1> (x, s, z)  y = DequantizeLinear <axis = 1> (q, s, z) | float[2] s = {0.1, 0.2}, int8[2] z = {3,3}
E310 | 17 | float[1,2,4] x | q = QuantizeLinear (x, s, z)  y = DequantizeLinear (q, s, z) | float s = {-0.1}, int8 z = {3}
E314 | 17 | float[1,2,4] x | y = Trilu (x, s) | int64[2] s = {5, 1}
E314 | 17 | float[1,2,4] x | y = Range (x, d, v) | int64 d = {3}, float[2] v = {0,1}
E310 | 17 | float[1,2,4] x | y = Dropout (x, r, t) | float r = {0.5}, bool t = {1}
E314 | 17 | float[1,2,4] x | y = Mean () |
E310 | 17 | float[1,2,4] x | y = NonZero (x) |
E310 | 17 | float[1,2,4] x | y = Celu <alpha = -1.0> (x) |
E310 | 17 | float[1,2,4] x | y = LpNormalization <p = 3> (x) |
E314 | 17 | float[1,2,4] x | i = Cast <to = 7> (x)  y = Conv (i, w) | float[1,2,1] w = {1,1}
E310 | 17 | float[1,2,4] x | i = Cast <to = 8> (x)  y = Identity (i) |
E314 | 17 | float[1,2,4] x | y = Add (x, s) | string s = {"a"}
E314 | 17 | float[1,2,4] x, int32[1,2,4] k | y = Add (x, k) |
E310 | 17 | float[1,2,4] x, float[1,3,4] k | y = Add (x, k) |
E314 | 17 | int64[1,2,4] x, int32[1,2,4] k | y = Add (x, k) |
E314 | 18 | float[1,4] x | y = Not (x) |
E314 | 18 | float[1,4] x | y = And (x, x) |
E314 | 18 | float[1,4] x | y = Or (x, k) | bool k = {1}
E314 | 18 | float[1,4] x | y = BitwiseAnd (x, x) |
E314 | 18 | float[1,4] x | y = BitwiseNot (x) |
E314 | 18 | float[1,4] x | y = BitShift <direction = "LEFT"> (x, x) |
E314 | 18 | float[1,4] x | y = Where (x, x, x) |
E314 | 18 | float[1,4] x | y = MatMulInteger (x, w) | int8[4,2] w = {1,2,3,4,5,6,7,8}
E314 | 18 | float[1,4] x | y = Gather (t, x) | float[4] t = {1,2,3,4}
E314 | 18 | float[1,4] x | y = DequantizeLinear (x, s) | float s = {0.1}
E314 | 18 | float[1,4] x | y = GatherElements <axis = 1> (x, x) |
E310 | 17 | float[1,2,5,5] x | y = ConvTranspose <kernel_shape = [3,3]> (x, w) | float[2,1,1,1] w = {1,2}
E310 | 17 | float[1,2,2,5,5] x | y = Conv <kernel_shape = [1,1,3]> (x, w) | float[2,2,1,1,1] w = {1,2,3,4}
E310 | 17 | float[1,2,2,5,5] x | y = ConvTranspose <kernel_shape = [1,1,3]> (x, w) | float[2,2,1,1,1] w = {1,2,3,4}
E203 | 17 | float[1,2,5,5] x | y = ConvTranspose <auto_pad = "NOTSET", pads = [0,0,9,9]> (x, w) | float[2,1,1,1] w = {1,2}
E310 | 13 | float[1,4,6] x | y = MeanVarianceNormalization (x) |
E310 | 8 | float[1,3,2,1] x | y = BatchNormalization <spatial = 0> (x, s, s, s, s) | float[3] s = {1,2,3}
E310 | 13 | float[4] x | y = LRN <size = 3> (x) |
E310 | 13 | float[1,4] x | y = LRN <size = 0> (x) |
E310 | 13 | float[4,6] x | y = LSTM (x, w, r) | float[1,4,6] w = {1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4}, float[1,4,1] r = {1,2,3,4}
E310 | 13 | float[4,1,6] x | y = LSTM (x, w, r, , , h) | float[1,4,6] w = {1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4}, float[1,4,1] r = {1,2,3,4}, float[1,1,2] h = {1,2}
E310 | 13 | float[4,1,6] x | s = Slice (x, a, b, a) t = Slice (s, a, c, b) y = LSTM (x, w, r, , , t) | float[1,4,6] w = {1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4}, float[1,4,1] r = {1,2,3,4}, int64[1] a = {0}, int64[1] b = {1}, int64[1] c = {1}
E310 | 14 | float[1,1,6] x | y = LSTM <layout = 1> (x, w, r, , l) | float[1,4,6] w = {1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4}, float[1,4,1] r = {1,2,3,4}, int32[1] l = {2}
E310 | 13 | float[1,4,6] x | y, z = Split <axis = 1> (x, s) | int64[2] s = {5,-1}
E310 | 13 | float[1,4,6] x | y = Slice (x, s, e, a) | int64[1] s = {0}, int64[1] e = {3}, int64[2] a = {1, 2}
E310 | 13 | float[1,4,6] x | y = Slice (x, s, e, a, t) | int64[1] s = {0}, int64[1] e = {3}, int64[1] a = {1}, int64[1] t = {0}
E310 | 13 | float[1,4,6] x | y = Einsum <equation = "bij,bij->b"> (x) |
"""
"""Code of the first error, operator set, inputs, nodes, constants."""


@every("row", REFUSED.strip().splitlines())
def test_a_node_is_refused(row):
    code, opset, inputs, body, constants = map(str.strip, row.split("|"))
    held = f"<{constants}>" if constants else ""
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g ({inputs}) => (float[N] y) {held} {{ {body} }}'
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert error_of(import_onnx, model).errors[0].code == code


def test_what_neither_reading_of_the_first_axis_takes_is_listed_alone():
    """The file gives 4 stimuli, or one of 4 parts: the transposition is refused in the first reading only."""
    body = "t = Transpose <perm = [1, 0]> (x)  s = Bernoulli (t)  y = Relu (s)"
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g (float[4,8] x) => (float[8,4] y) {{ {body} }}')
    with pytest.raises(N2D2Error, match="E310: g .*RandomUniformLike") as caught:
        import_onnx(model, "n")
    assert "Transpose" not in " ".join(one.line() for one in caught.value.errors)


@every(
    "limits, reason",
    [("int8 lo = {5}, int8 hi = {3}", "no integer lies between"), ("int8 hi = {3}", "lower limit is not constant")],
)
def test_limits_of_integers_are_not_those_of_their_real_numbers(limits, reason):
    inputs = "float[1,4] x" if "lo" in limits else "float[1,4] x, int8 lo"
    body = "q = QuantizeLinear (x, s, z)  c = Clip (q, lo, hi)  y = DequantizeLinear (c, s, z)"
    text = f'<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => (float[1,4] y) <float s = {{0.1}}, int8 z = {{0}}, {limits}> {{ {body} }}'
    error = error_of(lambda: import_onnx(parser.parse_model(text)))
    assert "[c]: Clip" in error.errors[0].line() and reason in error.errors[0].line()
