"""The networks of models/: scores, every exported stimulus, every layer, and the handles for Python."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.e2e_run import assert_layers_equal, export, needs_compiler, random_inputs, stored_stimuli, summary
from support.programs import run_command
from support.tables import few_fast

import n2d2py

pytestmark = needs_compiler

LAYERS = {"LeNet": 8, "MobileNet": 15}


@pytest.fixture(scope="module", params=few_fast(sorted(LAYERS, reverse=True)))
def folder(request, tmp_path_factory) -> Path:
    """The export that the README's command writes, with its layers compared."""
    return export(
        request.param,
        tmp_path_factory.mktemp(request.param),
        *"-fuse -nbbits 8 -calib -1 -db-export 100 -test -compare 10".split(),
    )


def test_integers_lose_less_than_half_a_point(folder):
    scores = summary(folder)["scores"]
    assert scores["float"] > 98.0
    assert abs(scores["simulated"] - scores["float"]) <= 0.5


def test_every_layer_was_found_identical(folder):
    compared = summary(folder)["compare"]
    assert len(compared) == LAYERS[folder.parent.name.rstrip("0123456789")]
    assert all(layer["identical"] is True for layer in compared.values())
    assert min(layer["sqnr_db"] for layer in compared.values()) > 25.0


def test_every_exported_stimulus_gives_the_simulated_outputs_and_layers(folder):
    compiled, simulated = n2d2py.load_export(folder), n2d2py.load_simulator(folder)
    x, _ = stored_stimuli(folder)
    assert len(x) == 100 and len(np.unique(x.reshape(100, -1), axis=0)) > 90
    np.testing.assert_array_equal(compiled.run_raw(x), simulated.run_raw(x))
    assert_layers_equal(compiled.layers(x), simulated.layers(x))


def test_the_scores_of_the_files_are_those_that_were_reported(folder):
    x, labels = stored_stimuli(folder)
    best = n2d2py.load_simulator(folder).run_raw(x).reshape(100, -1).argmax(axis=1)
    expected = 100.0 * (best == labels[:, 0]).mean()
    assert summary(folder)["scores"]["compiled"] == pytest.approx(expected)
    subprocess.run(["make", "-j2"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    printed = run_command(folder / "bin" / "run_export")
    assert printed.splitlines()[-1] == f"Score: {expected:.2f}%"


def test_python_calls_both_in_the_same_way(folder):
    compiled, simulated = n2d2py.load_export(folder), n2d2py.load_simulator(folder)
    x = np.random.default_rng(3).random((5, 1, 32, 32)).astype(np.float32)
    y = compiled(x)
    assert y.dtype == np.float32 and y.shape[:2] == (5, 10)
    np.testing.assert_array_equal(y, simulated(x))
    for index in range(5):
        np.testing.assert_array_equal(compiled(x[index : index + 1])[0], y[index])
    (given,), (result,) = compiled.info.inputs, compiled.info.outputs
    raw = np.rint(x / given.scale).clip(0, 255).astype(np.uint8)
    np.testing.assert_allclose(compiled.run_raw(raw) * np.float32(result.scale), y, rtol=1e-6)
    for one, other in zip(
        (*compiled.info.inputs, *compiled.info.outputs), (*simulated.info.inputs, *simulated.info.outputs), strict=True
    ):
        assert one == other
    assert 0 < compiled.info.arena_bytes == summary(folder)["arena_bytes"]
    assert compiled.run_raw(raw[:0]).shape[0] == 0


def test_extreme_inputs_saturate_alike(folder):
    compiled, simulated = n2d2py.load_export(folder), n2d2py.load_simulator(folder)
    noise = random_inputs(simulated, 6, seed=9)
    edges = [np.stack([np.full(x.shape[1:], value, x.dtype) for value in (0, 255)]) for x in noise]
    for inputs in (noise, edges):
        assert_layers_equal(compiled.layers(*inputs), simulated.layers(*inputs))
