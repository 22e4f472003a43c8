"""Functions of elements, sums over axes and products of arrays, against ONNX Runtime.

Those of `n2d2py.operators.arrays.map`, `n2d2py.operators.arrays.reduce` and `n2d2py.operators.arrays.matmul`, and of integers of a
fixed type in `n2d2py.operators.arrays.integers`. The first axis is no batch.
"""

from __future__ import annotations

import numpy as np
from support.single_array_nodes import F, node, weights
from support.tables import every

X = (2, 3, 4)
N32, N64 = ("int32", 2, 3), ("int64", 2, 3)


def ints(*values, kind: type = np.int64) -> np.ndarray:
    return np.array(values, kind)


ONE = "Neg Abs Sign Floor Ceil Round Exp Erf Sigmoid Tanh Softplus Sin Cos Tan Atan Sinh Cosh Asinh".split()
UNIT = "Asin Acos Atanh".split()
TWO = "Add Sub Mul Div Max Min Equal Less Greater LessOrEqual GreaterOrEqual".split()
FUNCTIONS = {
    **{name: node(f"y = {name} (x)", x=X, tolerance=3e-5) for name in ONE},
    **{name: node(f"t = Tanh (x)\n y = {name} (t)", x=X, tolerance=5e-5) for name in UNIT},
    **{name: node(f"t = Abs (x)\n y = {name} (t)", x=X, tolerance=3e-5) for name in ("Sqrt", "Log", "Reciprocal")},
    "Acosh": node("t = Abs (x)\n u = Add (t, o)\n y = Acosh (u)", x=X, o=np.array(1, F), tolerance=3e-5),
    **{f"{name}, broadcast": node(f"y = {name} (x, z)", x=(2, 1, 4), z=(3, 1), kinds="ArrayMap") for name in TWO},
    **{f"{name}, a constant behind": node(f"y = {name} (x, c)", x=X, c=weights(3, 1)) for name in TWO},
    **{f"{name}, a constant in front": node(f"y = {name} (c, x)", x=X, c=weights(3, 1)) for name in TWO},
    **{
        f"{name} of {kind}": node(f"y = {name} (x, z)", x=(kind, 2, 3), z=(kind, 3))
        for name in ("Add", "Sub", "Mul", "Max", "Min", "Equal", "Less", "GreaterOrEqual")
        for kind in ("int32", "int64")
    },
    **{
        f"{name} of truth": node(f"y = {name} (x, z)", x=("bool", 2, 3), z=("bool", 3))
        for name in ("And", "Or", "Xor", "Equal")
    },
    "Not": node("y = Not (x)", x=("bool", 2, 3)),
    "several": node("y = Sum (x, z, c)", x=X, z=(3, 1), c=weights(4)),
    "sum of one": node("y = Sum (x)", x=X, kinds=""),
    "mean of one": node("y = Mean (x)", x=X, kinds=""),
    "mean of two": node("y = Mean (x, z)", x=X, z=(4,), kinds="ArrayMap ArrayMap"),
    "mean of three": node("y = Mean (x, z, c)", x=X, z=(4,), c=weights(3, 1), kinds="ArrayMap ArrayMap ArrayMap"),
    "largest of three": node("y = Max (x, z, c)", x=X, z=(4,), c=weights(3, 1)),
    "least of whole numbers": node("y = Min (x, z)", x=N32, z=N32),
    "largest of one": node("y = Max (x)", x=X, kinds=""),
    "quotient of whole numbers": node("y = Div (x, c)", x=N32, c=ints(2, -3, 4, kind=np.int32)),
    "quotient of positive numbers": node("y = Div (x, c)", x=("uint8", 2, 3), c=ints(2, 3, 4, kind=np.uint8)),
    "remainder": node("y = Mod (x, c)", x=N32, c=ints(2, -3, 4, kind=np.int32)),
    "remainder, cut": node("y = Mod <fmod = 1> (x, c)", x=N64, c=ints(2, -3, 4)),
    "remainder of reals": node("y = Mod <fmod = 1> (x, c)", x=X, c=np.array([0.75, -0.5, 1, 2], F)),
    "shift left": node('y = BitShift <direction = "LEFT"> (x, c)', x=("uint8", 2, 3), c=ints(0, 1, 7, kind=np.uint8)),
    "shift right": node('y = BitShift <direction = "RIGHT"> (x, c)', x=("uint32", 2, 3), c=ints(0, 1, 3, kind=np.uint32)),
    **{f"{name} of bits": node(f"y = {name} (x, z)", x=N32, z=N32) for name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")},
    "bits turned": node("y = BitwiseNot (x)", x=("int8", 2, 3)),
    "square": node("y = Pow (x, c)", x=X, c=np.array(2, F), kinds="ArrayMap"),
    "root": node("t = Abs (x)\n y = Pow (t, c)", x=X, c=np.array([0.5], F)),
    "cube": node("y = Pow (x, c)", x=X, c=np.array(3, F)),
    "square of more axes": node("y = Pow (x, c)", x=(3,), c=np.array([[2]], F)),
    "powers": node("t = Abs (x)\n y = Pow (t, z)", x=X, z=(4,)),
    "powers of two": node("y = Pow (c, x)", x=X, c=np.array(2, F)),
    "powers by axis": node("y = Pow (x, c)", x=(2, 3), c=np.array([1, 2, 3], F)),
    "square of whole numbers": node("y = Pow (x, c)", x=N32, c=ints(2, kind=np.int32)),
    "root of whole numbers": node("t = Abs (x)\n y = Pow (t, c)", x=N32, c=np.array(0.5, F)),
    "power by a whole number": node("y = Pow (x, c)", x=X, c=ints(3)),
    "clip": node("y = Clip (x, a, b)", x=X, a=np.array(-0.5, F), b=np.array(0.75, F)),
    "clip below": node("y = Clip (x, a)", x=X, a=np.array(-0.5, F)),
    "clip above": node("y = Clip (x, , b)", x=X, b=np.array(0.5, F)),
    "clip by nothing": node("y = Clip (x)", x=X, kinds=""),
    "clip by 0": node("y = Clip <min = 0.0, max = 0.0> (x)", 10, x=X),
    "clip by attributes": node("y = Clip <min = -0.5, max = 1.25> (x)", 10, x=X),
    "clip of whole numbers": node("y = Clip (x, a, b)", x=N32, a=np.array(-2, np.int32), b=np.array(3, np.int32)),
    "relu": node("y = Relu (x)", x=X),
    "relu of whole numbers": node("y = Relu (x)", x=N32),
    "prelu": node("y = PRelu (x, c)", x=X, c=weights(3, 1)),
    "prelu of computed slopes": node("y = PRelu (x, z)", x=X, z=(4,)),
    "choice": node("c = Greater (x, z)\n y = Where (c, z, x)", x=X, z=(4,)),
    "choice of constants": node("y = Where (m, x, c)", x=X, m=np.array([True, False, True, False]), c=np.array(-np.inf, F)),
    "choice of whole numbers": node("c = Less (x, z)\n y = Where (c, x, z)", x=N64, z=N64),
    "infinity below": node("y = Max (x, c)", x=X, c=np.array([-np.inf, 0, np.inf, 1], F)),
    "infinities": node("t = Mul (x, c)\n y = IsInf (t)", x=X, c=np.array([1, np.inf, 2, -np.inf], F)),
    "positive infinities": node(
        "t = Mul (x, c)\n y = IsInf <detect_negative = 0> (t)", x=X, c=np.array([1, np.inf, 2, -np.inf], F)
    ),
    "negative infinities": node(
        "t = Mul (x, c)\n y = IsInf <detect_positive = 0> (t)", x=X, c=np.array([1, np.inf, 2, -np.inf], F)
    ),
    "no numbers": node("t = Log (x)\n y = IsNaN (t)", x=X),
    **{
        f"cast to {kind}": node(f"y = Cast <to = {code}> (x)", x=X)
        for kind, code in (("int32", 6), ("int64", 7), ("int8", 3), ("bool", 9), ("int16", 5))
    },
    **{f"cast of {kind}": node("y = Cast <to = 1> (x)", x=(kind, 2, 3)) for kind in ("int32", "int64", "bool", "uint8")},
    "cast to truth and back": node("t = Cast <to = 9> (x)\n y = Cast <to = 7> (t)", x=N32),
    "cast to the same": node("t = Relu (x)\n y = Cast <to = 1> (t)", x=X),
    "cast to half": node("t = Cast <to = 10> (x)\n y = Cast <to = 1> (t)", x=X, tolerance=2e-3, kinds=""),
    "cast like": node("y = CastLike (x, z)", 19, x=X, z=N32),
    "cast like reals": node("y = CastLike (z, x)", 19, x=X, z=N32),
    "identity": node("t = Relu (x)\n y = Identity (t)", x=X),
    "dropout": node("y = Dropout (x)", x=X, kinds=""),
    "dropout by inputs": node("y = Dropout (x, r, t)", x=X, r=np.array(0.5, F), t=np.array(False), kinds=""),
    "dropout of nothing in training": node("y = Dropout (x, r, t)", x=X, r=np.array(0, F), t=np.array(True), kinds=""),
    "dropout and its mask": node("y, m = Dropout (x)", outputs="y m", x=X, kinds="ArrayMap"),
    "gelu": node("y = Gelu (x)", 20, x=X),
    "gelu by tanh": node('y = Gelu <approximate = "tanh"> (x)', 20, x=X),
    "gelu told": node('y = Gelu <approximate = "none"> (x)', 20, x=X),
}
SUMS = "Sum Mean Max Min Prod L1 L2 SumSquare LogSumExp".split()
REDUCED = {
    **{
        f"{name}": node(f"y = Reduce{name} <keepdims = 0> (x, a)", x=(2, 3, 4, 5), a=ints(1, -1), tolerance=3e-5)
        for name in SUMS
    },
    **{f"{name}, kept": node(f"y = Reduce{name} (x, a)", x=(2, 3, 4), a=ints(0), tolerance=3e-5) for name in SUMS},
    **{f"{name} of all": node(f"y = Reduce{name} (x)", x=(2, 3, 4), tolerance=3e-5) for name in SUMS},
    **{
        f"{name} of all, not kept": node(
            f"y = Reduce{name} <keepdims = 0, noop_with_empty_axes = 0> (x)", x=(2, 3), tolerance=3e-5
        )
        for name in SUMS
    },
    **{
        f"{name} of none": node(f"y = Reduce{name} <noop_with_empty_axes = 1> (x)", x=(2, 3, 4), tolerance=3e-5, reference=True)
        for name in SUMS
    },
    **{
        f"{name} of {kind}": node(f"y = Reduce{name} (x, a)", x=(kind, 2, 3, 4), a=ints(1))
        for name in ("Sum", "Max", "Min", "Mean", "Prod", "SumSquare", "L1")
        for kind in ("int32", "int64")
    },
    **{
        f"{name} of whole numbers over two axes": node(
            f"y = Reduce{name} <keepdims = 0> (x, a)", x=("int32", 2, 3, 4), a=ints(2, 0)
        )
        for name in ("Sum", "Max", "Mean")
    },
    "logarithm": node("t = Abs (x)\n y = ReduceLogSum (t, a)", x=(2, 3, 4), a=ints(-2)),
    "old axes": node("y = ReduceMean <axes = [0, -1], keepdims = 0> (x)", 13, x=(2, 3, 4)),
    "truth, any": node("y = ReduceMax <keepdims = 0> (x, a)", 20, x=("bool", 2, 3, 4), a=ints(1), reference=True),
    "truth, all": node("y = ReduceMin (x, a)", 20, x=("bool", 2, 3, 4), a=ints(2), reference=True),
    **{
        f"{name}, axis {axis}, kept {kept}, last {last}": node(
            f"s = Sign (x)\n y = {name} <axis = {axis}, keepdims = {kept}, select_last_index = {last}> (s)", x=(2, 3, 4)
        )
        for name in ("ArgMax", "ArgMin")
        for axis, kept, last in ((0, 1, 0), (1, 0, 1), (-1, 1, 1), (2, 0, 0))
    },
    "position by default": node("y = ArgMax (x)", x=(3, 4)),
    **{
        f"running {axis} {exclusive} {reverse}": node(
            f"y = CumSum <exclusive = {exclusive}, reverse = {reverse}> (x, a)", x=(2, 3, 4), a=np.array(axis)
        )
        for axis in (0, 1, -1)
        for exclusive in (0, 1)
        for reverse in (0, 1)
    },
    "running sums": node("y = CumSum (x, a)", x=(2, 3, 4), a=np.array(1)),
    "running sums of whole numbers": node("y = CumSum <exclusive = 1> (x, a)", x=("int32", 2, 3), a=np.array(1)),
    **{
        f"running product {exclusive} {reverse}": node(
            f"y = CumProd <exclusive = {exclusive}, reverse = {reverse}> (x, a)", 26, x=(2, 3, 4), a=np.array(1), reference=True
        )
        for exclusive in (0, 1)
        for reverse in (0, 1)
    },
}
PRODUCTS = {
    "matrices": node("y = MatMul (x, z)", x=(2, 3), z=(3, 4), kinds="ArrayMatMul"),
    "of three axes": node("y = MatMul (x, z)", x=(2, 3, 4), z=(2, 4, 5)),
    "one matrix for all": node("y = MatMul (x, z)", x=(2, 3, 4), z=(4, 5)),
    "all for one matrix": node("y = MatMul (x, z)", x=(3, 4), z=(2, 4, 5)),
    "axes broadcast": node("y = MatMul (x, z)", x=(2, 1, 3, 4), z=(5, 4, 2)),
    "a vector in front": node("y = MatMul (x, z)", x=(4,), z=(2, 4, 3)),
    "a vector behind": node("y = MatMul (x, z)", x=(2, 3, 4), z=(4,)),
    "two vectors": node("y = MatMul (x, z)", x=(4,), z=(4,)),
    "a constant in front": node("y = MatMul (c, x)", x=(2, 3, 4), c=weights(5, 3)),
    "a constant behind": node("y = MatMul (x, c)", x=(2, 3, 4), c=weights(2, 4, 5)),
    **{
        f"gemm {a}{b}": node(
            f"y = Gemm <transA = {a}, transB = {b}, alpha = 0.5, beta = -2.0> (x, z, c)",
            x=(3, 2) if a else (2, 3),
            z=(4, 3) if b else (3, 4),
            c=weights(4),
        )
        for a in (0, 1)
        for b in (0, 1)
    },
    "gemm": node("y = Gemm (x, z)", x=(2, 3), z=(3, 4), kinds="ArrayMatMul"),
    "gemm and a bias": node("y = Gemm (x, z, w)", x=(2, 3), z=(3, 4), w=(2, 1), kinds="ArrayMatMul ArrayMap"),
    "gemm, twice": node(
        "y = Gemm <alpha = 2.0> (x, z, c)", x=(2, 3), z=(3, 4), c=weights(2, 4), kinds="ArrayMatMul ArrayMap ArrayMap"
    ),
    "gemm, bias twice": node(
        "y = Gemm <beta = 2.0> (x, z, w)", x=(2, 3), z=(3, 4), w=(4,), kinds="ArrayMatMul ArrayMap ArrayMap"
    ),
    **{
        f"einsum {text}": node(f'y = Einsum <equation = "{text}"> (x, z)', x=x, z=z)
        for text, x, z in (
            ("ij,jk->ik", (2, 3), (3, 4)),
            ("ij,jk", (2, 3), (3, 4)),
            ("bij,bkj->bik", (2, 3, 4), (2, 5, 4)),
            ("bij,bkj->kbi", (2, 3, 4), (2, 5, 4)),
            ("abcd,dbe->eac b".replace(" ", ""), (2, 3, 2, 4), (4, 3, 5)),
            ("i,j->ji", (3,), (4,)),
            ("ij,ij->", (2, 3), (2, 3)),
            ("ij, ij -> i", (2, 3), (2, 3)),
            ("cab,bd", (2, 3, 4), (4, 2)),
            ("pqi,pqj->pij", (4, 1, 3), (1, 4, 2)),
            ("ghi,hgj->ijhg", (2, 1, 3), (4, 1, 2)),
            ("mn,no->mo", (3, 1), (4, 5)),
            ("uv,wv->uw", (3, 4), (2, 1)),
            ("rs,rs->sr", (3, 1), (1, 4)),
            ("ij,kl->il", (2, 3), (4, 2)),
            ("...ij,jk->...ik", (2, 4, 2, 3), (3, 5)),
            ("i...,...j", (3, 2), (2, 4)),
        )
    },
    **{
        f"einsum {text}": node(f'y = Einsum <equation = "{text}"> (x, z, w)', x=x, z=z, w=w)
        for text, x, z, w in (
            ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
            ("bi,ij,bj->b", (3, 2), (2, 4), (3, 4)),
            ("a,b,c->cab", (2,), (3,), (4,)),
        )
    },
    **{
        f"einsum {text}": node(f'y = Einsum <equation = "{text}"> (x)', x=(2, 3, 4))
        for text in ("abc->cba", "abc->b", "abc->ca", "cab", "...c->c...", "a...->...")
    },
}
U8, S8 = np.uint8, np.int8
INTEGERS = {
    "product": node("y = MatMulInteger (x, z)", x=("uint8", 2, 3), z=("uint8", 3, 4)),
    "product, zero points": node(
        "y = MatMulInteger (x, z, a, b)", x=("uint8", 2, 3), z=("int8", 3, 4), a=np.array(3, U8), b=np.array(-2, S8)
    ),
    "product, zero points of 0": node(
        "y = MatMulInteger (x, z, a, b)",
        x=("uint8", 2, 3),
        z=("int8", 3, 4),
        a=np.array(0, U8),
        b=np.array(0, S8),
        kinds="ArrayMap ArrayMap ArrayMatMul",
    ),
    "product, zero points by column": node(
        "y = MatMulInteger (x, c, a, b)",
        x=("uint8", 2, 3),
        a=np.array(2, U8),
        c=ints([1, -2], [3, 4], [5, -6], kind=S8),
        b=np.array([1, -3], S8),
    ),
    "convolution": node(
        "y = ConvInteger <strides = [2, 1], pads = [1, 0, 0, 2]> (x, c)",
        x=("uint8", 2, 3, 4, 5),
        c=np.arange(24, dtype=U8).reshape(2, 3, 2, 2),
    ),
    "convolution, zero points": node(
        "y = ConvInteger <pads = [1, 0, 0, 2]> (x, c, a, b)",
        x=("uint8", 2, 3, 4, 5),
        c=np.arange(24, dtype=U8).reshape(2, 3, 2, 2),
        a=np.array(4, U8),
        b=np.array(7, U8),
    ),
    "convolution, zero points of channels": node(
        "y = ConvInteger (x, c, a, b)",
        x=("uint8", 2, 3, 4, 5),
        c=np.arange(24, dtype=U8).reshape(2, 3, 2, 2),
        a=np.array(4, U8),
        b=np.array([7, 2], U8),
        reference=True,
    ),
    "quantize": node("y = QuantizeLinear (x, s)", x=X, s=np.array(0.01, F)),
    "quantize with a zero point": node("y = QuantizeLinear (x, s, z)", x=X, s=np.array(0.02, F), z=np.array(-5, S8)),
    "quantize bytes": node("y = QuantizeLinear (x, s, z)", x=X, s=np.array(0.02, F), z=np.array(128, U8)),
    "quantize by channel": node(
        "y = QuantizeLinear (x, s, z)", x=X, s=np.array([0.02, 0.5, 0.01], F), z=np.array([1, 2, 3], U8)
    ),
    "quantize by the last axis": node(
        "y = QuantizeLinear <axis = -1> (x, s, z)", x=X, s=np.array([0.02, 0.5, 0.01, 0.1], F), z=np.array([1, 2, 3, 4], S8)
    ),
    "quantize by the first axis": node("y = QuantizeLinear <axis = 0> (x, s)", x=X, s=np.array([0.02, 0.5], F)),
    "quantize to a type": node("y = QuantizeLinear <output_dtype = 3> (x, s)", 21, x=X, s=np.array(0.01, F)),
    "quantize to 16 bits": node("y = QuantizeLinear (x, s, z)", 21, x=X, s=np.array(0.0001, F), z=np.array(3, np.int16)),
    "quantize by blocks": node(
        "y = QuantizeLinear <axis = 1, block_size = 2> (x, s)",
        21,
        x=(2, 5, 2),
        s=np.abs(weights(2, 3, 2)) / 10 + F(0.01),
        reference=True,
    ),
    "quantize by computed scales": node("a = Abs (w)\n y = QuantizeLinear (x, a, z)", x=X, w=(3,), z=np.array([1, 2, 3], U8)),
    "dynamic": node("y, s, z = DynamicQuantizeLinear (x)", outputs="y s z", x=X),
    "dynamic of positive numbers": node("t = Abs (x)\n y, s, z = DynamicQuantizeLinear (t)", outputs="y s z", x=(2, 3)),
    "dynamic of negative numbers": node(
        "t = Abs (x)\n u = Neg (t)\n y, s, z = DynamicQuantizeLinear (u)", outputs="y s z", x=(2, 3)
    ),
}


@every("name", FUNCTIONS)
def test_functions(name):
    FUNCTIONS[name].check()


@every("name", REDUCED)
def test_reduced(name):
    REDUCED[name].check()


@every("name", PRODUCTS)
def test_products(name):
    PRODUCTS[name].check()


@every("name", INTEGERS)
def test_integers(name):
    INTEGERS[name].check()
