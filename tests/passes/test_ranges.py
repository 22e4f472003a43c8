"""What is known to be nonnegative: each kind of layer on values of both signs and on nonnegative ones; none of it is ever negative."""

import numpy as np
from support.ops import Activation, Affine, Concat, ElemWise, Identity, Pool, Reshape, Softmax, Transpose
from support.tables import every

from n2d2py.contracts.functions import Abs, Clip, Elu, Exp, Sqrt, Tanh
from n2d2py.operators.linear import nonnegative_tensors
from n2d2py.reference.executor import run_graph

# x has both signs, r does not; an activation may stand behind the layer
CASES = {
    "identity": (Identity(), "r", None, True),
    "identity of both signs": (Identity(), "x", None, False),
    "behind a clamp below 0": (Identity(), "r", Clip(-2.0, 3.0), True),
    "behind a clamp to 0": (Identity(), "r", Clip(-2.0, 0.0), True),
    "behind a clamp to less": (Identity(), "r", Clip(-2.0, -0.5), False),
    "behind no limit": (Identity(), "r", Clip(), True),
    "behind a function": (Identity(), "r", Tanh(), False),
    "behind another function": (Identity(), "r", Elu(0.5), False),
    "both signs behind a clamp": (Identity(), "x", Clip(-1.0, 5.0), False),
    "both signs behind a rectifier": (Identity(), "x", Clip(0.0), True),
    "both signs behind a clamp above 0": (Identity(), "x", Clip(0.5, 2.0), True),
    "both signs behind a magnitude": (Identity(), "x", Abs(), True),
    "both signs behind an exponential": (Affine(), "x", Exp(), True),
    "function": (Activation(Exp()), "x", None, True),
    "root": (Activation(Sqrt()), "r", None, True),
    "function of both signs": (Activation(Tanh()), "r", None, False),
    "clamp layer": (Activation(Clip(-1.0, 2.0)), "r", None, False),
    "softmax": (Softmax(), "x", None, True),
    "logarithm of a softmax": (Softmax(log=True), "x", None, False),
    "logarithm of a softmax of nonnegative values": (Softmax(log=True), "r", None, False),
    "gain": (Affine(), "r", None, False),
    "sum": (ElemWise("Sum"), "rr", None, True),
    "sum with both signs": (ElemWise("Sum"), "rx", None, False),
    "difference": (ElemWise("Sum", (1.0, -0.5)), "rr", None, False),
    "sum of weight 0": (ElemWise("Sum", (1.0, 0.0)), "rr", None, True),
    "sum and a shift": (ElemWise("Sum", (1.0, 0.5), (0.0, 1.0)), "rr", None, True),
    "sum and a shift below 0": (ElemWise("Sum", (1.0, 0.5), (-1.0, 0.0)), "rr", None, False),
    "product": (ElemWise("Prod"), "rr", None, True),
    "product with both signs": (ElemWise("Prod"), "xr", None, False),
    "maximum": (ElemWise("Max"), "rr", None, True),
    "minimum": (ElemWise("Min"), "rr", None, True),
    "minimum with both signs": (ElemWise("Min"), "rx", None, False),
    "weighed magnitudes": (ElemWise("AbsSum", (-1.0, 1.0)), "rr", None, False),
    "joined": (Concat(), "rr", None, True),
    "joined with both signs": (Concat(), "rx", None, False),
    "maximum of windows": (Pool("Max", (2, 2)), "r", None, True),
    "mean of windows": (Pool("Average", (2, 2)), "r", None, True),
    "mean of windows of both signs": (Pool("Average", (2, 2)), "x", None, False),
    "view": (Reshape((64,)), "r", None, True),
    "view of both signs": (Reshape((64,)), "x", None, False),
    "turned": (Transpose((0, 2, 3, 1)), "r", None, True),
}


@every("case", CASES)
def test_signs(case, build):
    op, inputs, activation, expected = CASES[case]
    b = build(4, 4, 4)
    b.layer("r", Activation(Clip(0.0)))
    params = {"weights": b.array(4), "bias": b.array(4)} if isinstance(op, Affine) else {}
    b.layer("y", op, list(inputs), params, activation)
    graph = b.done("y")
    assert ("y" in nonnegative_tensors(graph)) is expected
    (y,) = run_graph(graph, {"x": np.random.default_rng(0).normal(size=(8, 4, 4, 4))}).values()
    assert not expected or y.min() >= 0
