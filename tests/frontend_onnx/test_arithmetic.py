"""Arithmetic of tensors and constants, in either order and of every shape that spreads, against ONNX Runtime; the layers it becomes."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from support.tables import every

from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.frontend.onnx import batch_values
from n2d2py.frontend.onnx.batch_values import refuse_mixed_samples
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.model import load_onnx
from n2d2py.operators.activation import Activation
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.functions import Clip, Sqrt
from n2d2py.operators.identity import Identity

F = np.float32
X = "float[N,3,4,5] x => float[N,3,4,5] y"
BINARY = ("Add", "Sub", "Mul", "Div")


def ops(graph) -> list:
    return [node.op for node in graph.nodes]


def kinds(graph) -> list[str]:
    return [node.op.kind for node in graph.nodes]


def values(*shape: int, seed: int = 0) -> np.ndarray:
    """Numbers of both signs, none of them near 0 or 1."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.uniform(1.5, 3, shape) * rng.choice((-1, 1), shape), F)


PER_CHANNEL = [(), (1,), (3, 1, 1), (1, 3, 1, 1), (1, 1, 1, 1), (1, 1, 1)]


@every("shape", PER_CHANNEL)
@every("operator", BINARY)
def test_a_constant_per_channel_is_one_layer(model, check, operator, shape):
    assert kinds(check(model(X, f"y = {operator}(x, c)", c=values(*shape)), batch=2)) == ["Affine"]


@every("shape", PER_CHANNEL)
@every("operator", ["Add", "Sub", "Mul", "Sum"])
def test_a_constant_first(model, check, operator, shape):
    assert kinds(check(model(X, f"y = {operator}(c, x)", c=values(*shape)), batch=2)) == ["Affine"]


@every("shape", [(5,), (4, 5), (1, 5), (3, 4, 5), (1, 4, 1), (3, 1, 5), (1, 3, 4, 5)])
@every("operator", BINARY)
def test_other_constants_are_taken_element_by_element(model, check, operator, shape):
    graph = check(
        model(X, f"a = {operator}(x, c)\n b = {operator}(c, x)\n y = Add(a, b)", c=values(*shape)), batch=1, tolerance=1e-4
    )
    assert "Affine" not in kinds(graph)


@every("operator", BINARY)
def test_a_spread_constant_that_repeats_one_value_is_per_channel(model, check, operator):
    constant = np.repeat(values(3, 1), 20, axis=1).reshape(3, 4, 5)
    assert kinds(check(model(X, f"y = {operator}(x, c)", c=constant), batch=2)) == ["Affine"]


@every("operator", BINARY)
@every("shape", [(7,), (1, 7), (1,), (1, 1)])
def test_vectors(model, check, operator, shape):
    graph = check(model("float[N,7] x => float[N,7] y", f"y = {operator}(x, c)", c=values(*shape)), batch=3)
    assert kinds(graph) == ["Affine"]


@pytest.mark.parametrize("operator", ["Add", "Mul", "Sub"])
def test_a_constant_that_enlarges_the_tensor(model, check, operator):
    """A channel becomes three, a vector an image."""
    check(model("float[1,1,4,5] x => float[1,3,4,5] y", f"y = {operator}(x, c)", c=values(3, 1, 1)))
    check(model("float[1,5] x => float[1,3,5] y", f"y = {operator}(c, x)", c=values(1, 3, 5)))


@every("operator, constant", [("Add", 0), ("Sub", 0), ("Mul", 1), ("Div", 1)])
def test_what_changes_nothing_is_no_layer_of_its_own(model, check, operator, constant):
    graph = check(model(X, f"y = {operator}(x, c)", c=np.array(constant, F)), batch=2)
    assert ops(graph) == [Identity()]


def test_a_constant_less_nothing_is_none(model, check):
    assert kinds(check(model(X, "y = Sub(c, x)", c=np.array(0, F)), batch=2)) == ["Affine"]


@pytest.mark.parametrize("constant", [np.array([2, 0, -1], F), np.zeros(3, F)])
def test_channels_that_are_multiplied_by_zero(model, check, constant):
    """They are there, with their shift."""
    body = "a = Mul(x, c)\n b = Mul(a, d)\n y = Add(b, e)"
    graph = check(model(X, body, c=constant.reshape(3, 1, 1), d=values(3, 1, 1), e=values(3, 1, 1, seed=1)), batch=2)
    assert set(kinds(graph)) == {"Affine"}


NHWC = "float[N,3,4,5] x => float[N,4,5,3] y"


@every("shape, axis", [((3,), "channels"), ((1, 1, 3), "channels"), ((1,), "channels")])
@every("operator", BINARY)
def test_channels_last(model, check, operator, shape, axis):
    """A constant along the last axis behind a transposition is one per channel before it."""
    graph = check(model(NHWC, f"t = Transpose<perm = [0, 2, 3, 1]>(x)\n y = {operator}(t, c)", c=values(*shape)), batch=2)
    assert sorted(kinds(graph)) == ["Affine", "Transpose"]


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul"])
def test_channels_last_behind_a_constant(model, check, operator):
    graph = check(model(NHWC, f"t = Transpose<perm = [0, 2, 3, 1]>(x)\n y = {operator}(c, t)", c=values(3)), batch=2)
    assert kinds(graph) == ["Affine", "Transpose"]


def test_the_axis_that_the_transposition_put_second(model, check):
    """A constant along axis 1 of the transposed tensor needs no move."""
    graph = check(model(NHWC, "t = Transpose<perm = [0, 2, 3, 1]>(x)\n y = Mul(t, c)", c=values(4, 1, 1)), batch=2)
    assert kinds(graph) == ["Transpose", "Affine"]


@every("operator", ["Add", "Sub", "Mul", "Max", "Min", "Sum", "Mean"])
def test_two_tensors(model, check, operator):
    graph = check(model("float[N,3,4,5] x, float[N,3,4,5] z => float[N,3,4,5] y", f"y = {operator}(x, z)"), batch=2)
    assert kinds(graph) == ["ElemWise"]
    assert isinstance(graph.nodes[0].op, ElemWise) and graph.nodes[0].inputs == ["x", "z"]


@every("operator", ["Max", "Min", "Sum", "Mean"])
@every("count", [1, 3, 4])
def test_any_number_of_tensors(model, check, operator, count):
    names = ["x", "z", "u", "v"][:count]
    signature = ", ".join(f"float[N,3,4,5] {name}" for name in names)
    graph = check(model(f"{signature} => float[N,3,4,5] y", f"y = {operator}({', '.join(names)})"), batch=2)
    assert kinds(graph) == ["ElemWise" if count > 1 else "Identity"]


@every("operator", ["Add", "Sub", "Mul", "Div", "Max"])
@every("left, right", [("3,4,5", "3,1,1"), ("3,1,1", "3,4,5"), ("1,4,1", "3,4,5"), ("3,4,1", "3,1,5"), ("1,4,5", "3,1,1")])
def test_operands_that_spread(model, check, operator, left, right):
    """Also where neither has the shape of the result."""
    signature = f"float[1,{left}] x, float[1,{right}] z => float[1,3,4,5] y"
    graph = check(model(signature, f"e = Exp(z)\n y = {operator}(x, e)"))
    full = "3,4,5" in (left, right)
    assert (kinds(graph)[-1] == "ElemWise") == (full and operator != "Div")


@pytest.mark.parametrize("operator, bound", [("Max", "low"), ("Min", "high")])
def test_limits(model, check, operator, bound):
    """One value limits a tensor, the strictest of several too; other constants are taken element by element."""
    for body, constants, limit in (
        ("y = {}(x, c)", {"c": np.array(0.25, F)}, 0.25),
        ("y = {}(c, x)", {"c": np.full((1, 1, 1), -0.5, F)}, -0.5),
        ("y = {}(c, x, d)", {"c": np.array(0.25, F), "d": np.array(-0.5, F)}, 0.25 if operator == "Max" else -0.5),
    ):
        graph = check(model(X, body.format(operator), **constants), batch=2)
        assert ops(graph) == [Activation(Clip(**{bound: limit}))]
    graph = check(model(X, f"y = {operator}(x, c)", c=values(3, 1, 1)))
    assert "Activation" not in kinds(graph)
    graph = check(model("float[1,3] x => float[1,1,1,3] y", f"y = {operator}(x, c)", c=np.full((1, 1, 1, 1), 0.1, F)))
    assert "Activation" not in kinds(graph)


@pytest.mark.parametrize("operator", ["Max", "Min", "Sum"])
def test_tensors_and_a_constant(model, check, operator):
    check(model("float[1,3,4,5] x, float[1,3,4,5] z => float[1,3,4,5] y", f"y = {operator}(x, c, z)", c=np.array(0.1, F)))


@every("exponent, expected", [(1, [Identity()]), (2, [ElemWise("Prod")]), (3, [ElemWise("Prod")]), (0.5, [Activation(Sqrt())])])
@every("shape", [(), (1,), (1, 1, 1)])
def test_powers(model, check, exponent, expected, shape):
    graph = check(model(X, "e = Exp(x)\n y = Pow(e, p)", p=np.full(shape, exponent, F)), batch=2)
    assert ops(graph)[1:] == expected
    assert graph.nodes[-1].inputs == [graph.nodes[0].output] * (int(exponent) or 1)


@pytest.mark.parametrize("exponent", [np.array(4, F), np.array(-1, F), np.array([1, 2, 3], F).reshape(3, 1, 1)])
def test_other_powers(model, check, exponent):
    graph = check(model("float[1,3,4,5] x => float[1,3,4,5] y", "e = Exp(x)\n y = Pow(e, p)", p=exponent), tolerance=1e-4)
    assert not any(op == ElemWise("Prod") for op in ops(graph))


@pytest.mark.parametrize("exponent", [2, 0.5])
def test_an_exponent_that_gives_the_result_more_axes(model, check, exponent):
    body = "e = Exp(x)\n y = Pow(e, p)"
    check(model("float[1,3,4] x => float[1,1,3,4] y", body, p=np.full((1, 1, 1, 1), exponent, F)))


def test_a_gate_with_a_gain(model, check):
    """x sigmoid(x) g: the function, and a gain behind it."""
    graph = check(model(X, "s = Sigmoid(x)\n a = Mul(s, c)\n y = Mul(x, a)", c=np.array(3, F)), batch=2)
    assert kinds(graph) == ["Activation", "Affine"]
    weights, bias = graph.nodes[1].params["weights"], graph.nodes[1].params["bias"]
    assert weights.tolist() == [3, 3, 3] and not bias.any()


def test_division_of_tensors_and_of_a_constant(model, check):
    for body in ("e = Exp(z)\n y = Div(x, e)", "e = Exp(x)\n s = Div(c, e)\n y = Add(s, z)"):
        constants = {"c": values(3, 1, 1)} if "c," in body else {}
        graph = check(model("float[1,3,4,5] x, float[1,3,4,5] z => float[1,3,4,5] y", body, **constants))
        assert "Affine" not in kinds(graph)


def test_gates_of_one_channel(model, check):
    signature = "float[N,1,4,5] x => float[N,1,4,5] y"
    graph = check(model(signature, "a = Mul(x, c)\n s = Sigmoid(x)\n y = Mul(a, s)", c=np.array(3, F)), batch=2)
    assert kinds(graph) == ["Activation", "Affine"]


MIXED = {
    "Gemm that transposes its input": ("float[N,4] x", "y = Gemm <transA = 1> (x, w)", {"w": (1, 3)}, "sums or moves"),
    "Gemm of weights with the input": ("float[N,4] x", "y = Gemm (w, x)", {"w": (3, 1)}, "sums or moves"),
    "Gemm of weights with the transposed input": (
        "float[N,4] x",
        "y = Gemm <transB = 1> (w, x)",
        {"w": (3, 4)},
        "sums or moves",
    ),
    "weights on the left": ("float[N,4] x", "y = MatMul (w, x)", {"w": (3, 1)}, "sums or moves"),
    "a vector on the left": ("float[N,4] x", "y = MatMul (w, x)", {"w": (1,)}, "sums or moves"),
    "an input with another": ("float[N,1] x, float[N,4] z", "y = MatMul (x, z)", {}, "sums or moves"),
    "weights of more axes on the right": ("float[N,4] x", "y = MatMul (x, w)", {"w": (2, 4, 3)}, "sums or moves"),
    "weights of more axes on the left": ("float[N,5,6] x", "y = MatMul (w, x)", {"w": (2, 2, 3, 5)}, "moves"),
    "weights that repeat": ("float[N,5,6] x", "y = MatMul (w, x)", {"w": (2, 3, 5)}, "repeats"),
    "weights that repeat on the right": ("float[N,5,6] x", "y = MatMul (x, w)", {"w": (2, 6, 3)}, "repeats"),
    "inputs of other ranks": ("float[N,5,6] x, float[N,2,3,5] z", "y = MatMul (z, x)", {}, "moves"),
    "Einsum over the stimuli": ("float[N,4] x", 'y = Einsum <equation = "ab->b"> (x)', {}, "sums"),
    "Einsum that moves them": ("float[N,4] x", 'y = Einsum <equation = "ab->ba"> (x)', {}, "moves"),
    "Einsum of two, summed": ("float[N,4] x", 'y = Einsum <equation = "ab,ac->bc"> (x, w)', {"w": (1, 3)}, "sums"),
    "Einsum of two, moved": ("float[N,4] x", 'y = Einsum <equation = "ab,cb->ca"> (x, w)', {"w": (3, 4)}, "moves"),
    "Einsum of two, repeated": ("float[N,4] x", 'y = Einsum <equation = "ab,ab->ab"> (x, w)', {"w": (3, 4)}, "repeats"),
}
KEPT = {
    "the input on the left": ("float[N,5,6] x", "y = MatMul (x, w)", {"w": (6, 3)}),
    "weights on the left": ("float[N,5,6] x", "y = MatMul (w, x)", {"w": (3, 5)}),
    "weights on the left, with an axis of length 1": ("float[N,5,6] x", "y = MatMul (w, x)", {"w": (1, 3, 5)}),
    "two inputs": ("float[N,5,6] x, float[N,6,2] z", "y = MatMul (x, z)", {}),
    "Einsum": ("float[N,5,6] x", 'y = Einsum <equation = "abc,bd->adc"> (x, w)', {"w": (5, 2)}),
    "Einsum of two inputs": ("float[N,5,6] x, float[N,6,2] z", 'y = Einsum <equation = "abc,acd->abd"> (x, z)', {}),
}


@every("case", MIXED)
def test_stimuli_are_not_mixed(model, case):
    inputs, body, weights, verb = MIXED[case]
    with pytest.raises((N2D2Error, ErrorList), match=f"E310.*it {verb} the batch axis; export the model with batch 1"):
        import_onnx(model(f"{inputs} => float[P,Q] y", body, **weights))


@every("case", KEPT)
def test_stimuli_keep_their_place(model, check, case):
    inputs, body, weights = KEPT[case]
    check(model(f"{inputs} => float[N,P,Q] y", body, **weights), batch=3)


@pytest.mark.parametrize(
    "body, weights",
    [("y = Gemm <transA = 1> (x, w)", {"w": (1, 3)}), ("y = Gemm (w, x)", {"w": (3, 1)}), ("y = MatMul (w, x)", {"w": (3, 1)})],
)
def test_a_batch_of_one_is_taken(model, body, weights):
    graph = import_onnx(model("float[1,4] x => float[P,Q] y", body, **weights))
    assert prod(graph.shape(graph.outputs[0])) == 12


_ATTENTION = """
    q = Transpose <perm = [1, 0, 2]> ({read})
    k = Transpose <perm = [0, 2, 1]> (q)
    s = MatMul (q, k)
    a = Softmax <axis = -1> (s)
    v = MatMul (a, q)
    y = Transpose <perm = [1, 0, 2]> (v)
"""
"""Over the first axis of what it reads."""


@pytest.mark.parametrize("size, refused", [("N", True), ("1", False), ("2", False)])
def test_attention_over_the_batch_is_refused(size, refused, model):
    """As PyTorch's layers without `batch_first` have it: for one stimulus it attends to that alone, and each rule about nodes holds."""
    made = model(f"float[{size},4,3] x => float[{size},4,3] y", _ATTENTION.format(read="x"))
    if refused:
        with pytest.raises(N2D2Error, match="E310"):
            import_onnx(made)
    else:
        import_onnx(made)


def test_attention_over_the_batch_behind_weights_is_refused(model):
    """It runs with stimuli of the sizes of the file only."""
    body = "m = MatMul (x, w)" + _ATTENTION.format(read="m")
    with pytest.raises(N2D2Error, match="E310"):
        import_onnx(model("float[N,4,3] x => float[N,4,3] y", body, w=(3, 3)))


@every(
    ("end", "output", "refused"),
    [
        ("y = Identity (m)", "float[N,4,3] y", True),
        ("y = ReduceSum (m, axes)", "float[N,4] y", True),
        ("y = ReduceMean <keepdims = 0> (m)", "float y", False),
        ("y = ArgMax <axis = 2> (m)", "int64[N,4,1] y", False),
        ("n = Softplus (m) o = Neg (n) y = Log (o)", "float[N,4,3] y", False),
        ("y = Transpose <perm = [1, 0, 2]> (m)", "float[4,N,3] y", True),
    ],
)
def test_outputs_that_say_something_of_single_stimuli(end, output, refused, model):
    """One number for all, integers, and what is not finite say nothing."""
    body = _ATTENTION.format(read="x").replace("y =", "m =") + end
    made = model(f"float[N,4,3] x => {output}", body, **({"axes": np.array([2])} if "axes" in end else {}))
    if refused:
        with pytest.raises(N2D2Error, match="E310"):
            refuse_mixed_samples(load_onnx(made))
    else:
        refuse_mixed_samples(load_onnx(made))


def test_models_too_large_to_run_twice_are_taken(model, monkeypatch):
    made = model("float[N,4,3] x => float[N,4,3] y", _ATTENTION.format(read="x"))
    monkeypatch.setattr(batch_values, "_MAX_BYTES", 100)
    import_onnx(made)


def test_attention_over_another_axis_is_taken(model, check):
    """The batch moves behind the axis that is attended to, and back."""
    body = "t = Transpose <perm = [1, 0, 2]> (x)" + _ATTENTION.format(read="t").replace("y =", "z =")
    check(model("float[N,4,3] x => float[N,4,3] y", body + "y = Transpose <perm = [1, 0, 2]> (z)"), batch=1)


def test_files_that_run_with_one_stimulus_only_are_taken(model, check):
    body = """
        t = Transpose <perm = [1, 0, 2]> (x)
        f = Reshape (t, flat)
        y = MatMul (f, w)
    """
    check(model("float[N,4,3] x => float[1,2] y", body, flat=np.array([1, 12], np.int64), w=(12, 2)), batch=1)
