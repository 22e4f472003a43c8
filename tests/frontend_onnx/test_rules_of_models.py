"""Single rules about whole models, each with what lies just beside it: the structure of a file, and the definitions of operators.

The rules stand in `n2d2py.frontend.onnx.model`, `n2d2py.frontend.onnx.validator`, `n2d2py.frontend.onnx.validation` and
`n2d2py.frontend.onnx.tensors`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.model import load_onnx
from n2d2py.graph.shapes import MAX_TENSOR


def _sparse(proto: onnx.ModelProto) -> None:
    values = numpy_helper.from_array(np.ones(1, np.float32), "s")
    proto.graph.sparse_initializer.append(
        helper.make_sparse_tensor(values, numpy_helper.from_array(np.zeros(1, np.int64), "i"), [3])
    )


DAMAGES: dict[str, tuple[Callable[[onnx.ModelProto], object], str]] = {
    "no name": (lambda m: m.graph.ClearField("name"), "Field 'name' of 'graph'"),
    "no version": (lambda m: m.ClearField("ir_version"), "does not have an ir_version"),
    "no operator": (lambda m: m.graph.node[0].ClearField("op_type"), "Field 'op_type' of 'node'"),
    "no writer": (lambda m: m.graph.node[0].input.__setitem__(0, "z"), "must be topologically sorted"),
    "no name of an attribute": (lambda m: m.graph.node[0].attribute.add(), "Field 'name' of 'attr'"),
    "two writers": (lambda m: m.graph.node.append(m.graph.node[0]), "y"),
    "sparse constants": (_sparse, "sparse initializers are not supported"),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_damaged_structures(model, case):
    damage, text = DAMAGES[case]
    built = model("float[1,3] x => float[1,3] y", "y = Relu (x)")
    load_onnx(built)
    damage(built)
    with pytest.raises(N2D2Error) as caught:
        load_onnx(built)
    name = "model" if case == "no name" else "g"
    assert caught.value.line().startswith(f"N2D2-E302: {name}: ") and text in caught.value.line()


@pytest.mark.parametrize(
    ("shape", "body", "constants"),
    [
        ("4,3,2,2", "y = Reshape (x, s)", {"s": np.array([4, 12])}),
        ("4,3,2,2", "y = Reshape (x, s)", {"s": np.array([-1, 12])}),
        ("4,6", "y = Gemm (x, w, s)", {"w": (6, 3), "s": (4, 3)}),
        ("4,6", "a, b = Split <axis = 0> (x, s) y = Add (a, b)", {"s": np.array([2, 2])}),
    ],
)
def test_shapes_with_a_batch_of_fixed_size_are_those_of_the_file(model, shape, body, constants):
    """The definition is asked for one stimulus: what it says of a file for four is no error."""
    graph = import_onnx(model(f"float[{shape}] x => float[P,Q] y", body, **constants))
    assert graph.outputs
    with pytest.raises(N2D2Error):
        import_onnx(model(f"float[{shape}] x => float[P,Q] y", body.replace("s)", "t)"), t=np.array([5, 7]), **constants))


@pytest.mark.parametrize(
    ("sizes", "code"),
    [
        ((1, 1 << 13, 1 << 13), ""),
        ((1, (1 << 13) + 1, 1 << 13), "E240"),
        ((1, 16, 1 << 22), ""),
        ((1, 16, (1 << 22) + 1), "E240"),
        ((1, 1, (1 << 22) + 1), "E310"),
    ],
)
def test_results_have_at_most_so_many_elements(model, sizes, code):
    """Of what is computed; a layer more than allowed is refused by the shapes alone."""
    assert MAX_TENSOR == 1 << 26
    built = model("float[1,1,1,1] x => float[A,B,C,D] y", "y = Expand (x, s)", s=np.array([1, *sizes]))
    if code:
        with pytest.raises(N2D2Error) as caught:
            import_onnx(built)
        assert caught.value.errors[0].code == code and "elements" in caught.value.line()
    else:
        assert import_onnx(built).shape("y") is not None


@pytest.mark.parametrize(("size", "refused"), [(MAX_TENSOR, False), (MAX_TENSOR + 1, True)])
def test_constant_results_have_at_most_so_many_elements(model, size, refused):
    built = model(
        "float[1,1] x => float[A,B] y", "c = ConstantOfShape (s) m = ReduceSum (c) y = Add (x, m)", s=np.array([size])
    )
    if refused:
        with pytest.raises(N2D2Error, match=f"E310.*its constant value would have {size:,} elements"):
            import_onnx(built)


@pytest.mark.parametrize(
    ("kind", "node", "constants", "refused"),
    [
        ("float", "y = Gather (x, i)", {"i": np.zeros(1, np.int64)}, ""),
        ("float", "y = Gather (x, i)", {"i": np.zeros(1, np.int32)}, ""),
        ("float", "y = Gather (x, i)", {"i": np.zeros(1, np.float32)}, "its input 'i' holds float, not int32 or int64"),
        ("float", "y = Gather (x, i)", {"i": np.zeros(1, bool)}, "its input 'i' holds bool, not int32 or int64"),
        ("float", "y = Gather (x, x)", {}, "its input 'x' holds real numbers, not int32 or int64"),
        ("float", "y = Add (x, c)", {"c": np.ones(1, np.float64)}, ""),
        ("float", "y = Add (x, c)", {"c": np.ones(1, np.float16)}, ""),
        ("float", "y = Where (c, x, x)", {"c": np.ones(1, bool)}, ""),
        ("float", "y = Where (c, x, x)", {"c": np.ones(1, np.float32)}, "its input 'c' holds float, not bool"),
        ("float", "y = Where (c, x, x)", {"c": np.ones(1, np.int64)}, "its input 'c' holds int64, not bool"),
        (
            "int64",
            "y = Add (x, c)",
            {"c": np.ones(1, np.int32)},
            "its inputs 'x' of int64 and 'c' of int32 must be of one type",
        ),
        (
            "int64",
            "y = Add (x, c)",
            {"c": np.ones(1, np.float32)},
            "its inputs 'x' of int64 and 'c' of float must be of one type",
        ),
        ("int64", "y = Add (x, c)", {"c": np.ones(1, np.int64)}, ""),
        (
            "int32",
            "y = Add (c, x)",
            {"c": np.ones(1, np.int64)},
            "its inputs 'c' of int64 and 'x' of int32 must be of one type",
        ),
        ("float", "y = Concat <axis = 1> (x, c)", {"c": np.ones((1, 2), np.float64)}, ""),
        ("float", "y = Clip (x, c)", {"c": np.zeros((), np.float64)}, ""),
    ],
)
def test_types_that_stand_for_each_other(model, kind, node, constants, refused):
    built = model(f"{kind}[1,4] x => {kind}[A,B] y", node, **constants)
    if refused:
        with pytest.raises(N2D2Error) as caught:
            import_onnx(built)
        assert caught.value.errors[0].code == "E314" and refused in caught.value.errors[0].line()
    else:
        import_onnx(built)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16])
def test_constants_of_any_width_shape_results(model, kind):
    """Their values say the shape of a result as well as those of other widths do."""
    built = model("float[1,2,3,4] x => float[A,B,C,D] y", 'y = Resize <mode = "nearest"> (x, , s)')
    built.graph.initializer.append(helper.make_tensor("s", kind, [4], [1, 1, 2, 2]))
    assert import_onnx(built).shape("y") == (1, 2, 6, 8)
