"""Loops of a known number of steps and sequences, by ONNX Runtime; others are refused."""

import numpy as np
import pytest
from support.onnx_models import text_forms
from support.tables import every

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx

STEP = "body = b (int64 i, bool c, float[N,6] s) => (bool d, float[N,6] t) { d = Identity (c) m = MatMul (s, w) t = Tanh (m) }"
CONSTANTS = {"trips": np.array(3), "most": np.array(2**63 - 1), "true": np.array(True), "one": np.array(1), "two": np.array(2)}
FORMS = text_forms(f"""
loop, 17: float[N,6] x => float[N,?] y
  y = Loop <{STEP}> (trips, true, x)
loop without a condition, 17: float[N,6] x => float[N,?] y
  y = Loop <{STEP}> (trips, , x)
loop of no step, 17: float[N,6] x => float[N,?] y
  none = Sub (trips, trips) r = Loop <{STEP}> (none, true, x) y = Relu (r)
loop that ends itself, 17: float[N,6] x => float[N,?] y
  y = Loop <body = b (int64 i, bool c, float[N,6] s) => (bool d, float[N,6] t) {{ d = Less (i, two) t = Tanh (s) }}> (, true, x)
loop of the most steps that ends itself, 17: float[N,6] x => float[N,?] y
  y = Loop <body = b (int64 i, bool c, float[N,6] s) => (bool d, float[N,6] t) {{ d = Less (i, two) t = Tanh (s) }}> (most, true, x)
two branches of one text, 17: float[N,6] x => float[N,?] y
  a = If (true) <then_branch = p () => (float[N,6] t) {{ t = Tanh (x) }}, else_branch = o () => (float[N,6] t) {{ t = Neg (x) }}>
  y = If (true) <then_branch = p () => (float[N,6] t) {{ t = Relu (a) }}, else_branch = o () => (float[N,6] t) {{ t = Neg (a) }}>
a branch chosen by the values, 17: float[1,6] x => float[1,6] y
  s = ReduceSum <keepdims = 0> (x) q = Greater (s, zero)
  y = If (q) <then_branch = p () => (float[1,6] t) {{ t = Tanh (x) }}, else_branch = o () => (float[1,6] t) {{ t = MatMul (x, w) }}>
loop in a loop, 17: float[N,6] x => float[N,?] y
  y = Loop <body = b (int64 i, bool c, float[N,6] s) => (bool d, float[N,6] t) {{ d = Identity (c) n = Add (i, one) r = Relu (s)
  t = Loop <body = e (int64 j, bool f, float[N,6] u) => (bool g, float[N,6] v)
  {{ g = Identity (f) k = MatMul (u, w) v = Add (k, r) }}> (n, true, s) }}> (trips, true, x)
branch in a loop, 17: float[N,6] x => float[N,?] y
  y = Loop <body = b (int64 i, bool c, float[N,6] s) => (bool d, float[N,6] t) {{ d = Identity (c) q = Equal (i, one) t = If (q)
  <then_branch = p () => (float[N,6] a) {{ a = Tanh (s) }}, else_branch = o () => (float[N,6] a) {{ a = MatMul (s, w) }}> }}> (trips, true, x)
rows by a loop, 17: float[1,4,6] x => float[?,?,?] y
  l, r = Loop <body = b (int64 i, bool c, float[1,6] s) => (bool d, float[1,6] t, float[1,6] o)
  {{ d = Identity (c) p = Gather <axis = 1> (x, i) q = Add (p, s) t = Tanh (q) o = Relu (t) }}> (trips, true, z)
  y = Transpose <perm = [1,0,2]> (r)
scan, 17: float[1,4,6] x => float[?,?,?] y
  l, r = Scan <num_scan_inputs = 1, scan_input_axes = [1], body = b (float[1,6] s, float[1,6] p) => (float[1,6] t, float[1,6] o)
  {{ m = MatMul (s, w) q = Add (p, m) t = Tanh (q) o = Identity (t) }}> (z, x) y = Transpose <perm = [1,0,2]> (r)
scan from the end, 17: float[1,4,6] x => float[?,?,?] y
  l, y = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1], scan_output_axes = [1],
  scan_output_directions = [1], body = b (float[1,6] s, float[1,6] p) => (float[1,6] t, float[1,6] o)
  {{ q = Add (p, s) t = Tanh (q) o = Neg (t) }}> (z, x)
parts of a sequence, 17: float[1,4,6] x => float[?,?,?] y
  s = SplitToSequence <axis = 1> (x, one) p = SequenceAt (s, two) y = Relu (p)
last of a sequence, 17: float[1,4,6] x => float[?,?,?] y
  s = SplitToSequence <axis = 1> (x, lengths) n = Neg (one) y = SequenceAt (s, n)
sequence without an axis, 17: float[1,4,6] x => float[1,6] y
  s = SplitToSequence <axis = 1, keepdims = 0> (x) p = SequenceAt (s, one) y = Tanh (p)
sequence joined again, 17: float[1,4,6] x => float[?,?,?] y
  r = Tanh (x) s = SequenceConstruct (x, r) t = SequenceInsert (s, r, one) u = SequenceErase (t, two)
  y = ConcatFromSequence <axis = 2> (u)
sequence stacked, 17: float[1,6] x => float[?,?,?] y
  r = Tanh (x) s = SequenceConstruct (x, r) n = SequenceLength (s) f = Cast <to = 1> (n)
  c = ConcatFromSequence <axis = 1, new_axis = 1> (s) y = Mul (c, f)
""")


@every("form", FORMS)
def test_as_onnx_runtime(model, check, form):
    ends, body, opset = FORMS[form]
    check(model(ends, body, opset, **CONSTANTS, lengths=np.array([3, 1]), zero=np.array(0, np.float32), w=(6, 6), z=(1, 6)))


@every(
    "body, reason",
    [
        (f"n = ReduceSum <keepdims = 0> (x) k = Cast <to = 7> (n) y = Loop <{STEP}> (k, true, x)", "at run time"),
        (
            "y = Loop <body = b (int64 i, bool c, float[N,6] s) => (bool d, float[N,6] t) { r = ReduceMax <keepdims = 0> (s) d = Less (r, o) t = Tanh (s) }> (, true, x)",
            "at run time",
        ),
        (
            "s = ReduceSum <keepdims = 0> (x) q = Greater (s, o) "
            "y = If (q) <then_branch = p () => (float[1,6] t) { t = Tanh (x) }, else_branch = a () => (float[1,1] t) { t = ReduceSum (x) }>",
            "different shapes",
        ),
        (f"y = Loop <{STEP}> (many, true, x)", "steps"),
        ("s = SequenceConstruct (x, x) y = SequenceAt (s, trips)", "do not fit"),
        (
            "s = SequenceConstruct (x, x) m = ArgMax <axis = 1, keepdims = 0> (x) k = Squeeze (m) y = SequenceAt (s, k)",
            "not constant",
        ),
    ],
)
def test_refused(model, body, reason):
    with pytest.raises(N2D2Error, match=reason) as error:
        import_onnx(
            model(
                "float[1,6] x => float[?,?] y", body, 17, **CONSTANTS, many=np.array(2**40), w=(6, 6), o=np.array(1, np.float32)
            )
        )
    assert error.value.code == "E310"
