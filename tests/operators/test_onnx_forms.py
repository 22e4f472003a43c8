"""Single ONNX nodes of a tensor and constants: the layers that they become, and their results as ONNX Runtime gives them."""

from typing import Any

import numpy as np
import onnx
from support.onnx_models import runtime_outputs, text_model
from support.tables import every

from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.executor import run_graph

IMAGE, SQUARE, LINE, VECTOR = (4, 5, 6), (4, 5, 4), (4, 4), (4,)
FOUR = [0.5, -2.0, 1.0, 3.0]


def model(shape: tuple[int, ...], body: str, constants: dict[str, Any]) -> onnx.ModelProto:
    """A network of these nodes, of a free batch."""
    held = {name: np.float32(value) if np.asarray(value).dtype.kind == "f" else value for name, value in constants.items()}
    return text_model(f"float[N,{','.join(map(str, shape))}] x => float[N] y", body, held, has_shapes=False)


def column(values: list[float], axes: int) -> np.ndarray:
    return np.array(values).reshape(-1, *(1,) * axes)


def weights(*shape: int) -> np.ndarray:
    """Unequal weights."""
    return np.random.default_rng(sum(shape)).normal(size=shape)


CASES: dict[str, tuple[tuple[int, ...], str, dict[str, Any], str]] = {
    # slopes: one for all, one for each channel; others are maps of arrays
    "one slope": (IMAGE, "y = PRelu (x, c)", {"c": [0.25]}, "Activation"),
    "one slope for each channel alike": (IMAGE, "y = PRelu (x, c)", {"c": column([0.25] * 4, 2)}, "Activation"),
    "slopes of channels": (IMAGE, "y = PRelu (x, c)", {"c": column([0.5, -2.0, 1.0, 0.25], 2)}, "Affine ElemWise"),
    "slopes of channels above 1": (IMAGE, "y = PRelu (x, c)", {"c": column([0.5, -2.0, 1.5, 0.25], 2)}, "Activation Activation Affine ElemWise"),
    "slopes of channels with a batch axis": (IMAGE, "y = PRelu (x, c)", {"c": column(FOUR, 2)[None]}, "Activation Activation Affine ElemWise"),
    "slopes of columns": (SQUARE, "y = PRelu (x, c)", {"c": FOUR}, "Reshape ArrayMap Reshape"),
    "slopes of columns in two axes": (SQUARE, "y = PRelu (x, c)", {"c": [FOUR]}, "Reshape ArrayMap Reshape"),
    "slopes of columns of a line": (LINE, "y = PRelu (x, c)", {"c": FOUR}, "Reshape ArrayMap Reshape"),
    "slopes of the channels of a line": (LINE, "y = PRelu (x, c)", {"c": column([0.5, -2.0, 1.0, 0.25], 1)}, "Affine ElemWise"),
    "slopes of a vector": (VECTOR, "y = PRelu (x, c)", {"c": [0.5, -2.0, 1.0, 0.25]}, "Affine ElemWise"),
    # gains and shifts
    "sum with channels": (IMAGE, "y = Add (x, c)", {"c": column(FOUR, 2)}, "Affine"),
    "channels less": (IMAGE, "y = Sub (c, x)", {"c": column(FOUR, 2)}, "Affine"),
    "less channels": (IMAGE, "y = Sub (x, c)", {"c": column(FOUR, 2)}, "Affine"),
    "times channels": (IMAGE, "y = Mul (c, x)", {"c": column(FOUR, 2)}, "Affine"),
    "over channels": (IMAGE, "y = Div (x, c)", {"c": column(FOUR, 2)}, "Affine"),
    "times 1": (IMAGE, "y = Mul (x, c)", {"c": 1.0}, "Identity"),
    "plus 0": (IMAGE, "y = Add (x, c)", {"c": [0.0]}, "Identity"),
    "times 0": (IMAGE, "y = Mul (x, c)", {"c": [0.0]}, "Affine"),
    "times columns": (SQUARE, "y = Mul (x, c)", {"c": FOUR}, "Reshape ArrayMap Reshape"),
    "1 over": (IMAGE, "a = Exp (x) y = Div (c, a)", {"c": 1.0}, "Activation Reshape ArrayMap Reshape"),
    "twice, then half": (IMAGE, "a = Tanh (x) b = Mul (a, c) y = Mul (b, d)", {"c": 2.0, "d": 0.5}, "Activation"),
    "twice, then a quarter": (IMAGE, "a = Mul (x, c) y = Mul (a, d)", {"c": 2.0, "d": 0.25}, "Affine"),
    "opposite": (IMAGE, "y = Neg (x)", {}, "Affine"),
    "gate": (IMAGE, "a = Sigmoid (x) y = Mul (x, a)", {}, "Activation"),
    "gate times 3": (IMAGE, "a = Sigmoid (x) b = Mul (a, c) y = Mul (x, b)", {"c": 3.0}, "Activation Affine"),
    "product of two": (IMAGE, "a = Tanh (x) y = Mul (a, x)", {}, "Activation ElemWise"),
    "difference of two": (IMAGE, "a = Tanh (x) y = Sub (x, a)", {}, "Activation ElemWise"),
    "quotient of two": (IMAGE, "a = Exp (x) y = Div (x, a)", {}, "Activation Reshape Reshape ArrayMap Reshape"),
    # powers
    "square root": (IMAGE, "a = Abs (x) y = Pow (a, c)", {"c": 0.5}, "Activation Activation"),
    "itself": (IMAGE, "y = Pow (x, c)", {"c": [1.0]}, "Identity"),
    "square": (IMAGE, "y = Pow (x, c)", {"c": 2.0}, "ElemWise"),
    "cube": (IMAGE, "y = Pow (x, c)", {"c": 3}, "ElemWise"),
    "fourth power": (IMAGE, "y = Pow (x, c)", {"c": 4.0}, "Reshape ArrayMap Reshape"),
    "powers of columns": (SQUARE, "y = Pow (x, c)", {"c": [1.0, 2.0, 3.0, 2.0]}, "Reshape ArrayMap Reshape"),
    # sums, means and limits of several
    "mean of three": (IMAGE, "a = Tanh (x) b = Relu (x) y = Mean (x, a, b)", {}, "Activation Activation ElemWise"),
    "sum of one": (IMAGE, "y = Sum (x)", {}, "Identity"),
    "sum of three": (IMAGE, "a = Tanh (x) b = Relu (x) y = Sum (x, a, b)", {}, "Activation Activation ElemWise"),
    "sum of one and a constant": (IMAGE, "y = Sum (c, x)", {"c": column(FOUR, 2)}, "Affine"),
    "sum of two and a constant": (IMAGE, "a = Tanh (x) y = Sum (x, c, a)", {"c": 1.0}, "Activation Reshape Reshape ArrayMap ArrayMap Reshape"),
    "greatest of two": (IMAGE, "a = Tanh (x) y = Max (x, a)", {}, "Activation ElemWise"),
    "least of two": (IMAGE, "a = Tanh (x) y = Min (x, a)", {}, "Activation ElemWise"),
    "limits below": (IMAGE, "y = Max (c, x, d)", {"c": -0.5, "d": [0.25]}, "Activation"),
    "limits above": (IMAGE, "y = Min (x, c, d)", {"c": -0.5, "d": 0.25}, "Activation"),
    "limits of columns": (SQUARE, "y = Max (x, c)", {"c": FOUR}, "Reshape ArrayMap Reshape"),
    "sum with one pixel": (IMAGE, "a = GlobalAveragePool (x) y = Add (a, x)", {}, "Pool ElemWise"),
    # reductions
    "mean of lines and columns": (IMAGE, "y = ReduceMean <axes = [2, 3]> (x)", {}, "Pool"),
    "mean of lines": (IMAGE, "y = ReduceMean <axes = [2]> (x)", {}, "Pool"),
    "mean of columns without the axis": (IMAGE, "y = ReduceMean <axes = [-1], keepdims = 0> (x)", {}, "Pool Reshape"),
    "greatest channel": (IMAGE, "y = ReduceMax <axes = [1]> (x)", {}, "Transpose Reshape Pool Reshape"),
    "least of lines": (IMAGE, "y = ReduceMin <axes = [2], keepdims = 0> (x)", {}, "Affine Pool Reshape Affine"),
    "sum of channels and lines": (IMAGE, "y = ReduceSum <keepdims = 1> (x, s)", {"s": [1, 2]}, "Transpose Reshape Pool Reshape Affine"),
    "sum of squares": (IMAGE, "y = ReduceSumSquare <axes = [3]> (x)", {}, "ElemWise Pool Affine"),
    "length": (IMAGE, "y = ReduceL2 <axes = [2, 3], keepdims = 0> (x)", {}, "ElemWise Pool Reshape Affine Activation"),
    "magnitudes": (IMAGE, "y = ReduceL1 <axes = [2, 3]> (x)", {}, "Activation Pool Affine"),
    "logarithm of a sum": (IMAGE, "a = Exp (x) y = ReduceLogSum <axes = [3], keepdims = 0> (a)", {}, "Activation Pool Reshape Affine Activation"),
    "mean of a vector": (VECTOR, "y = ReduceMean <axes = [1]> (x)", {}, "Reshape Pool Reshape"),
    "mean of the columns of a line": (LINE, "y = ReduceMean <axes = [2], keepdims = 0> (x)", {}, "Reshape Pool Reshape"),
}  # fmt: skip


@every("name", CASES)
def test_the_layers_of_a_node_and_their_results(name):
    shape, body, constants, kinds = CASES[name]
    made = model(shape, body, constants)
    graph = import_onnx(made)
    assert " ".join(node.op.kind for node in graph.nodes) == kinds
    x = np.random.default_rng(3).normal(size=(2, *shape)).astype(np.float32)
    (wanted,) = runtime_outputs(made, x)
    (found,) = run_graph(graph, {"x": x.astype(np.float64)}).values()
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=2e-5, atol=1e-5)
