"""ONNX models written as text or node by node, what ONNX Runtime makes of them, and what their rewritten graphs do."""

import re
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper, parser

from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Graph, Precision, QuantGraph
from n2d2py.passes import fuse
from n2d2py.quant.calibration import observe, prepare, quantize_observed
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.reference.engine import FloatEngine


def shapes(text: str) -> dict[str, object]:
    """The shapes of constants by name, from words such as w=8x3x3x3."""
    words = (word.split("=") for word in text.split())
    return {name: tuple(map(int, sizes.split("x"))) for name, sizes in words}


def text_model(
    ends: str,
    body: str,
    constants: Mapping[str, object] | None = None,
    *,
    opset: int = 17,
    seed: int = 0,
    fan_in: bool = False,
    domains: str = "",
    functions: str = "",
    has_shapes: bool = True,
) -> onnx.ModelProto:
    """The model of `ends` ("float[N,3] x => float[N,4] y") whose nodes are `body`.

    `constants`: values by name, or the shape (a tuple) of normal ones, of the variance 2 / (inputs of an output) with `fan_in`;
    those that `body` does not name are left out.
    `domains`: other operator sets, as text. `functions`: text after the graph. Without `has_shapes`, results have no shape.
    """
    inputs, results = ends.split("=>")
    sets = f'"" : {opset}{f", {domains}" if domains else ""}'
    made = parser.parse_model(
        f"<ir_version: 9, opset_import: [{sets}]> g ({inputs.strip()}) => ({results.strip()}) {{ {body} }} {functions}"
    )
    rng, words = np.random.default_rng(seed), set(re.findall(r"\w+", body))
    for name, value in (constants or {}).items():
        if isinstance(value, tuple):
            inputs_of_one = int(np.prod(value[1:])) if len(value) > 1 else 4
            value = rng.normal(size=value, scale=(2 / inputs_of_one) ** 0.5 if fan_in else 1).astype(np.float32)
        array = np.asarray(value)
        if name in words:
            made.graph.initializer.append(numpy_helper.from_array(array, name))
    for result in () if has_shapes else made.graph.output:
        result.type.tensor_type.ClearField("shape")
    return made


def node_model(
    nodes: Sequence[tuple], constants: Mapping[str, object], shape: Sequence[int], *, opset: int = 17, ends: str = "xy"
) -> bytes:
    """The file of nodes (operator, inputs, output, attributes or nothing) from x of `shape` to y; real constants become float32."""
    used = {word for _, inputs, *_ in nodes for word in inputs}
    arrays = {name: np.asarray(value) for name, value in constants.items() if name in used}
    held = [
        numpy_helper.from_array(array.astype(np.float32) if array.dtype.kind == "f" else array, name)
        for name, array in arrays.items()
    ]
    made = [helper.make_node(kind, inputs, [output], **dict(*more)) for kind, inputs, output, *more in nodes]
    x, y = (helper.make_tensor_value_info(name, 1, size) for name, size in zip(ends, (shape, None), strict=True))
    graph = helper.make_graph(made, "rows", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()


def onnx_results(file: bytes, x: np.ndarray) -> np.ndarray:
    """ONNX Runtime's result for each sample of `x` alone, (N, elements)."""
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    return np.concatenate([np.asarray(session.run(None, {"x": one[None]})[0]).reshape(1, -1) for one in x])


def integer_graph(file: bytes, precisions: Mapping[str, Precision] | None = None) -> Graph:
    """The rewritten graph of a file, as an integer export gets it."""
    graph = import_onnx(onnx.load_from_string(file))
    graph.precisions.update(precisions or {})
    return fuse(graph, integer=True)[0]


def quantized_on(graph: Graph, x: np.ndarray, **options: int) -> QuantGraph:
    """The quantized graph, calibrated on x."""
    return quantize_observed(observe(prepare(graph, True, True), [x], [x], {}, False, ""), QuantOptions(**options))[0]


def integer_results(typed: QuantGraph, x: np.ndarray) -> np.ndarray:
    """The real values of the simulated integers of the first output, (N, elements)."""
    output = typed.outputs[0]
    stored = simulate(typed, quantize_inputs(typed, [x]))[output]
    return typed.type(output).dequantize(stored).reshape(len(x), -1).astype(np.float64)


def float_results(graph: Graph, x: np.ndarray, **options: object) -> np.ndarray:
    """The first output of the float engine, (N, elements)."""
    return FloatEngine(graph, **options).run(x)[graph.outputs[0]].reshape(len(x), -1)


def decibels(found: np.ndarray, wanted: np.ndarray) -> float:
    """Signal to error."""
    wanted = wanted.astype(np.float64)
    return 10 * np.log10(np.square(wanted).sum() / max(np.square(found.astype(np.float64) - wanted).sum(), 1e-30))
