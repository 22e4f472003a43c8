"""Operators that read a transposition, of every order, against ONNX Runtime: what is taken from before it lies in another order."""

from __future__ import annotations

from itertools import chain, combinations, permutations

import numpy as np
from support.tables import every

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
