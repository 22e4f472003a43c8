"""Each layer that learns: the module of training against the floating-point engine, before and after a training."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from n2d2py import cli
from n2d2py.reference.engine import FloatEngine
from n2d2py.stages.load import load_stage
from n2d2py.stages.options import LoadOptions

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")

HEAD = """[database]
Type=Numpy_Database
DataPath=data.npz
Learn=1
EquivLabelPartitioning=0
[sp]
SizeX=7
SizeY=6
NbChannels=4
BatchSize=8
"""
TAIL = "[fc]\nInput=layer\nType=Fc\nNbOutputs=3\n[soft]\nInput=fc\nType=Softmax\nNbOutputs=3\nWithLoss=1\n[soft.Target]\n"
MATRIX = "Mapping(sp)=\\\n1 0 1 1 0 1 \\\n0 1 1 0 0 1 \\\n0 0 1 0 1 1 \\\n1 0 0 0 0 1\n"
LAYERS = {
    "mapped convolution": f"Type=Conv\nNbOutputs=6\nKernelDims=3 2\n{MATRIX}",
    "mapped convolution, LSQ": f"Type=Conv\nNbOutputs=6\nKernelDims=3 3\nQWeight=LSQ\nQWeight.Range=15\n{MATRIX}",
    "mapped convolution, SAT": f"Type=Conv\nNbOutputs=6\nKernelDims=3 3\nQWeight=SAT\nQWeight.Range=7\nQWeight.ApplyScaling=1\n{MATRIX}",
    "transposed": "Type=Deconv\nNbOutputs=5\nKernelDims=3 2\nStride=2\nPadding=1\n",
    "transposed, grouped": "Type=Deconv\nNbOutputs=6\nKernelDims=3 3\nStrideX=2\nDilation=2\nMapping.NbGroups=2\nNoBias=1\n",
    "transposed, depthwise": "Type=Deconv\nNbOutputs=4\nKernelSize=2\nMapping.ChannelsPerGroup=1\n",
    "transposed, mapped": f"Type=Deconv\nNbOutputs=6\nKernelDims=3 3\nStride=2\n{MATRIX}",
    "normalized outputs": "Type=Fc\nNbOutputs=5\nConfigSection=norm\n[norm]\nNormalize=1\n",
    "normalized input": "Type=Normalize\nNbOutputs=4\nNorm=L2\n",
    "normalized input, L1": "Type=Normalize\nNbOutputs=4\nNorm=L1\n",
    "activation": "Type=Activation\nNbOutputs=4\nActivation=Tanh\n",
}


def outputs(path: Path, weights: Path | None, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the module in evaluation and the engine give."""
    import torch

    from n2d2py.training.module import build_module

    given = "/dev/null" if weights is None else str(weights)
    network = load_stage(path, LoadOptions(weights=given, training="now"), path.parent)
    assert network.weights is not None and network.weights.recipes is not None
    module = build_module(network.graph, network.weights.recipes, network.weights).eval()
    with torch.no_grad():
        found = module(torch.from_numpy(x), ["fc"])["fc"].numpy()
    plain = load_stage(path, LoadOptions(weights=given), path.parent)
    return found, FloatEngine(plain.graph, taps=["fc"]).run(x)["fc"]


@pytest.mark.parametrize("layer", LAYERS)
def test_the_module_computes_what_the_engine_does(layer, tmp_path):
    rng = np.random.default_rng(1)
    np.savez(tmp_path / "data.npz", x=rng.normal(size=(16, 4, 6, 7)).astype(np.float32), y=np.arange(16) % 3)
    path, x = tmp_path / "net.ini", rng.normal(size=(5, 4, 6, 7)).astype(np.float32)
    path.write_text(f"{HEAD}[layer]\nInput=sp\n{LAYERS[layer]}{TAIL}")
    found, expected = outputs(path, None, x)
    assert np.allclose(found.reshape(expected.shape), expected, atol=1e-4), layer
    assert cli.main([str(path), "-learn-epoch", "2", "-o", str(tmp_path / "out")]) == 0
    found, again = outputs(path, tmp_path / "out" / "weights", x)
    assert np.allclose(found.reshape(again.shape), again, atol=1e-4) and not np.allclose(again, expected), layer


def test_weights_of_connected_inputs_alone_are_stored(tmp_path):
    rng = np.random.default_rng(1)
    np.savez(tmp_path / "data.npz", x=rng.normal(size=(16, 4, 6, 7)).astype(np.float32), y=np.arange(16) % 3)
    (tmp_path / "net.ini").write_text(f"{HEAD}[layer]\nInput=sp\n{LAYERS['mapped convolution']}{TAIL}")
    assert cli.main([str(tmp_path / "net.ini"), "-learn-epoch", "1", "-o", str(tmp_path / "out")]) == 0
    assert len((tmp_path / "out" / "weights" / "layer_weights.syntxt").read_text().split()) == 12 * 3 * 2
