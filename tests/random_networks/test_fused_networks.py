"""Random networks, imported and rewritten without an export: results stay those of ONNX Runtime, and so do the layers.

What each network becomes is kept in a file; whoever changes that on purpose writes it again:

    PYTHONPATH=tests/random_networks python tests/random_networks/test_fused_networks.py
"""

from __future__ import annotations

import json
import logging
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from network_chain import _compare_floats, _compare_models, _written_model, quiet
from network_generator import generate

from n2d2py.errors import N2D2Error
from n2d2py.options import read_command
from n2d2py.pipeline import load_network
from n2d2py.stages.fuse import fuse_stage

KEPT = Path(__file__).resolve().parent / "fused_networks.json"
COUNT, BATCH = 300, 15


@pytest.fixture(autouse=True)
def _logging():
    """Reading many networks says much."""
    yield
    logging.disable(logging.NOTSET)


def fused(seed: int, folder: Path) -> str:
    """The layers after all rewrites, or the code of the refusal; an assertion that results are right."""
    quiet()
    spec = generate(seed)
    path = folder / f"net{seed}.ini"
    path.write_text(spec.ini())
    models = {layer.name: _written_model(layer, folder) for layer in spec.layers if layer.model}
    command = [str(path), "-seed", str(seed), "-w", "/dev/null", "-export", "CPP", "-calib", "8", *spec.options]
    try:
        network = load_network(*read_command([*command, "-o", str(folder)]))
    except N2D2Error as error:
        return error.code
    graph = network.graph
    x = np.random.default_rng(seed).random((2, *graph.shape(graph.inputs[0])[1:]), np.float32)
    result, _ = fuse_stage(network, integer="-32" not in spec.options)
    failure = (
        _compare_floats(graph, graph, x, "imported")
        or _compare_models(graph, spec, models, x)
        or _compare_floats(graph, result.graph, x, "fused")
    )
    assert failure is None, f"{seed}: {failure}"
    return " ".join(f"{node.name}:{node.op.kind}" + ("+" if node.activation else "") for node in result.graph.nodes)


@cache
def kept() -> dict[str, str]:
    return json.loads(KEPT.read_text())


def _check(seeds: range, folder: Path) -> None:
    for seed in seeds:
        assert fused(seed, folder) == kept()[str(seed)], f"{seed}"


@pytest.mark.parametrize("first", range(0, 60, BATCH))
def test_rewritten_networks(first, tmp_path):
    _check(range(first, first + BATCH), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(60, COUNT, BATCH))
def test_more_rewritten_networks(first, tmp_path):
    _check(range(first, first + BATCH), tmp_path)


def main() -> None:
    """Writes what the tests compare with."""
    with tempfile.TemporaryDirectory() as folder:
        found = {str(seed): fused(seed, Path(folder)) for seed in range(COUNT)}
    KEPT.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
