"""Normalizations that exporters decompose, recognized at their last node and imported as one layer: LayerNorm before opset 17,
RMSNorm, PyTorch's `normalize`, TensorFlow's `l2_normalize`, softmax.

    x / divisor, x * (1 / divisor), x * (g / divisor), g * x / divisor   x may be y - mean(y) over the divisor's axes; g constant
    y * r + (b - mean(y) * r), r = g / divisor                           the same in TensorFlow
    e / sum(e), e = exp(x) or exp(x - c), c the same along the axis      softmax

The divisor is the root of k * mean(x * x) + epsilon over any axes, or that plus a constant. k is the number of elements for a
norm, and n / (n - 1) for a sample deviation. A constant up to `_MAX_FLOOR` may limit a norm from below. The mean square of
differences may be mean(y * y) - mean(y) * mean(y), as in Flax. Reduced axes are kept, or restored by Reshape and Expand.

Replaced layers stay if another layer reads them; the import removes the others as dead code.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import dropwhile, zip_longest
from math import isclose, prod, sqrt

import numpy as np

from n2d2py.contracts.onnx.nodes import Builder, OnnxNode
from n2d2py.operators.arrays.values import Arrays, Value
from n2d2py.operators.normalize.op import SMALLEST_NORM, Normalize
from n2d2py.operators.softmax import Softmax

_MAX_FLOOR = 1e-6
"""Largest lower limit of a norm that counts as protection against division by zero."""
_MAX_DEPTH = 4
"""Depth to which duplicated subgraphs are compared."""


@dataclass(frozen=True)
class Divisor:
    """sqrt(factor * mean(x * x) + epsilon) + added, means over `axes` of `size` elements; with `centred`, of x - mean(x)."""

    x: str
    axes: tuple[int, ...]
    size: int
    factor: float
    epsilon: float = 0.0
    added: float = 0.0
    floored: bool = False
    centred: bool = False

    @property
    def is_guarded(self) -> bool:
        """True if a constant keeps it from being zero."""
        return self.epsilon > 0 or self.added > 0 or self.floored

    @property
    def is_norm(self) -> bool:
        """True if it is the norm of x without added constants."""
        return self.factor == self.size and not (self.epsilon or self.added)


def import_decomposed_norm(node: OnnxNode, builder: Builder) -> bool:
    """Import a node that ends a decomposed normalization; return False for any other node."""
    if node.type not in ("Add", "Div", "Mul") or node.domain not in ("", "ai.onnx") or any(map(node.is_constant, (0, 1))):
        return False
    a = Arrays(node, builder)
    if node.type == "Div" and _add_softmax(a):
        return True
    for x, divisor, gain, shift in _shifted_quotients(a) if node.type == "Add" else _quotients(a):
        if not (divisor.is_guarded or divisor.is_norm) or not builder.is_tensor(x) or builder.kind_of(x):
            continue
        y = divisor.x if divisor.centred else _uncentred(a, divisor.x, divisor.axes)
        if node.type == "Add":
            fits = y is not None and _is_equal(a, x, y)
        elif divisor.centred:
            away = _uncentred(a, x, divisor.axes)
            fits = away is not None and _is_equal(a, away, divisor.x)
        else:
            fits = _is_equal(a, x, divisor.x)
        if fits:
            _add_norm(a, x if y is None else y, divisor, y is not None, gain, shift)
            return True
    return False


def _add_norm(a: Arrays, x: str, divisor: Divisor, centred: bool, gain: str | None, shift: str | None) -> None:
    builder, dims = a.builder, a.builder.dims_of(x)
    size, factor = divisor.size, divisor.factor
    summed = factor == size
    factor = 1.0 if summed else factor
    epsilon = divisor.epsilon / factor if divisor.epsilon or divisor.added else SMALLEST_NORM**2
    norm = Normalize(size, epsilon, centred, added=divisor.added / sqrt(factor), summed=summed)
    plain, image = gain is None and shift is None, divisor.axes == (1,) and len(dims) in (2, 4) and dims[0] == 1
    if image and plain and (len(dims) == 4 or (divisor.is_norm and not centred)):
        params = {"gain": np.full(size, factor**-0.5, np.float32), "shift": np.zeros(size, np.float32)}
        builder.layer(a.node, norm, [builder.plane(x)], params if factor != 1 else {})
        return
    lines, back = _lines(a, builder.value(x), divisor.axes)
    result = a.add(norm, [lines], lines.dims, label="normed")
    if factor != 1:
        result = a.map("Mul", result, a.const(np.full(lines.dims[len(dims) - len(divisor.axes) :], factor**-0.5), lines))
    result = a.transpose(result, back)
    for function, name in (("Mul", gain), ("Add", shift)):
        if name is not None:
            result = a.map(function, result, builder.value(name))
    a.bind(result)


def _add_softmax(a: Arrays) -> bool:
    powers = _producer(a, a.node.inputs[0], "Exp")
    total = None if powers is None else _producer(a, _unshaped(a, a.node.inputs[1]), "ReduceSum")
    if powers is None or total is None or not _is_equal(a, total.inputs[0], a.node.inputs[0]):
        return False
    name = powers.inputs[0]
    axes = _reduced_axes(a, total, name)
    if axes is None or len(axes) != 1 or not _is_kept(a, a.node.inputs[1], name, axes) or a.builder.kind_of(name):
        return False
    less = _producer(a, name, "Sub")
    if less is not None and a.builder.is_tensor(less.inputs[0]) and _is_kept(a, less.inputs[1], less.inputs[0], axes):
        name = less.inputs[0]
    lines, back = _lines(a, a.builder.value(name), axes)
    a.bind(a.transpose(a.add(Softmax(lines.dims[-1]), [lines], lines.dims, label="softmax"), back))
    return True


def _lines(a: Arrays, x: Value, axes: tuple[int, ...]) -> tuple[Value, list[int]]:
    """Return a tensor with `axes` last, and the permutation that moves them back."""
    order = [*(axis for axis in range(len(x.dims)) if axis not in axes), *axes]
    return a.transpose(x, order), np.argsort(order).tolist()


# ---- parts, each matched backwards from an ONNX tensor --------------------------------------


_Quotient = tuple[str, Divisor, str | None, str | None]
"""x, divisor, constant factor and constant shift; None for 1 and 0."""


def _quotients(a: Arrays) -> Iterator[_Quotient]:
    x, other = a.node.inputs
    if a.node.type == "Div":
        divisor = _broadcast(a, other, _divisor)
        quotients = [] if divisor is None else [(x, divisor, None)]
    else:
        pairs = ((source, _inverse(a, factor)) for source, factor in ((x, other), (other, x)))
        quotients = [(source, *inverse) for source, inverse in pairs if inverse is not None]
    for source, divisor, gain in quotients:
        yield source, divisor, gain, None
        product = None if gain else _producer(a, source, "Mul")
        if product is not None and product.is_constant(0) != product.is_constant(1):
            index = 0 if product.is_constant(0) else 1
            yield product.inputs[1 - index], divisor, product.inputs[index], None


def _shifted_quotients(a: Arrays) -> Iterator[_Quotient]:
    """Yield the possible quotients of an Add: y * r + (b - mean(y) * r)."""
    for left, right in (a.node.inputs, a.node.inputs[::-1]):
        product, rest = _producer(a, left, "Mul"), _producer(a, right, "Sub")
        moved = _producer(a, rest.inputs[1], "Mul") if rest is not None and rest.is_constant(0) else None
        if product is None or rest is None or moved is None:
            continue
        for y, r in (product.inputs, product.inputs[::-1]):
            inverse = _inverse(a, r)
            means = [mean for mean, other in (moved.inputs, moved.inputs[::-1]) if other == r]
            if inverse is not None and means and _is_mean(a, means[0], y, inverse[0].axes):
                yield y, *inverse, rest.inputs[0]


def _inverse(a: Arrays, tensor: str) -> tuple[Divisor, str | None] | None:
    """Return (divisor, constant g) of a tensor g / divisor, g None for 1; else None."""
    node = _producer(a, tensor, "Reciprocal", "Div", "Pow", "Mul")
    if node is None:
        return None
    divisor = gain = None
    if node.type == "Reciprocal":
        divisor = _broadcast(a, node.inputs[0], _divisor)
    elif node.type == "Pow" and _scalar(node, 1) in (-0.5, -1.0):
        divisor = _broadcast(a, node.inputs[0], _squared_divisor if _scalar(node, 1) == -0.5 else _divisor)
    elif node.type == "Div" and node.is_constant(0):
        divisor = _broadcast(a, node.inputs[1], _divisor)
        gain = None if _scalar(node, 0) == 1 else node.inputs[0]
    elif node.type == "Mul" and node.is_constant(0) != node.is_constant(1):
        index = 0 if node.is_constant(0) else 1
        divisor, inner = _inverse(a, node.inputs[1 - index]) or (None, None)
        gain = node.inputs[index]
        if inner is not None:
            return None
    return None if divisor is None else (divisor, gain)


def _divisor(a: Arrays, tensor: str) -> Divisor | None:
    node = _producer(a, _unshaped(a, tensor), "Expand", "Add", "Clip", "Max", "Sqrt", "Pow", "ReduceL2")
    if node is None:
        return None
    if node.type in ("Add", "Clip", "Max"):
        return _add_guard(a, node, _divisor, "added", 1.0)
    if node.type == "Expand":
        return _divisor(a, node.inputs[0])
    if node.type == "ReduceL2":
        return _reduction_divisor(a, node, node.inputs[0])
    return _squared_divisor(a, node.inputs[0]) if node.type == "Sqrt" or _scalar(node, 1) == 0.5 else None


def _squared_divisor(a: Arrays, tensor: str) -> Divisor | None:
    """Return the divisor whose square, without `added`, is a tensor; else None."""
    kinds = ("Add", "Clip", "Max", "Sub", "Mul", "Div", "ReduceMean", "ReduceSum", "ReduceSumSquare")
    node = _producer(a, _unshaped(a, tensor), *kinds)
    if node is None or node.type in ("Add", "Clip", "Max"):
        return None if node is None else _add_guard(a, node, _squared_divisor, "epsilon", 2.0)
    if node.type == "Sub":
        result, mean = _squared_divisor(a, node.inputs[0]), _square_operand(a, node.inputs[1])
        if result is None or mean is None or result.is_guarded or result.centred or result.factor != 1:
            return None
        return replace(result, centred=True) if _is_mean(a, mean, result.x, result.axes) else None
    if node.type in ("Mul", "Div"):
        index = 1 if node.type == "Div" or node.is_constant(1) else 0
        number, result = _scalar(node, index), _squared_divisor(a, node.inputs[1 - index])
        if number is None or not 0 < number < np.inf or result is None or result.is_guarded:
            return None
        factor = result.factor * number if node.type == "Mul" else result.factor / number
        return replace(result, factor=1.0 if isclose(factor, 1.0, rel_tol=1e-6) else factor)
    if node.type == "ReduceSumSquare":
        return _reduction_divisor(a, node, node.inputs[0])
    x = _square_operand(a, node.inputs[0])
    return None if x is None else _reduction_divisor(a, node, x)


def _square_operand(a: Arrays, tensor: str) -> str | None:
    node = _producer(a, tensor, "Mul", "Pow")
    if node is None or not (node.inputs[0] == node.inputs[-1] or (node.type == "Pow" and _scalar(node, 1) == 2)):
        return None
    return node.inputs[0]


def _add_guard(a: Arrays, node: OnnxNode, below, place: str, power: float) -> Divisor | None:
    """Return a divisor with the constant of an Add, or the lower limit of a Clip or Max; else None."""
    constants = [index for index in range(len(node.inputs)) if node.is_constant(index)]
    if node.type == "Clip":
        limited = node.has(2) or node.attribute("max") is not None or (node.has(1) and not node.is_constant(1))
        number = None if limited else _scalar(node, 1) if node.has(1) else float(node.attribute("min", 0.0))
        source = node.inputs[0]
    else:
        if len(node.inputs) != 2 or len(constants) != 1:
            return None
        number, source = _scalar(node, constants[0]), node.inputs[1 - constants[0]]
    result = below(a, source) if number is not None and 0 <= number < np.inf else None
    if number is None or result is None or result.floored or getattr(result, place):
        return None
    if node.type == "Add":
        return replace(result, **{place: number}) if number > 0 else None
    if number == 0:  # squares and norms are never negative
        return result
    return replace(result, floored=True) if number <= _MAX_FLOOR**power and result.is_norm else None


def _reduction_divisor(a: Arrays, node: OnnxNode, x: str) -> Divisor | None:
    x = _source(a, x)
    axes = _reduced_axes(a, node, x)
    if axes is None:
        return None
    size = prod(a.builder.dims_of(x)[axis] for axis in axes)
    return Divisor(x, axes, size, 1.0 if node.type == "ReduceMean" else float(size))


def _reduced_axes(a: Arrays, node: OnnxNode, x: str) -> tuple[int, ...] | None:
    if not a.builder.is_tensor(x) or (node.has(1) and not node.is_constant(1)):
        return None
    dims = a.builder.dims_of(x)
    axes = node.axes(len(dims)) or (None if node.attribute("noop_with_empty_axes", 0) else range(len(dims)))
    return tuple(axis for axis in axes if dims[axis] > 1) or None if axes is not None else None


def _uncentred(a: Arrays, tensor: str, axes: tuple[int, ...]) -> str | None:
    """Return y if an ONNX tensor is y - mean(y); else None."""
    away = _producer(a, tensor, "Sub")
    if away is None or not _is_mean(a, away.inputs[1], away.inputs[0], axes):
        return None
    return away.inputs[0] if _is_kept(a, away.inputs[1], away.inputs[0], axes) else None


def _is_mean(a: Arrays, tensor: str, x: str, axes: tuple[int, ...]) -> bool:
    """True if the elements of an ONNX tensor are the means of `x` over these axes, whether or not the axes are kept."""
    node, factor = _producer(a, _unshaped(a, tensor), "ReduceMean", "Mul", "Div"), 1.0
    if node is not None and node.type != "ReduceMean":
        index = 1 if node.type == "Div" or node.is_constant(1) else 0
        number = _scalar(node, index) or 0.0
        factor = number if node.type == "Mul" else 1.0 / number if number else 0.0
        node = _producer(a, node.inputs[1 - index], "ReduceSum")
        factor *= prod(a.builder.dims_of(_source(a, x))[axis] for axis in axes)
    if node is None or not isclose(factor, 1.0, rel_tol=1e-6) or not _is_equal(a, node.inputs[0], x):
        return False
    return _reduced_axes(a, node, _source(a, node.inputs[0])) == axes


def _broadcast(a: Arrays, tensor: str, read: Callable[[Arrays, str], Divisor | None]) -> Divisor | None:
    """Return the divisor that `read` finds in an ONNX tensor if the reduced axes have one element there; else None."""
    divisor = read(a, tensor)
    return divisor if divisor is not None and _is_kept(a, tensor, divisor.x, divisor.axes) else None


def _is_kept(a: Arrays, tensor: str, x: str, axes: tuple[int, ...]) -> bool:
    """True if an ONNX tensor with an element for each line of `x` along `axes` is broadcast along these axes."""
    if not all(map(a.builder.is_tensor, (tensor, x))):
        return False
    dims = a.builder.dims_of(x)
    expand = _producer(a, tensor, "Expand")
    if expand is not None:
        pairs = zip_longest(reversed(a.builder.dims_of(tensor)), reversed(dims), fillvalue=1)
        return all(size in (1, limit) for size, limit in pairs) and _is_kept(a, expand.inputs[0], x, axes)
    kept = [1 if axis in axes else size for axis, size in enumerate(dims)]
    found, wanted = (list(dropwhile(lambda size: size == 1, dims)) for dims in (a.builder.dims_of(tensor), kept))
    return found == wanted


def _unshaped(a: Arrays, tensor: str) -> str:
    """Return the tensor whose elements, in the same order, an ONNX tensor has."""
    while (node := _producer(a, tensor, "Reshape", "Squeeze", "Unsqueeze", "Expand")) is not None:
        names = (node.inputs[0], node.outputs[0])
        if not all(map(a.builder.is_tensor, names)) or len({prod(a.builder.dims_of(name)) for name in names}) > 1:
            break
        tensor = node.inputs[0]
    return tensor


def _scalar(node: OnnxNode, index: int) -> float | None:
    value = np.asarray(node.constant(index, "number")) if node.is_constant(index) else np.zeros(0)
    return float(value.item()) if value.size == 1 else None


def _source(a: Arrays, tensor: str) -> str:
    while (node := a.builder.writers.get(tensor)) is not None and node.op_type in ("Cast", "Identity"):
        if not all(a.builder.is_tensor(name) and not a.builder.kind_of(name) for name in (tensor, node.input[0])):
            break
        tensor = node.input[0]
    return tensor


def _producer(a: Arrays, tensor: str, *kinds: str) -> OnnxNode | None:
    node = a.builder.writers.get(_source(a, tensor))
    if node is None or node.op_type not in kinds or node.domain not in ("", "ai.onnx"):
        return None
    return OnnxNode(node, a.builder)


def _is_equal(a: Arrays, left: str, right: str, depth: int = _MAX_DEPTH) -> bool:
    """True if two ONNX tensors have the same values: the same tensor, or equal subgraphs."""
    left, right = _source(a, left), _source(a, right)
    constants, writers = a.builder.constants, a.builder.writers
    if left == right:
        return True
    if left in constants or right in constants:
        return left in constants and right in constants and np.array_equal(constants[left], constants[right])
    one, other = writers.get(left), writers.get(right)
    if one is None or other is None or depth == 0 or len(one.output) > 1 or len(one.input) != len(other.input):
        return False
    alike = (one.op_type, one.domain, *one.attribute) == (other.op_type, other.domain, *other.attribute)
    return alike and all(_is_equal(a, *pair, depth - 1) for pair in zip(one.input, other.input, strict=True))
