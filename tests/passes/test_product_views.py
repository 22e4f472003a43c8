"""Products of arrays become those of matrices and convolutions, which have integers, and take in what moves or scales their operands."""

from math import prod

import numpy as np
from support.onnx_models import text_model
from support.ops import Activation, ArrayMap, ArrayMatMul, Fc, Quantize
from support.tables import every

from n2d2py.arithmetic import NumType
from n2d2py.contracts.functions import Clip
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.passes.array_layers import outer_product
from n2d2py.passes.products import grouped_matmul, left_matmul, matmul_to_conv, product_operand, product_result
from n2d2py.quant.types.float_fallback import float_layers

CONSTANTS = {
    "half": np.array(0.5, np.float32),
    "less": np.array(-0.5, np.float32),
    "each": np.array([0.5, 1, 2, 0.5, 1, 2], np.float32),
    "w": np.random.default_rng(1).normal(size=(6, 3)).astype(np.float32),
    "shape": np.array([1, 2, 2, 4, 6]),
    "twice": np.array([1, 1, 1, 1, 2]),
    "last": np.array([-1]),
    "second": np.array([1]),
    "end": np.array([99]),
    "begin": np.array([-99]),
    "columns": np.array([4]),
    "rows": np.array([3]),
    "pads": np.array([0, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
}


def graph_of(body: str, outputs: str = "y"):
    results = ", ".join(f"float[N] {name}" for name in outputs.split())
    ends = f"float[1,2,1,4,6] x, float[1,2,1,6,3] z => {results}"
    return import_onnx(text_model(ends, body, CONSTANTS, has_shapes=False))


def products(graph) -> list[tuple[int, float, bool]]:
    """Of each product: the layers of the network, its factor, and whether it reads or writes in another order."""
    return [
        (len(graph.nodes), round(node.op.scale, 6), bool(node.op.views))
        for node in graph.nodes
        if node.op.kind == "ArrayMatMul"
    ]


@every(
    "body, found",
    [
        ("y = MatMul (x, z)", (1, 1.0, False)),
        ("s = Mul (x, half)\n y = MatMul (s, z)", (1, 0.5, True)),
        ("s = Mul (z, half)\n y = MatMul (x, s)", (1, 0.5, True)),
        ("s = Div (x, half)\n t = Mul (z, half)\n u = Mul (t, half)\n y = MatMul (s, u)", (1, 0.5, True)),
        ("s = Mul (x, less)\n y = MatMul (s, z)", (2, 1.0, False)),
        ("s = Mul (x, each)\n y = MatMul (s, z)", (2, 1.0, False)),
        ("s = Add (x, half)\n y = MatMul (s, z)", (2, 1.0, False)),
        ("s = Relu (x)\n y = MatMul (s, z)", (2, 1.0, False)),
        ("s = Mul (x, half)\n y = MatMul (s, w)", (2, 1.0, False)),
        (
            "s = Transpose <perm = [0, 1, 2, 4, 3]> (x)\n t = Transpose <perm = [0, 1, 2, 4, 3]> (z)\n y = MatMul (t, s)",
            (1, 1.0, True),
        ),
        ("s = Expand (x, shape)\n y = MatMul (s, z)", (1, 1.0, True)),
        ("s = Slice (x, second, end, columns)\n t = Slice (z, second, end, rows)\n y = MatMul (s, t)", (1, 1.0, True)),
        ("s = Slice (x, last, begin, columns, last)\n y = MatMul (s, z)", (2, 1.0, False)),
        ("s = Pad (x, pads)\n y = MatMul (s, z)", (2, 1.0, False)),
    ],
)
def test_operands(run, body, found):
    after, _ = run(graph_of(body), product_operand)
    assert products(after) == [found]


@every(
    "body, found",
    [
        ("p = MatMul (x, z)\n y = Mul (p, half)", (1, 0.5, False)),
        ("p = MatMul (x, z)\n y = Mul (p, less)", (2, 1.0, False)),
        ("p = MatMul (x, z)\n y = Add (p, half)", (2, 1.0, False)),
        ("p = MatMul (x, z)\n y = Relu (p)", (2, 1.0, False)),
        ("p = MatMul (x, w)\n y = Mul (p, half)", (2, 1.0, False)),
        ("p = MatMul (x, z)\n y = Transpose <perm = [0, 3, 1, 2, 4]> (p)", (1, 1.0, True)),
        ("p = MatMul (x, z)\n q = Transpose <perm = [0, 3, 1, 2, 4]> (p)\n y = Mul (q, half)", (1, 0.5, True)),
        ("p = MatMul (x, z)\n y = Slice (p, second, end, columns)", (2, 1.0, False)),
        ("p = MatMul (x, z)\n y = Tile (p, twice)", (2, 1.0, False)),
        ("p = MatMul (x, z)\n y = Slice (p, last, begin, columns, last)", (2, 1.0, False)),
    ],
)
def test_results(run, body, found):
    after, _ = run(graph_of(body), product_result)
    assert products(after) == [found]


def test_a_result_that_others_read_stays(run):
    for body, outputs in (
        ("p = MatMul (x, z)\n y = Mul (p, half)\n v = Relu (p)", "y v"),
        ("p = MatMul (x, z)\n y = Mul (p, half)", "y p"),
    ):
        before = graph_of(body, outputs)
        after, _ = run(before, product_result)
        assert products(after) == products(before)


def grouped(b, left, right):
    b.layer("p", ArrayMatMul(left, right, (0, -1)), params={"operand1": b.array(*right)})
    b.layer("last", Activation(Clip(0.125)), "p")
    return b.done("last")


@every(
    "left, right, groups",
    [
        ((3, 5, 7), (3, 7, 4), 3),
        ((1, 3, 5, 7), (1, 3, 7, 4), 3),
        ((2, 3, 5, 7), (2, 3, 7, 4), 6),
        ((3, 2, 5, 7), (3, 1, 7, 4), 3),
        ((3, 1, 7), (3, 7, 4), 3),
        ((3, 5, 1), (3, 1, 1), 3),
        ((5, 5, 5), (5, 5, 5), 5),
    ],
)
def test_groups_are_a_convolution(build, run, run_all, left, right, groups):
    graph = grouped(build(prod(left)), left, right)
    after, report = run(graph, grouped_matmul)
    assert not report.refused
    conv = after.node("p")
    assert conv.op.kind == "Conv" and conv.op.groups == groups
    fused, _ = run_all(graph, integer=True)
    assert fused.node("p").op.kind == "Conv" and float_layers(fused) == set()


@every(
    "left, right",
    [((2, 3, 5, 7), (1, 3, 7, 4)), ((1, 3, 5, 7), (2, 3, 7, 4)), ((1, 5, 7), (3, 7, 4)), ((2, 1, 5, 7), (2, 3, 7, 4))],
    ids=["inner groups", "rows repeated outside", "one matrix of rows", "rows repeated inside"],
)
def test_other_groups_stay(build, run, left, right):
    graph = grouped(build(prod(left)), left, right)
    assert run(graph, grouped_matmul)[1].refused


def test_a_single_row_is_fully_connected(build, run, kinds, run_all):
    graph = grouped(build(7), (1, 1, 7), (1, 7, 4))
    after, _ = run(graph, matmul_to_conv)
    assert kinds(after) == [("p", "Fc"), ("last", "Activation")]
    fused, _ = run_all(graph, integer=True)
    assert float_layers(fused) == set()


def turned(b, left, right):
    b.layer("p", ArrayMatMul(left, right, (-1, 0)), params={"operand0": b.array(*left)})
    b.layer("last", Activation(Clip(0.125)), "p")
    return b.done("last")


@every(
    "left, right",
    [
        ((5, 7), (7, 3)),
        ((1, 7), (7, 3)),
        ((5, 1), (1, 3)),
        ((1, 5, 7), (4, 7, 3)),
        ((1, 1, 5, 7), (2, 2, 7, 1)),
        ((5, 5), (5, 5)),
    ],
)
def test_it_computes_the_same_as_a_convolution(build, run, run_all, kinds, left, right):
    size = 1
    for dim in right:
        size *= dim
    graph = turned(build(size), left, right)
    after, report = run(graph, left_matmul)
    assert not report.refused
    assert kinds(after) == [
        ("p_operand_image", "MemoryView"),
        ("p_operand_turned", "Transpose"),
        ("p_operand_rows", "MemoryView"),
        ("p", "ArrayMatMul"),
        ("p_product_image", "MemoryView"),
        ("p_product_turned", "Transpose"),
        ("p_view", "MemoryView"),
        ("last", "Activation"),
    ]
    fused, _ = run_all(graph, integer=True)
    assert fused.node("p").op.kind == "Conv" and float_layers(fused) == set()


def test_a_vector_is_not_turned(build, run, run_all, kinds):
    graph = turned(build(7), (5, 7), (7, 1))
    after, _ = run(graph, left_matmul)
    assert kinds(after) == [("p", "ArrayMatMul"), ("last", "Activation")]
    fused, _ = run_all(graph, integer=True)
    assert fused.node("p").op.kind == "Fc" and float_layers(fused) == set()


def test_a_matrix_for_each_product_stays(build, run):
    graph = turned(build(4 * 7 * 3), (4, 5, 7), (4, 7, 3))
    assert run(graph, left_matmul)[1].refused


def test_networks_that_come_quantized_keep_it(build, run):
    """Their rounding is that of the file, which has the matrix on the left."""
    b = build(21)
    b.layer("q", Quantize(NumType(8, scale=0.125)), "x")
    b.layer("p", ArrayMatMul((5, 7), (7, 3), (-1, 0)), "q", params={"operand0": b.array(5, 7)})
    assert run(b.done("p"), left_matmul)[1].refused


def repeating(b, dims, shapes, slots=(0, 1), function="Mul"):
    for number, shape in enumerate(shapes):
        b.layer(f"f{number}", Fc(), params={"weights": b.array(prod(shape), 6), "bias": b.array(prod(shape))})
    b.layer("y", ArrayMap(function, dims, shapes, slots), [f"f{slots.index(0)}", f"f{slots.index(1)}"])
    b.layer("last", Activation(Clip(0.125)), "y")
    return b.done("last")


@every("slots", [(0, 1), (1, 0)])
@every(
    "dims, shapes",
    [
        ((3, 4), ((3, 1), (1, 4))),
        ((3, 4), ((1, 4), (3, 1))),
        ((1, 5, 2, 3), ((1, 5, 1, 1), (1, 1, 2, 3))),
        ((2, 3, 4), ((2, 3, 1), (2, 1, 4))),
        ((2, 1, 3, 4), ((2, 1, 1, 4), (2, 1, 3, 1))),
    ],
)
def test_operands_that_repeat_each_other(build, run, run_all, dims, shapes, slots):
    graph = repeating(build(6), dims, shapes, slots)
    after, report = run(graph, outer_product)
    assert not report.refused and after.node("y").op.kind == "ArrayMatMul"
    fused, _ = run_all(graph, integer=True)
    assert fused.node("y").op.kind == "ArrayMatMul" and float_layers(fused) == set()


@every(
    "dims, shapes, function",
    [
        ((3, 4), ((3, 1), (1, 4)), "Add"),
        ((3, 4), ((3, 4), (1, 4)), "Mul"),
        ((3, 4), ((3, 4), (3, 4)), "Mul"),
        ((3, 4, 2), ((3, 1, 2), (1, 4, 2)), "Mul"),
        ((2, 3, 4), ((1, 3, 1), (2, 1, 4)), "Mul"),
        ((2, 3, 4), ((2, 1, 4), (1, 3, 1)), "Mul"),
    ],
    ids=["sum", "a line", "equals", "shared behind", "other before", "turned"],
)
def test_other_products_stay(build, run, dims, shapes, function):
    after, report = run(repeating(build(6), dims, shapes, function=function), outer_product)
    assert after.node("y").op.kind == "ArrayMap" and not report.done


def test_beside_a_layer_without_integers_it_stays(build, run):
    b = build(3)
    b.layer("f", ArrayMap("Sin", (3,), ((3,),), (0,)))
    b.layer("y", ArrayMap("Mul", (3, 3), ((3, 1), (1, 3)), (0, 1)), ["f", "x"])
    after, report = run(b.done("y"), outer_product)
    assert report.refused and after.node("y").op.kind == "ArrayMap"
