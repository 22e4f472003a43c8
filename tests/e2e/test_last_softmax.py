"""Ends of networks in compiled programs: probabilities, boxes and scores in one tensor, positions that are counted."""

import os
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from support import join_networks
from support.e2e_run import (
    ROOT,
    assert_compiled_is_simulated,
    assert_layers_equal,
    compiled_at_once,
    needs_compiler,
    random_inputs,
    run,
)
from support.onnx_models import runtime_outputs, text_model
from support.programs import needs, run_command
from support.tables import few_fast

import n2d2py
from n2d2py.cli import main
from n2d2py.quant.simulator import simulate

BODY = "c = Conv<pads=[1, 1, 1, 1]>(x, w)\n r = Relu(c)\n"
SCORES = BODY + "p = GlobalAveragePool(r)\n q = Flatten(p)\n l = MatMul(q, f)\n"
CASES: dict[str, tuple[str, tuple[str, ...], int]] = {
    "one class": (SCORES + "y = Softmax<axis=1>(l)", ("y",), 1),
    "1000 classes": (SCORES + "y = Softmax<axis=1>(l)", ("y",), 1000),
    "two heads": (SCORES + "y = Softmax<axis=1>(l)\n b = MatMul(q, f)", ("y", "b"), 4),
    "logits too": (SCORES + "y = Softmax<axis=1>(l)", ("y", "l"), 5),
    "logarithm": (SCORES + "y = LogSoftmax<axis=1>(l)", ("y",), 5),
    "channels of an image": (BODY + "y = Softmax<axis=1>(r)", ("y",), 1),
    "lines of an image": (BODY + "y = Softmax<axis=3>(r)", ("y",), 1),
    "channels behind": (BODY + "t = Transpose<perm=[0, 2, 3, 1]>(r)\n y = Softmax<axis=3>(t)", ("y",), 1),
    "last of three axes": (BODY + "t = Reshape(r, s)\n y = Softmax<axis=-1>(t)", ("y",), 1),
}


def _written(folder: Path, name: str) -> Path:
    text, outputs, classes = CASES[name]
    ends = ", ".join(f"float {each}" for each in outputs)
    draw = np.random.default_rng(3)
    constants = {"w": draw.normal(0, 0.3, (6, 3, 3, 3)), "f": draw.normal(0, 2, (6, classes)), "s": np.array([1, 24, 16])}
    onnx.save(text_model(f"float[1,3,8,8] x => {ends}", text, constants, has_shapes=False), folder / "net.onnx")
    return folder / "net.onnx"


@needs_compiler
@pytest.mark.parametrize("name, bits", few_fast([*((name, "8") for name in CASES), ("logits too", "16")], 4))
def test_probabilities_leave_the_network(name, bits, tmp_path):
    path = _written(tmp_path, name)
    folder = run(str(path), "-export", "CPP", "-nbbits", bits, "-calib", "8", "-quiet", "-o", str(tmp_path), out=tmp_path)
    assert_compiled_is_simulated(folder)
    network = n2d2py.load_simulator(folder)
    x = np.random.default_rng(1).integers(0, 256, (1, 3, 8, 8)).astype(np.float32) / 255
    x[:, :, 4:] = 0
    wanted = runtime_outputs(path, x)
    found = network(x)
    for one, (expected, values) in enumerate(zip(wanted, found if isinstance(found, tuple) else (found,), strict=True)):
        step = 2.0 ** -int(bits) + 0.02 * np.abs(expected).max()
        np.testing.assert_allclose(values.reshape(expected.shape), expected, rtol=0, atol=step if bits == "8" else step / 20)
        kind = network.info.outputs[one].type
        if one == 0 and name != "logarithm":
            width = 16 if name == "1000 classes" else int(bits)  # all of them far below one half
            assert (kind.bits, kind.signed, kind.scale, kind.zero_point) == (width, False, 2.0**-width, 0)


@pytest.mark.parametrize("target", ["CPP", "ONNX"])
def test_logits_on_request(target, tmp_path):
    """`-drop-softmax`: the same order, far beyond 1."""
    path, x, found = _written(tmp_path, "1000 classes"), np.full((1, 3, 8, 8), 0.5, np.float32), []
    for more in ([], ["-drop-softmax"]):
        out = tmp_path / f"o{len(more)}"
        words = [str(path), "-export", target, "-nbbits", "8", "-calib", "8", "-db-export", "0", "-quiet", "-o", str(out)]
        assert main([*words, *more]) == 0
        folder = out / f"export_{target}_int8"
        if target == "CPP":
            found.append(n2d2py.load_simulator(folder)(x).reshape(-1))
        else:
            found.append(runtime_outputs(next(folder.glob("*.onnx")), x)[0].reshape(-1))
    probabilities, logits = found
    assert logits.max() > 1.5 and probabilities.min() >= 0 and 0.2 < probabilities.sum() < 1.3
    assert probabilities[logits.argmax()] == probabilities.max()


YOLO = Path(os.environ.get("N2D2_DATA", ROOT.parent / "shared" / "data")) / "modern" / "yolo"
QUICK = ("split", "integers")
NAMES = ("float_reader", "float_input", "row", "reshaped", "stacked", "moved_integers", "row_of_integers")


def exported(model: Path, data: Path, out: Path) -> Path:
    options = ["-nbbits", "8", "-calib", "-1", "-calib-data", str(data), "-db-export", "0", "-quiet", "-o", str(out)]
    return run(str(model), "-export", "CPP", *options, out=out)


@needs_compiler
@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in NAMES)])
def test_compiled_joins_are_those_of_python(name, tmp_path):
    net = join_networks.Joins()
    model = net.write(tmp_path / "net.onnx", getattr(join_networks, name)(net))
    np.save(tmp_path / "x.npy", join_networks.stimuli(16))
    folder = exported(model, tmp_path / "x.npy", tmp_path / "out")
    compiled, simulated = compiled_at_once(folder), n2d2py.load_simulator(folder)
    inputs = random_inputs(simulated, 3)
    assert_layers_equal(compiled.layers(*inputs), simulated.layers(*inputs))


def test_the_detections_of_a_detector_are_found(tmp_path):
    """At least 95 of 100: objectness (row 4) above a half in floating point and in integers."""
    if not YOLO.is_dir():
        pytest.skip("the data folder has no modern/yolo")
    folder = exported(YOLO / "yolo.ts.onnx", YOLO / "calib.npy", tmp_path)
    graph = n2d2py.load_simulator(folder).graph
    x = np.load(YOLO / "eval.npz")["x"]
    expected = runtime_outputs(YOLO / "yolo.ts.onnx", x)[0]
    (name,), kind = graph.outputs, graph.type(graph.inputs[0])
    found = np.concatenate([simulate(graph, [kind.quantize(x[i : i + 10])])[name] for i in range(0, len(x), 10)])
    found = graph.type(name).dequantize(found).reshape(expected.shape)
    detected = expected[:, 4] > 0.5
    assert detected.sum() == 1090
    assert np.mean(found[:, 4][detected] > 0.5) >= 0.95
    assert np.mean(found[:, 5:].argmax(axis=1) == expected[:, 5:].argmax(axis=1), where=detected) >= 0.95


NET = """[database]
Type=Numpy_Database
DataPath=d.npz
[sp]
Size=12 8 3
CompositeStimuli=1
[conv]
Input=sp
Type=Conv
KernelSize=3
Stride=2
Padding=1
NbOutputs=6
ActivationFunction=Rectifier
[up]
Input=conv
Type=Deconv
KernelSize=2
Stride=2
NbOutputs=3
[soft]
Input=up
Type=Softmax
NbOutputs=3
[soft.Target]
"""


@pytest.mark.slow
@needs("g++", "make")
def test_the_program_scores_pixels(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (6, 3, 8, 12), dtype=np.uint8)
    np.savez("d.npz", x=x, y=np.where(rng.random((6, 8, 12)) < 0.2, -1, x[:, 0] // 86))
    (tmp_path / "net.ini").write_text(NET)
    assert (
        main(["net.ini", "-w", "/dev/null", "-seed", "1", "-export", "CPP", "-nbbits", "8", "-calib", "4", "-test", "-quiet"])
        == 0
    )
    rates = re.findall(r"^(simulated int8|compiled) +6 +([0-9.]+)%", capsys.readouterr().out, re.MULTILINE)
    assert [name for name, _ in rates] == ["simulated int8", "compiled"] and rates[0][1] == rates[1][1]
    folder = tmp_path / "export_CPP_int8"
    run_command("make", "OPT=-O1", cwd=folder)
    printed = run_command("bin/run_export", cwd=folder)
    assert f"Score: {rates[0][1]}%" in printed
