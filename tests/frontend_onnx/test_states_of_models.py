"""Inputs of fixed value, and states: which are found, what becomes of the model, and which stay images.

The rules stand in `n2d2py.frontend.onnx.states`; `tests/operators/test_states.py` runs such networks call by call.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, parser

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.model import OnnxInput, OnnxModel, load_onnx
from n2d2py.frontend.onnx.states import check_states, fix_inputs, keep_images, take_states
from n2d2py.graph import Graph, Node
from n2d2py.operators.activation import Activation
from n2d2py.operators.functions import Clip
from n2d2py.operators.reshape import Reshape


def loaded(inputs: str, outputs: str) -> OnnxModel:
    """A model whose outputs are made of its first input; declarations are "type[sizes] name"."""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => ({outputs}) {{ q = Abs (x) }}')
    del model.graph.node[:]
    model.graph.node.extend(helper.make_node("Relu", ["x"], [value.name]) for value in model.graph.output)
    return load_onnx(model)


def plain(inputs: list[str], outputs: list[str], shape: str = "1,4") -> OnnxModel:
    """Inputs and outputs of one shape, with names that text cannot have."""
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g (float[{shape}] x) => (float[{shape}] y) {{ y = Relu (x) }}'
    )
    sizes = [int(size) for size in shape.split(",")]
    for values, names in ((model.graph.input, inputs), (model.graph.output, outputs)):
        del values[:]
        values.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes) for name in names)
    del model.graph.node[:]
    model.graph.node.extend(helper.make_node("Relu", [inputs[0]], [name]) for name in outputs)
    return load_onnx(model)


def refusal(action, *arguments) -> N2D2Error:
    with pytest.raises(N2D2Error) as caught:
        action(*arguments)
    assert caught.value.code == "E316"
    return caught.value


# ---- inputs of fixed value ----------------------------------------------------------------------
@pytest.mark.parametrize(
    "kind, value, wanted",
    [
        ("float", "0.5", np.float32(0.5)),
        ("float", "-3", np.float32(-3)),
        ("float", "1e3", np.float32(1000)),
        ("double", "0.1", np.float64(0.1)),
        ("float16", "0.25", np.float16(0.25)),
        ("int64", "16000", np.int64(16000)),
        ("int32", "-7", np.int32(-7)),
        ("uint8", "255", np.uint8(255)),
        ("uint8", "0", np.uint8(0)),
        ("int8", "-128", np.int8(-128)),
        ("uint64", str(2**64 - 1), np.uint64(2**64 - 1)),
        ("bool", "1", np.True_),
        ("bool", "0", np.False_),
    ],
)
def test_a_value_of_its_type(kind, value, wanted):
    model = loaded(f"float[N,4] x, {kind}[2,3] rate", "float[N,4] y")
    fix_inputs(model, f"rate:{value}")
    found = model.constants["rate"]
    assert found.dtype == wanted.dtype and found.shape == (2, 3) and (found == wanted).all()
    assert [one.name for one in model.inputs] == ["x"]


def test_a_value_of_bfloat16_may_have_a_fraction():
    model = loaded("float[N,4] x, bfloat16[1] rate", "float[N,4] y")
    fix_inputs(model, "rate:0.5")
    assert model.constants["rate"].astype(np.float32).tolist() == [0.5]


@pytest.mark.parametrize(
    "kind, value",
    [
        ("float", "fast"),
        ("int64", "0.5"),
        ("int64", "1e3"),
        ("bool", "0.5"),
        ("bool", "True"),
        ("bool", "2"),
        ("uint8", "256"),
        ("uint8", "-1"),
        ("int8", "128"),
        ("int64", str(2**63)),
        ("int64", str(2**70)),
    ],
)
def test_a_value_that_its_type_does_not_have(kind, value):
    model = loaded(f"float[N,4] x, {kind}[1] rate", "float[N,4] y")
    assert (
        refusal(fix_inputs, model, f"rate:{value}").what
        == f"Constants: '{value}' is no value of the input 'rate' ({kind_of(kind)})"
    )
    assert not model.constants and len(model.inputs) == 2


def kind_of(kind: str) -> str:
    return {"float": "float32"}.get(kind, kind)


@pytest.mark.parametrize(
    "shape, wanted", [("", ()), ("[1]", (1,)), ("[N]", (1,)), ("[N,3]", (1, 3)), ("[2,M,3]", (2, 1, 3)), ("[N,M]", (1, 1))]
)
def test_sizes_that_are_open_are_1(shape, wanted):
    model = loaded(f"float[N,4] x, int64{shape} rate", "float[N,4] y")
    fix_inputs(model, "rate:3")
    assert model.constants["rate"].shape == wanted


def test_several_values():
    model = loaded("float[N,4] x, int64 a, float[2] b", "float[N,4] y")
    fix_inputs(model, " a : 3 ,, b:0.5, ")
    assert {name: value.tolist() for name, value in model.constants.items()} == {"a": 3, "b": [0.5, 0.5]}
    assert [one.name for one in model.inputs] == ["x"]
    assert refusal(fix_inputs, model, "x:1").what == "Constants: 'x' is the only input"
    assert refusal(fix_inputs, model, "a:1").what == "Constants: no input is called 'a'"


# ---- pairs --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "text, pairs",
    [
        ("h:hn", [("h", "hn")]),
        (" h : hn ", [("h", "hn")]),
        ("h:hn,", [("h", "hn")]),
        ("c:0:cn", [("c:0", "cn")]),
        ("c:0:d:0", [("c:0", "d:0")]),
        ("h:d:0", [("h", "d:0")]),
        ("c:0:cn,h:hn", [("c:0", "cn"), ("h", "hn")]),
    ],
)
def test_names_may_hold_colons(text, pairs):
    model = plain(["x", "h", "c:0"], ["y", "hn", "cn", "d:0"])
    take_states(model, text)
    assert model.states == pairs


@pytest.mark.parametrize(
    "text, what",
    [
        ("h", "'h' is no pair"),
        (":hn", "':hn' is no pair"),
        ("h:", "'h:' is no pair"),
        (":", "':' is no pair"),
        ("h:hn,c", "'c' is no pair"),
        ("u:0:hn", "no input is called 'u:0'"),
        ("u:hn", "no input is called 'u'"),
        ("h:u", "no output is called 'u'"),
        ("h:hn,h:cn", "'h:cn' names an input or an output twice"),
        ("h:hn,c:0:hn", "'c:0:hn' names an input or an output twice"),
        ("c:0:cn,h:hn,c:0:d:0", "'c:0:d:0' names an input or an output twice"),
        ("h:hn,c:0:cn,x:y", "every input is a state"),
    ],
)
def test_pairs_that_are_refused(text, what):
    assert refusal(take_states, plain(["x", "h", "c:0"], ["y", "hn", "cn", "d:0"]), text).what == f"States: {what}"


def test_something_stays_beside_the_states():
    error = refusal(take_states, plain(["x", "h", "c"], ["hn", "cn"]), "h:hn,c:cn")
    assert error.what == "States: every output is a state"
    assert refusal(take_states, plain(["h", "c"], ["hn", "cn"]), "h:hn,c:cn").what == "States: every input is a state"


def test_integers_are_no_states():
    model = loaded("float[N,4] x, int64[N,4] h", "float[N,4] y, int64[N,4] hn")
    assert refusal(take_states, model, "h:hn").what == "States: the input 'h' is no floating-point tensor"
    take_states(model, "")
    assert not model.states


def test_a_file_that_says_its_states_itself():
    model = plain(["x", "h"], ["y", "hn"])
    model.states = [("h", "hn")]
    before = list(model.inputs)
    take_states(model, " ")
    assert model.states == [("h", "hn")] and model.inputs == before
    for text in ("none", "h:hn"):
        assert refusal(take_states, model, text).what == "States: the file says its states itself: its variables"


@pytest.mark.parametrize("text", ["none", "None", " NONE ", ",", ", ,"])
def test_no_states(text):
    model = plain(["x", "h"], ["y", "hn"])
    take_states(model, text)
    assert model.states == [] and model.batch == 1 and model.outputs == ["y", "hn"]


NAMES = {
    "h hn": True,
    "h h_out": True,
    "h_in h_out": True,
    "h0 hn": True,
    "c c_n": True,
    "c0 cn": True,
    "hx hx_out": True,
    "cx cx_next": True,
    "hidden hidden_new": True,
    "cell new_cell": True,
    "state stateN": True,
    "states next_states": True,
    "cache cache_out": True,
    "caches new_caches": True,
    "buf buf_out": True,
    "buffer buffer_out": True,
    "mem mem_out": True,
    "memory memory_next": True,
    "carry carry_out": True,
    "context context_out": True,
    "ctx ctx_out": True,
    "rnn rnn_out": True,
    "lstm lstm_out": True,
    "gru gru_out": True,
    "prevState curState": True,
    "previous_state current_state": True,
    "priorState presentState": True,
    "oldState newState": True,
    "lastState outputState": True,
    "initial_state output_state": True,
    "init_state o_state": True,
    "input_h h_t": True,
    "past_h cur_h": True,
    "LSTMState LSTMStateOut": True,
    "STATE NEW_STATE": True,
    "enc1_cache enc1_cache_out": True,
    "x1/cache x1/cache_out": True,
    "enc1_cache enc2_cache_out": False,
    "h state_out": False,
    "h h": False,
    "state state_": False,
    "audio audio_out": False,
    "mask mask_out": False,
    "state statesout": False,
    "hidden cell_out": False,
    "h_1 h_2_out": False,
}


@pytest.mark.parametrize("names, found", NAMES.items(), ids=NAMES)
def test_pairs_that_names_make_plain(names, found):
    before, behind = names.split()
    model = plain(["x", before], ["y", behind if behind != before else f"{behind}__"])
    take_states(model, "")
    assert bool(model.states) == found


@pytest.mark.parametrize(
    "inputs, outputs, pairs",
    [
        (["x", "h", "c"], ["y", "hn", "cn"], [("h", "hn"), ("c", "cn")]),
        (["x", "c", "h"], ["hn", "y", "cn"], [("c", "cn"), ("h", "hn")]),
        (["x", "h"], ["y", "hn", "h_out"], []),
        (["x", "h0", "h_in"], ["y", "hn", "z"], []),
        (["x", "h0", "h_in", "c"], ["y", "hn", "cn", "z"], [("c", "cn")]),
        (["h"], ["y", "hn"], []),
        (["h", "c"], ["y", "hn", "cn"], []),
        (["x", "h"], ["hn"], []),
        (["x", "h", "c"], ["hn", "cn"], []),
        (["x", "h", "c"], ["hn", "y"], [("h", "hn")]),
    ],
)
def test_one_output_for_one_input_and_something_beside_them(inputs, outputs, pairs):
    model = plain(inputs, outputs)
    take_states(model, "")
    assert model.states == pairs


@pytest.mark.parametrize(
    "before, behind, found",
    [
        ("1,4", "1,4", True),
        ("1,4", "1,5", False),
        ("2,4", "1,4", False),
        ("N,4", "M,4", True),
        ("N,4", "1,4", True),
        ("1,4", "N,4", True),
        ("1,a", "N,5", True),
        ("a,4", "b,5", False),
        ("1,4", "1,1,4", False),
        ("1,1,4", "1,4", False),
        ("4", "4", True),
        ("4", "", True),
        ("1,4", "", True),
    ],
)
def test_shapes_of_a_pair_agree_as_far_as_they_are_known(before, behind, found):
    model = loaded(f"float[1,4] x, float[{before}] h", f"float[1,4] y, float{f'[{behind}]' if behind else ''} hn")
    take_states(model, "")
    assert bool(model.states) == found


# ---- what becomes of the model ------------------------------------------------------------------
def test_states_come_last_in_one_order():
    model = loaded(
        "float[1,5] x, float[1,2] h, float[1,6] z, float[1,3] c", "float[1,3] cn, float[1,5] y, float[1,2] hn, float[1,7] p"
    )
    take_states(model, "c:cn,h:hn")
    assert [one.name for one in model.inputs] == ["x", "z", "c", "h"] and [one.name for one in model.fed] == ["x", "z"]
    assert model.outputs == ["y", "p", "cn", "hn"]
    assert [value.type.tensor_type.shape.dim[1].dim_value for value in model.proto.graph.output] == [5, 7, 3, 2]


@pytest.mark.parametrize(
    "before, behind, dims",
    [
        ("N,4", "N,4", (1, 4)),
        ("N,4", "3,4", (3, 4)),
        ("2,N,4", "2,M,4", (2, 1, 4)),
        ("N,a,b", "2,3,5", (2, 3, 5)),
        ("N,a,7", "2,b,5", (2, 1, 7)),
        ("a", "6", (6,)),
        ("a,b", "2,3,5", (1, 1)),
        ("a,b", "", (1, 1)),
    ],
)
def test_sizes_that_a_state_leaves_open_are_those_of_its_output(before, behind, dims):
    model = loaded(f"float[1,4] x, double[{before}] h", f"float[1,4] y, double{f'[{behind}]' if behind else ''} hn")
    take_states(model, "h:hn")
    assert model.inputs[1] == OnnxInput("h", (1, *dims[1:]), TensorProto.DOUBLE, dims, "")


@pytest.mark.parametrize("shape, batch", [("N,4", 1), ("1,4", 1), ("3,4", 3)])
def test_a_batch_of_free_size_is_one_call(shape, batch):
    model = loaded(f"float[{shape}] x, float[{shape}] h", f"float[{shape}] y, float[{shape}] hn")
    take_states(model, "")
    assert model.states and model.batch == batch


def test_a_state_has_as_many_elements_before_a_call_as_behind_it():
    model = plain(["x", "h", "c"], ["y", "hn", "cn"])
    model.states = [("h", "hn"), ("c", "cn")]
    check_states(model, {"h": 4, "hn": 4, "c": 6, "cn": 6})
    for sizes, names in (((4, 5, 6, 6), ("h", "hn")), ((4, 4, 6, 5), ("c", "cn"))):
        error = refusal(check_states, model, dict(zip(("h", "hn", "c", "cn"), sizes, strict=True)))
        assert error.what.startswith(f"the state '{names[0]}' has ") and f"'{names[1]}', which it becomes, " in error.what


# ---- states that are images ---------------------------------------------------------------------
def network(read=((2, 3, 4),), made: tuple[int, ...] | None = (24,), between: bool = True) -> Graph:
    """A state h that is read in some shapes, and becomes m: what a function makes of the first one, in another shape."""
    graph = Graph("g")
    graph.add_input("x", (1, 2, 3, 4))
    graph.add_input("h", (1, 24))
    for at, shape in enumerate(read):
        graph.add(Node(f"r{at}", Reshape(shape), ["h"], [f"r{at}"]))
    graph.add(Node("a", Activation(Clip(0.0)), ["r0" if read and between else "x"], ["a"]))
    last = Activation(Clip(0.0)) if made is None else Reshape(made)
    graph.add(Node("m", last, ["a" if between else "x"], ["m"]))
    graph.add(Node("o", Activation(Clip(0.0)), ["x"], ["o"]))
    graph.outputs, graph.states = ["o", "m"], 1
    return graph


def sketch(graph: Graph) -> tuple:
    return [(node.name, list(node.inputs)) for node in graph.nodes], list(graph.outputs), graph.shape("h")


@pytest.mark.parametrize("read", [((2, 3, 4),), ((2, 12),), ((2, 3, 4), (2, 3, 4))])
def test_a_state_that_is_an_image_at_both_ends_stays_one(read):
    graph = network(read)
    keep_images(graph)
    assert sketch(graph) == ([("a", ["h"]), ("o", ["x"])], ["o", "a"], (1, *read[0]))
    graph.verify()


NO_IMAGES: dict[str, dict] = {
    "read in two shapes": {"read": ((2, 3, 4), (4, 3, 2))},
    "a row": {"read": ((24,),)},
    "no reader": {"read": ()},
    "made by a function": {"made": None},
    "made of an input": {"between": False},
    "read by a function too": {},
    "an output too": {},
    "read behind the call": {},
    "an output twice": {},
    "not made": {},
}


@pytest.mark.parametrize("change", NO_IMAGES)
def test_a_state_that_is_not_an_image_only_stays_a_row(change):
    graph = network(**NO_IMAGES[change])
    if change == "read by a function too":
        graph.add(Node("f", Activation(Clip(0.0)), ["h"], ["f"]))
    elif change == "an output too":
        graph.outputs = ["a", "m"]
    elif change == "read behind the call":
        graph.add(Node("f", Activation(Clip(0.0)), ["m"], ["f"]))
    elif change == "an output twice":
        graph.outputs = ["m", "m"]
    elif change == "not made":
        graph.outputs = ["o", "x"]
    before = sketch(graph)
    keep_images(graph)
    assert sketch(graph) == before


def test_each_state_is_looked_at():
    """One that stays a row does not hide the next one."""
    graph = network()
    for name in ("i", "j"):
        graph.add_input(name, (1, 24))
        graph.add(Node(f"{name}r", Reshape((2, 3, 4)), [name], [f"{name}r"]))
        graph.add(Node(f"{name}a", Activation(Clip(0.0)), [f"{name}r"], [f"{name}a"]))
        graph.add(Node(f"{name}m", Reshape((24,)), [f"{name}a"], [f"{name}m"]))
    graph.add(Node("f", Activation(Clip(0.0)), ["im"], ["f"]))
    graph.outputs, graph.states = ["o", "m", "im", "jm"], 3
    keep_images(graph)
    assert graph.outputs == ["o", "a", "im", "ja"]
    assert [graph.shape(name) for name in "hij"] == [(1, 2, 3, 4), (1, 24), (1, 2, 3, 4)]
    assert [node.name for node in graph.nodes] == ["a", "o", "ir", "ia", "im", "ja", "f"]
    graph.verify()


def test_the_declarations_of_outputs_are_those_of_the_file():
    model = plain(["x", "h"], ["hn", "y"])
    kept = {value.name: value.SerializeToString() for value in model.proto.graph.output}
    take_states(model, "")
    assert {value.name: value.SerializeToString() for value in model.proto.graph.output} == kept
