"""The export ONNX: ONNX Runtime computes the integers of the tool, layer by layer."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper
from support import branched_networks
from support.errors import error_of, refused
from support.model_run import LENET
from support.ops import Activation, AddConstants, Affine, Concat, Conv, Deconv, ElemWise, Fc, Normalize, Pool, Resize
from support.small_graphs import graph_of, real_params
from support.tables import every

from n2d2py.cli import main
from n2d2py.contracts.functions import FUNCTIONS, Clip
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.exports import ExportRequest, find_target
from n2d2py.exports.onnx.model import write_model
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.model import load_onnx
from n2d2py.graph import Custom, Graph, Node, QuantGraph
from n2d2py.quant.calibration import quantize
from n2d2py.quant.quantize import float_graph
from n2d2py.quant.simulator import quantize_inputs, run_node, simulate
from n2d2py.quant.statistics import collect
from n2d2py.reference.engine import FloatEngine
from n2d2py.stages.input_options import read_metadata


def _many() -> Graph:
    """A layer of every kind whose form in the model is the target's own, and some of the others."""
    rng, graph = np.random.default_rng(7), Graph("many")
    graph.add_input("x", (1, 2, 8, 8))

    def add(name: str, op, inputs: list[str], params=None, activation=None) -> str:
        graph.add(Node(name, op, inputs, [name], params or {}, activation))
        return name

    a = add("a", Conv(pads=(1, 1, 1, 1)), ["x"], real_params(rng, 6, 2, 3, 3), Clip(0.0))
    b = add("b", Conv(pads=(0, 1, 1, 0), groups=6), [a], real_params(rng, 6, 1, 2, 2))
    silu = add("silu", Activation(FUNCTIONS["Swish"]()), [b])
    six = add("six", Conv(groups=2), [silu], real_params(rng, 6, 3, 1, 1), Clip(0.0, 0.5))
    gain = add("gain", Affine(), [six], real_params(rng, 6))
    total = add("sum", ElemWise("Sum"), [gain, silu], None, Clip(0.0))
    up = add("up", Resize((15, 12), "Nearest"), [total])
    twice = add("twice", Resize((16, 16), "Nearest"), [total])
    soft = add("soft", Resize((12, 20), "Bilinear", "HalfPixel"), [total])
    wide = add("wide", Deconv(stride=(2, 2)), [total], real_params(rng, 4, 6, 2, 2))
    lanes = add("lanes", Deconv(stride=(2, 2), groups=6), [total], real_params(rng, 6, 1, 2, 2))
    groups = add("groups", Deconv(stride=(2, 2), groups=2), [total], real_params(rng, 4, 3, 2, 2))
    joined = add("joined", Concat(), [twice, wide, lanes, groups])
    pools = [
        add(f"pool_{name}", Pool("Average", (2, 2), (2, 2)) if name == "joined" else Pool("Max", (3, 3), (2, 2)), [name])
        for name in (up, soft, joined)
    ]
    scores = [add(f"fc_{name}", Fc(), [name], real_params(rng, 5, int(np.prod(graph.shape(name))))) for name in pools]
    graph.outputs = [add("scores", ElemWise("Sum"), scores)]
    graph.verify()
    return graph


@cache
def _many_typed(**options) -> QuantGraph:
    return _typed(_many(), **options)


def _typed(graph: Graph, **options) -> QuantGraph:
    """The graph quantized with symmetric inputs in [-1, 1]."""
    stimuli = branched_networks.data(24)
    found = quantize(graph, collect(graph, [stimuli]).histograms, QuantOptions(**options), {"x": (-1.0, 1.0)}, [stimuli])
    return found[0]


def _session(model: onnx.ModelProto, optimized: bool = True) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    if not optimized:  # what the nodes say, one after the other
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _steps(typed: QuantGraph, parameters: dict, x: np.ndarray) -> dict[str, np.ndarray]:
    """By tensor, how many steps ONNX Runtime is off what Python computes from ONNX Runtime's inputs of the layer."""
    made = write_model(typed, parameters, {})
    model = onnx.ModelProto()
    model.CopyFrom(made.model)
    known = {value.name for value in model.graph.output}
    taps = {name: made.stored.get(name, name) for node in typed.nodes for name in node.outputs}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in taps.values() if name not in known)
    (stored,) = quantize_inputs(typed, [x])
    kind = typed.type("x")
    found = dict(
        zip(
            taps,
            _session(model, optimized=False).run(list(taps.values()), {"x": stored if parameters.get("IntegerIO") else x}),
            strict=True,
        )
    )
    values, steps = {"x": stored}, {}
    assert kind.dtype == stored.dtype
    for node in typed.nodes:
        expected = run_node(typed, node, [values[name] for name in node.inputs])
        for name, one in zip(node.outputs, expected, strict=True):
            seen, tensor = found[name], typed.type(name)
            if seen.dtype.kind == "f" and not tensor.is_float:
                seen = tensor.quantize(seen)
            assert seen.min() >= tensor.qmin and seen.max() <= tensor.qmax, name
            values[name] = seen.astype(tensor.dtype).reshape(one.shape)
            steps[name] = np.abs(values[name].astype(np.float64) - one)
    return steps


WAYS = {
    "as it comes": {},
    "symmetric": {"zero_points": False, "unsigned": False},
    "a scale for each layer": {"per_output": False},
    "fixed point": {"rescaling": "Fixed-point32"},
    "shifts": {"rescaling": "Double-shift"},
    "16 bits": {"bits": 16},
    "8 bits everywhere": {"input_bits": 8, "output_bits": 8},
}


@every("way", WAYS)
@every("parameters", [{}, {"IntegerIO": True}, {"ExactRange": True}], ids=str)
def test_every_layer_is_within_a_step(way, parameters):
    """Of inputs that saturate many tensors."""
    full = find_target("ONNX").quantization_with(parameters).full_range
    assert full != ("ExactRange" in parameters)
    typed = _many_typed(full_range=full, **WAYS[way])
    steps = _steps(typed, parameters, 3 * branched_networks.data(6, 5).clip(-0.3, 0.3))
    for name, off in steps.items():
        limit = 1 if typed.type(name).bits == 8 else 16  # bilinear weights have 11 bits
        assert off.max() <= limit, (name, off.max())
        if typed.type(name).bits == 8:
            assert (off > 0).mean() < 0.1, name


def test_constants_of_other_forms_are_those_of_the_integers():
    """Of a normalisation, of added constants."""
    random = np.random.default_rng(2)
    constants = {"constants": random.normal(size=24).astype(np.float32)}
    gains = {"gain": random.uniform(0.5, 3, 12).astype(np.float32), "shift": random.normal(size=12).astype(np.float32)}
    graph = graph_of(
        {"x": (1, 24)},
        Node("moved", AddConstants(), ["x"], ["moved"], constants),
        Node("norm", Normalize(12, 1e-5), ["moved"], ["norm"], gains),
    )
    x = random.uniform(-1, 1, (40, 24)).astype(np.float32)
    options = QuantOptions(input_bits=8, output_bits=8)
    typed = quantize(graph, collect(graph, [x]).histograms, options, {"x": (-1.0, 1.0)}, [x])[0]
    assert [type(node.form).__name__ for node in typed.nodes] == ["Shifted", "Normalized"]
    for name, off in _steps(typed, {}, x[:8]).items():
        assert off.max() <= 1 and (off > 0).mean() < 0.2, name


def test_integers_that_say_no_real_constants_are_refused():
    typed = _typed(_many())
    typed.nodes[-1].form = Custom({"own": np.ones(1, np.int32)})
    assert refused(r"E701.*scores \(ElemWise\)", write_model, typed, {}, {})


def test_weights_and_biases_are_integers():
    made = write_model(_many_typed(), {}, {})
    assert made.weighted == 9
    stored = {one.name: one.data_type for one in made.model.graph.initializer if one.name.endswith("_quantized")}
    assert sum(kind == onnx.TensorProto.INT8 for kind in stored.values()) == 8, (
        "a grouped Deconv has scales that ONNX cannot say"
    )
    assert sum(kind == onnx.TensorProto.INT32 for kind in stored.values()) == 9


def test_resizes_are_nodes_where_their_positions_are_the_same():
    nodes = [node for node in write_model(_many_typed(), {}, {}).model.graph.node if node.op_type in ("Resize", "Gather")]
    assert {node.name.split("/")[0] for node in nodes if node.op_type == "Resize"} >= {"twice", "soft"}


def test_inputs_and_outputs_may_be_integers():
    typed = _many_typed(output_bits=8)
    session = _session(write_model(typed, {"IntegerIO": True}, {}).model)
    assert session.get_inputs()[0].type == f"tensor({typed.type('x').name})"
    assert session.get_outputs()[0].type == f"tensor({typed.type('scores').name})"


@pytest.mark.parametrize(("full", "least"), [(True, -128), (False, -127)])
def test_the_model_has_the_range_of_the_integers(full, least):
    """Inputs far beyond the calibrated range."""
    typed = _many_typed(zero_points=False, unsigned=False, full_range=full)
    made = write_model(typed, {}, {})
    assert ("Clip" in {node.op_type for node in made.model.graph.node if node.output[0] == made.stored["b"]}) is not full
    made.model.graph.output.append(onnx.ValueInfoProto(name=made.stored["b"]))
    assert _session(made.model).run([made.stored["b"]], {"x": 50 * branched_networks.data(8, 2)})[0].min() == least


@every("opset", range(13, 24))
def test_versions_of_the_operators_give_the_same(opset):
    typed, x = _many_typed(input_bits=8, output_bits=8), branched_networks.data(4, 8)
    made = write_model(typed, {"Opset": opset}, {})
    assert made.model.opset_import[0].version == opset
    expected = _session(write_model(typed, {}, {}).model).run(None, {"x": x})[0]
    assert np.abs(_session(made.model).run(None, {"x": x})[0] - expected).max() <= 1.01 * typed.type("scores").scale


@pytest.mark.parametrize("network", [_many, branched_networks.network], ids=["many", "branched"])
def test_openvino_gives_the_integers(network):
    """Of weights whose sums of two products of bytes cannot saturate, as OpenVINO lets them on processors without VNNI."""
    openvino = pytest.importorskip("openvino")
    typed, x = _typed(network(), input_bits=8, output_bits=8, reduce_range=True), branched_networks.data(20, 8)
    (stored,) = quantize_inputs(typed, [x])
    core, model = openvino.Core(), write_model(typed, {}, {}).model
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    found, expected = compiled([x]), simulate(typed, [stored])
    for index, name in enumerate(typed.outputs):
        integers = typed.type(name).quantize(found[index])
        off = np.abs(integers.astype(int) - expected[name])
        assert off.max() <= 2 and (off > 0).mean() < 0.15, (name, off.max(), (off > 0).mean())


@pytest.mark.parametrize(("opset", "bits", "text"), [(12, 8, "QuantizeLinear"), (17, 16, "16-bit")])
def test_versions_that_lack_something_are_refused(opset, bits, text):
    assert refused(f"E705.*{text}", lambda: write_model(_many_typed(bits=bits), {"Opset": opset}, {}))


def test_weights_of_four_bits_are_packed():
    typed = _typed(_many())
    for node in typed.nodes:
        if "weights" in node.params and node.op.kind == "Conv":
            node.form = replace(node.form, weights=np.clip(node.form.weights, -7, 7))
    packed = write_model(typed, {"Int4Weights": True}, {}).model
    assert sum(one.data_type == onnx.TensorProto.INT4 for one in packed.graph.initializer) >= 3
    x = branched_networks.data(4, 8)
    found, expected = (_session(one).run(None, {"x": x})[0] for one in (packed, write_model(typed, {}, {}).model))
    assert np.abs(found - expected).max() <= 8 * typed.type("scores").scale


def test_what_it_writes_is_imported_with_the_same_weights(tmp_path):
    """And the same scales of the tensors: the integers of the weighted layers are the same."""
    typed = _typed(branched_networks.network(), input_bits=8, output_bits=8)
    path = tmp_path / "net.onnx"
    path.write_bytes(write_model(typed, {}, {}).model.SerializeToString())
    graph = import_onnx(load_onnx(path))
    kinds = [node.op.type for node in graph.nodes if node.op.kind == "Quantize"]
    assert {(kind.bits, np.float32(kind.scale)) for kind in kinds} == {
        (one.type.bits, np.float32(one.type.scale)) for one in typed.tensors.values()
    }
    x = branched_networks.data(4, 3)
    result = FloatEngine(graph).run(x)
    stored = simulate(typed, quantize_inputs(typed, [x]))
    for name in typed.outputs:
        off = np.abs(typed.type(name).quantize(result[name]).astype(int) - stored[name])
        assert off.max() <= 1 and (off > 0).mean() < 0.02, name


def test_real_numbers_are_written_as_they_are():
    graph, x = _many(), branched_networks.data(4, 3)
    typed = float_graph(graph, -32)
    made = write_model(typed, {}, {})
    assert not made.stored and "QuantizeLinear" not in {node.op_type for node in made.model.graph.node}
    np.testing.assert_allclose(_session(made.model).run(None, {"x": x})[0], FloatEngine(graph).run(x)["scores"], atol=1e-4)


def test_layers_without_form_are_listed_all_at_once(monkeypatch):
    from n2d2py.contracts import reference as contract

    monkeypatch.setattr(
        contract,
        "EMITTERS",
        {key: contract.EMITTERS[key] for key in ("Activation", "Concat", "Conv", "Deconv", "ElemWise", "Fc")},
    )
    assert [error.code for error in error_of(lambda: write_model(_many_typed(), {}, {})).errors] == ["E701"] * 4
    prepared = find_target("ONNX").prepare(ExportRequest(_many_typed()))
    assert len(prepared.problems) == 4


def test_the_command_line_exports_and_compares(tmp_path, capsys):
    words = [*LENET, "-export", "ONNX", "-nbbits", "8"]
    words += ["-calib", "50", "-db-export", "60", "-test", "-compare", "8", "-o", str(tmp_path)]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "ONNX Runtime" in text and "layer by layer" in text
    folder = tmp_path / "export_ONNX_int8"
    model = onnx.load(folder / "LeNet.onnx")
    onnx.checker.check_model(model, full_check=True)
    first = (folder / "LeNet.onnx").read_bytes()
    assert main([*words, "-force"]) == 0
    assert (folder / "LeNet.onnx").read_bytes() == first


@pytest.mark.parametrize("exact", [0, 1])
def test_integers_are_chosen_for_the_range_of_the_model(exact, tmp_path):
    parameters = tmp_path / "params.ini"
    parameters.write_text(f"ExactRange = {exact}\n")
    words = [*LENET, "-export", "ONNX", "-export-parameters", str(parameters), "-calib", "20", "-no-unsigned"]
    assert main([*words, "-o", str(tmp_path)]) == 0
    folder = tmp_path / "export_ONNX_int8"
    types = json.loads((folder / "manifest.json").read_text())["details"]["types"]
    assert types and all(kind["full"] is not bool(exact) for kind in types.values() if kind["signed"] and not kind["is_float"])
    text = (folder / "README.md").read_text()
    assert ("-128 to 127" in text) is not bool(exact)


def test_metadata_are_those_that_the_import_reads(tmp_path):
    from n2d2py.exports.onnx.target import _metadata
    from n2d2py.graph.inputs import InputContract, PixelMap

    contract = InputContract("BGR", (8, 8), PixelMap((1 / 255,) * 3, (0.0,) * 3, (2, 1, 0)), ("cat", "dog"))
    request = ExportRequest(_typed(branched_networks.network()), contract=contract)
    told = read_metadata(_metadata(request))
    assert (told.names, told.input_range, told.bgr) == (("cat", "dog"), (0.0, 1.0), True)
    other = replace(contract, order="RGB", pixels=PixelMap((0.5, 1.0, 2.0), (-3.0, 0.0, 1.0), (0, 1, 2)))
    told = read_metadata(_metadata(replace(request, contract=other)))
    assert (told.input_range, told.factors, told.offsets, told.bgr) == (None, (0.5, 1.0, 2.0), (-3.0, 0.0, 1.0), False)
    assert read_metadata({"n2d2py.factors": "[1.0]", "n2d2py.offsets": "[0.0, 1.0]"}).factors == ()


def test_int4_initializers_hold_the_weights():
    typed = _typed(branched_networks.network())
    node = typed.nodes[0]
    node.form = replace(node.form, weights=np.clip(node.form.weights, -7, 7))
    model = write_model(typed, {"Int4Weights": True}, {}).model
    stored = next(one for one in model.graph.initializer if one.data_type == onnx.TensorProto.INT4)
    np.testing.assert_array_equal(numpy_helper.to_array(stored).astype(np.int8), node.form.weights)
