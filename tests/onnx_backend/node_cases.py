"""The ONNX project's node tests (onnx.backend.test), imported and run with NumPy.

A network's tensors begin with the batch axis. Tests whose tensors have one axis or none are therefore run as a batch
of one stimulus where the operator goes element by element; every other test is taken as it is, its first axis being
the batch.
"""
from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Iterator

import numpy as np
import onnx
from onnx import numpy_helper

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx import import_onnx
from n2d2py.graph import Graph
from n2d2py.reference import run_graph

__all__ = ["Case", "Outcome", "load_cases", "variants", "run_case", "OPERATORS"]

OPERATORS = (
    "Conv", "ConvTranspose", "Gemm", "MatMul", "MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool",
    "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum",
    "BatchNormalization", "LRN", "Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "Pow",
    "Relu", "LeakyRelu", "PRelu", "Clip", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Softplus", "Softsign", "Elu",
    "Selu", "Celu", "ThresholdedRelu", "Gelu", "Mish", "Erf", "Exp", "Log", "Sqrt", "Abs", "Neg", "Softmax",
    "LogSoftmax", "ArgMax", "Concat", "Split", "Slice", "Gather", "Pad", "Reshape", "Flatten", "Squeeze", "Unsqueeze",
    "Transpose", "Identity", "Dropout", "Expand", "Tile", "Resize", "Upsample", "DepthToSpace", "SpaceToDepth")
"""The operators whose node tests are run."""

_ELEMENTWISE = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "Pow", *OPERATORS[OPERATORS.index("Relu"):OPERATORS.index("Softmax")])
"""Of those, what goes element by element."""

_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)


@dataclass(frozen=True)
class Case:
    """A node test: its operator, model, inputs by name and expected outputs."""

    name: str
    operator: str
    model: onnx.ModelProto
    inputs: dict[str, np.ndarray]
    outputs: list[np.ndarray]
    rtol: float
    atol: float


@dataclass
class Outcome:
    """What became of a case: "passed", "refused" or "wrong", with the reason; the variant that passed."""

    state: str
    reason: str = ""
    graph: Graph | None = None
    feeds: dict[str, np.ndarray] | None = None


@lru_cache(maxsize=None)
def load_cases() -> tuple[Case, ...]:
    """The node tests of `OPERATORS` with float32 or float64 outputs, in the order of the onnx package."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its generators divide by zero and overflow on purpose
        loaded = load_model_tests(kind="node")
    return tuple(case for case in map(_case, loaded) if case is not None)


def _case(test) -> Case | None:
    model, sets = test.model, test.data_sets
    if model is None or not sets:
        return None
    operator = _operator(test.name, model)
    inputs, outputs = ([np.asarray(array) if isinstance(array, np.generic) else array for array in arrays]
                       for arrays in sets[0])
    arrays = [*inputs, *outputs]
    if operator not in OPERATORS or not all(isinstance(array, np.ndarray) for array in arrays):
        return None
    if any(value.type.tensor_type.elem_type not in _FLOATS for value in model.graph.output):
        return None
    names = [value.name for value in model.graph.input]
    if operator in _ELEMENTWISE and max(array.ndim for array in arrays) == 1:
        model, inputs, outputs = _batch_of_one(model, inputs, outputs)
    return Case(test.name, operator, model, dict(zip(names, inputs)), list(outputs), test.rtol, test.atol)


def _batch_of_one(model: onnx.ModelProto, inputs: list[np.ndarray], outputs: list[np.ndarray]):
    """The same with a batch axis before the axis of the vectors; single values stay."""
    lifted = onnx.ModelProto()
    lifted.CopyFrom(model)
    for value in (*lifted.graph.input, *lifted.graph.output):
        dims = value.type.tensor_type.shape.dim
        if len(dims) == 1:
            size = dims[0].dim_value
            dims[0].dim_value = 1
            dims.add().dim_value = size
    return lifted, *([array[None] if array.ndim == 1 else array for array in arrays] for arrays in (inputs, outputs))


def _operator(name: str, model: onnx.ModelProto) -> str:
    """The operator under test; a test of its definition by other operators ("expanded") is not counted."""
    nodes = model.graph.node
    return nodes[0].op_type if len(nodes) == 1 and "_expanded" not in name and not model.functions else ""


def variants(case: Case) -> Iterator[onnx.ModelProto]:
    """The model with all inputs at run time, then with some of them constant: all but one each."""
    names = list(case.inputs)
    for dynamic in (names, *([name] for name in names if len(names) > 1)):
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        kept = [value for value in model.graph.input if value.name in dynamic]
        del model.graph.input[:]
        model.graph.input.extend(kept)
        model.graph.initializer.extend(numpy_helper.from_array(case.inputs[name], name)
                                       for name in names if name not in dynamic)
        yield model


def run_case(case: Case) -> Outcome:
    """Imports every variant; wrong as soon as one gives another result, passed when one gives the right one."""
    passed, reason = None, ""
    for model in variants(case):
        try:
            graph = import_onnx(model)
        except N2D2Error as error:
            # the variant with the data at run time tells best what is missing
            reason = str(error) if not reason or "E305" in reason else reason
            continue
        feeds = {name: case.inputs[name] for name in graph.inputs}
        difference = compare(case, list(run_graph(graph, feeds).values()))
        if difference:
            return Outcome("wrong", difference, graph, feeds)
        passed = passed or Outcome("passed", "", graph, feeds)
    return passed or Outcome("refused", reason)


def compare(case: Case, results: list[np.ndarray]) -> str:
    """What differs from the expected outputs; "" when nothing does."""
    if len(results) != len(case.outputs):
        return f"{len(results)} outputs instead of {len(case.outputs)}"
    for got, want in zip(results, case.outputs):
        if got.shape != want.shape:
            return f"shape {got.shape} instead of {want.shape}"
        if not np.allclose(got, want, rtol=case.rtol, atol=case.atol, equal_nan=True):
            return f"largest difference {np.nanmax(np.abs(got.astype(np.float64) - want)):.3g}"
    return ""
