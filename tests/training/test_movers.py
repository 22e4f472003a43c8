"""What somebody who comes from N2D2 types: the commands and sections of its public documentation, and what each gives here.

The commands are facts of N2D2's documentation, with networks and data of this file in place of its own.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from n2d2py import cli

LENET = """DefaultModel=Frame_CUDA
[database]
Type=MNIST_IDX_Database
Validation=0.2
[sp]
SizeX=16
SizeY=16
BatchSize=16
[sp.Transformation_1]
Type=RescaleTransformation
Width=[sp]SizeX
Height=[sp]SizeY
[conv1]
Input=sp
Type=Conv
KernelDims=5 5
NbOutputs=4
ActivationFunction=Rectifier
WeightsFiller=HeFiller
ConfigSection=common.config
[pool1]
Input=conv1
Type=Pool
PoolDims=2 2
NbOutputs=[conv1]NbOutputs
Stride=2
Pooling=Max
Mapping.Size=1
[conv2]
Input=pool1
Type=Conv
KernelDims=3 3
NbOutputs=6
Mapping(pool1)=\\
1 0 1 1 0 1 \\
1 1 0 1 1 0 \\
0 1 1 0 1 1 \\
1 0 1 1 1 1
ActivationFunction=Rectifier
WeightsFiller=HeFiller
ConfigSection=common.config
[fc1]
Input=conv2
Type=Fc
NbOutputs=20
ActivationFunction=Rectifier
WeightsFiller=HeFiller
ConfigSection=common.config
[fc1.drop]
Input=fc1
Type=Dropout
NbOutputs=[fc1]NbOutputs
[fc2]
Input=fc1.drop
Type=Fc
NbOutputs=10
ConfigSection=common.config
[softmax]
Input=fc2
Type=Softmax
NbOutputs=[fc2]NbOutputs
WithLoss=1
[softmax.Target]
[common.config]
NoBias=1
WeightsSolver.LearningRate=0.05
WeightsSolver.Momentum=0.9
WeightsSolver.Decay=0.0005
Solvers.LearningRatePolicy=StepDecay
Solvers.LearningRateStepSize=[sp]_EpochSize
Solvers.LearningRateDecay=0.993
Solvers.Clamping=-1.0:1.0
"""
TRAINS = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")

RUNS = [
    pytest.param("-learn 600000 -log 10000", marks=TRAINS),
    pytest.param("-learn 6000000 -log 100000", marks=TRAINS),
    pytest.param("-learn-epoch 100", marks=TRAINS),
    pytest.param("-learn-epoch 150 -valid-metric Precision", marks=TRAINS),
    pytest.param("-learn-epoch 100 -w /dev/null", marks=TRAINS),
    pytest.param("-find-lr 10000", marks=TRAINS),
    "-test",
    "-seed 1 -w /dev/null -test",
    "-test -qat-sat -w /dev/null",
    "-seed 1 -w /dev/null -export CPP -calib -1 -act-clipping-mode KL-Divergence",
    "-seed 1 -w /dev/null -export CPP -fuse -nbbits 8 -calib -1 -db-export 100",
    "-seed 1 -w /dev/null -export ONNX -nbbits 8 -calib -1 -db-export 100",
]
REFUSED = [
    ("-dev 0 -testAdv Multi", "E005"),
    ("-dev 0 -testAdv Solo", "E005"),
    ("-export DNeuro_V2 -fuse -w /dev/null -db-export 10 -calib -1", "E7|E00"),
    ("-export CPP_OpenCL", "E7|E00"),
    ("-export CPP_TensorRT -nbbits -32 -db-export 0", "E7|E00"),
    ("-nbbits 4 -export CPP -calib -1 -w /dev/null", "E506"),
    ("-test -test-id 3", "E005"),
    ("-cfg", "E005"),
    ("-save-test-set out", "E005"),
]


@pytest.fixture
def network(tmp_path: Path, monkeypatch) -> Path:
    """net.ini, and MNIST's four files with a few random digits where N2D2_DATA says."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "data" / "mnist"
    folder.mkdir(parents=True)
    for name, count in (("train", 100), ("t10k", 40)):
        header = [number.to_bytes(4, "big") for number in (2051, count, 28, 28)]
        images = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        (folder / f"{name}-images-idx3-ubyte").write_bytes(b"".join(header) + images.tobytes())
        labels = (np.arange(count) % 10).astype(np.uint8)
        header = [number.to_bytes(4, "big") for number in (2049, count)]
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(b"".join(header) + labels.tobytes())
    monkeypatch.setenv("N2D2_DATA", str(tmp_path / "data"))
    (tmp_path / "net.ini").write_text(LENET)
    return tmp_path / "net.ini"


def shortened(command: str) -> list[str]:
    """The words of a command, a training of one or two epochs in place of its length."""
    words = command.split()
    for option, length in (("-learn", "160"), ("-learn-epoch", "2"), ("-find-lr", "320")):
        if option in words:
            words[words.index(option) + 1] = length
    return words


@pytest.mark.parametrize("command", RUNS)
def test_commands_that_run(command, network, capsys):
    status = cli.main([str(network), *shortened(command), "-o", str(network.parent / "out")])
    seen = capsys.readouterr()
    assert status == 0 and "E099" not in seen.err, seen.err


@pytest.mark.parametrize("command, codes", REFUSED)
def test_commands_that_are_refused(command, codes, network, capsys):
    """One clear error, not that of a defect, and no file."""
    status = cli.main([str(network), *shortened(command), "-o", str(network.parent / "out")])
    text = capsys.readouterr().err
    assert status in (1, 2) and "E099" not in text and "Traceback" not in text
    assert any(f"N2D2-{code}" in text for code in codes.split("|")), text
    assert not (network.parent / "out").exists()
