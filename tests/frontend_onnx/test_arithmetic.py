"""Factors of zero, channels last, limits, and batches: what mixes the stimuli of a batch is refused, the rest taken; against ONNX Runtime."""

import re
from math import prod

import numpy as np
import pytest
from support.errors import error_line
from support.ops import Activation
from support.tables import every

from n2d2py.contracts.functions import Clip
from n2d2py.frontend.onnx import folding
from n2d2py.frontend.onnx.folding import refuse_mixed_samples
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.model import load_onnx

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
def test_stimuli_are_not_mixed(model, check, caplog, case):
    """An open batch whose samples a layer mixes is one sample."""
    inputs, body, weights, verb = MIXED[case]
    check(model(f"{inputs} => float[P,Q] y", body, **weights), flat=True)
    assert re.search(f"W307.*it {verb} the batch axis", caplog.text)


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
        assert "E310" in error_line(import_onnx, made)
    else:
        import_onnx(made)


def test_attention_over_the_batch_behind_weights_is_refused(model):
    """It runs with stimuli of the sizes of the file only."""
    body = "m = MatMul (x, w)" + _ATTENTION.format(read="m")
    assert "E310" in error_line(lambda: import_onnx(model("float[N,4,3] x => float[N,4,3] y", body, w=(3, 3))))


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
        assert "E310" in error_line(lambda: refuse_mixed_samples(load_onnx(made)))
    else:
        refuse_mixed_samples(load_onnx(made))


def test_models_too_large_to_run_twice_are_taken(model, monkeypatch):
    made = model("float[N,4,3] x => float[N,4,3] y", _ATTENTION.format(read="x"))
    monkeypatch.setattr(folding, "_MAX_BYTES", 100)
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
