"""MatMul and Gemm as Fc or products of arrays; Einsum as products of arrays."""

from __future__ import annotations

from math import prod

import numpy as np

from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.arrays.reduce import reduce_axes
from n2d2py.operators.arrays.values import Arrays, Unsupported, Value, onnx
from n2d2py.operators.conv import Fc


def add_matmul(a: Arrays, left: Value, right: Value, result: str | None = None) -> Value:
    """Add left @ right by the rules of numpy.matmul; the kind is `result`, or that of `left` by default."""
    if not left.dims or not right.dims:
        raise Unsupported("a scalar operand is not supported")
    x = a.reshape(left, (1, *left.dims)) if len(left.dims) == 1 else left
    y = a.reshape(right, (*right.dims, 1)) if len(right.dims) == 1 else right
    rank = max(len(x.dims), len(y.dims))
    x, y = (a.reshape(v, (1,) * (rank - len(v.dims)) + tuple(v.dims)) for v in (x, y))
    if x.dims[-1] != y.dims[-2]:
        raise Unsupported(f"its operands of {list(left.dims)} and {list(right.dims)} cannot be multiplied")
    batch = np.broadcast_shapes(x.dims[:-2], y.dims[:-2])
    op = ArrayMatMul(tuple(x.dims), tuple(y.dims), a.slots([x, y]), left.kind if result is None else result)
    output = a.add(op, [x, y], (*batch, x.dims[-2], y.dims[-1]), label="product")
    dims = list(output.dims)
    if len(right.dims) == 1:
        dims.pop(-1)
    if len(left.dims) == 1:
        dims.pop(-1 if len(right.dims) == 1 else -2)
    return a.reshape(output, dims)


def _check_batch_axes(a: Arrays) -> None:
    """Check that the batch axis of both operands stays the first axis of the result, with the same length.

    Raises:
        Unsupported: if a dynamic batch would be summed, moved or repeated.
    """
    values = [a.value(0), a.value(1)]
    rank = max(len(value.dims) for value in values)
    for index, (value, other) in enumerate(zip(values, reversed(values), strict=True)):
        if len(value.dims) == 2:
            is_summed = index == 1 or bool(a.node.attribute("transA", 0))
            a.builder.guard_batch(a.node, index, 0, "sums or moves", allowed=not is_summed and rank == 2)
        else:
            a.builder.guard_batch(a.node, index, 0, "moves", allowed=len(value.dims) == rank)
            repeats = len(other.dims) == rank and other.dims[0] != 1
            a.builder.guard_batch(a.node, index, 0, "repeats", allowed=not repeats)


@onnx("MatMul", "Gemm")
def _matmul(a: Arrays) -> None:
    """Add an Fc of the rows of a matrix and constant weights, else a product of arrays; only Gemm has the attributes."""
    node, alpha, beta = a.node, a.node.attribute("alpha", 1.0), a.node.attribute("beta", 1.0)
    if _add_fc(a, alpha, beta):
        return
    _check_batch_axes(a)
    left, right = (
        a.transpose(a.value(index), (1, 0)) if node.attribute(name, 0) else a.value(index)
        for index, name in ((0, "transA"), (1, "transB"))
    )
    product = add_matmul(a, left, right)
    if alpha != 1.0:
        product = a.map("Mul", product, a.const(alpha, product))
    if a.node.has(2):
        bias = a.value(2)
        bias = bias if beta == 1.0 else a.map("Mul", bias, a.const(beta, bias))
        product = a.map("Add", product, bias)
    a.bind(product)


def _add_fc(a: Arrays, alpha: float, beta: float) -> bool:
    """Add an Fc with alpha * weights and beta * bias; return False if its operands are others."""
    node = a.node
    if node.is_constant(0) or not node.is_constant(1) or node.attribute("transA", 0):
        return False
    weights = node.constant(1, "weights")
    if weights.ndim != 2 or (node.has(2) and not node.is_constant(2)):
        return False
    weights = weights if node.attribute("transB", 0) else weights.T
    bias = node.constant(2, "bias").astype(np.float64) if node.has(2) else None
    if bias is not None and (bias.size not in (1, len(weights)) or bias.ndim > 2):
        return False
    x = a.image()
    if x.image is None or len(x.dims) != 2:
        return False
    bias = None if bias is None else np.broadcast_to(bias.reshape(-1) * beta, (len(weights),))
    weights = weights if alpha == 1 else weights.astype(np.float64) * alpha
    a.builder.layer(node, Fc(), [x.image], {"weights": weights, "bias": bias}, weights_at=1)
    params = a.builder.graph.nodes[-1].params
    if "weight_scales" in params:
        params["weight_scales"] = params["weight_scales"] * np.float32(abs(alpha) or 1)
    return True


@onnx("Einsum")
def _einsum(a: Arrays) -> None:
    """Add a matrix product for each further operand, or sum and transpose a single one."""
    values = a.values()
    names, result = _terms(a.node.attribute("equation").replace(" ", ""), [len(value.dims) for value in values])
    if [len(name) for name in names] != [len(value.dims) for value in values]:
        raise Unsupported("its equation does not match the number or the ranks of its inputs")
    if len(set(result)) != len(result) or not set(result) <= set("".join(names)):
        raise Unsupported("its equation has an unknown or repeated letter in its result")
    for index, name in enumerate(names):
        verb = "moves" if name[:1] and name[0] in result else "sums"
        a.builder.guard_batch(a.node, index, 0, verb, allowed=name[:1] == result[:1])
    _check_batch_repeats(a, names, values)
    names, values = zip(*(_take_diagonals(a, name, value) for name, value in zip(names, values, strict=True)), strict=True)
    name, value = names[0], values[0]
    for index, (other, factor) in enumerate(zip(names[1:], values[1:], strict=True), 2):
        needed = set(result).union(*names[index:])
        letters = "".join(c for c in dict.fromkeys(name + other) if c in needed)
        value = _contract(a, _sum_unused(a, name, value, other, needed), _sum_unused(a, other, factor, name, needed), letters)
        name = letters
    unused = [index for index, c in enumerate(name) if c not in result]
    value = reduce_axes(a, "Sum", value, unused, keep=False) if unused else value
    needed = [c for c in name if c in result]
    a.bind(a.transpose(value, [needed.index(c) for c in result]))


def _take_diagonals(a: Arrays, name: str, value: Value) -> tuple[str, Value]:
    """Return an operand whose letters differ: the diagonal over the axes of a repeated one, as the last axis."""
    for letter in sorted({letter for letter in name if name.count(letter) > 1}):
        axes = [axis for axis, other in enumerate(name) if other == letter]
        rest = [axis for axis, other in enumerate(name) if other != letter]
        (size, *others), front = {value.dims[axis] for axis in axes}, [value.dims[axis] for axis in rest]
        if others or 0 in axes:
            raise Unsupported(f"the axes of '{letter}' differ in size, or one is the batch")
        value = a.reshape(a.transpose(value, [*rest, *axes]), (*front, size ** len(axes)))
        step = sum(size**power for power in range(len(axes)))
        value = a.select(value, {len(rest): range(0, size ** len(axes), step)})
        name = "".join(name[axis] for axis in rest) + letter
    return name, value


def _check_batch_repeats(a: Arrays, names: list[str], values: list[Value]) -> None:
    """Raise Unsupported if the batch axis of an operand would be repeated along that of another."""
    for index, (name, value) in enumerate(zip(names, values, strict=True)):
        sizes = {one.dims[other.index(name[0])] for other, one in zip(names, values, strict=True) if name and name[0] in other}
        a.builder.guard_batch(a.node, index, 0, "repeats", allowed=not (len(sizes) > 1 and value.dims[0] == 1))


def _terms(equation: str, ranks: list[int]) -> tuple[list[str], str]:
    """Return the letters of each operand and of the result; axes of an ellipsis get unused letters from "A" on."""
    terms, arrow, result = equation.partition("->")
    names = terms.split(",")
    if not arrow:
        result = "..." * ("..." in terms) + "".join(sorted(c for c in set(terms) - {",", "."} if terms.count(c) == 1))
    free = [chr(code) for code in range(ord("A"), ord("A") + 64) if chr(code) not in equation]
    counts = [rank - len(name) + 3 for name, rank in zip(names, ranks, strict=False) if "..." in name]
    axes = "".join(free[: max(counts, default=0)])
    names = [
        name.replace("...", axes[len(axes) - max(0, rank - len(name) + 3) :]) for name, rank in zip(names, ranks, strict=False)
    ] + names[len(ranks) :]
    return names, result.replace("...", axes)


def _sum_unused(a: Arrays, letters: str, value: Value, other: str, needed: set[str]) -> tuple[str, Value]:
    """Sum an operand over the axes that neither the other operand nor later terms have; return its letters and value."""
    unused = [index for index, c in enumerate(letters) if c not in other and c not in needed]
    rest = "".join(c for index, c in enumerate(letters) if index not in unused)
    return rest, (reduce_axes(a, "Sum", value, unused, keep=False) if unused else value)


def _contract(a: Arrays, first_term: tuple[str, Value], second_term: tuple[str, Value], result: str) -> Value:
    """Return the sum of products of two operands over the letters that `result` lacks."""
    (left, x), (right, y) = first_term, second_term
    first, second = dict(zip(left, x.dims, strict=True)), dict(zip(right, y.dims, strict=True))
    repeated = [c for c in left if first[c] != second.get(c, first[c])]  # axes of length 1 and n
    for c in repeated:
        if 1 not in (first[c], second[c]):
            raise Unsupported(f"its operands have {first[c]} and {second[c]} elements along '{c}'")
    batch = [c for c in left if c in right and c in result]
    shared = [c for c in left if c in right and c not in result]
    rows, columns = [c for c in left if c not in right], [c for c in right if c not in left]
    x = _sum_axes(a, x, [left.index(c) for c in shared if first[c] > second[c]])
    y = _sum_axes(a, y, [right.index(c) for c in shared if second[c] > first[c]])
    sizes = {**first, **second} | {c: max(first[c], second[c]) if c in batch else 1 for c in repeated}
    x = a.transpose(x, [left.index(c) for c in (*batch, *rows, *shared)])
    y = a.transpose(y, [right.index(c) for c in (*batch, *shared, *columns)])
    depth = prod(sizes[c] for c in shared)
    lines = [[one[c] for c in batch] for one in (first, second)]
    lines = [[prod(each)] for each in lines] if lines[0] == lines[1] else lines
    x = a.reshape(x, (*lines[0], prod(sizes[c] for c in rows), depth))
    output = add_matmul(a, x, a.reshape(y, (*lines[1], depth, prod(sizes[c] for c in columns))))
    order = [*batch, *rows, *columns]
    output = a.reshape(output, [sizes[c] for c in order])
    return a.transpose(output, [order.index(c) for c in result])


def _sum_axes(a: Arrays, value: Value, axes: list[int]) -> Value:
    """Sum along axes with a common factor; they keep length 1."""
    return reduce_axes(a, "Sum", value, axes, keep=True) if axes else value
