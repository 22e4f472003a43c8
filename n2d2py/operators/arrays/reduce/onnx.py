"""Reductions over any axes, positions of extremes, running sums."""

from __future__ import annotations

from math import prod

from n2d2py.frontend.onnx.tensors import Value
from n2d2py.operators.arrays.reduce import ArrayCumSum, ArrayReduce
from n2d2py.operators.arrays.values import Arrays, onnx_array


def reduced(a: Arrays, function: str, x: Value, axes: list[int], keep: bool = True, result: str | None = None) -> Value:
    """`function` over `axes`."""
    dims = [1 if axis in axes else size for axis, size in enumerate(x.dims) if keep or axis not in axes]
    x = a.tensor(x)
    op = ArrayReduce(function, tuple(x.dims), tuple(axes), x.kind if result is None else result)
    return a.add(op, [x], tuple(dims), label=function.lower())


def _reduce(function: str):
    def convert(a: Arrays) -> None:
        x = a.value(0)
        axes = a.node.axes(len(x.dims))
        if not axes:
            if a.node.attribute("noop_with_empty_axes", 0):
                if function in ("Sum", "Mean", "Max", "Min", "Prod"):
                    a.bind(x)
                    return
                axes = []
            else:
                axes = list(range(len(x.dims)))
        for axis in axes:
            a.builder.guard_batch(a.node, 0, axis, "reduces")
        if not axes:
            x = a.reshape(x, (*x.dims, 1))
            a.bind(reduced(a, function, x, [len(x.dims) - 1], False))
            return
        if x.kind == "bool":
            x = a.cast(x, "uint8")
        made = reduced(a, function, x, axes, bool(a.node.attribute("keepdims", 1)))
        a.bind(a.cast(made, "bool") if a.value(0).kind == "bool" else made)

    return convert


def _argument(function: str):
    def convert(a: Arrays) -> None:
        x = a.value(0)
        axis = a.node.axis_of(a.node.attribute("axis", 0), len(x.dims))
        a.builder.guard_batch(a.node, 0, axis, "compares")
        name = function + ("Last" if a.node.attribute("select_last_index", 0) else "")
        a.bind(reduced(a, name, x, [axis], bool(a.node.attribute("keepdims", 1)), "int64"))

    return convert


def _scan(product: bool):
    def convert(a: Arrays) -> None:
        x = a.tensor(a.value(0))
        axis = a.node.axis_of(int(a.node.constant(1, "axis").item()), len(x.dims))
        a.builder.guard_batch(a.node, 0, axis, "runs along")
        op = ArrayCumSum(
            prod(x.dims[:axis]),
            x.dims[axis],
            prod(x.dims[axis + 1 :]),
            bool(a.node.attribute("exclusive", 0)),
            bool(a.node.attribute("reverse", 0)),
            product,
            x.kind,
        )
        a.bind(a.add(op, [x], x.dims, label="running"))

    return convert


for _name in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"):
    onnx_array(f"Reduce{_name}")(_reduce(_name))
onnx_array("ArgMax")(_argument("ArgMax"))
onnx_array("ArgMin")(_argument("ArgMin"))
onnx_array("CumSum")(_scan(False))
onnx_array("CumProd")(_scan(True))
