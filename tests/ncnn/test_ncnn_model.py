"""The export NCNN: ncnn computes the layers of the tool, in integers and in real numbers."""

import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support import branched_networks, ops, target_layers
from support.model_run import LENET
from support.programs import run_command
from support.small_graphs import binary, single
from support.tables import every
from support.target_layers import layer_by_layer

from n2d2py.cli import main
from n2d2py.contracts.functions import FUNCTIONS, Clip, Elu, Gelu, GeluTanh, HardSigmoid, HardSwish, LeakyRectifier, Step, Tanh
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.exports import ExportRequest, find_target
from n2d2py.graph import Graph, Node, QuantGraph, Weighted
from n2d2py.passes import keep_real
from n2d2py.quant.calibration import quantize
from n2d2py.quant.quantize import float_graph
from n2d2py.quant.simulator import run_node
from n2d2py.quant.statistics import collect
from n2d2py.quant.types.float_fallback import insert_conversions, with_target_forms
from n2d2py_ncnn.arithmetic import is_integer_layer
from n2d2py_ncnn.file import TYPES
from n2d2py_ncnn.layers import LOWERINGS
from n2d2py_ncnn.target import NcnnRunner

OPTIONS = {"zero_points": False, "unsigned": False, "input_bits": 8, "mixed": False, "wide_concats": False}


def _three(operation: str, weights=(), shifts=()) -> Graph:
    graph = binary(ops.ElemWise("Sum"))
    graph.add(Node("w", ops.ElemWise(operation, weights, shifts), ["a", "y", "b"], ["w"]))
    graph.outputs = ["w", "b"]
    return graph


def _function(function) -> Graph:
    return single(ops.Activation(function), 4)


CONVOLUTIONS = {
    **target_layers.CONVOLUTIONS,
    "padded": lambda: single(ops.Conv(stride=(2, 1), pads=(1, 0, 2, 1)), params=(8, 2, 3, 2)),
    "dilated": lambda: single(ops.Conv(dilation=(2, 1), pads=(2, 2, 2, 2)), params=(8, 2, 3, 3)),
    "six": lambda: single(ops.Conv(), params=(8, 2, 3, 3), activation=Clip(0.0, 0.6)),
    "above": lambda: single(ops.Conv(), params=(8, 2, 3, 3), activation=Clip(-0.2)),
    "depthwise, many": lambda: single(ops.Conv(groups=16, stride=(2, 2)), 16, (16, 1, 3, 3)),
    "requantized": lambda: single(ops.Conv(pads=(1, 1, 1, 1)), params=(16, 2, 3, 3), activation=Clip(0.0), behind=True),
    "requantized depthwise": lambda: single(ops.Conv(groups=8, pads=(1, 1, 1, 1)), 8, (8, 1, 3, 3), behind=True),
    "wide": lambda: single(ops.Conv(pads=(1, 1, 1, 1)), 32, (32, 32, 3, 3)),
}
MOVED = {
    **target_layers.MOVED,
    "crop": lambda: single(ops.Padding((-1, 2, 3, -2)), 4),
    "columns": lambda: single(ops.Reshape((8, 16, 2)), 4),
    "mirrored": lambda: single(ops.Transpose((0, 1, 3, 2)), 4),
    "slice": lambda: single(ops.IndexSelect(((1, 2), None, (3, 4, 5, 6))), 4),
    "shuffle of two": lambda: single(ops.IndexSelect(((0, 3, 1, 4, 2, 5), None, None)), 6),
    "shuffle of three": lambda: single(ops.IndexSelect(((0, 2, 4, 1, 3, 5), None, None)), 6),
    "itself": lambda: single(ops.Identity(), 4),
}
COMPUTED = {
    **target_layers.COMPUTED,
    "cropped": lambda: single(ops.Deconv(stride=(2, 1), pads=(1, 1, 0, 1)), 4, (6, 4, 4, 4), Clip(0.0)),
    "longer": lambda: single(ops.Deconv(stride=(2, 2), pads=(1, 1, -1, 0)), 4, (6, 4, 3, 3)),
    "grouped deconv": lambda: single(ops.Deconv(stride=(2, 2), groups=2), 4, (6, 2, 2, 2)),
    "weighed": lambda: binary(ops.ElemWise("Sum", (0.5, -2.0), (0.25, 0.5))),
    "length": lambda: binary(ops.ElemWise("EuclideanSum")),
    "length of three": lambda: _three("EuclideanSum", (1.0, 0.5, -2.0)),
    "smallest": lambda: binary(ops.ElemWise("Min")),
    "three": lambda: _three("Sum", (1.0, 0.5, 1.0)),
    "largest of three": lambda: _three("Max"),
    "mish": lambda: _function(FUNCTIONS["Mish"]()),
    "softplus": lambda: _function(FUNCTIONS["Softplus"]()),
    "absolute": lambda: _function(FUNCTIONS["Abs"]()),
    "exponential": lambda: _function(FUNCTIONS["Exp"]()),
    "steeper tanh": lambda: _function(Tanh(1.5)),
    "hard sigmoid": lambda: _function(HardSigmoid()),
    "elu": lambda: _function(Elu(0.7)),
    "selu": lambda: _function(Elu(1.6, 1.05)),
    "leaky six": lambda: _function(LeakyRectifier(0.1, 0.5)),
    "clip": lambda: _function(Clip(-0.25, 0.5)),
    "gelu": lambda: _function(Gelu()),
    "gelu by tanh": lambda: _function(GeluTanh()),
}
REAL = {
    "lrn": lambda: single(ops.LRN(3, 0.5, 0.75, 1.5), 6),
    "log softmax": lambda: single(ops.Softmax(log=True), 4),
    "conv, leaky": lambda: single(ops.Conv(), params=(8, 2, 3, 3), activation=LeakyRectifier(0.2)),
    "conv, logistic": lambda: single(ops.Conv(), params=(8, 2, 3, 3), activation=FUNCTIONS["Logistic"]()),
    "conv, mish": lambda: single(ops.Conv(), params=(8, 2, 3, 3), activation=FUNCTIONS["Mish"]()),
    "conv, hard swish": lambda: single(ops.Conv(), params=(8, 2, 3, 3), activation=HardSwish()),
    "conv, tanh": lambda: single(ops.Conv(), params=(8, 2, 3, 3), activation=Tanh()),
}
NETWORKS = {**CONVOLUTIONS, **MOVED, **COMPUTED}


@cache
def _typed(network: str) -> QuantGraph:
    graph = NETWORKS[network]()
    keep_real(graph, rows=False)
    graph, stimuli = insert_conversions(graph), branched_networks.data(24)
    options = QuantOptions(**OPTIONS)
    return quantize(graph, collect(graph, [stimuli]).histograms, options, {"x": (-1.0, 1.0)}, [stimuli])[0]


@cache
def _simulated(network: str) -> QuantGraph:
    """As a network that is loaded for ncnn."""
    marked = with_target_forms({**NETWORKS, "lrn": REAL["lrn"]}[network](), is_integer_layer)
    graph, stimuli = insert_conversions(marked), branched_networks.data(24)
    options, ranges = QuantOptions(**OPTIONS, correct_bias=True), {"x": (-1.0, 1.0)}
    typed, _ = quantize(graph, collect(graph, [stimuli]).histograms, options, ranges, [stimuli])
    return find_target("NCNN").as_computed(typed, {})


def _written(typed: QuantGraph, folder: Path, **parameters) -> tuple[NcnnRunner, dict]:
    return target_layers.written(typed, folder, "NCNN", **{"ModelArray": False, **parameters})


@pytest.mark.parametrize("rounded", [False, True])
@every("network", NETWORKS)
def test_every_layer_is_within_a_step(network, rounded, tmp_path):
    pytest.importorskip("ncnn")
    typed = _typed(network)
    (runner, _), values = _written(typed, tmp_path, RoundBlobs=rounded), {}
    for node, kind, expected, found in layer_by_layer(runner, typed, values):
        if kind.is_float:
            assert np.abs(found - expected).max() <= (1 / 128 if rounded else 1 / 32)
            continue
        off = np.abs(found.astype(int) - expected) / 256 ** (kind.bits == 16)
        in_integers = network in CONVOLUTIONS and network not in ("multiplied", "grouped")
        assert off.max() <= (1 if rounded or in_integers else 3), (node.name, off.max())
        if kind.bits == 8:
            assert (off > 0).mean() < (0.1 if rounded or in_integers or network in MOVED else 0.6), node.name
    for name, result in runner.outputs(typed, 4).items():
        limit = 1 if typed.type(name).bits == 8 else 256
        assert np.abs(result.astype(float) - values[name]).max() <= limit  # other blobs are given back


@every("network", [*NETWORKS, "lrn"])
def test_layers_simulated_as_ncnn_computes_them_are_identical(network, tmp_path):
    """Real results of depthwise convolutions differ in their last bit where the processor has no AVX-512."""
    pytest.importorskip("ncnn")
    typed = _simulated(network)
    (runner, details), values = _written(typed, tmp_path), {}
    assert details["simulated"] and runner.slack == 1e-3
    assert runner.settings.get("use_packing_layout") is (False if "depthwise" in network else None)
    for node, kind, expected, found in layer_by_layer(runner, typed, values):
        if typed.sums_integers(node):
            assert node.op.kind in ("Conv", "Fc") and kind.is_float and not typed.type(node.inputs[0]).is_float
        if kind.is_float and (not typed.sums_integers(node) or "depthwise" in network):
            assert np.abs(found - expected).max() <= 1e-6 * max(np.abs(expected).max(), 1), node.name
        else:
            assert np.array_equal(found, expected), node.name
    for name, result in runner.outputs(typed, 4).items():
        assert np.array_equal(result, values[name])


@pytest.mark.parametrize("network", ["padded", "requantized", "requantized depthwise"])
def test_convolutions_with_integers_of_their_own_are_identical(network, tmp_path):
    """As in networks that come quantized, whose tensors all have integers."""
    pytest.importorskip("ncnn")
    typed = find_target("NCNN").as_computed(_typed(network), {})
    for node, _, expected, found in layer_by_layer(_written(typed, tmp_path)[0], typed, {}):
        assert np.array_equal(found, expected), node.name


@pytest.mark.parametrize("half", [False, True])
@every("network", [*NETWORKS, *REAL])
def test_every_layer_in_real_numbers(network, half, tmp_path):
    pytest.importorskip("ncnn")
    typed = float_graph({**NETWORKS, **REAL}[network](), -16 if half else -32)
    (runner, _), values = _written(typed, tmp_path), {}
    for node, _, expected, found in layer_by_layer(runner, typed, values):
        assert np.abs(found - expected).max() <= 1e-4 * max(np.abs(expected).max(), 1), node.name
    for name, result in runner.outputs(typed, 4).items():
        assert np.allclose(result, values[name], rtol=0, atol=1e-4 * max(np.abs(values[name]).max(), 1))


def test_every_lowering_is_run():
    kinds = {node.op.kind for make in {**NETWORKS, **REAL}.values() for node in make().nodes}
    assert set(LOWERINGS) - kinds == {"Convert"}  # which `insert_conversions` adds
    assert any(node.op.kind == "Convert" for network in NETWORKS for node in _typed(network).nodes)


def test_blobs_have_one_reader_and_outputs_can_be_taken_in_any_order(tmp_path):
    pytest.importorskip("ncnn")
    graph = _three("Sum")
    graph.add(Node("same", ops.Identity(), ["w"], ["same"]))
    graph.outputs = ["b", "same", "w", "y"]
    typed = float_graph(graph, -32)
    runner, _ = _written(typed, tmp_path)
    words = [line.split() for line in next(tmp_path.glob("*.param")).read_text().splitlines()[2:]]
    read = [name for line in words for name in line[4 : 4 + int(line[2])]]
    made = [name for line in words for name in line[4 + int(line[2]) : 4 + int(line[2]) + int(line[3])]]
    assert len(read) == len(set(read)) and len(made) == len(set(made)) and set(graph.outputs) <= set(made) - set(read)
    outputs, values = runner.outputs(typed, 4), {"x": np.load(tmp_path / "stimuli.npy")}
    for node in typed.nodes:
        (values[node.output],) = run_node(typed, node, [values[name] for name in node.inputs])
    for order in (typed.outputs, typed.outputs[::-1]):
        typed.outputs = order
        for name, result in runner.outputs(typed, 4).items():
            assert np.allclose(result, values[name], atol=1e-4), name
    assert set(outputs) == set(graph.outputs)


def test_numbers_of_types_are_those_of_ncnn():
    ncnn = pytest.importorskip("ncnn")
    assert {name: ncnn.layer_to_index(name) for name in TYPES} == TYPES


@every("network", ["requantized", "cropped", "clip", "slice", "weighed"])
def test_the_binary_files_and_arrays_are_the_same_network(network, tmp_path):
    ncnn = pytest.importorskip("ncnn")
    typed = _typed(network)
    runner, details = _written(typed, tmp_path, ModelArray=True)
    stem = details["param"].removesuffix(".param")
    numbers = dict(re.findall(r"const int BLOB_(\w+) = (\d+);", (tmp_path / f"{stem}.id.h").read_text()))
    net = ncnn.Net()
    net.opt.use_vulkan_compute = False
    assert net.load_param_bin(str(tmp_path / f"{stem}.param.bin")) == 0
    assert net.load_model(str(tmp_path / f"{stem}.bin")) == 0
    (x,) = (typed.type("x").dequantize(values) for values in [np.load(tmp_path / "stimuli.npy")])
    outputs = runner.outputs(typed, 4)
    for name in typed.outputs:
        for index in range(4):
            extractor = net.create_extractor()
            extractor.input(int(numbers["x"]), ncnn.Mat(np.ascontiguousarray(x[index], np.float32)).clone())
            _, blob = extractor.extract(int(numbers[name]))
            found = typed.type(name).quantize(np.array(blob)).reshape(outputs[name][index].shape)
            assert np.array_equal(found, outputs[name][index])
    _print_arrays(tmp_path, stem)
    written = [(tmp_path / f"{stem}{ending}").read_bytes() for ending in (".param.bin", ".bin")]
    assert subprocess.run([tmp_path / "main"], capture_output=True, check=True).stdout == b"".join(written)


def _print_arrays(folder: Path, stem: str) -> None:
    """Builds a program that prints the arrays of the header."""
    (folder / "main.cpp").write_text(
        f'#include <cstdio>\n#include "{stem}.id.h"\n#include "{stem}.mem.h"\nint main() {{\n'
        f"std::fwrite({stem}_param_bin, 1, sizeof({stem}_param_bin), stdout);\n"
        f"std::fwrite({stem}_bin, 1, sizeof({stem}_bin), stdout);\n"
        f"return {stem}_param_id::LAYER_x + {stem}_param_id::BLOB_x; }}\n"
    )
    command = ["g++", "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "main.cpp", "-o", "main"]
    run_command(*command, cwd=folder)


def test_half_precision_halves_the_weights_and_keeps_the_biases(tmp_path):
    pytest.importorskip("ncnn")
    typed = float_graph(NETWORKS["fc"](), -32)
    (tmp_path / "half").mkdir()
    whole, _ = _written(typed, tmp_path)
    half, _ = _written(typed, tmp_path / "half", Fp16Storage=True)
    assert [folder.stat().st_size for folder in (tmp_path / "single.bin", tmp_path / "half" / "single.bin")] == [
        4 + 4 * 1280 + 40,
        4 + 2 * 1280 + 40,
    ]
    one, other = (runner.outputs(typed, 4)["y"] for runner in (whole, half))
    assert 0 < np.abs(one - other).max() < 2e-3 * np.abs(one).max()


def _refused(graph: QuantGraph, **parameters) -> list[str]:
    problems = find_target("NCNN").prepare(ExportRequest(graph, parameters=parameters)).problems
    assert {error.code for error in problems} == {"E701"}
    return [str(error) for error in problems]


def test_what_ncnn_lacks_is_listed_all_at_once():
    graph = single(ops.SpaceToDepth(2), 4)
    graph.add(Node("z", ops.ElemWise("AbsSum"), ["y", "y"], ["z"]))
    graph.add(Node("step", ops.Activation(Step(0.0)), ["z"], ["step"]))
    graph.add(Node("picked", ops.IndexSelect(((3, 0), None, None)), ["step"], ["picked"]))
    graph.add(Node("up", ops.Resize((7, 9), "Bilinear", "Asymmetric"), ["picked"], ["up"]))
    graph.outputs = ["up"]
    found = _refused(float_graph(graph, -32))
    reasons = ("'y': SpaceToDepth", "'z': AbsSum", "'step': the function Step", "'picked': it takes", "'up': asymmetric")
    assert len(found) == len(reasons)
    for text, reason in zip(found, reasons, strict=True):
        assert reason in text and "E701" in text and "-export CPP" in text


def test_zero_points_and_unsigned_integers_are_refused():
    graph, stimuli = NETWORKS["requantized"](), branched_networks.data(24)
    for options, reason in (({}, "which is uint8 up to 255"), ({"bits": 16}, "")):
        typed = quantize(graph, collect(graph, [stimuli]).histograms, QuantOptions(**options), {"x": (-1.0, 1.0)}, [stimuli])[0]
        if reason:
            (text,) = _refused(typed)
            assert reason in text and "; " in text
        else:
            (error,) = find_target("NCNN").prepare(ExportRequest(typed)).problems
            assert error.code == "E705" and "-nbbits 16" in str(error)


def test_sums_beyond_32_bits_are_refused():
    typed = _typed("fc")
    node = replace(typed.nodes[0], form=Weighted(np.full((10, 133_200), 127, np.int8), np.zeros(10, np.int32)))
    assert "sums beyond 32 bits" in _refused(replace(typed, nodes=[node]))[0]


def test_weights_beyond_half_precision_are_refused():
    graph = NETWORKS["fc"]()
    graph.nodes[0].params["weights"][0, 0] = 1e5
    (text,) = _refused(float_graph(graph, -32), Fp16Storage=True)
    assert "a weight beyond 65504" in text and text.endswith("leave out Fp16Storage")
    find_target("NCNN").prepare(ExportRequest(float_graph(graph, -32))).check()


WORDS = [*LENET, "-export", "NCNN", "-nb-test", "60"]


@pytest.mark.parametrize("bits", ["8", "-32", "-16"])
def test_the_command_line_exports_tests_and_compares(bits, tmp_path, capsys):
    pytest.importorskip("ncnn")
    words = [*WORDS, "-nbbits", bits, "-calib", "50", "-db-export", "60", "-test", "-compare", "8"]
    assert main([*words, "-o", str(tmp_path / "one")]) == 0
    text = capsys.readouterr().out
    allowed = {"8": "0.1", "-32": "0.1", "-16": "0.1"}[bits]
    assert f"layers: values within {allowed} % of the range of Python's, layer by layer" in text and re.search(
        r"^ncnn +60 ", text, re.MULTILINE
    )
    assert main([*words[:-3], "-o", str(tmp_path / "two")]) == 0
    (one,), (two,) = ((tmp_path / name).glob("export_NCNN_*") for name in ("one", "two"))
    assert one.name == {"8": "export_NCNN_int8", "-32": "export_NCNN_float32"}.get(bits, one.name)
    endings = ("param", "bin", "param.bin", "id.h", "mem.h")
    for ending in endings:
        assert (one / f"LeNet.{ending}").read_bytes() == (two / f"LeNet.{ending}").read_bytes()


def test_without_the_package_the_export_is_written_and_the_extra_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "ncnn", None)
    assert NcnnRunner.missing({}) == "no ncnn"
    words = [*WORDS, "-nbbits", "8", "-calib", "20", "-db-export", "4", "-test"]
    assert main([*words, "-o", str(tmp_path)]) == 0
    told = capsys.readouterr().err
    assert "W801: no ncnn: the ncnn export is not tested; pip install n2d2py[ncnn]" in told
    assert (tmp_path / "export_NCNN_int8" / "LeNet.param").is_file()
