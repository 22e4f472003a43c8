"""ONNX models written as text or node by node, what ONNX Runtime makes of them, and what their rewritten graphs do."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

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
from n2d2py.reference.engine import FloatEngine, open_session


def shapes(text: str) -> dict[str, object]:
    """The shapes of constants by name, from words such as w=8x3x3x3."""
    words = (word.split("=") for word in text.split())
    return {name: tuple(map(int, sizes.split("x"))) for name, sizes in words}


def constant_tensor(name: str, values: object) -> onnx.TensorProto:
    """A constant, of float32 where NumPy has float64."""
    array = np.asarray(values)
    return numpy_helper.from_array(array.astype(np.float32) if array.dtype == np.float64 else array, name)


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

    `constants`: values by name (`constant_tensor`), or the shape (a tuple) of normal ones, of the variance 2 / (inputs of an output)
    with `fan_in`; those that `body` does not name are left out.
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
        if name in words:
            made.graph.initializer.append(constant_tensor(name, value))
    for result in () if has_shapes else made.graph.output:
        result.type.tensor_type.ClearField("shape")
    return made


def text_forms(text: str) -> dict[str, tuple[str, str, int]]:
    """`ends`, `body` and `opset` of models by title: "TITLE, OPSET: ENDS" and lines of nodes that begin with blanks."""
    blocks = re.findall(r"^(\S.*), (\d+): (.*)\n((?:  .*\n)+)", text, re.MULTILINE)
    return {title: (ends, body, int(opset)) for title, opset, ends, body in blocks}


class ModelBuilder:
    """An ONNX model, node by node; each method that adds something returns the name of its tensor."""

    def __init__(self, seed: int = 0, opset: int = 17):
        self.rng, self.opset = np.random.default_rng(seed), opset
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, values: object, name: str = "") -> str:
        """A constant."""
        self.constants.append(constant_tensor(name or f"constant_{len(self.constants)}", values))
        return self.constants[-1].name

    def add(
        self, operator: str, *inputs: object, name: str = "", more: Sequence[str] = (), domain: str = "", **attributes
    ) -> str:
        """A node; inputs that are not names are constants. `more`: its results after the first one."""
        names = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        result = name or f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [result, *more], result, domain=domain, **attributes))
        return result

    def proto(self, inputs: Mapping[str, Sequence], *outputs: str, kind: int = onnx.TensorProto.FLOAT) -> onnx.ModelProto:
        """The model of inputs of these sizes, with results as ONNX infers them; `kind`: the inputs' type of elements."""
        sources = [helper.make_tensor_value_info(name, kind, sizes) for name, sizes in inputs.items()]
        results = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self.nodes, "net", sources, results, self.constants)
        opsets = {"": self.opset} | {node.domain: 1 for node in self.nodes if node.domain}
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*one) for one in opsets.items()], ir_version=8)
        return onnx.shape_inference.infer_shapes(model)

    def save(self, path: Path, inputs: Mapping[str, Sequence], *outputs: str, **options: int) -> Path:
        """The file of `proto`."""
        onnx.save(self.proto(inputs, *outputs, **options), path)
        return path


def node_model(
    nodes: Sequence[tuple], constants: Mapping[str, object], shape: Sequence[int], *, opset: int = 17, ends: str = "xy"
) -> bytes:
    """The file of nodes (operator, inputs, output, attributes or nothing) from x of `shape` to y; real constants become float32."""
    used = {word for _, inputs, *_ in nodes for word in inputs}
    held = [constant_tensor(name, value) for name, value in constants.items() if name in used]
    made = [helper.make_node(kind, inputs, [output], **dict(*more)) for kind, inputs, output, *more in nodes]
    x, y = (helper.make_tensor_value_info(name, 1, size) for name, size in zip(ends, (shape, None), strict=True))
    graph = helper.make_graph(made, "rows", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()


def runtime_session(model: onnx.ModelProto | bytes | str | Path, optimize: bool = True) -> onnxruntime.InferenceSession:
    """The model in ONNX Runtime, on one thread; without `optimize` each node is computed as it stands."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    if not optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def runtime_outputs(
    model: onnx.ModelProto | bytes | str | Path,
    feeds: np.ndarray | Mapping[str, np.ndarray],
    batch: int = 0,
    optimize: bool = True,
) -> list[np.ndarray]:
    """The outputs of ONNX Runtime, for `batch` samples in a call if it is not 0; an array is the only input."""
    session = runtime_session(model, optimize)
    feeds = feeds if isinstance(feeds, Mapping) else {session.get_inputs()[0].name: feeds}
    count = len(next(iter(feeds.values())))
    parts = [{name: x[at : at + batch] for name, x in feeds.items()} for at in range(0, count, batch)] if batch else [feeds]
    results = [session.run(None, part) for part in parts]
    return [np.concatenate(each) for each in zip(*results, strict=True)] if batch else results[0]


class original_engine:
    """An unchanged ONNX file on ONNX Runtime, as exports to ONNX run it; a fixed batch runs in its size."""

    def __init__(self, path: str | Path):
        self._session = open_session(str(path), path, 2)
        self.outputs = [value.name for value in self._session.get_outputs()]

    def run(self, feeds: np.ndarray | Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The values by output, of a batch in the layout of the file."""
        inputs = self._session.get_inputs()
        feeds = feeds if isinstance(feeds, Mapping) else {inputs[0].name: feeds}
        cast = {
            each.name: feeds[each.name].astype(np.float32 if each.type == "tensor(float)" else feeds[each.name].dtype)
            for each in inputs
        }
        count, first = len(cast[inputs[0].name]), inputs[0].shape
        step = first[0] if first and isinstance(first[0], int) else count
        parts = [self._session.run(None, {name: x[at : at + step] for name, x in cast.items()}) for at in range(0, count, step)]
        return {name: np.concatenate(values) for name, values in zip(self.outputs, zip(*parts, strict=True), strict=True)}


def onnx_results(file: bytes, x: np.ndarray) -> np.ndarray:
    """ONNX Runtime's result for each sample of `x` alone, (N, elements)."""
    return runtime_outputs(file, x, batch=1)[0].reshape(len(x), -1)


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
    return 10 * np.log10(np.square(wanted).sum() / max(np.square(found.reshape(wanted.shape) - wanted).sum(), 1e-30))
