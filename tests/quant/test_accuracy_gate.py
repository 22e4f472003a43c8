"""W508: exports that lose what a network says are warned of, with a remedy that helps; good ones are not. ONNX Runtime is the referee."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.onnx_models import runtime_outputs, text_model

import n2d2py
from n2d2py import log
from n2d2py.cli import main
from n2d2py.exports.cpp import target
from n2d2py.options import read_command
from n2d2py.pipeline import load_network
from n2d2py.quant.observe.judged import worst_output
from n2d2py.stages.calibrate import calibrate_stage
from n2d2py.stages.quantize import quantize_stage


def _model(body: str, constants: dict, features: int, folder: Path) -> Path:
    onnx.save(text_model(f"float[n,{features}] x => float y", body, constants, opset=13, has_shapes=False), folder / "net.onnx")
    return folder / "net.onnx"


def _dense(last: np.ndarray, shift: np.ndarray, features: int, folder: Path) -> Path:
    """Two layers of which the second has the given weights (32, O) and biases."""
    first = np.random.default_rng(4).normal(size=(features, 32)) / features**0.5
    constants = {"w1": first, "b1": np.zeros(32), "w2": last, "b2": shift}
    return _model("h = Gemm (x, w1, b1)\n r = Relu (h)\n y = Gemm (r, w2, b2)", constants, features, folder)


def _classifier(folder: Path) -> tuple[Path, np.ndarray]:
    rng = np.random.default_rng(5)
    centres = rng.normal(size=(10, 32))
    path = _dense(centres.T, np.zeros(10), 16, folder)
    return path, rng.normal(size=(200, 16)).astype(np.float32)


def _pressure(folder: Path) -> tuple[Path, np.ndarray]:
    rng = np.random.default_rng(6)
    last = rng.normal(size=(32, 1))
    return _dense(last * 6 / np.linalg.norm(last) / 0.5, np.array([1013.0]), 16, folder), rng.normal(size=(200, 16)).astype(
        np.float32
    )


def _boxes(folder: Path) -> tuple[Path, np.ndarray]:
    """Four boxes in pixels and two scores that one layer makes: they share one step."""
    rng = np.random.default_rng(7)
    last = np.abs(rng.normal(size=(32, 6))) / 32
    return _dense(last * np.array([600, 600, 600, 600, 0.6, 0.6]), np.zeros(6), 16, folder), rng.normal(size=(200, 16)).astype(
        np.float32
    )


def _sensors(folder: Path) -> tuple[Path, np.ndarray]:
    """Degrees, pascals and shares, normalized by the network itself."""
    mean, deviation = np.array([20.0, 101300.0, 0.5, 0.0]), np.array([7.0, 900.0, 0.2, 0.1])
    rng = np.random.default_rng(8)
    body = "n = BatchNormalization (x, one, zero, mean, var)\n h = Gemm (n, w1, zero32)\n r = Relu (h)\n y = Gemm (r, w2)"
    constants = {"one": np.ones(4), "zero": np.zeros(4), "mean": mean, "var": deviation**2, "zero32": np.zeros(32)}
    constants |= {"w1": rng.normal(size=(4, 32)), "w2": rng.normal(size=(32, 5))}
    return _model(body, constants, 4, folder), (mean + deviation * rng.normal(size=(200, 4))).astype(np.float32)


def _exported(path: Path, x: np.ndarray, options: list[str]) -> tuple[float, float, list[str]]:
    """Of an export: decibels of the worst row of 100 stimuli that did not calibrate, share of equal decisions, and what W508 says."""
    np.save(path.parent / "calib.npy", x[:100])
    out = path.parent / f"out{len(list(path.parent.iterdir()))}"
    given = ["-calib-data", str(path.parent / "calib.npy"), "-calib", "-1", "-export", "CPP", "-db-export", "0"]
    assert main([str(path), *given, "-quiet", "-o", str(out), *options]) == 0
    said = [one.line() for one in log.warnings_seen() if one.code == "W508"]
    real = runtime_outputs(path, x[100:])[0].astype(np.float64)
    found = n2d2py.load_simulator(next(out.glob("export_CPP_*")))(x[100:])
    found = np.asarray(next(iter(found.values())) if isinstance(found, dict) else found, np.float64).reshape(real.shape)
    decibels = 10 * np.log10(real.var(axis=0) / np.square(real - found).mean(axis=0))
    return float(decibels.min()), float(np.mean(real.argmax(axis=1) == found.argmax(axis=1))), said


@pytest.mark.parametrize("options", ["", "-quality fast", "-no-bias-correction", "-nbbits 16", "-flash-budget 900"])
def test_good_networks_are_not_warned_of(tmp_path, options):
    decibels, equal, said = _exported(*_classifier(tmp_path), options.split())
    assert decibels > 12
    assert equal >= 0.9
    assert not said


@pytest.mark.parametrize(
    "network, options",
    [
        (_classifier, "-wt-bits 2"),
        (_pressure, "-output-bits 8"),
        (_pressure, "-quality fast"),
        (_boxes, "-output-bits 8"),
        (_sensors, "-input-bits 8"),
        (_sensors, "-input-bits 8 -quality fast"),
        (_sensors, "-input-bits 16 -no-bias-correction"),
        (_sensors, "-input-bits 8 -mixed-precision"),
    ],
)
def test_networks_that_lose_what_they_say_are_warned_of(tmp_path, network, options):
    """The remedy, where one is said to be enough, is enough on other stimuli too."""
    path, x = network(tmp_path)
    decibels, _, (said,) = _exported(path, x, options.split())
    assert decibels < 12
    remedy = re.search(r"; (-[a-z-]+ \w+)[^;]* gives ", said)
    if remedy is not None:
        kept = {"-output-bits", "-wt-bits"} - {remedy[1].split()[0]}
        again = options.split() if options.split()[:1] and options.split()[0] in kept else []
        better, _, none = _exported(path, x, [*again, *shlex.split(remedy[1])])
        assert better > decibels + 10
        assert not none
    else:
        assert network is _sensors


def test_nothing_is_tried_for_an_output_that_varies_less_than_16_bits_hold(tmp_path, caplog):
    rng = np.random.default_rng(6)
    path = _dense(rng.normal(size=(32, 1)) * 1e-3, np.array([1013.0]), 16, tmp_path)
    with caplog.at_level("DEBUG"):
        _, _, (said,) = _exported(path, rng.normal(size=(200, 16)).astype(np.float32), [])
    assert "subtract the constant part" in said
    assert not [record for record in caplog.records if record.getMessage().startswith("tried")]


def test_the_cost_of_reduced_weights_is_said_where_they_are_faster(tmp_path, monkeypatch):
    """Where a processor has no int8 dot product; ONNX Runtime's outputs for other samples tell the same cost."""
    told = []
    monkeypatch.setattr(target, "lacks_byte_products", lambda flags: True)
    monkeypatch.setattr(log, "notice", lambda text, *values: told.append(text % values))
    path, x = _classifier(tmp_path)
    full, _, _ = _exported(path, x, ["-quality", "fast"])
    _exported(path, x, ["-quality", "fast", "-test"])
    plain, text = (one for one in told if "-wt-reduce-range" in one)
    assert "dB" not in plain and "-test" in plain
    reduced, _, _ = _exported(path, x, ["-quality", "fast", "-wt-reduce-range"])
    said = re.search(r"grows by ([\d.]+) dB", text)
    assert said and float(said[1]) == pytest.approx(full - reduced, abs=0.5)


def test_equalization_is_proposed_where_it_was_turned_off(tmp_path):
    """Rectified channels a factor of 400 apart, which the next layer divides by as much."""
    rng = np.random.default_rng(6)
    gains = np.exp(rng.uniform(-3, 3, 24))
    constants = {"w": rng.normal(size=(12, 24)) * gains, "v": rng.normal(size=(24, 6)) / gains[:, None]}
    body = "a = MatMul (x, w)\n b = Relu (a)\n y = MatMul (b, v)"
    path, x = _model(body, constants, 12, tmp_path), rng.normal(size=(200, 12)).astype(np.float32)
    lost, _, (said,) = _exported(path, x, ["-no-cle"])
    better, _, none = _exported(path, x, [])
    assert "; leave out -no-cle gives " in said and better > lost + 15 and not none


def test_inputs_of_different_units_are_named(tmp_path):
    _, _, (said,) = _exported(*_sensors(tmp_path), ["-input-bits", "8"])
    assert "'x'" in said


def test_states_are_not_judged_by_their_rows(tmp_path):
    """One of four features hardly varies: its steps are lost in the state, which no output shows."""
    rng = np.random.default_rng(9)
    body = """joined = Concat <axis = 1> (memory, x) y = Gemm (joined, w)
        memory_out = Slice (joined, four, twenty, one)"""
    weights = rng.normal(size=(20, 5)).astype(np.float32)
    constants = {"w": weights, "four": np.array([4]), "twenty": np.array([20]), "one": np.array([1])}
    ends = "float[1,4] x, float[1,16] memory => float[1,5] y, float[1,16] memory_out"
    path = tmp_path / "net.onnx"
    onnx.save(text_model(ends, body, constants, opset=13), path)
    x = (rng.normal(size=(100, 4)) * [1, 1, 1, 1e-3]).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    words = ["-export", "CPP", "-calib-data", str(tmp_path / "x.npy"), "-calib", "-1", "-quiet", "-o", str(tmp_path)]
    assert main([str(path), *words]) == 0
    past = np.concatenate([np.zeros((4, 4), np.float32), x])
    real = np.concatenate([past[at : at + 100] for at in range(5)], axis=1) @ weights
    error = real - np.asarray(n2d2py.load_simulator(tmp_path / "export_CPP_int8")(x))
    assert 10 * np.log10(real.var() / np.square(error).mean()) > 30
    assert not [one for one in log.warnings_seen() if one.code == "W508"]


@pytest.mark.parametrize("others, warned", [(1.0, False), (0.01, True)])
def test_a_few_quiet_samples_are_no_warning(tmp_path, others, warned):
    """The samples of the first look lie in few steps; the others, of a factor `others`, decide."""
    path, x = _classifier(tmp_path)
    np.save(tmp_path / "x.npy", x)
    network, options = read_command([str(path), "-calib-data", str(tmp_path / "x.npy"), "-calib", "-1", "-output-bits", "8"])
    calibrated = calibrate_stage(load_network(network, options), options.calibration)
    assert calibrated.observed is not None
    quiet = replace(calibrated.observed, checked=[x[:8] * 0.01], doubted=lambda: [x[:8] * 0.01, x[8:] * others])
    log.setup(quiet=True)
    quantize_stage(replace(calibrated, observed=quiet), options.quantization)
    assert [one.code for one in log.warnings_seen() if one.code == "W508"] == ["W508"] * warned


def test_rows_of_one_value_count_against_the_value():
    """An output that is constant has no variance; an error of one quantization step is no reason to warn."""
    real = {"y": np.full((3, 4, 5), 7, np.float32)}
    small, large = (worst_output(real, {"y": real["y"] + error}, False, False) for error in (1e-3, 5.0))
    assert small is not None and large is not None and small.shortfall < 0.01 and large.shortfall > 1
