"""The node tests of the onnx package (onnx.backend.test): each imported, run with NumPy, and sorted by what became of it.

Every test whose tensors are numbers or truth values of fixed shapes counts. A test is imported with all its inputs at
run time and, where that is refused, with all but one of them constant, as a deployed network has them. A refusal has to
be an error of the tool with its code; anything else is a failure of this sweep.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Graph
from n2d2py.reference.executor import run_graph

__all__ = ["EXCLUDED", "LISTED", "Case", "Outcome", "compare", "fed", "load_cases", "run_case", "share_of", "variants"]

LISTED = (
    *"Conv ConvTranspose Gemm MatMul MaxPool AveragePool GlobalMaxPool GlobalAveragePool ReduceMean".split(),
    *"ReduceSum ReduceMax ReduceMin BatchNormalization InstanceNormalization LayerNormalization LRN Add".split(),
    *"Sub Mul Div Max Min Sum Mean Pow Relu LeakyRelu PRelu Clip Sigmoid HardSigmoid HardSwish Swish Tanh".split(),
    *"Softplus Elu Selu Gelu Erf Exp Log Sqrt Abs Neg Softmax LogSoftmax ArgMax Concat Split Slice Gather".split(),
    *"Pad Reshape Flatten Squeeze Unsqueeze Transpose Identity Dropout Cast Expand Tile Resize Upsample".split(),
    *"DepthToSpace SpaceToDepth Where Equal Less Greater Constant ConstantOfShape Shape QuantizeLinear".split(),
    *"DequantizeLinear DynamicQuantizeLinear QLinearConv QLinearMatMul ConvInteger MatMulInteger".split(),
)
"""The operators that deployed convolutional networks use: all their tests pass, but for those named below."""

EXCLUDED = {
    "test_constant": "a network without input",
    **dict.fromkeys(
        ("test_constantofshape_float_ones", "test_constantofshape_int_zeros"), "the shape of the result is an input"
    ),
    **dict.fromkeys(
        (
            *"test_batchnorm_example_training_mode test_batchnorm_epsilon_training_mode".split(),
            *"test_training_dropout_default test_training_dropout_default_mask test_training_dropout".split(),
            *"test_training_dropout_mask".split(),
        ),
        "training",
    ),
}
"""Tests of listed operators that are refused, with the reason."""

_REALS = (TensorProto.FLOAT, TensorProto.DOUBLE)
_TYPES = (
    *_REALS,
    TensorProto.UINT8,
    TensorProto.INT8,
    TensorProto.UINT16,
    TensorProto.INT16,
    TensorProto.INT32,
    TensorProto.INT64,
    TensorProto.BOOL,
    TensorProto.UINT32,
    TensorProto.UINT64,
)


@dataclass(frozen=True, eq=False)
class Case:
    """A node test: its name, operator ("" for a network of several), model, inputs by name, expected outputs."""

    name: str
    operator: str
    model: onnx.ModelProto
    inputs: dict[str, np.ndarray]
    outputs: list[np.ndarray]
    is_real: bool
    rtol: float
    atol: float


@dataclass
class Outcome:
    """What became of a case: "passed", "refused" or "wrong", with the reason; the graph and inputs that passed."""

    state: str
    reason: str = ""
    graph: Graph | None = None
    feeds: dict[str, np.ndarray] | None = None


@cache
def load_cases() -> tuple[Case, ...]:
    """All node tests with tensors of numbers or truth values and fixed shapes (with elements), in the order of the onnx package."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its generators divide by zero and overflow on purpose
        loaded = load_model_tests(kind="node")
    return tuple(case for case in map(_case, loaded) if case is not None)


def _case(test) -> Case | None:
    model, sets = test.model, test.data_sets
    if model is None or not sets:
        return None
    values = [*model.graph.input, *model.graph.output]
    if not all(value.type.HasField("tensor_type") for value in values):
        return None
    types = {value.type.tensor_type.elem_type for value in values}
    if not types <= set(_TYPES) or not all(d.dim_value > 0 for v in values for d in v.type.tensor_type.shape.dim):
        return None
    inputs, outputs = (
        [numpy_helper.to_array(array) if isinstance(array, TensorProto) else np.asarray(array) for array in arrays]
        for arrays in sets[0]
    )
    nodes = model.graph.node
    operator = nodes[0].op_type if len(nodes) == 1 and not model.functions else ""
    return Case(
        test.name,
        operator,
        model,
        dict(zip((v.name for v in model.graph.input), inputs, strict=True)),
        outputs,
        bool(types & set(_REALS)),
        max(test.rtol, 1e-3),
        max(test.atol, 1e-6),
    )


def share_of(case: Case, shares: int) -> int:
    """The share, from 0, that a case belongs to, by its name."""
    return sha256(case.name.encode()).digest()[0] % shares


def variants(case: Case) -> Iterator[onnx.ModelProto]:
    """The model with all inputs at run time, then with all but one constant."""
    names = list(case.inputs)
    for dynamic in (names, *([name] for name in names if len(names) > 1)):
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        kept = [value for value in model.graph.input if value.name in dynamic]
        del model.graph.input[:]
        model.graph.input.extend(kept)
        model.graph.initializer.extend(
            numpy_helper.from_array(case.inputs[name], name) for name in names if name not in dynamic
        )
        yield model


def run_case(case: Case) -> Outcome:
    """The first variant that is imported decides; refused when none is."""
    reason = ""
    for model in variants(case):
        try:
            graph = import_onnx(model)
        except (N2D2Error, ErrorList) as refusal:
            reason = reason or str(refusal).splitlines()[0]
            continue
        feeds = {name: fed(case.inputs[name], graph, name) for name in graph.inputs}
        difference = compare(case, list(run_graph(graph, feeds).values()))
        return Outcome("wrong" if difference else "passed", difference, graph, feeds)
    return Outcome("refused", reason)


def fed(values: np.ndarray, graph: Graph, name: str) -> np.ndarray:
    """The input as the graph takes it: one stimulus where the sizes agree, else stimuli side by side."""
    shape = graph.shape(name)
    if values.size == np.prod(shape):
        values = values.reshape(shape)
    return values if graph.kind(name) else values.astype(np.float64 if values.dtype == np.float64 else np.float32)


def without_free_rows(case: Case, got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """A result without the rows of -1 after the boxes that NonMaxSuppression keeps, whose number ONNX leaves open."""
    flat = got.reshape(-1)
    return flat[: want.size] if case.operator == "NonMaxSuppression" and (flat[want.size :] == -1).all() else got


def compare(case: Case, results: list[np.ndarray]) -> str:
    """What differs from the expected outputs; "" when nothing does."""
    if len(results) != len(case.outputs):
        return f"{len(results)} outputs instead of {len(case.outputs)}"
    for got, want in zip(results, case.outputs, strict=True):
        got = without_free_rows(case, got, want)
        if got.size != want.size:
            return f"shape {got.shape} instead of {want.shape}"
        got, want = got.reshape(want.shape).astype(np.float64), want.astype(np.float64)
        with np.errstate(all="ignore"):
            if not np.allclose(got, want, rtol=case.rtol, atol=case.atol, equal_nan=True):
                return f"largest difference {np.nanmax(np.abs(got - want)):.3g}"
    return ""
