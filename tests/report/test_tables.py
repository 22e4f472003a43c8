"""The numbers in the tables of a report."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from support import report_networks as networks
from support.errors import error_line
from support.ops import LRN
from support.small_graphs import Net

from n2d2py import log
from n2d2py.arithmetic.histogram import Histogram
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.exports import KernelChoice
from n2d2py.files import json_text
from n2d2py.graph import Graph, Precision
from n2d2py.quant.calibration import prepare, quantize
from n2d2py.quant.observe.compare import LayerComparison
from n2d2py.quant.observe.corrections import BiasCorrections
from n2d2py.quant.quantize import float_graph
from n2d2py.report import command
from n2d2py.report.calibration import folded, tensor_ranges, write_calibration
from n2d2py.report.in_float import float_layers_csv, float_layers_in, float_layers_text, float_shares
from n2d2py.report.layers import layer_rows, layers_csv, layers_text, totals
from n2d2py.report.summary import summary
from n2d2py.stages.quantize import log_float_layers


@pytest.fixture(scope="module")
def data():
    return networks.report_data(networks.small())


def test_layer_rows(data):
    rows = {row.name: row for row in layer_rows(data.qgraph)}
    conv = rows["conv1"]
    assert (conv.input_dims, conv.output_dims, conv.kernel, conv.stride, conv.pads) == (
        *"16x16x3 8x8x8 3x3 2x2".split(),
        "1 1 1 1",
    )
    assert conv.macs == 8 * 8 * 8 * 27
    assert (conv.parameters, conv.parameter_bytes) == (8 * 27 + 8, 8 * 27 + 4 * 8)
    assert (conv.input_types, conv.weight_type, conv.accumulator, conv.output_type) == ("int8", "int8", "int32", "uint8")
    assert conv.output_scale == data.qgraph.type("conv1").scale
    factors = data.qgraph.nodes[0].rescale.effective()
    assert (conv.rescale_min, conv.rescale_max) == (factors.min(), factors.max())
    assert rows["dw"].type == "Conv depthwise" and rows["dw"].groups == "8" and rows["dw"].macs == 8 * 8 * 8 * 9
    assert rows["join"].inputs == "conv1 + point" and rows["join"].parameters == 0
    assert rows["pool"].output_dims == "1x1x8"
    assert rows["fc"].macs == 32 and rows["fc"].activation_bytes == 4


def test_packed_weights_count_what_they_take(data):
    """Of an export that is not built: flash behind the packing, and the memory of weights that are unpacked once."""
    packed = KernelChoice("conv1", "panels", weight_bits=4, weight_bytes=108, prepacked_bytes=216)
    chosen = replace(data, kernels={"conv1": packed}, built=None)
    rows = layer_rows(data.qgraph, chosen.kernels)
    plain, found = (
        summary(each, layer_rows(each.qgraph, each.kernels)) for each in (replace(data, kernels={}, built=None), chosen)
    )
    assert plain["memory"]["constants"] - found["memory"]["constants"] == 8 * 27 - 108
    assert found["memory"]["unpacked"] == 216 and "unpacked" not in plain["memory"]
    record = found["table"][0]
    assert (record["parameter_bytes"], record["flash_bytes"]) == (8 * 27 + 32, 108 + 32)
    assert [one["flash_bytes"] for one in found["table"]] == [row.flash_bytes for row in rows]
    runs = [command.SummarizedRun.read(title, each, {}) for title, each in (("bytes", plain), ("four", found))]
    assert "140" in command.page(*runs) and "248" in command.page(*runs)
    assert "140" not in command.page(runs[0], runs[0])


def test_totals_add_up(data):
    rows = layer_rows(data.qgraph)
    sums = totals(rows)
    assert (sums.layers, sums.macs) == (6, 13824 + 4608 + 4096 + 1024 + 512 + 32)
    assert sums.parameters == 224 + 80 + 72 + 36
    table = list(csv.DictReader(io.StringIO(layers_csv(rows))))
    assert sum(int(row["macs"]) for row in table) == sums.macs
    assert float(table[0]["output_scale"]) == pytest.approx(rows[0].output_scale, rel=1e-8)
    assert layers_text(rows).splitlines()[-1].split()[:4] == ["total", "6", "layers", "24,096"]


def test_float_layers_have_no_scale():
    data = networks.report_data(networks.small(), bits=-32)
    row = layer_rows(data.qgraph)[0]
    assert (row.output_type, row.output_scale, row.rescale_min, row.accumulator) == ("float32", None, None, "")
    assert row.parameter_bytes == 4 * 224
    assert ",,," in layers_csv([row])


def test_summary(data):
    found = json.loads(json.dumps(summary(data, layer_rows(data.qgraph)), allow_nan=False))
    assert found["nbbits"] == 8 and found["layers"] == 6 and found["network"] == "small"
    assert found["arena_bytes"] == data.plan.arena_bytes
    assert found["weights_bytes"] == 248 + 104 + 96 + 48
    assert found["scores"] == {label: data.score(label).top1 for label in ("float", "simulated", "compiled")}
    assert found["compare"]["pool"]["sqnr_db"] == data.comparisons[4].sqnr_db


def test_summary_of_a_bare_run():
    exact = LayerComparison("fc", "fc", np.inf, 1.0, 0.0, 0.0)
    data = networks.report_data(networks.small(), scores=(), comparisons=[exact], plan=None, problem=None)
    found = summary(data, layer_rows(data.qgraph))
    assert found["scores"] == {"float": None, "simulated": None, "compiled": None}
    assert found["compare"]["fc"]["sqnr_db"] is None and found["compare"]["fc"]["identical"] is None
    assert found["arena_bytes"] is None
    biases = BiasCorrections(4, (), (), np.nan, np.inf)
    written = json.loads(json_text(summary(replace(data, biases=biases), layer_rows(data.qgraph))), parse_constant=pytest.fail)
    assert written["bias_correction"]["error_plain"] is written["bias_correction"]["error_corrected"] is None


def test_folding_keeps_every_count():
    histogram = Histogram()
    values = np.random.default_rng(0).normal(0, 3, 5000)
    values[:100] = 0.0
    histogram.add(values)
    edges, counts = folded(histogram)
    assert counts.sum() == 5000 and len(edges) == len(counts) + 1 and len(counts) <= 256
    assert np.all(np.diff(edges) > 0) and edges[0] <= values.min() and edges[-1] >= values.max()
    zero = int(np.flatnonzero(edges == 0)[0])
    assert counts[zero:].sum() == np.count_nonzero(values >= 0)


def test_a_tensor_of_zeros_can_be_shown():
    histogram = Histogram()
    histogram.add(np.zeros(10))
    edges, counts = folded(histogram)
    assert edges.tolist() == [0.0, 1.0] and counts.tolist() == [10]


def test_calibration_files(data, tmp_path):
    ranges = tensor_ranges(data)
    write_calibration(tmp_path, ranges)
    lines = (tmp_path / "outputs_range.dat").read_text().splitlines()
    assert len(lines) == 1 + len(data.histograms)
    _name, low, high, mean, deviation = next(line for line in lines if line.startswith("dw ")).split()
    histogram = data.histograms["dw"]
    assert float(high) == pytest.approx(histogram.maximum) and float(low) == 0.0
    assert float(mean) == pytest.approx(histogram.mean) and float(deviation) == pytest.approx(histogram.deviation)
    text = (tmp_path / "outputs_histogram" / "dw.dat").read_text().splitlines()
    threshold = float(next(line for line in text if line.startswith("# threshold")).split()[2])
    assert threshold == pytest.approx(data.thresholds["dw"], rel=1e-8)
    candidates = {line.split()[2]: float(line.split()[3]) for line in text if line.startswith("# candidate")}
    assert candidates["MSE"] == threshold and candidates["None"] == pytest.approx(histogram.largest)
    assert sum(int(line.split()[2]) for line in text if not line.startswith("#")) == histogram.count


def test_thresholds_name_their_mode_and_their_cost(data):
    ranges = {r.tensor: r for r in tensor_ranges(data)}
    assert ranges["dw"].mode == "MSE" and ranges["x"].mode == "None" and ranges["x"].clipped == 0.0
    counts, edges = data.histograms["conv1"].magnitudes()
    threshold = ranges["conv1"].threshold
    exact = counts[edges[:-1] >= threshold].sum() / counts.sum()
    assert ranges["conv1"].clipped == pytest.approx(exact)
    changed = networks.report_data(networks.small(), thresholds={"dw": 1.25})
    shared = next(r for r in tensor_ranges(changed) if r.tensor == "dw")
    assert shared.mode == "shared" and shared.threshold == pytest.approx(data.thresholds["dw"])
    known = networks.report_data(networks.small(), rules={"dw": "known range"})
    assert next(r for r in tensor_ranges(known) if r.tensor == "dw").mode == "known range"


def with_lrn(**precisions: Precision) -> Graph:
    """conv (8 of 3x3x3) - LRN - fc (4): 8 x 8 x 3 in."""
    net = Net((3, 8, 8))
    norm = net.add("norm", LRN(3, 1e-4, 0.75, 1.0), net.conv("conv", "x", 8, pads=(1, 1, 1, 1)))
    graph = net.done(net.fc("fc", norm, 4))
    graph.precisions = dict(precisions)
    return graph


def typed(graph: Graph):
    """(typed network, float network of the same layers)."""
    real = prepare(graph, per_output=True, equalized=False)
    return quantize(real, networks.random_histograms(real), QuantOptions())[0], real


def test_the_layers_without_integers_and_their_shares():
    graph, real = typed(with_lrn())
    (one,) = float_layers_in(graph, real)
    assert (one.layer, one.operator, one.reason, one.asked) == ("norm", "LRN", "no integer form", False)
    work = {
        node.name: node.op.macs([graph.shape(n) for n in node.inputs], graph.shape(node.output), node) for node in graph.nodes
    }
    assert one.macs == pytest.approx(work["norm"] / sum(work.values())) and one.macs > 0
    constants = 8 * 27 + 4 * 8 + 4 * 512 + 4 * 4  # weights of a byte, biases of four
    outputs = 512 + 4 * 512 + 4 * 512 + 512 + graph.tensors["fc"].bytes  # conv, as floats, norm, as integers, fc
    assert one.bytes == pytest.approx(4 * 512 / (constants + outputs))


def test_what_was_asked_for_says_so_and_is_no_warning(caplog):
    graph, real = typed(with_lrn(conv=Precision(quantize=False), norm=Precision(quantize=False)))
    found = float_layers_in(graph, real)
    assert [(one.layer, one.reason, one.asked) for one in found] == [("conv", "Quantize=0", True), ("norm", "Quantize=0", True)]
    log.setup(strict=True)
    log_float_layers(graph, real)
    log.raise_on_strict()


def test_integers_alone_and_floats_alone_have_no_such_layer():
    graph, real = typed(networks.small())
    assert float_layers_in(graph, real) == []
    assert float_layers_in(float_graph(with_lrn(), -32), with_lrn()) == []


def test_strict_refuses(capsys):
    log.setup()
    log_float_layers(*typed(with_lrn()))
    said = capsys.readouterr().err
    assert "N2D2-W507: 1 of 5 layers" in said and "norm" in said and "layer in floating point" in said
    log.setup(strict=True)
    log_float_layers(*typed(with_lrn()))
    assert "E522" in error_line(log.raise_on_strict)
    log.setup()


def test_the_tables_add_up():
    found = float_layers_in(*typed(with_lrn(conv=Precision(quantize=False))))
    macs, size = float_shares(found)
    rows = list(csv.DictReader(io.StringIO(float_layers_csv(found))))
    assert [row["layer"] for row in rows] == ["conv", "norm"] and [row["asked"] for row in rows] == ["1", "0"]
    assert np.isclose(sum(float(row["macs_percent"]) for row in rows), 100 * macs)
    assert np.isclose(sum(float(row["bytes_percent"]) for row in rows), 100 * size)
    few = float_layers_text(found, 1).splitlines()
    assert few[2].startswith("conv") and few[3].startswith("1 more") and few[4].startswith("all  ")
    assert len(float_layers_text(found).splitlines()) == 5
