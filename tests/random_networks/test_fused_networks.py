"""Random networks, imported and rewritten without an export: equal to ONNX Runtime before and after the rewrites."""

import logging
from pathlib import Path

import numpy as np
import pytest
from network_chain import _compare_floats, _compare_models, _written_model, quiet
from network_generator import generate

from n2d2py.errors import N2D2Error
from n2d2py.options import read_command
from n2d2py.pipeline import load_network
from n2d2py.stages.fuse import fuse_stage

COUNT, BATCH = 300, 15


@pytest.fixture(autouse=True)
def _logging():
    """Reading many networks says much."""
    yield
    logging.disable(logging.NOTSET)


def compare(seed: int, folder: Path) -> bool:
    """True if the network is imported and all its results are right; False if it is refused."""
    quiet()
    spec = generate(seed)
    path = folder / f"net{seed}.ini"
    path.write_text(spec.ini())
    models = {layer.name: _written_model(layer, folder) for layer in spec.layers if layer.model}
    command = [str(path), "-seed", str(seed), "-w", "/dev/null", "-export", "CPP", "-calib", "8", *spec.options]
    try:
        network = load_network(*read_command([*command, "-o", str(folder)]))
    except N2D2Error:
        return False
    graph = network.graph
    x = np.random.default_rng(seed).random((2, *graph.shape(graph.inputs[0])[1:]), np.float32)
    result, _ = fuse_stage(network, integer="-32" not in spec.options)
    failure = (
        _compare_floats(graph, graph, x, "imported")
        or _compare_models(graph, spec, models, x)
        or _compare_floats(graph, result.graph, x, "fused")
    )
    assert failure is None, f"{seed}: {failure}"
    return True


@pytest.mark.parametrize("first", range(0, 60, BATCH))
def test_rewritten_networks(first, tmp_path):
    assert sum(compare(seed, tmp_path) for seed in range(first, first + BATCH)) >= BATCH // 2


@pytest.mark.slow
@pytest.mark.parametrize("first", range(60, COUNT, BATCH))
def test_more_rewritten_networks(first, tmp_path):
    assert sum(compare(seed, tmp_path) for seed in range(first, first + BATCH)) >= BATCH // 2
