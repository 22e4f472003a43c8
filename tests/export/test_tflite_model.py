"""The export TFLite: LiteRT computes the integers of the tool, layer by layer."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support import branched_networks, ops, target_layers
from support.errors import error_of, refused
from support.model_run import LENET
from support.programs import run_command
from support.small_graphs import binary, graph_of, real_params, single
from support.tables import every, few_fast
from support.target_layers import layer_by_layer, written

import n2d2py
from n2d2py.cli import main
from n2d2py.contracts.functions import FUNCTIONS, Clip, Elu, Gelu
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.exports import ExportRequest, find_target
from n2d2py.exports.tflite.target import write_c_arrays
from n2d2py.graph import Graph, Node, QuantGraph
from n2d2py.passes import keep_real
from n2d2py.quant.calibration import quantize
from n2d2py.quant.quantize import float_graph
from n2d2py.quant.statistics import collect
from n2d2py.quant.types.float_fallback import insert_conversions

WAYS = {
    "as it comes": {},
    "symmetric": {"zero_points": False, "unsigned": False},
    "a scale for each layer": {"per_output": False},
    "fixed point": {"rescaling": "Fixed-point32"},
}


def _rows(op, **params: int) -> Graph:
    """x - convolution - vector of its pixels - op - y, with constants of the given lengths."""
    graph, rng = Graph("rows"), np.random.default_rng(3)
    graph.add_input("x", (1, 2, 8, 8))
    graph.add(Node("first", ops.Conv(), ["x"], ["first"], real_params(rng, 2, 2, 1, 1)))
    graph.add(Node("v", ops.MemoryView((128,)), ["first"], ["v"]))
    constants = {role: rng.normal(size=count).astype(np.float32) for role, count in params.items()}
    graph.add(Node("y", op, ["v"] * len([slot for slot in getattr(op, "slots", (0,)) if slot >= 0]), ["y"], constants))
    graph.outputs = ["y"]
    graph.verify()
    return graph


def _six() -> Graph:
    graph = single(ops.Conv(stride=(2, 2), pads=(0, 0, 1, 1)), params=(8, 2, 3, 3), activation=Clip(0.0, 6.0))
    graph.nodes[0].params["weights"] *= 30
    return graph


def _scaled(op, channels: int, *sizes: int) -> Graph:
    """x - op with weights of these sizes - gain and shift of each channel - y."""
    rng = np.random.default_rng(4)
    return graph_of(
        {"x": (1, 2, 8, 8)},
        Node("first", op, ["x"], ["first"], real_params(rng, *sizes) if sizes else {}),
        Node("y", ops.Affine(), ["first"], ["y"], real_params(rng, channels), Clip(0.0)),
    )


NETWORKS = {
    **target_layers.CONVOLUTIONS,
    **target_layers.MOVED,
    **target_layers.COMPUTED,
    "padded": lambda: single(ops.Conv(stride=(2, 2), pads=(1, 1, 1, 1)), params=(8, 2, 3, 3)),
    "dilated": lambda: single(ops.Conv(dilation=(2, 2), pads=(2, 2, 2, 2)), params=(8, 2, 3, 3)),
    "six": _six,
    "scaled vector": lambda: _scaled(ops.Fc(), 10, 10, 128),
    "scaled lines": lambda: _scaled(ops.Reshape((2, 64)), 2),
    "to depth": lambda: single(ops.SpaceToDepth(2), 4),
    "to depth, channels first": lambda: single(ops.SpaceToDepth(2, True), 4),
    "cropped": lambda: single(ops.Deconv(stride=(2, 2), pads=(1, 1, 0, 1)), 4, (6, 4, 4, 4)),
    "slice": lambda: single(ops.IndexSelect(((1, 2), None, (0, 3, 6))), 4),
    "picked": lambda: single(ops.IndexSelect(((3, 0), None, (0, 1, 5, 5))), 4),
    "gelu": lambda: single(ops.Activation(Gelu()), 4),
    "product of rows": lambda: _rows(ops.ArrayMatMul((8, 16), (16, 8), (0, 1), scale=0.25, views=((), (128, 0, 1, 16), ()))),
    "products in order": lambda: _rows(ops.ArrayMatMul((2, 8, 8), (2, 8, 8), (0, 1), views=((), (), (128, 0, 8, 16, 1)))),
    "products of parts": lambda: _rows(
        ops.ArrayMatMul((8, 8), (8, 8), (0, 1), views=((128, 8, 16, 1), (128, 0, 16, 1), (64, 0, 1, 8)))
    ),
    "shares": lambda: _rows(ops.Softmax(16)),
    "shares across": lambda: _rows(ops.Softmax(8, inner=8)),
    "normed": lambda: _rows(ops.Normalize(16, 1e-5), gain=16, shift=16),
    "elements": lambda: _rows(ops.IndexSelect(((0, 1, 5), (64, 0)))),
    "filled ends": lambda: _rows(ops.IndexSelect(((-1, *range(0, 128, 16), -1, -1), tuple(range(16))), 0.5)),
    "filled rows": lambda: _rows(ops.IndexSelect((tuple(range(0, 128, 16)), (-1000, *range(16), -1000)))),
    "filled behind": lambda: _rows(ops.IndexSelect(((*range(128), -1),))),
    "lines": lambda: _rows(ops.IndexSelect(((96, 0, 32), tuple(range(16))))),
    "joined rows": lambda: _rows(ops.Concat(1, 8, (0, -1)), operand1=16),
    "positions": lambda: _rows(ops.AddConstants(), constants=128),
    "image of rows": lambda: _rows(ops.MemoryView((16, 2, 4))),
}
COARSER = {
    "swish": 2,
    "hard swish": 2,
    "logistic": 2,
    "tanh": 2,
    "softmax": 2,
    "inner mean": 2,
    "gelu": 2,
    "shares": 2,
    "shares across": 2,
}
"""Steps of layers whose TFLite operators have a grid of their own, or round more than once."""


def _quantized(graph: Graph, **options) -> QuantGraph:
    keep_real(graph, rows=False)
    graph, stimuli = insert_conversions(graph), branched_networks.data(24)
    options = QuantOptions(input_bits=8, output_bits=8, mixed=False, wide_concats=False, **options)
    return quantize(graph, collect(graph, [stimuli]).histograms, options, {"x": (-1.0, 1.0)}, [stimuli])[0]


@cache
def _typed(network: str, way: str = "as it comes") -> QuantGraph:
    return _quantized(NETWORKS[network](), unit_ranges=True, **WAYS[way])


@pytest.mark.parametrize(
    ("way", "integer_io"),
    few_fast([("as it comes", False), ("fixed point", True), ("symmetric", False), ("a scale for each layer", False)], 2),
)
@every("network", NETWORKS)
def test_every_layer_is_within_a_step(network, way, integer_io, tmp_path):
    pytest.importorskip("ai_edge_litert")
    typed = _typed(network, way)
    (runner, _), values = written(typed, tmp_path, "TFLite", IntegerIO=integer_io), {}
    for node, kind, expected, found in layer_by_layer(runner, typed, values):
        if kind.is_float:  # probabilities come in 256 steps
            assert np.abs(found - expected).max() <= 3 / 256
            continue
        off = np.abs(found.astype(int) - expected)
        assert off.max() <= COARSER.get(network, 1), (node.name, off.max())
        assert (off > 0).mean() < (0.5 if network in COARSER else 0.2), node.name
    results = runner.outputs(typed, 4)["y"]
    np.testing.assert_array_equal(results, values["y"].reshape(results.shape))  # the same kernels in -test and -compare


_BUILT_IN = {"hard swish", "inner mean", "largest", "normed", "positions", "shares", "shares across"}
OTHER_ARITHMETIC = {"XNNPACK": _BUILT_IN, "Reference": _BUILT_IN | {"bilinear", "corners", "cropped"}}
"""Networks with layers that need not be identical, by kernels."""


@pytest.mark.parametrize(
    ("way", "kernels"),
    few_fast(
        [("as it comes", "XNNPACK"), ("symmetric", "Reference"), ("as it comes", "Reference"), ("symmetric", "XNNPACK")], 2
    ),
)
@every("network", NETWORKS)
def test_the_simulator_has_the_arithmetic_of_the_kernels(network, way, kernels, tmp_path):
    pytest.importorskip("ai_edge_litert")
    typed = find_target("TFLite").as_computed(_typed(network, way), {"Kernels": kernels})
    _identical(typed, kernels, tmp_path, COARSER.get(network, 1) if network in OTHER_ARITHMETIC[kernels] else 0)


@every("kernels", OTHER_ARITHMETIC)
@every("network", ["conv", "fc", "global", "joined", "sum", "product", "swish"])
def test_networks_that_come_quantized_have_the_arithmetic_of_the_kernels(network, kernels, tmp_path):
    pytest.importorskip("ai_edge_litert")
    _, details = written(_typed(network), tmp_path, "TFLite", IntegerIO=True)
    model = n2d2py.quantize(n2d2py.load(tmp_path / details["file"], "TFLite", options=n2d2py.LoadOptions(synthetic=0)))
    _identical(find_target("TFLite").as_computed(model.graph, {"Kernels": kernels}), kernels, tmp_path)


def _identical(typed: QuantGraph, kernels: str, folder: Path, limit: int = 0) -> None:
    """The layers of LiteRT are those of the simulator, or `limit` steps off."""
    typed.verify()
    runner, _ = written(typed, folder, "TFLite", 24, Kernels=kernels)
    for node, kind, expected, found in layer_by_layer(runner, typed, {}, 24):
        assert kind.is_float or np.abs(found.astype(int) - expected).max() <= limit, node.name


def test_what_tflite_lacks_is_listed_all_at_once():
    pytest.importorskip("ai_edge_litert")
    graph, stimuli = single(ops.LRN(3), 4), branched_networks.data(8)
    graph.outputs = ["z"]
    graph.add(Node("z", ops.ElemWise("Sum", shifts=(1.0,)), ["y"], ["z"]))
    graph = insert_conversions(graph)
    typed = quantize(graph, collect(graph, [stimuli]).histograms, QuantOptions(), {"x": (-1.0, 1.0)}, [stimuli])[0]
    found = error_of(lambda: find_target("TFLite").prepare(ExportRequest(typed)).check())
    assert {error.code for error in found.errors} == {"E701"} and len(found.errors) >= 2


def test_without_the_package_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ai_edge_litert.schema_py_generated", None)
    assert refused(r"E721.*n2d2py\[litert\]", lambda: find_target("TFLite").prepare(ExportRequest(_typed("conv"))).check())


REAL_NETWORKS = {
    **NETWORKS,
    "limited": lambda: single(ops.Conv(), params=(8, 2, 3, 3), activation=Clip(-0.5, 0.75)),
    "least": lambda: single(ops.Activation(Clip(-0.25)), 4),
    "units": lambda: single(ops.Conv(), params=(8, 2, 3, 3), activation=Clip(-1.0, 1.0)),
    "elu": lambda: single(ops.Activation(Elu()), 4),
    "exp": lambda: single(ops.Activation(FUNCTIONS["Exp"]()), 4),
    "abs": lambda: single(ops.Activation(FUNCTIONS["Abs"]()), 4),
    **{
        name: lambda name=name: _rows(ops.ArrayMap(name, (8, 16), ((8, 16),)))
        for name in ("Neg", "Floor", "Round", "Sin", "Sigmoid")
    },
    **{
        name: lambda name=name: _rows(
            ops.ArrayMap(name, (2, 4, 1, 2, 8), ((2, 4, 1, 2, 8), (4, 1, 1, 8)), (0, -1)), operand1=32
        )
        for name in ("Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu")
    },
    "constant product": lambda: _rows(ops.ArrayMatMul((8, 16), (16, 4), (0, -1)), operand1=64),
    "logarithms": lambda: _rows(ops.Softmax(16, log=True)),
    "difference": lambda: binary(ops.ElemWise("Sum", (-1.0, 1.0))),
}


@every("network", REAL_NETWORKS)
def test_every_layer_of_real_numbers_is_the_same(network, tmp_path):
    pytest.importorskip("ai_edge_litert")
    typed = float_graph(REAL_NETWORKS[network](), -32)
    (runner, _), values = written(typed, tmp_path, "TFLite"), {}
    for node, _, expected, found in layer_by_layer(runner, typed, values):
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6, err_msg=node.name)
    last = typed.outputs[0]
    np.testing.assert_allclose(runner.outputs(typed, 4)[last], values[last], rtol=2e-4, atol=1e-5)


def _island() -> Graph:
    """x - convolution - vector - sine, which has no integers - fully connected."""
    graph = _rows(ops.ArrayMap("Sin", (8, 16), ((8, 16),)))
    graph.add(Node("z", ops.Fc(), ["y"], ["z"], real_params(np.random.default_rng(5), 10, 128)))
    graph.outputs = ["z"]
    graph.verify()
    return graph


@pytest.mark.parametrize("target", ["TFLite", "ONNX"])
def test_layers_in_floating_point_between_integers(target, tmp_path):
    if target == "TFLite":
        pytest.importorskip("ai_edge_litert")
    typed = _quantized(_island())
    assert [typed.is_integer(node) for node in typed.nodes].count(False) == 3  # with a conversion on each side
    for _, kind, expected, found in layer_by_layer(written(typed, tmp_path, target)[0], typed, {}):
        if kind.is_float:
            np.testing.assert_allclose(found, expected, atol=1e-5)
        else:
            assert np.abs(found.astype(int) - expected).max() <= 1


@pytest.mark.parametrize("bits", ["16", "-64"])
def test_other_numbers_than_int8_are_refused(bits, tmp_path, capsys):
    words = [LENET[0], "-w", "/dev/null", "-export", "TFLite", "-nbbits", bits, "-calib", "4"]
    assert main([*words, "-db-export", "0", "-o", str(tmp_path)]) == 1
    assert (
        f"E705: the export TFLite supports 8-bit integers and float32, not -nbbits {bits}"
        in capsys.readouterr().err.replace("LeNet: ", "")
    )
    assert not list(tmp_path.iterdir())


def test_the_command_line_exports_and_compares(tmp_path, capsys):
    pytest.importorskip("ai_edge_litert")
    words = [*LENET, "-export", "TFLite", "-nbbits", "8"]
    assert main([*words, "-calib", "50", "-db-export", "60", "-test", "-compare", "8", "-o", str(tmp_path)]) == 0
    assert "9 layers" in (told := capsys.readouterr().out) and "; 8 of them identical" in told  # but for LiteRT's own Softmax
    folder = tmp_path / "export_TFLite_int8"
    first = (folder / "LeNet.tflite").read_bytes()
    assert first[4:8] == b"TFL3"
    header = (folder / "model_operators.h").read_text()
    assert "AddConv2D()" in header and "AddFullyConnected()" in header and "AddQuantize()" in header


def test_reference_kernels_are_simulated_and_run(tmp_path, capsys):
    pytest.importorskip("ai_edge_litert")
    (tmp_path / "reference.ini").write_text("Kernels=Reference\n")
    words = [*LENET, "-export", "TFLite", "-nbbits", "8", "-export-parameters", str(tmp_path / "reference.ini")]
    assert main([*words, "-calib", "50", "-db-export", "60", "-test", "-compare", "8", "-o", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "LiteRT (Reference)" in told and "; 8 of them identical" in told
    assert "kernels Reference" in (tmp_path / "export_TFLite_int8" / "README.md").read_text()


def test_the_network_of_the_target_has_its_arithmetic():
    """Signed integers from -128, sums by multipliers of 21 bits; names, shapes and scales are as they were."""
    before = _typed("sum")
    after = find_target("TFLite").as_computed(before, {})
    assert [after.type(name).scale for name in after.tensors] == [before.type(name).scale for name in before.tensors]
    assert all(after.type(name).qmin == -128 for name in after.tensors if after.type(name).signed)
    (added,) = (node for node in after.nodes if node.op.kind == "ElemWise")
    assert 2**20 <= max(abs(added.params["multipliers"])) <= 2**21


def test_operators_are_registered_by_the_names_of_tflite_micro(tmp_path):
    """MicroMutableOpResolver has AddBatchMatMul; the export called AddBatchMatmul, which did not compile."""
    write_c_arrays(tmp_path, b"", ("BATCH_MATMUL", "PADV2", "CONV_2D", "MAX_POOL_2D", "LEAKY_RELU", "SPACE_TO_DEPTH"))
    header = (tmp_path / "model_operators.h").read_text()
    assert all(f".Add{name}()" in header for name in "BatchMatMul PadV2 Conv2D MaxPool2D LeakyRelu SpaceToDepth".split())


def test_the_array_is_the_file(tmp_path):
    data = bytes(range(256)) * 3 + b"end"
    write_c_arrays(tmp_path, data, ())
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "model_data.h"\nint main(void) { fwrite(model_data, 1, model_data_len, stdout); return 0; }\n'
    )
    run_command("cc", "-Wall", "-Werror", "model_data.c", "main.c", "-o", "main", cwd=tmp_path)
    assert subprocess.run([tmp_path / "main"], capture_output=True, check=True).stdout == data
