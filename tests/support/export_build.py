"""Building and running an exported project."""

import subprocess
from pathlib import Path

import numpy as np

from n2d2py.graph import QuantGraph
from n2d2py.quant.simulator import simulate
from support.programs import need


def make(folder: Path, *arguments: str) -> str:
    """Return what a build that succeeds prints. Without make or g++ the test is skipped."""
    need("g++", "make")
    done = subprocess.run(
        ["make", "-j2", "CXXFLAGS=-Werror", *arguments], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def run_export(folder: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess:
    return subprocess.run([folder / "bin" / "run_export", *arguments], cwd=cwd or folder, text=True, capture_output=True)


def compare_outputs(folder: Path, graph: QuantGraph, inputs: list[np.ndarray]) -> None:
    """Compares -outputs with the simulator: integers exactly, reals to 1e-5 of the largest."""
    assert run_export(folder, "-outputs", "all.bin").returncode == 0
    data, at = (folder / "all.bin").read_bytes(), 0
    expected = simulate(graph, inputs)
    for index in range(len(inputs[0])):
        for name in graph.outputs:
            values = np.moveaxis(expected[name][index], 0, -1)
            found = np.frombuffer(data, values.dtype, values.size, at).reshape(values.shape)
            at += values.nbytes
            if values.dtype.kind == "f":
                np.testing.assert_allclose(found, values, atol=1e-5 * np.abs(values).max(), rtol=0)
            else:
                np.testing.assert_array_equal(found, values)
    assert at == len(data)
