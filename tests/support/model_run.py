"""Loads, describes and exports INI files as the command line does."""

import re
from pathlib import Path

import numpy as np
import pytest

import n2d2py
from n2d2py import log
from n2d2py.cli import main
from n2d2py.contracts.ini.layers import layer_types
from n2d2py.graph.describe import describe
from n2d2py.options import read_command
from n2d2py.pipeline import load_network
from support.e2e_run import compiled_at_once

MODELS = Path(__file__).resolve().parents[2] / "models"
LENET = (str(MODELS / "LeNet.ini"), "-seed", "1", "-w", str(MODELS / "LeNet.npz"))
"""The words of a command on the shipped LeNet with its weights."""


def with_macros(model: str, macros: dict[str, object]) -> Path:
    """The shipped INI, or a copy of it in the working directory with other values of its global macros."""
    path = MODELS / f"{model}.ini"
    if not macros:
        return path
    text = path.read_text()
    for name, value in macros.items():
        text, count = re.subn(rf"(?m)^\${name}=[^\s;]+", f"${name}={value}", text)
        assert count == 1, (model, name)
    copy = Path(path.name)
    copy.write_text(text)
    return copy


def need_types(model: str, *, chosen: str = "") -> None:
    """Skips when a type of layer that the model (or the choice made in it) uses does not exist."""
    used = {"Autoencoder": {"Deconv"}, "UNet": {chosen or "Resize"}}.get(model, set())
    missing = used - layer_types().keys()
    if missing:
        pytest.skip(f"no layers of type {', '.join(sorted(missing))}")


def description(path: Path) -> dict:
    """What -describe prints, as data."""
    log.setup(quiet=True)
    return describe(load_network(*read_command([str(path), "-describe"])).graph)


def dims(path: Path) -> dict[str, list[int]]:
    """Output dimensions X, Y, C by layer, as -describe gives them."""
    return {layer["name"]: layer["output_dims"] for layer in description(path)["layers"]}


def write(text: str, **files: str) -> Path:
    """net.ini with this text, beside further files (`__` stands for a dot)."""
    for name, content in files.items():
        Path(name.replace("__", ".")).write_text(content)
    path = Path("net.ini")
    path.write_text(text)
    return path


def warnings() -> list[str]:
    return [warning.line() for warning in log.warnings_seen()]


def export(path: Path, out: Path, *options: str) -> Path:
    """The folder of an int8 export with 8 stimuli of calibration."""
    words = [
        str(path),
        *"-seed 1 -w /dev/null -export CPP -nbbits 8 -calib 8 -db-export 2 -quiet -o".split(),
        str(out),
        *options,
    ]
    assert main(words) == 0, warnings()
    (folder,) = out.glob("export_CPP_int8")
    return folder


def assert_bit_exact(folder: Path, count: int = 2) -> None:
    """Every layer of the compiled project gives the integers of the simulation, on random integers."""
    compiled, simulated = compiled_at_once(folder), n2d2py.load_simulator(folder)
    (info,) = simulated.info.inputs
    integers = np.random.default_rng(0).integers(info.type.qmin, info.type.qmax + 1, (count, *info.shape[1:]))
    found = compiled.layers(integers.astype(info.dtype))
    expected = simulated.layers(integers.astype(info.dtype))
    assert found.keys() == expected.keys()
    for name, values in found.items():
        np.testing.assert_array_equal(values, expected[name], err_msg=name)
    spread = [name for name, values in expected.items() if values.std() > 0]
    assert len(spread) == len(expected), f"constant: {sorted(expected.keys() - set(spread))}"
