"""Networks trained with quantization (SAT, LSQ): their integers against formulas in NumPy, their files, their errors.

They look at `n2d2py.contracts.ini.quantizers` and `n2d2py.contracts.ini.trained`.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from support.tables import every
from support.trained_networks import Trained

from n2d2py import log
from n2d2py.arithmetic.trained import RANGES, lsq_weights, read_grid, sat_gain, sat_weights
from n2d2py.errors import N2D2Error
from n2d2py.options import read_command
from n2d2py.pipeline import export_network, load_network
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.stages.calibrate import calibrate_stage
from n2d2py.stages.quantize import quantize_stage

pytest.importorskip("onnxruntime")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log.setup(quiet=True)


def command(net: Trained | str, *options: str):
    """(network, options of the run) of an INI in the working directory, with bytes / 255 as data."""
    Path("net.ini").write_text(net if isinstance(net, str) else net.ini)
    np.save("x.npy", stimuli())
    line = ["net.ini", "-w", "weights", "-seed", "1", "-export", "CPP", "-calib", "-1", "-calib-data", "x.npy", *options]
    path, run = read_command(line)
    return load_network(path, run), run


def stimuli() -> np.ndarray:
    return (np.random.default_rng(7).integers(0, 256, (40, 2, 8, 8)) / 255).astype(np.float32)


def typed(net: Trained, *options: str):
    network, run = command(net, *options)
    return quantize_stage(calibrate_stage(network, run.calibration), run.quantization, ()).graph


def check(net: Trained, *options: str) -> None:
    """The simulated integers give NumPy's outputs, but where a value lies in the middle between two steps."""
    graph, x = typed(net, *options), stimuli()
    scale = graph.type(graph.inputs[0]).scale
    read = np.round(x.astype(np.float64) / scale) * scale  # the input has the range of the data
    found = (
        simulate(graph, quantize_inputs(graph, [x]))[graph.outputs[0]].astype(np.float64) * graph.type(graph.outputs[0]).scale
    )
    want = net.outputs(read)
    assert np.ptp(want, axis=0).min() > 0.01, "the case is too narrow to tell anything"
    apart = np.abs(found - want).max(axis=1) > 1e-3 * np.abs(want).max()
    assert apart.mean() <= 0.1, f"{apart.sum()} of {len(x)} outputs differ"


@every("mode", ["Default", "Symmetric"])
@every("steps", RANGES)
def test_sat_networks_of_every_range(steps, mode):
    net = Trained(steps=steps, act=15 if steps < 15 else steps, mode=mode, seed=steps)
    net.write(Path("weights"))
    check(net)


@every("steps", RANGES[1:])
def test_lsq_networks_of_every_range(steps):
    net = Trained(steps=steps, act=15, kind="LSQ", seed=steps)
    net.write(Path("weights"))
    check(net)


@pytest.mark.parametrize("mode", ["Floating-point", "Fixed-point32"])
def test_gains_below_zero_zero_and_tiny(mode):
    """A negative gain turns the weights, one of 0 leaves the bias alone, so does one that is next to nothing."""
    gains = {"bn1": np.array([-1.5, 0.0, 1e-38, 1.0, -2.0, 1e-14]), "bn2": np.array([0.0, -1.0, 2.0, 1.5, -0.5])}
    net = Trained(steps=7, act=15, seed=3, gains=gains)
    net.write(Path("weights"))
    check(net, "-act-rescaling-mode", mode)
    graph = typed(net, "-act-rescaling-mode", mode)
    weights = graph.nodes[0].params["weights"]
    assert not weights[[1, 2, 5]].any()
    integers, _ = net.levels("conv1")
    assert np.array_equal(weights[0], -integers[0]) and np.array_equal(weights[3], integers[3])


def test_the_integers_have_the_bits_of_the_training():
    net = Trained(steps=3, act=7, mode="Symmetric")
    net.write(Path("weights"))
    graph = typed(net)
    assert set(np.unique(graph.nodes[2].params["weights"])) == {-1, 0, 1}
    assert [graph.type(node.output).qmax for node in graph.nodes[:3]] == [7, 7, 7]
    assert all(node.clamp in ((0, 7), None) or node.name == "fc" for node in graph.nodes)


@every("mode", ["Default", "Symmetric"])
@every("steps", RANGES)
def test_stored_quantized_weights_alone_give_the_same_integers(steps, mode):
    net = Trained(steps=steps, mode=mode, seed=1)
    net.write(Path("weights"), real=False, quantized=True)
    alone = typed(net)
    net.write(Path("weights"), real=True)
    both = typed(net)
    for one, other in zip(alone.nodes, both.nodes, strict=True):
        for role, values in one.params.items():
            assert np.allclose(values, other.params[role], atol=1)
            assert role != "weights" or np.array_equal(values, other.params[role])


def test_the_grid_is_that_of_the_stored_weights():
    """The INI says Symmetric, the file has the other grid."""
    net = Trained(steps=15, mode="Default")
    net.write(Path("weights"), quantized=True)
    expected = [node.params["weights"] for node in typed(net).nodes if "weights" in node.params]
    net.mode = "Symmetric"
    found = [node.params["weights"] for node in typed(net).nodes if "weights" in node.params]
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))


def test_weights_of_another_training_are_told():
    net, other = Trained(seed=1), Trained(seed=2)
    net.write(Path("weights"), quantized=True)
    other.write(Path("weights"), real=True)
    typed(net)
    assert any("W421" in one.line() for one in log.warnings_seen())


@every("apart, told", [(1, False), (2, True)])
@every("mode", ["Default", "Symmetric"])
def test_weights_that_differ_by_one_step_are_of_the_same_training(mode, apart, told):
    """A rounding that falls to the other side in another arithmetic changes an integer by a step."""
    net = Trained(steps=15, mode=mode)
    net.write(Path("weights"), quantized=True)
    path = Path("weights/conv2_quant_weights.syntxt")
    stored = np.loadtxt(path)
    levels = np.unique(stored)
    places = np.searchsorted(levels, stored)
    moved = levels[np.where((places > 0) & (places + apart < len(levels)), places + apart, places)]
    path.write_text("\n".join(" ".join(f"{value:.9g}" for value in row) for row in moved))
    typed(net)
    assert any("W421" in one.line() for one in log.warnings_seen()) == told


def test_binary_weights_that_differ_are_of_another_training():
    net = Trained(steps=1, act=1)
    net.write(Path("weights"), quantized=True)
    path = Path("weights/conv2_quant_weights.syntxt")
    stored = np.loadtxt(path)
    np.savetxt(path, -stored, "%.9g")
    typed(net)
    assert any("W421" in one.line() for one in log.warnings_seen())


@every("grid", ["odd", "symmetric", "full"])
@every("steps", RANGES)
def test_grids_are_read_back(steps, grid):
    rng = np.random.default_rng(steps)
    integers, scale = sat_weights(rng.normal(size=(4, 300)), steps, grid)
    read = read_grid((integers * scale * 0.37).astype(np.float32), steps, grid)
    assert read is not None and read[0] == grid and np.array_equal(read[1], integers)
    assert read_grid(np.linspace(-1, 1, 3000), steps, grid) is None


def test_binary_weights_count_zero_as_one():
    integers, scale = sat_weights(np.array([[0.0, -0.1, 0.2]]), 1, "odd")
    assert integers.tolist() == [[1, -1, 1]] and scale == 1
    assert sat_gain(np.ones((2, 3)), 1.0, 2) == 1.0


def test_lsq_weights_have_one_more_value_below_zero():
    assert lsq_weights(np.array([[-9.0, -0.5, 0.5, 1.5, 9.0]]), 7, np.array([1.0])).tolist() == [[-4, 0, 0, 2, 3]]


def refused(net: Trained | str, *options: str) -> str:
    with pytest.raises(N2D2Error) as caught:
        network, run = command(net, *options)
        quantize_stage(calibrate_stage(network, run.calibration), run.quantization, ())
    return caught.value.errors[0].line()


@every(
    "old, new, code, words",
    [
        ("QAct.Range=15", "QAct.Range=10", "E122", "E122"),
        ("QWeight.Range=255", "QWeight.Range=10", "E122", "E122"),
        ("QActSolver=SGD", "QAct.Alpha=0", "E122", "0 is not above 0"),
        ("QActSolver=SGD", "QAct.Alpha=-1.5", "E122", "-1.5 is not above 0"),
        ("Pooling=Max", "Pooling=Max\nQWeight=SAT\nQWeight.Range=15", "E242", "QWeight, QWeight.Range: a layer of Type=Pool"),
        ("QWeight.Range=255", "QWeight.QuantMode=Asymmetric", "E124", "Asymmetric is not supported"),
        ("QWeight.Range=255", "QWeight=Prune", "E124", "Prune is not supported"),
        ("QWeight.Range=255", "QWeight=LSQ\nQWeight.Range=1", "E124", "QWeight.Range=1"),
        ("DefaultModel=Frame_CUDA", "QWeight=SAT", "E242", "QWeight "),
        ("QActSolver=SGD", "QBias=SAT", "E242", "QBias: a layer of Type=BatchNorm"),
    ],
)
def test_values_without_meaning_are_refused(old, new, code, words):
    net = Trained()
    net.write(Path("weights"))
    assert old in net.ini
    line = refused(net.ini.replace(old, new, 1))
    assert line.startswith(f"N2D2-{code}: net.ini:") and words in line


@pytest.mark.parametrize("text", ["0", "-2.5"])
def test_a_stored_alpha_that_is_not_positive_is_refused(text):
    net = Trained()
    net.write(Path("weights"))
    Path("weights/bn1_QAct_SAT_Alpha.syntxt").write_text(text)
    assert "E425" in (line := refused(net)) and "[bn1]" in line and "above 0" in line


def test_a_missing_alpha_is_refused():
    net = Trained()
    net.write(Path("weights"))
    Path("weights/bn2_QAct_SAT_Alpha.syntxt").unlink()
    assert "E421" in (line := refused(net)) and "bn2_QAct_SAT_Alpha" in line


def test_stored_weights_beside_their_grid_are_refused():
    net = Trained(steps=15)
    net.write(Path("weights"), real=False, quantized=True)
    text = net.ini.replace("QWeight.Range=15", "QWeight.Range=7")
    assert "E425" in (line := refused(text)) and "conv2_quant_weights" in line


def test_a_typo_is_told_with_the_nearest_key():
    net = Trained(more="QWeight.Rnage=15")
    net.write(Path("weights"))
    typed(net)
    (line,) = [one.line() for one in log.warnings_seen() if "W102" in one.line()]
    assert "'QWeight.Rnage'" in line and "did you mean 'QWeight.Range'?" in line


def test_a_softmax_behind_a_quantizer_is_told():
    net = Trained()
    net.write(Path("weights"))
    Path("weights/fc_QAct_SAT_Alpha.syntxt").write_text("4.5")
    text = net.ini.replace("[fc.Target]", "QAct=SAT\n[softmax]\nInput=fc\nType=Softmax\nNbOutputs=3\n[softmax.Target]")
    command(text)
    (line,) = [one.line() for one in log.warnings_seen() if "W227" in one.line()]
    assert "'fc'" in line and "4.5" in line


def test_layers_without_keys_are_quantized_to_8_bits():
    """A layer without QWeight, a tensor without QAct: rounded by their own largest values."""
    net = Trained(steps=15)
    net.write(Path("weights"))
    text = net.ini.replace("QWeight=SAT\nQWeight.Range=15\nQWeight.QuantMode=Default\nQWeight.ApplyScaling=1", "")
    assert text != net.ini
    network, run = command(text)
    graph = quantize_stage(calibrate_stage(network, run.calibration), run.quantization, ()).graph
    assert np.abs(graph.nodes[-1].params["weights"].astype(int)).reshape(3, -1).max(axis=1).tolist() == [127] * 3


def test_weights_quantized_alone_need_a_calibration():
    net = Trained(steps=15)
    net.write(Path("weights"))
    text = net.ini.replace("QAct=SAT", "QAct=")
    assert "E507" in refused(text, "-calib", "0")
    network, run = command(text)
    graph = quantize_stage(calibrate_stage(network, run.calibration), run.quantization, ()).graph
    assert np.array_equal(graph.nodes[2].params["weights"].reshape(-1) % 2, np.ones(270)), "the odd grid is kept"


@pytest.mark.compiles
@pytest.mark.parametrize(
    "steps, act, mode",
    [(1, 1, "Default"), *(pytest.param(*one, marks=pytest.mark.slow) for one in ((3, 3, "Symmetric"), (15, 15, "Default")))],
)
def test_the_compiled_network_computes_the_same(steps, act, mode):
    net = Trained(steps=steps, act=act, mode=mode, seed=5)
    net.write(Path("weights"))
    network, run = command(net, "-compare", "10")
    compared = export_network(network, run).checked.compared
    assert len(compared.layers) >= 4
    assert all(layer.identical for layer in compared.layers)


@pytest.mark.parametrize("steps, bits, conv, fc", [(1, 1, 35, 30), (3, 2, 70, 60), (15, 4, 135, 120)])
def test_the_weights_are_packed(steps, bits, conv, fc):
    """5 outputs of 54 weights, 3 of 80, each output filled up to whole bytes; 108 odd weights beyond a byte."""
    net = Trained(steps=steps, seed=5)
    net.write(Path("weights"))
    network, run = command(net)
    folder = export_network(network, run).folder
    packed = json.loads((folder / "manifest.json").read_text())["details"]["packed_weights"]
    assert packed == {
        "conv1": {"bits": 8, "bytes": 108, "bytes_unpacked": 216, "bytes_prepacked": 216},
        "conv2": {"bits": bits, "bytes": conv, "bytes_unpacked": 270, "bytes_prepacked": 280},
        "fc": {"bits": bits, "bytes": fc, "bytes_unpacked": 240, "bytes_prepacked": 240},
    }
    summary = json.loads((folder / "statistics" / "summary.json").read_text())
    saved = 108 + 270 - conv + 240 - fc
    assert summary["weights_bytes"] - summary["packed_weights_bytes"] == saved
    assert f"int8 in {bits} bit" in (folder / "statistics" / "layers.txt").read_text()
    exported = np.loadtxt(folder / "weights_export" / "conv2_weights.syntxt").reshape(-1)
    assert np.array_equal(exported, net.levels("conv2")[0].reshape(-1) * exported_sign(net))


def exported_sign(net: Trained) -> np.ndarray:
    """What a gain below 0 behind conv2 turns."""
    return np.repeat(np.sign(net.norm["bn2"]["scales"]), 54)
