"""Changes of small .tflite files beside those of `damages`: names, flags, ends, operators, grids; what was done, in words."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from support.damages import damage_file

_OPERATORS = (
    "RELU",
    "ABS",
    "ADD",
    "SOFTMAX",
    "CONV_2D",
    "RESHAPE",
    "MEAN",
    "CONCATENATION",
    "CUSTOM",
    "LSTM",
    "PAD",
    "NEG",
    "SUM",
)
"""What an operator becomes."""

Change = Callable[[Any, "list[int]", random.Random], str]


def change_file(made: Any, outputs: list[int], rng: random.Random) -> str:
    """Changes a file of `tflite_files.Small`, whose results are `outputs`."""
    way = rng.choice([None, None, None, _names, _flags, _ends, _ends, _other_operator, _more, _order, _grids, _grids, _bytes])
    return damage_file(made, rng) if way is None else way(made, outputs, rng)


def _names(made: Any, outputs: list[int], rng: random.Random) -> str:
    first, second = rng.sample(made.file._tensors, 2)
    first.name = rng.choice([second.name, second.name, "", "a b", "é" * 150, None])
    return f"a tensor called {str(first.name)[:20]} beside {second.name}"


def _flags(made: Any, outputs: list[int], rng: random.Random) -> str:
    tensor, way = (
        rng.choice(made.file._tensors),
        rng.choice(["variable", "elsewhere", "own grid", "beyond", "signature", "sparse"]),
    )
    if way == "variable":
        tensor.isVariable = True
    elif way == "elsewhere":
        tensor.externalBuffer = 1
    elif way == "beyond":
        tensor.buffer = len(made.file._buffers) + rng.choice([-1, 0, 1])
    elif way == "own grid":
        tensor.quantization = _grid(made, tensor)
        tensor.quantization.detailsType = made.schema.QuantizationDetails.CustomQuantization
        tensor.quantization.details = made.schema.CustomQuantizationT()
    elif way == "signature":
        tensor.shapeSignature = np.array([-1, *list(tensor.shape)[1:]], np.int32)
    else:
        _make_sparse(made, tensor)
    return f"{tensor.name} {way}"


def _grid(made: Any, tensor: Any) -> Any:
    """The grid of a tensor, a new one where it has none."""
    if tensor.quantization is not None:
        return tensor.quantization
    numbers = made.schema.QuantizationParametersT()
    numbers.scale, numbers.zeroPoint = np.array([0.05], np.float32), np.zeros(1, np.int64)
    return numbers


def _make_sparse(made: Any, tensor: Any) -> None:
    """All axes but the last are dense; the last one lists every position."""
    sparsity, sizes = made.schema.SparsityParametersT(), [int(size) for size in tensor.shape]
    sparsity.traversalOrder = np.arange(len(sizes), dtype=np.int32)
    sparsity.dimMetadata = []
    for axis, size in enumerate(sizes):
        one = made.schema.DimensionMetadataT()
        if axis < len(sizes) - 1:
            one.format, one.denseSize = made.schema.DimensionType.DENSE, size
        else:
            rows = int(np.prod(sizes[:-1]))
            one.format, one.denseSize = made.schema.DimensionType.SPARSE_CSR, 0
            one.arraySegmentsType = one.arrayIndicesType = made.schema.SparseIndexVector.Int32Vector
            one.arraySegments, one.arrayIndices = (made.schema.Int32VectorT() for _ in range(2))
            one.arraySegments.values = np.arange(rows + 1, dtype=np.int32) * size
            one.arrayIndices.values = np.tile(np.arange(size, dtype=np.int32), rows)
        sparsity.dimMetadata.append(one)
    tensor.sparsity = sparsity


def _ends(made: Any, outputs: list[int], rng: random.Random) -> str:
    """Other outputs: a tensor inside, the input, a constant, one twice, none."""
    count, way = len(made.file._tensors), rng.choice(["more", "more", "first", "twice", "input", "none", "beyond"])
    if way in ("more", "first"):
        outputs.insert(0 if way == "first" else len(outputs), rng.randrange(count))
    elif way == "twice":
        outputs.append(outputs[0])
    elif way == "input":
        outputs.append(made.x)
    elif way == "none":
        outputs.clear()
    else:
        outputs.append(count)
    return f"outputs {outputs}"


def _other_operator(made: Any, outputs: list[int], rng: random.Random) -> str:
    at = rng.randrange(len(made.file.codes))
    before, made.file.codes[at] = made.file.codes[at], rng.choice(_OPERATORS)
    made.file._used[made.file.codes[at]] = rng.choice([1, 2, 9])
    if rng.random() < 0.3:
        operator = rng.choice(made.file._operators)
        operator.builtinOptions, operator.builtinOptionsType = None, 0
        return f"{before} is {made.file.codes[at]}, one without options"
    return f"{before} is {made.file.codes[at]}"


def _more(made: Any, outputs: list[int], rng: random.Random) -> str:
    """A layer of one input or two behind a tensor, whose result is an output."""
    at = rng.randrange(len(made.file._tensors))
    source = made.file._tensors[at]
    result = copy.deepcopy(source)
    result.name, result.buffer = "made", 0
    if rng.random() < 0.2 and result.quantization is not None:
        result.quantization.scale = result.quantization.scale * np.float32(2)
    made.file._tensors.append(result)
    number = len(made.file._tensors) - 1
    code = rng.choice(["RELU", "ABS", "NEG", "LOGISTIC", "ADD", "MAXIMUM", "QUANTIZE", "DEQUANTIZE", "MUL", "SUB"])
    inputs = [at, at] if code in ("ADD", "MUL", "SUB", "MAXIMUM") else [at]
    made.file.versions.setdefault(code, 1)
    made.file.operator(code, inputs, number)
    if rng.random() < 0.8:
        outputs.append(number)
    return f"{code} of {source.name}, {outputs}"


def _order(made: Any, outputs: list[int], rng: random.Random) -> str:
    operators = made.file._operators
    way = rng.choice(["turned", "twice", "none"])
    if way == "turned":
        operators.reverse()
    elif way == "none" and len(operators) > 1:
        operators.pop(rng.randrange(len(operators)))
    else:
        operators.append(copy.deepcopy(operators[-1]))
    return f"operators {way}"


def _grids(made: Any, outputs: list[int], rng: random.Random) -> str:
    """A scale for each index of an axis, zero points at and beyond the limits of the type, another grid for a result."""
    tensor = rng.choice(made.file._tensors)
    numbers = _grid(made, tensor)
    tensor.quantization, shape = numbers, [int(size) for size in tensor.shape]
    way = rng.choice(["axis", "axis", "zero", "fine", "as the input", "no zero point"])
    if way == "axis" and shape:
        axis = rng.randrange(len(shape))
        numbers.scale = np.linspace(0.01, 0.03, shape[axis]).astype(np.float32)
        numbers.zeroPoint, numbers.quantizedDimension = np.full(shape[axis], rng.choice([0, 0, 3]), np.int64), axis
        way = f"along {axis}"
    elif way == "fine":
        numbers.scale, numbers.zeroPoint = np.array([1e-9], np.float32), np.zeros(1, np.int64)
    elif way == "as the input" and made.file._tensors[made.x].quantization is not None:
        tensor.quantization = copy.deepcopy(made.file._tensors[made.x].quantization)
    elif way == "no zero point":
        numbers.zeroPoint = np.zeros(0, np.int64)
    else:
        zero = rng.choice([-129, -128, 127, 128, 255, 256, 32767, -1])
        numbers.scale, numbers.zeroPoint = np.array([0.05], np.float32), np.array([zero], np.int64)
        way = f"zero point {zero}"
    return f"{tensor.name} with its grid {way}"


def _bytes(made: Any, outputs: list[int], rng: random.Random) -> str:
    """Other values of a constant: all the same, the largest, a byte more, or packed by two."""
    held = [tensor for tensor in made.file._tensors if 0 < (tensor.buffer or 0) < len(made.file._buffers)]
    if not held:
        return _grids(made, outputs, rng)
    tensor, way = rng.choice(held), rng.choice(["zero", "largest", "more", "halves"])
    buffer = made.file._buffers[tensor.buffer]
    if way == "more":
        buffer.data = np.append(buffer.data, np.uint8(0))
    elif way == "halves":
        tensor.type, buffer.data = made.schema.TensorType.INT4, buffer.data[: (len(buffer.data) + 1) // 2]
    else:
        buffer.data = np.full(len(buffer.data), 0 if way == "zero" else 127, np.uint8)
    return f"{tensor.name} with {way}"
