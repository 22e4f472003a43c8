"""Runs the command line as a user would and compares what it wrote with the Python integers."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import n2d2py
from n2d2py.cli import main
from n2d2py.exports.cpp.library import Export
from n2d2py.runtime import Network
from support.programs import needs, run_command

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "models"
HERE = ROOT / "tests" / "e2e"
WEIGHTS = {"LeNet": MODELS / "LeNet.npz"}
NETWORKS = {"LeNet": MODELS / "LeNet.ini", "MobileNet": MODELS / "MobileNet.ini", "branches": HERE / "branches.ini"}

needs_compiler = needs("g++", "make")


def command(network: str, out: Path, *options: str) -> list[str]:
    """The words after `n2d2py` that export a network of NETWORKS, without further output."""
    weights = str(WEIGHTS.get(network, "/dev/null"))
    return [str(NETWORKS[network]), "-w", weights, *"-seed 1 -export CPP -quiet -o".split(), str(out), *options]


def export(network: str, out: Path, *options: str) -> Path:
    """The folder that the command line wrote for a network of NETWORKS."""
    return run(*command(network, out, *options), out=out)


def run(*words: str, out: Path) -> Path:
    assert main(list(words)) == 0, words
    (folder,) = out.glob("export_CPP_*")
    return folder


def process(words: list[str], cwd: Path, **variables: str) -> subprocess.CompletedProcess:
    """The command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "n2d2py", *words],
        cwd=cwd,
        text=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
    )


def summary(folder: Path) -> dict:
    return json.loads((folder / "statistics" / "summary.json").read_text())


def random_inputs(net: Network, count: int, seed: int = 0) -> list[np.ndarray]:
    """Stored inputs over the whole range of their type; reals in [-1, 1] for a floating-point network."""
    rng = np.random.default_rng(seed)
    result = []
    for info in net.info.inputs:
        shape = (count, *info.shape[1:])
        if info.type.is_float:
            result.append(rng.uniform(-1, 1, shape).astype(info.dtype))
        else:
            result.append(rng.integers(info.type.qmin, info.type.qmax + 1, shape).astype(info.dtype))
    return result


def assert_layers_equal(compiled: dict[str, np.ndarray], simulated: dict[str, np.ndarray]) -> None:
    """All layers equal: integers exactly, reals to 1e-5 of the layer's largest. (Their orders may differ, and a convolution
    that does the sum of the next layer has no result of its own.)
    """
    assert set(compiled) <= set(simulated) and 2 * len(compiled) > len(simulated)
    for name, found in compiled.items():
        expected = simulated[name]
        assert found.dtype == expected.dtype and found.shape == expected.shape, name
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max(), err_msg=name)
        else:
            np.testing.assert_array_equal(found, expected, err_msg=name)


def compiled_at_once(folder: Path, compiler: str = "g++", flags: Sequence[str] = ("-O0", "-march=native")) -> Export:
    """The export compiled as one translation unit, at -O0 in a fifth of the time of its Makefile."""
    sources = sorted((folder / "dnn").rglob("*.cpp"))
    unit, library = folder / "unit.cpp", folder / "unit.so"
    unit.write_text("".join(f'#include "{path.resolve()}"\n' for path in sources))
    warnings = "-std=c++11 -Wall -Wextra -Wconversion -Werror".split()
    rest = "-fPIC -fno-exceptions -fno-rtti -I include -I dnn/include -I kernels -shared -o".split()
    run_command(compiler, *warnings, *flags, *rest, library, unit, cwd=folder)
    details = json.loads((folder / "manifest.json").read_text())["details"]
    return Export(library, details["namespace"], details)


def assert_compiled_is_simulated(folder: Path, count: int = 4, compiled: Export | None = None) -> None:
    """Every layer of an export, compiled unless it is given, equals the simulation on random stimuli."""
    compiled, simulated = compiled or compiled_at_once(folder), n2d2py.load_simulator(folder)
    inputs = random_inputs(simulated, count)
    results = simulated.layers(*inputs)
    assert_layers_equal(compiled.layers(*inputs), results)
    assert any(values.std() > 0 for values in results.values())


def stored_stimuli(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """The exported stimuli (N, C, H, W) and their labels, read from the files themselves."""
    net = n2d2py.load_simulator(folder)
    (info,) = net.info.inputs
    names = (folder / "stimuli.list").read_text().split()
    channels, (height, width) = info.shape[1], (*info.shape[2:], 1, 1)[:2]
    values, labels = [], []
    for name in names:
        data = (folder / name).read_bytes()
        magic, dims, _top, body = data.split(b"\n", 3)
        assert dims.split() == [str(width).encode(), str(height).encode()] and magic in (b"P5", b"P6")
        pixels = np.frombuffer(body, info.dtype, width * height * channels)
        values.append(pixels.reshape(height, width, channels).transpose(2, 0, 1).reshape(info.shape[1:]))
        labels.append(np.frombuffer(body[pixels.nbytes :], "<i4"))
    return np.stack(values), np.stack(labels)


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder by its relative path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def assert_same_tree(one: dict[str, bytes], other: dict[str, bytes], ignore: tuple[str, ...] = ()) -> None:
    """The same files with the same bytes, but for the names in `ignore`."""
    assert set(one) == set(other)
    assert [name for name in one if one[name] != other[name] and name not in ignore] == []
