"""A constant matrix on the left of a product becomes one on the right, and so a convolution, which has integers."""

from __future__ import annotations

from support.tables import every

from n2d2py.arithmetic import NumType
from n2d2py.operators.activation import Activation
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.functions import Clip
from n2d2py.operators.quantize import Quantize
from n2d2py.passes.constant_products import LeftMatMul
from n2d2py.quant.types.float_fallback import float_layers


def network(b, left, right):
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
    graph = network(build(size), left, right)
    after, report = run(graph, LeftMatMul())
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
    graph = network(build(7), (5, 7), (7, 1))
    after, _ = run(graph, LeftMatMul())
    assert kinds(after) == [("p", "ArrayMatMul"), ("last", "Activation")]
    fused, _ = run_all(graph, integer=True)
    assert fused.node("p").op.kind == "Fc" and float_layers(fused) == set()


def test_a_matrix_for_each_product_stays(build, run, reason):
    graph = network(build(4 * 7 * 3), (4, 5, 7), (4, 7, 3))
    assert reason(run(graph, LeftMatMul())[1]) == "p: it has a matrix for each of several products"


def test_networks_that_come_quantized_keep_it(build, run, reason):
    """Their rounding is that of the file, which has the matrix on the left."""
    b = build(21)
    b.layer("q", Quantize(NumType(8, scale=0.125)), "x")
    b.layer("p", ArrayMatMul((5, 7), (7, 3), (-1, 0)), "q", params={"operand0": b.array(5, 7)})
    assert reason(run(b.done("p"), LeftMatMul())[1]) == "p: it computes in integers of the file"
