"""Models and data in memory: modules of PyTorch, loaders and iterators; networks that are called, looked at and edited."""

import re
from pathlib import Path

import numpy as np
import pytest
from support.e2e_run import needs_compiler
from support.errors import error_of
from support.tables import every

import n2d2py
from n2d2py import CalibrationOptions, LoadOptions, log
from n2d2py.options import OPTIONS, python_words
from n2d2py.passes.edit import every_pass

torch = pytest.importorskip("torch")
nn = torch.nn
ROOT = Path(__file__).resolve().parents[2]
CONV, RELU, FLATTEN, FC = range(4)


def module() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))


LAYERS = module()
X, Y = torch.rand(24, 2, 6, 6), torch.arange(24) % 3
NET = n2d2py.load(LAYERS, example_inputs=X[:1])
NAMES = [node.name for node in NET.graph.nodes]


def real(*layers: nn.Module) -> np.ndarray:
    return nn.Sequential(*layers).eval()(X).detach().numpy()


def test_a_module_computes_what_pytorch_computes_and_stays_in_training():
    assert LAYERS.training
    np.testing.assert_allclose(NET(X), real(LAYERS), atol=1e-5)
    np.testing.assert_allclose(n2d2py.calibrate(NET, X)(X.numpy()), real(LAYERS), atol=1e-5)


def test_models_in_memory_are_those_of_files(tmp_path):
    import onnx

    path = ROOT / "models" / "MobileNet.onnx"
    x, net = np.random.default_rng(1).random((3, 1, 32, 32), np.float32), n2d2py.load(path)
    np.testing.assert_array_equal(n2d2py.load(onnx.load(path))(x), net(x))
    exported = [n2d2py.export(one, data=x, folder=tmp_path / str(at)) for at, one in enumerate((path, onnx.load(path)))]
    np.testing.assert_array_equal(*(n2d2py.load_simulator(one.folder)(x) for one in exported))
    ir = pytest.importorskip("onnx_ir")
    np.testing.assert_array_equal(n2d2py.load(ir.load(path))(x), net(x))


def test_loaders_and_iterators_are_the_array():
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, Y), batch_size=7)
    wanted = n2d2py.quantize(NET, n2d2py.calibrate(NET, X.numpy()))(X)
    given = [X, loader, zip(X, Y, strict=True), iter(X.split(5)), ({"x": x, "y": y} for x, y in loader), X.tolist()]
    for data in given:
        np.testing.assert_array_equal(n2d2py.quantize(NET, n2d2py.calibrate(NET, data))(X), wanted)
    best = real(LAYERS).argmax(1)
    for data in (loader, zip(X, Y, strict=True)):
        assert n2d2py.score(NET, data).float.correct == int((best == Y.numpy()).sum())
    endless = iter(lambda: (X, Y), None)
    first = n2d2py.calibrate(NET, endless, options=CalibrationOptions(stimuli=30))
    assert first.calibration.observed.statistics.stimuli == 30


def test_a_quantized_network_gives_what_its_export_simulates(tmp_path):
    q = n2d2py.quantize(NET, n2d2py.calibrate(NET, X))
    assert np.abs(q(X) - real(LAYERS)).max() < 0.02
    np.testing.assert_array_equal(q(X), n2d2py.load_simulator(n2d2py.export(q, folder=tmp_path).folder)(X.numpy()))


@needs_compiler
def test_the_preset_small_computes_the_same(tmp_path):
    net = n2d2py.load(ROOT / "models" / "MobileNet.onnx", options=LoadOptions(parameters="small"))
    x = np.random.default_rng(2).random((6, 1, 32, 32), np.float32)
    q = n2d2py.quantize(net, n2d2py.calibrate(net, x))
    assert n2d2py.compare(n2d2py.export(q, folder=tmp_path), 3).identical


EDITS = {
    "replace": (lambda net: net.replace(NAMES[RELU], "Tanh"), (LAYERS[CONV], nn.Tanh(), *LAYERS[2:])),
    "activation": (
        lambda net: net.replace(NAMES[CONV], "Softsign").remove(NAMES[RELU]),
        (LAYERS[0], nn.Softsign(), *LAYERS[2:]),
    ),
    "remove": (lambda net: net.remove(NAMES[RELU]), (LAYERS[CONV], *LAYERS[2:])),
    "insert": (lambda net: net.insert(NAMES[FC], "last", "Logistic"), (*LAYERS, nn.Sigmoid())),
    "input": (lambda net: net.insert(net.graph.inputs[0], "first", "Tanh"), (nn.Tanh(), *LAYERS)),
    "rename": (lambda net: net.rename(NAMES[FC], "scores").rename(net.graph.inputs[0], "picture"), LAYERS),
}


@every("name", EDITS)
def test_edits_compute_what_pytorch_computes(name):
    edit, layers = EDITS[name]
    edited, wanted = edit(NET), real(*layers)
    np.testing.assert_allclose(edited(X), wanted, atol=1e-5)
    assert [node.name for node in NET.graph.nodes] == NAMES
    scores = n2d2py.score(edited, X, wanted.argmax(1))
    assert scores.float.top1 == 100.0
    typed = n2d2py.quantize(edited, n2d2py.calibrate(edited, X))
    assert np.abs(typed(X) - wanted).max() < 0.05 * np.abs(wanted).max()


def test_names_and_precisions_reach_the_integers():
    edited = NET.rename(NAMES[CONV], "conv").rename(NAMES[FC], "scores").set_precision("conv", bits=16)
    q = n2d2py.quantize(edited, n2d2py.calibrate(edited, X))
    assert q.graph.outputs == ["scores"] and q.graph.type(q.graph.nodes[0].output).bits == 16


def test_each_pass_alone_keeps_the_results():
    net = n2d2py.load(ROOT / "models" / "MobileNet.onnx")
    x = np.random.default_rng(1).random((4, 1, 32, 32), np.float32)
    wanted, changed = net(x), 0
    for name in dict.fromkeys(one.name for one in every_pass()):
        edited = net.apply(name)
        changed += len(edited.graph.nodes) != len(net.graph.nodes)
        np.testing.assert_allclose(edited(x), wanted, rtol=1e-4, atol=1e-5, err_msg=name)
    assert changed >= 2


WRONG = {
    "no file": ("E101", lambda: n2d2py.load("gone.onnx")),
    "an export": ("E700", lambda: n2d2py.load(LAYERS, "CUDA", example_inputs=X[:1])),
    "a mode": ("E004", lambda: n2d2py.calibrate(NET, X, options=CalibrationOptions(quality="good"))),
    "a count": ("E003", lambda: n2d2py.calibrate(NET, X, options=CalibrationOptions(stimuli=-2))),
    "a shape": ("E414", lambda: n2d2py.calibrate(NET, np.zeros((3, 4, 5, 6), np.float32))),
    "a number": ("E008", lambda: n2d2py.load(3)),
    "no example": ("E008", lambda: n2d2py.load(LAYERS)),
    "an example for a file": ("E008", lambda: n2d2py.load("a.onnx", example_inputs=X)),
    "an example that does not fit": ("E008", lambda: n2d2py.load(LAYERS, example_inputs=X[:, :1])),
    "data": ("E414", lambda: n2d2py.calibrate(NET, 3)),
    "no batch": ("E414", lambda: n2d2py.calibrate(NET, iter(()))),
    "batches": ("E414", lambda: n2d2py.calibrate(NET, iter((X, X[:, :1])))),
    "unlike arrays": ("E414", lambda: n2d2py.calibrate(NET, [X, X[:1]])),
    "three parts": ("E414", lambda: n2d2py.calibrate(NET, iter(((X, Y, Y),)))),
    "labels": ("E414", lambda: n2d2py.calibrate(NET, iter(((X, Y), X)))),
    "call": ("E804", lambda: NET(X[:, :1])),
    "layer": ("E245", lambda: NET.remove("conv9")),
    "function": ("E245", lambda: NET.insert(NAMES[CONV], "new", "Tahn")),
    "object": ("E245", lambda: NET.replace(NAMES[CONV], 3)),
    "operator": ("E245", lambda: NET.insert(NAMES[CONV], "new", NET.graph.nodes[FC].op)),
    "name": ("E245", lambda: NET.rename(NAMES[CONV], NAMES[FC])),
    "width": ("E245", lambda: NET.set_precision(NAMES[CONV], bits=7)),
    "pass": ("E245", lambda: NET.apply("fuse-everything")),
    "calibration": ("E507", lambda: n2d2py.quantize(NET)),
    "quantized twice": ("E507", lambda: n2d2py.quantize(n2d2py.quantize(NET, bits=-32))),
    "bits": ("E506", lambda: n2d2py.quantize(NET, bits=7)),
    "bits as a text": ("E506", lambda: n2d2py.quantize(NET, bits="8")),
    "no samples": ("E509", lambda: n2d2py.score(NET)),
}
OPTION = re.compile(rf"(?<![\w-])-({'|'.join(option.name for option in OPTIONS)})\b")


@every("name", WRONG)
def test_wrong_input_is_an_error_in_words_of_python(name):
    code, call = WRONG[name]
    log.setup(quiet=True, words=python_words)
    error = error_of(call)
    assert error.code == code and error.remedy
    assert not OPTION.search(str(error)), str(error)


def test_one_sample_and_equal_ones_are_warned_of():
    found = []
    for data in (X[:1], np.zeros((5, 2, 6, 6), np.float32), X[[0, 0, 0]], X[:2]):
        log.setup(quiet=True)
        n2d2py.calibrate(NET, data)
        found.append([one.code for one in log.warnings_seen()])
    assert found == [["W414"], ["W414"], ["W414"], []]


def test_results_are_short_and_tables_of_numbers(tmp_path):
    q = n2d2py.quantize(NET, n2d2py.calibrate(NET, X))
    scores, exported = n2d2py.score(q, X, Y), n2d2py.export(q, folder=tmp_path)
    shown = (scores.float, NET.network, NET.graph, q.graph, q.quantized, exported.run, n2d2py.load_simulator(exported.folder))
    assert [text for text in map(repr, shown) if len(text.splitlines()) > 1 or len(text) > 200 or " object at 0x" in text] == []
    pandas = pytest.importorskip("pandas")
    layers, table = NET.to_pandas(), scores.to_pandas()
    assert isinstance(layers, pandas.DataFrame) and layers["parameters"].sum() == sum(p.numel() for p in LAYERS.parameters())
    assert table["top-1, %"][0] == pytest.approx(scores.float.top1, abs=0.01) and len(q.layers(X[0].numpy()).to_pandas()) == 3
