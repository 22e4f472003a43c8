"""Which inputs a file takes as height, width, channels: those that only transpositions to channels, height, width read."""

from itertools import chain, combinations, permutations

import numpy as np
from onnx import helper, parser
from support.tables import every

from n2d2py.frontend.onnx.inputs_outputs import nhwc_inputs

TURN = "Transpose <perm = [0,3,1,2]>"
ELEMENTWISE = {
    "Add": "Add (x, c)",
    "Sub": "Sub (c, x)",
    "Mul": "Mul (x, x)",
    "Div": "Div (x, c)",
    "Cast": "Cast <to = 1> (x)",
    "Identity": "Identity (x)",
    "Clip": "Clip (x, c)",
    "Relu": "Relu (x)",
    "QuantizeLinear": "QuantizeLinear (x, c)",
    "DequantizeLinear": "DequantizeLinear (x, c)",
}


def found(body: str, outputs: str = "y", inputs: str = "x") -> set[str]:
    def declared(names: str) -> str:
        return ", ".join(f"float[N,4,5,6] {name}" for name in names.split())

    return nhwc_inputs(parser.parse_graph(f"g ({declared(inputs)}) => ({declared(outputs)}) {{ {body} }}"))


@every("operator", ELEMENTWISE)
def test_what_computes_each_element_alone_may_stand_before_the_transposition(operator):
    assert found(f"a = {ELEMENTWISE[operator]}\n y = {TURN} (a)") == {"x"}
    assert found(f"a = {ELEMENTWISE[operator]}\n y = Sigmoid (a)") == set()


@every(
    "body",
    [
        f"y = {TURN} (x)",
        f"t = {TURN} (x)\n y = Sigmoid (t)",
        f"t = {TURN} (x)\n u = {TURN} (x)\n y = Add (t, u)",
        f"a = Relu (x)\n b = Add (a, c)\n y = {TURN} (b)",
        f"a = Relu (x)\n b = Clip (x, c)\n t = {TURN} (a)\n u = {TURN} (b)\n y = Add (t, u)",
        f"a = Relu (x)\n t = {TURN} (a)\n u = {TURN} (x)\n y = Add (t, u)",
    ],
)
def test_inputs_that_only_transpositions_read(body):
    assert found(body) == {"x"}


@every(
    "body",
    [
        "y = Relu (x)",
        "y = Conv (x, w)",
        "y = Transpose <perm = [0,2,3,1]> (x)",
        "y = Transpose <perm = [0,3,2,1]> (x)",
        "y = Transpose (x)",
        "y = own.Turn <perm = [0,3,1,2]> (x)",
        "y = Transpose <order = [0,3,1,2]> (x)",
        f"a = Sigmoid (x)\n y = {TURN} (a)",
        f"t = {TURN} (x)\n u = Sigmoid (x)\n y = Add (t, u)",
        f"a = Relu (x)\n t = {TURN} (a)\n u = Sigmoid (a)\n y = Add (t, u)",
        f"a = Relu (x)\n t = {TURN} (a)\n u = Transpose <perm = [0,2,3,1]> (a)\n y = Add (t, u)",
        f"a = Relu (x)\n y = {TURN} (c)",
        f"y = {TURN} (c)",
    ],
)
def test_inputs_that_something_else_reads_or_nothing(body):
    assert found(body) == set()


def test_what_is_an_output_itself_keeps_its_order():
    assert found(f"y = {TURN} (x)", outputs="y x") == set()
    assert found(f"a = Relu (x)\n y = {TURN} (a)", outputs="a y") == set()
    assert found(f"a = Relu (x)\n b = Abs (x)\n y = {TURN} (a)", outputs="y") == set()


def test_each_input_is_judged_alone():
    assert found(f"a = Relu (u)\n t = {TURN} (a)\n r = Relu (v)\n y = Add (t, r)", inputs="u v") == {"u"}
    assert found(f"a = Add (u, v)\n y = {TURN} (a)", inputs="u v") == {"u", "v"}
    assert found(f"a = Add (u, v)\n b = Relu (v)\n t = {TURN} (a)\n y = Add (t, b)", inputs="u v") == {"u"}


def test_other_attributes_of_a_transposition_say_nothing():
    graph = parser.parse_graph(f"g (float[N,4,5,6] x) => (float[N,6,4,5] y) {{ y = {TURN} (x) }}")
    graph.node[0].attribute.append(helper.make_attribute("note", "of a tool"))
    assert nhwc_inputs(graph) == {"x"}


SIZES = (3, 4, 5)


def _reductions(rank: int) -> list[str]:
    some = chain.from_iterable(combinations(range(1, rank), count) for count in (1, 2))
    return [
        f"{kind} <axes = {list(axes)}, keepdims = {kept}> (t)"
        for axes in some
        for kind in ("ReduceMax", "ReduceMean", "ReduceL2")
        for kept in (0, 1)
        if kept or len(axes) < rank - 1
    ]


def _others(rank: int) -> list[str]:
    codes = ("Softmax <axis = {0}> (t)", "Concat <axis = {0}> (t, u)", "Slice (t, one, two, axis{0})", "Mul (t, gain{0})")
    return [code.format(axis) for axis in range(1, rank) for code in codes]


@every("order", [order for rank in (2, 3) for order in permutations(range(1, rank + 1))])
@every("codes", [_reductions, _others])
def test_as_onnx_runtime(model, check, codes, order):
    rank, sizes = len(order) + 1, SIZES[: len(order)]
    shape = (1, *(sizes[axis - 1] for axis in order))
    rng = np.random.default_rng(2)
    constants = {"one": np.array([1]), "two": np.array([2])}
    for axis in range(1, rank):
        constants[f"axis{axis}"] = np.array([axis])
        gains = rng.uniform(0.5, 2, shape[axis]).astype(np.float32)
        constants[f"gain{axis}"] = gains.reshape([-1 if at == axis else 1 for at in range(rank)])
    turned = f"Transpose <perm = {[0, *order]}>"
    lines = ["r = Abs (x)", f"t = {turned} (r)", "s = Relu (x)", f"u = {turned} (s)"]
    lines += [f"y{at} = {code}" for at, code in enumerate(codes(rank))]
    results = ", ".join(f"float[{', '.join('?' * _rank(code, rank))}] y{at}" for at, code in enumerate(codes(rank)))
    built = model(f"float[N, {', '.join(map(str, sizes))}] x => {results}", "\n".join(lines), 13, **constants)
    check(built, batch=2)


def _rank(code: str, rank: int) -> int:
    return rank - code.split("]")[0].count(",") - 1 if "keepdims = 0" in code else rank
