"""What single nodes of constants give: values, absent inputs and outputs, counted elements at their limits, what is not computed."""

from __future__ import annotations

import re

import numpy as np
import pytest
from onnx import TensorProto, helper

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.folding import evaluate, is_foldable, room_of
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.unsupported import Unsupported

F = np.float32
X = np.arange(24, dtype=F).reshape(2, 3, 4)
LIMIT = 1 << 26


def node(operator: str, values: list, outputs: list[str] | None = None, **attributes):
    """A node with an input for each value that is not None."""
    names = [f"x{at}" if value is not None else "" for at, value in enumerate(values)]
    return helper.make_node(operator, names, outputs or ["y"], **attributes)


def computed(operator: str, values: list, opset: int = 17, room: int = LIMIT, **attributes) -> np.ndarray:
    return evaluate(node(operator, values, **attributes), values, opset, room)[0]


def refusal(operator: str, values: list, opset: int = 17, room: int = LIMIT, **attributes) -> str:
    with pytest.raises(Unsupported) as caught:
        computed(operator, values, opset, room, **attributes)
    return str(caught.value)


COUNTED = {
    "lines of another axis": ("Gather", [X, np.zeros(5, np.int64)], {"axis": 1}, 40),
    "lines of the last axis": ("Gather", [X, np.zeros((5, 2), np.int64)], {"axis": -1}, 60),
    "lines of a vector": ("Gather", [X[0, 0], np.zeros(5, np.int64)], {}, 5),
    "one line": ("Gather", [X[:1], np.zeros(3, np.int64)], {}, 36),
    "elements": ("GatherElements", [X, np.zeros((2, 1, 3), np.int64)], {"axis": 1}, 6),
    "a matrix": ("MatMul", [np.ones((3, 1), F), np.ones((1, 5), F)], {}, 15),
    "a matrix of nothing": ("MatMul", [np.ones((3, 0), F), np.ones((0, 5), F)], {}, 15),
    "matrices on the right": ("MatMul", [np.ones((4, 2), F), np.ones((7, 2, 6), F)], {}, 168),
    "matrices on both sides": ("MatMul", [np.ones((3, 1, 4, 2), F), np.ones((5, 2, 6), F)], {}, 360),
    "a vector on the left": ("MatMul", [np.ones(2, F), np.ones((7, 2, 6), F)], {}, 42),
    "tiles of one axis": ("Tile", [np.ones(3, F), np.array([4])], {}, 12),
    "a range of reals": ("Range", [np.array(1, F), np.array(3, F), np.array(0.25, F)], {}, 8),
    "a range downwards": ("Range", [np.array(9), np.array(1), np.array(-2)], {}, 4),
    "pads on single sides": ("Pad", [X[0], np.array([1, 0, 0, 2])], {}, 24),
    "single values": ("OneHot", [np.array([[1, 0, 2]]), np.array(3), np.array([0, 1], F)], {}, 9),
    "a shape without axes": ("ConstantOfShape", [np.zeros(0, np.int64)], {}, 1),
}  # fmt: skip


@pytest.mark.parametrize("case", COUNTED)
def test_the_elements_of_a_result(case):
    operator, values, attributes, count = COUNTED[case]
    assert computed(operator, values, room=count, **attributes).size == count
    assert refusal(operator, values, room=count - 1, **attributes) == f"its constant value would have {count:,} elements"


IMAGE = np.arange(24, dtype=F).reshape(1, 2, 3, 4)
RESIZED = {
    "by scales": ([IMAGE, None, np.array([1, 1, 2, 3], F)], {}, 144),
    "by sizes": ([IMAGE, None, None, np.array([1, 2, 6, 12])], {}, 144),
    "by sizes, scales without elements": ([IMAGE, None, np.zeros(0, F), np.array([1, 2, 6, 12])], {}, 144),
    "by sizes that are no multiples": ([IMAGE, None, None, np.array([1, 2, 7, 9])], {}, 24 * 3 * 3),
    "an axis of one line": ([IMAGE[:, :1], None, None, np.array([1, 3, 3, 4])], {}, 36),
    "to less": ([IMAGE, None, None, np.array([1, 1, 2, 2])], {}, 24),
    "by scales, no sizes": ([IMAGE, None, np.array([1, 1, 2, 3], F), None], {}, 144),
    "by scales of less than one": ([IMAGE, None, np.array([1, 0.5, 1.5, 1], F)], {}, 48),
    "two axes by sizes": ([IMAGE, None, None, np.array([12, 6])], {"axes": [3, 2]}, 144),
    "two axes by scales": ([IMAGE, None, np.array([2, 3], F)], {"axes": [2, 3]}, 144),
}  # fmt: skip


@pytest.mark.parametrize("case", RESIZED)
def test_the_elements_of_a_resized_constant(case):
    """Counted from above: each scale is rounded up, and at least 1."""
    values, attributes, count = RESIZED[case]
    opset = 18 if "axes" in attributes else 17
    assert computed("Resize", values, opset, count, mode="nearest", **attributes).size <= count
    found = refusal("Resize", values, opset, count - 1, mode="nearest", **attributes)
    assert found == f"its constant value would have {count:,} elements"


def test_a_constant_image_may_be_resized_to_sizes(model):
    """As an embedding of positions is; the sizes are no scales."""
    built = model(
        "float[1,64,24,24] x => float[1,64,24,24] y",
        'r = Resize <mode = "nearest"> (a, , , s)\n y = Add (x, r)',
        a=np.ones((1, 64, 12, 12), F),
        s=np.array([1, 64, 24, 24]),
    )
    assert [each.op.kind for each in import_onnx(built).nodes] == ["Affine"]


def test_scales_of_an_old_upsample():
    values = [IMAGE, np.array([1, 1, 2, 3], F)]
    assert refusal("Upsample", values, 9, 143, mode="nearest") == "its constant value would have 144 elements"


@pytest.mark.parametrize("size", [LIMIT, LIMIT + 1])
def test_a_constant_has_at_most_so_many_elements(size):
    """Of three values to that shape: what has room is refused by the evaluation only."""
    found = refusal("Expand", [np.ones(3, F), np.array([size])])
    assert ("would have 67,108,865 elements" in found) == (size > LIMIT)


def test_the_limit_is_there_without_a_room():
    values = [np.ones(3, F), np.array([LIMIT + 1])]
    with pytest.raises(Unsupported, match="would have 67,108,865 elements"):
        evaluate(node("Expand", values), values, 17)
    values[1] = np.array([LIMIT])
    with pytest.raises(Unsupported, match="cannot be computed"):
        evaluate(node("Expand", values), values, 17)


def test_the_room_of_a_file():
    """128 MiB of real numbers, and four times what the file has."""
    assert room_of({}) == 1 << 25
    assert room_of({"a": np.zeros((2, 3)), "b": np.zeros(5)}) == (1 << 25) + 44


def test_what_is_not_counted_needs_no_room():
    """But none is computed where those before it took more than there was."""
    np.testing.assert_array_equal(computed("Neg", [X], room=0), -X)
    assert refusal("Neg", [X], room=-1) == "its constant value would have 0 elements"


@pytest.mark.parametrize("pads", [[0, 1000], [0, 0, 0, 0, 1000], [1000] * 6])
def test_pads_for_another_rank_are_not_counted(pads):
    """The evaluation says what is wrong with them."""
    assert "would have" not in refusal("Pad", [X[0], np.array(pads)], room=100)
    assert "would have" not in refusal("Pad", [X[0], np.array(pads)], room=0)
    assert "would have" in refusal("Pad", [X[0], np.array(pads)], room=-1)


def test_a_range_without_a_step_is_not_counted():
    for kind in (np.int64, F):
        assert refusal("Range", [np.array(0, kind), np.array(9, kind), np.array(0, kind)], room=0).startswith(
            "its constant value cannot be computed ("
        )


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (2, 3, 4, 5), (2, 3, 2, 4, 5)])
def test_the_maximum_of_each_plane(shape):
    x = np.random.default_rng(1).permutation(np.prod(shape)).reshape(shape).astype(F)
    wanted = x.reshape(2, 3, -1).max(axis=2).reshape(2, 3, *[1] * (len(shape) - 2))
    np.testing.assert_array_equal(computed("GlobalMaxPool", [x]), wanted)


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, -2, -3])
def test_elements_along_an_axis(axis):
    """Other axes may have fewer lines in the indices, the axis more: y[i, j, k] = x[index, j, k] along the first."""
    at = axis or 0
    shape = [1, 2, 3]
    shape[at] = 5
    indices = np.random.default_rng(2).integers(-X.shape[at], X.shape[at], shape)
    wanted = np.empty(shape, F)
    for place in np.ndindex(*shape):
        source = list(place)
        source[at] = indices[place]
        wanted[place] = X[tuple(source)]
    attributes = {} if axis is None else {"axis": axis}
    np.testing.assert_array_equal(computed("GatherElements", [X, indices], **attributes), wanted)


@pytest.mark.parametrize(
    ("indices", "said"),
    [
        (np.full((2, 3, 4), 9), "index 9 is out of bounds for axis 1 with size 3"),
        (np.zeros((3, 1, 4), np.int64), "shape mismatch: indexing arrays could not be broadcast"),
    ],
)
def test_elements_that_are_not_there(indices, said):
    assert refusal("GatherElements", [X, indices], axis=1).startswith(f"its constant value cannot be computed ({said}")


def test_reasons_are_cut():
    """To a line of at most 80 characters."""
    reason = re.fullmatch(r"its constant value cannot be computed \((.*)\)", refusal("Reshape", [X, np.array([5, 5])]))
    assert reason is not None and 0 < len(reason[1]) <= 80


def test_outputs_that_are_left_out_have_no_elements():
    values = [X, np.array([1, 1, 2])]
    first, second, third = evaluate(node("Split", values, ["a", "", "c"], axis=2), values, 17)
    np.testing.assert_array_equal(first, X[:, :, :1])
    np.testing.assert_array_equal(third, X[:, :, 2:])
    assert second.shape == (0,)


def test_inputs_that_are_left_out():
    np.testing.assert_array_equal(computed("Clip", [X, None, np.array(7, F)]), np.minimum(X, 7))
    np.testing.assert_array_equal(computed("Clip", [X, np.array(7, F), None]), np.maximum(X, 7))


@pytest.mark.parametrize("opset", [11, 12, 13, 17])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, -2])
@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "Hardmax"])
def test_axes_that_were_taken_together(operator, axis, opset):
    """All from one on, the second by default, before version 13; after it one axis, the last by default."""
    x = np.random.default_rng(3).permutation(24).reshape(2, 3, 4).astype(F) / 8
    if opset < 13:
        axes = tuple(range((1 if axis is None else axis) % 3, 3))
    else:
        axes = ((-1 if axis is None else axis) % 3,)
    powers = np.exp(x.astype(np.float64))
    shares = powers / powers.sum(axis=axes, keepdims=True)
    wanted = {"Softmax": shares, "LogSoftmax": np.log(shares), "Hardmax": x == x.max(axis=axes, keepdims=True)}[operator]
    found = computed(operator, [x], opset, **({} if axis is None else {"axis": axis}))
    assert found.dtype == F
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_sequences_of_unequal_arrays_are_refused(model):
    built = model(
        "float[1,3,4] x => float[1,3,4] y",
        "s = SequenceConstruct (a, b)\n c = ConcatFromSequence <axis = 0> (s)\n y = Add (x, c)",
        a=np.ones((1, 4), F),
        b=np.ones((2, 4), F),
    )
    with pytest.raises(
        N2D2Error, match=r"E310: .*SequenceConstruct \(1 node\) cannot be imported: its constant value cannot be"
    ):
        import_onnx(built)


BRANCH = helper.make_graph([], "b", [], [])
FOLDABLE = {
    "arithmetic": (helper.make_node("Add", ["a", "b"], ["y"]), True),
    "the domain by its name": (helper.make_node("Add", ["a", "b"], ["y"], domain="ai.onnx"), True),
    "another domain": (helper.make_node("Add", ["a", "b"], ["y"], domain="com.microsoft"), False),
    "an attribute": (helper.make_node("Concat", ["a", "b"], ["y"], axis=1), True),
    "a tensor": (helper.make_node("Constant", [], ["y"], value=helper.make_tensor("t", TensorProto.FLOAT, [1], [1])), True),
    "two branches": (helper.make_node("If", ["c"], ["y"], then_branch=BRANCH, else_branch=BRANCH), False),
    "a body and a number": (helper.make_node("Scan", ["a"], ["y"], num_scan_inputs=1, body=BRANCH), False),
    "a number and graphs": (helper.make_node("Foo", ["a"], ["y"], number=1, graphs=[BRANCH, BRANCH]), False),
    **{
        operator: (helper.make_node(operator, ["a"], ["y"]), False)
        for operator in (
            *("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"),
            *("QuantizeLinear", "DequantizeLinear"),
        )
    },
}


@pytest.mark.parametrize("case", FOLDABLE)
def test_nodes_that_are_computed_at_import(case):
    proto, wanted = FOLDABLE[case]
    assert is_foldable(proto) is wanted
