"""Algebra of per-channel gains and shifts around layers with weights, in float64, and the signs of values."""

from collections.abc import Collection

import numpy as np

from n2d2py.graph import Graph, Node, Shape
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.arrays.recurrent import ArrayRecurrent
from n2d2py.operators.batchnorm import BatchNorm
from n2d2py.operators.concat import is_real_concat
from n2d2py.operators.conv import Conv, Fc
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.index_select import IndexSelect
from n2d2py.operators.pointwise import Activation, Affine
from n2d2py.operators.pool import Pool
from n2d2py.operators.quantize import Convert
from n2d2py.operators.reshape import MemoryView, Reshape, Transpose
from n2d2py.operators.softmax import Softmax

MOVES = (IndexSelect, Reshape, Transpose, MemoryView)

_TINY = 1e-12
_LEAST_GAIN = 1e-30
"""Gains below it leave scales in float32 without precision; they count as 0."""


def cast_like(values: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return `values` as a new contiguous array in the floating-point type of `reference`."""
    return np.ascontiguousarray(values, reference.dtype)


def gain_and_shift(node: Node) -> tuple[np.ndarray, np.ndarray]:
    """Return (g, s) in float64, each (C), of an Affine or BatchNorm: y = g * x + s.

    A BatchNorm channel whose variance plus epsilon is below 1e-12 gets the mean of the other channels' variances. N2D2 does the
    same for any tiny variance; epsilon counts here, which keeps the result exact.
    """
    if isinstance(node.op, Affine):
        return node.params["weights"].astype(np.float64), node.params["bias"].astype(np.float64)
    assert isinstance(node.op, BatchNorm)
    variance = node.params["variance"].astype(np.float64)
    tiny = variance + node.op.epsilon < _TINY
    if tiny.any():
        variance = np.where(tiny, variance[~tiny].mean() if not tiny.all() else 1.0, variance)
    return node.op.factors({**node.params, "variance": variance})


def scale_outputs(node: Node, gain: np.ndarray, shift: np.ndarray | None = None) -> None:
    """Merge g * y + s into the Conv, Deconv or Fc before it: W' = g W, b' = g b + s, per output; no shift is 0."""
    weights, bias = node.params["weights"], node.params["bias"]
    if "weight_scales" in node.params:
        gain = np.where(np.abs(gain) < _LEAST_GAIN, 0.0, gain)
    per_output = gain.reshape(-1, *(1,) * (weights.ndim - 1))
    node.params = {
        **node.params,
        "weights": cast_like(weights.astype(np.float64) * per_output, weights),
        "bias": cast_like(bias.astype(np.float64) * gain + (0.0 if shift is None else shift), bias),
    }
    node.unbiased = node.unbiased and shift is None
    if "weight_scales" in node.params:
        scales = np.broadcast_to(node.params["weight_scales"], gain.shape)
        node.params["weight_scales"] = cast_like(np.where(gain == 0, 1, np.abs(gain)) * scales, scales)


def scale_inputs(node: Node, gain: np.ndarray, shift: np.ndarray | None = None) -> None:
    """Merge g * x + s into the layer with weights that reads x: W' = W g, b' = b + sum of W s.

    gain, shift: one value for each input channel, (C), or (size) of a recurrent layer; no shift is 0. A Conv with padding must
    have no shift. Arrays are replaced, not changed in place.
    """
    shift = np.zeros(len(gain)) if shift is None else shift
    role, bias_role = ("input_weights", "gate_bias") if isinstance(node.op, ArrayRecurrent) else ("weights", "bias")
    weights, bias = node.params[role], node.params[bias_role]
    wide = weights.astype(np.float64)
    if isinstance(node.op, Conv):
        outputs, per_group = wide.shape[:2]
        group = np.arange(outputs) // (outputs // node.op.groups)
        channel = group[:, None] * per_group + np.arange(per_group)
        gains, shifts = gain[channel][..., None, None], shift[channel][..., None, None]
    else:
        positions = wide.shape[1] // len(gain)
        gains, shifts = np.repeat(gain, positions)[None], np.repeat(shift, positions)[None]
    added = (wide * shifts).sum(axis=tuple(range(1, wide.ndim)))
    changed = {role: cast_like(wide * gains, weights), bias_role: cast_like(bias.astype(np.float64) + added, bias)}
    node.params = {**node.params, **changed}
    node.unbiased = node.unbiased and not added.any()


def axis_numbers(shape: Shape, axis: int = 1) -> np.ndarray:
    """Return, for each element of a tensor of `shape`, its index along an axis, in the shape (1, ...)."""
    return np.broadcast_to(np.arange(shape[axis]).reshape(-1, *(1,) * (len(shape) - 1 - axis)), (1, *shape[1:]))


WeightedReaders = list[tuple[Node, np.ndarray]]
"""Layers with weights, each with the gain index of every input channel: (C), Fc inputs, or (size) of a recurrent layer."""


def weighted_readers(graph: Graph, tensor: str, numbers: np.ndarray, products: bool = False) -> WeightedReaders | str:
    """Return the layers with weights if they are a tensor's only consumers, also through layers that move its elements.

    `numbers`: index of the gain of each element of the tensor, in its shape (1, ...). `products`: also look through
    multiplications by other tensors, which keep gains but no shifts. Return a clause with the reason if another layer reads the
    tensor, or an input channel has several gains.
    """
    if tensor in graph.outputs:
        return "it is a network output"
    result: WeightedReaders = []
    for reader in graph.consumers(tensor):
        if isinstance(reader.op, IndexSelect) and reader.op.fills:
            return f"{reader.name} fills positions"
        passed = _gain_numbers_after(graph, reader, tensor, numbers, products)
        if passed is not None:
            further = weighted_readers(graph, reader.output, passed, products)
            if isinstance(further, str):
                return further
            result += further
            continue
        reads_once = reader.inputs.count(tensor) == 1 and reader.inputs[0] == tensor
        if not (reads_once and isinstance(reader.op, (Conv, Fc, ArrayRecurrent))):
            return f"it feeds {reader.name} of type {reader.op.kind}"
        if "weight_scales" in reader.params:
            return f"the weights of {reader.name} are integers, which a gain of its inputs would change"
        if isinstance(reader.op, ArrayRecurrent):
            inputs = numbers.reshape(-1, reader.op.size).T
        else:
            inputs = numbers.reshape(numbers.shape[1] if isinstance(reader.op, Conv) else numbers.size, -1)
        if (inputs != inputs[:, :1]).any():
            return f"an input channel of {reader.name} has several gains"
        result.append((reader, inputs[:, 0].astype(np.int64)))
    return result or "nothing reads it"


def _gain_numbers_after(graph: Graph, reader: Node, tensor: str, numbers: np.ndarray, products: bool) -> np.ndarray | None:
    """Return the gain index of each output element; None unless a layer moves the tensor or, with `products`, multiplies it."""
    if reader.activation is not None or reader.inputs.count(tensor) != 1:
        return None
    if isinstance(reader.op, MOVES):
        return reader.op.run([numbers], reader)[0]
    if products and isinstance(reader.op, ArrayMatMul) and tensor == reader.inputs[-1]:
        return reader.op.column_numbers(numbers)
    multiplies = products and isinstance(reader.op, ElemWise) and reader.op.operation == "Prod"
    return np.broadcast_to(numbers, graph.shape(reader.output)) if multiplies else None


def padded_reader(readers: WeightedReaders) -> Node | None:
    """Return a layer with zero padding, which a shift would change; else None."""
    return next((reader for reader, _ in readers if isinstance(reader.op, Conv) and any(reader.op.pads)), None)


def nonnegative_tensors(graph: Graph, inputs: Collection[str] = ()) -> set[str]:
    """Return the tensors that cannot be negative, given the nonnegative `inputs` of the network."""
    facts = set(inputs)
    for node in graph.nodes:
        op, all_known = node.op, all(name in facts for name in node.inputs)
        activation = node.activation or (op.function if isinstance(op, Activation) else None)
        preserves = (op.moves_values and getattr(op, "fill", 0) >= 0) or is_real_concat(node) or isinstance(op, (Pool, Convert))
        if isinstance(op, Affine):
            preserves = all(values.min(initial=0) >= 0 for values in node.params.values())
        if isinstance(op, ElemWise):
            weights, shifts = op.coefficients(len(node.inputs))
            preserves = min(*weights, *shifts) >= 0 or op.operation in ("Prod", "Max", "Min")
            all_known = all_known or op.operation == "EuclideanSum" or (op.operation == "AbsSum" and min(weights) >= 0)
        keeps = activation is None or (activation.is_clamp and getattr(activation, "high", 0.0) >= 0)
        own = op.nonnegative or (isinstance(op, Softmax) and not op.log) or (activation is not None and activation.nonnegative)
        if own or (preserves and all_known and keeps):
            facts.update(node.outputs)
    return facts
