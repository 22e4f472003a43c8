"""What somebody who comes from N2D2 types: the commands and sections of its public documentation, and what each gives here.

The commands and the blocks of movers.txt are facts of N2D2's documentation, with networks and data of this file instead of its own.
"""

import importlib.util
import re
import wave
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.onnx_models import ModelBuilder

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


# ---- blocks of INI files
def blocks() -> list:
    """(command, sections, code) of each block of movers.txt."""
    text = (Path(__file__).parent / "movers.txt").read_text()
    found = []
    for block in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        head, _, body = block.partition("\n")
        name, command, code = re.fullmatch(r"(.*?): (.*?)(?: -> (.*))?", head).groups()
        marks = [TRAINS] if "-learn" in command else []
        found.append(pytest.param(command, body, code, id=name, marks=marks))
    return found


def sections(text: str) -> dict[str, dict[str, str]]:
    """Line by key, by the header of the section; "" before the first one."""
    found: dict[str, dict[str, str]] = {"": {}}
    name = ""
    for line in text.replace("\\\n", "\0").splitlines():
        if re.match(r"\[[^\]]+\]$", line):
            name = line
            found.setdefault(name, {})
        elif line:
            found[name][line.partition("=")[0]] = line
    return found


def laid_over(base: str, block: str) -> str:
    """The sections of a network with those of a block, whose keys go first."""
    found = sections(base)
    for name, keys in sections(block).items():
        found[name] = found.get(name, {}) | keys
    lines = [line for name, keys in found.items() if "-" not in keys for line in (name, *keys.values())]
    return "\n".join([*lines, ""]).replace("\0", "\\\n")


def small_onnx(path: Path) -> None:
    build = ModelBuilder(opset=13)
    features = build.add("Relu", build.add("Conv", "x", build.rng.normal(size=(6, 1, 5, 5)), name="Conv:0"), name="Relu:0")
    pool = build.add("GlobalAveragePool", features, name="AvgPool:0")
    logits = build.add("Conv", pool, build.rng.normal(size=(10, 6, 1, 1)), name="Logits:0")
    build.save(path, {"x": ["N", 1, 28, 28]}, build.add("Softmax", logits, name="Softmax:0", axis=1))


def more_data(root: Path) -> None:
    """Folders of images and sounds, a table: four to eight stimuli of each label."""
    rng = np.random.default_rng(0)
    for folder, channels in (("GST", 1), ("GST_Test", 1), ("channels", 2)):
        for label in ("airplanes", "car_side", "Faces"):
            (root / folder / label).mkdir(parents=True)
            for at in range(4 * channels):
                name = f"{at // channels}_{at % channels}" if channels > 1 else str(at)
                Image.fromarray(rng.integers(0, 256, (20, 20), np.uint8)).save(root / folder / label / f"{name}.png")
    for label in ("yes", "no", "_background_noise_"):
        (root / "speech" / label).mkdir(parents=True)
        for at in range(5):
            with wave.open(str(root / "speech" / label / f"{at}.wav"), "wb") as file:
                file.setparams((1, 2, 16000, 0, "NONE", ""))
                file.writeframes(rng.integers(-9000, 9000, 160, np.int16).tobytes())
    rows = [f"{a:.4f},{b:.4f},{c:.4f},{'un' * (k % 2)}stable" for k, (a, b, c) in enumerate(rng.normal(size=(20, 3)))]
    (root / "grid.csv").write_text("\n".join(["a,b,c,stabf", *rows, ""]))


@pytest.mark.parametrize("command, block, code", blocks())
def test_blocks_of_the_documentation(command, block, code, network, capsys):
    """A block runs, or is refused by its code; never a defect."""
    folder = network.parent
    more_data(folder / "data")
    small_onnx(folder / "net.onnx")
    (folder / "mapping.dat").write_text("# even\n0 0\n2 1\ndefault 2\n")
    (folder / "wide.ini.tpl").write_text(
        "{% block ARRAY %}\n[{{SECTION_NAME}}_array{{#}}]\nInput={{INPUT}}\nType=Fc\nNbOutputs={{.P1}}\n{% endblock %}\n"
    )
    words = command.split()
    network.write_text(block if words[0] == "alone" else laid_over(LENET, block))
    words = [*(words[1:] if words[0] == "alone" else words), "-w", "/dev/null", "-o", str(folder / "out")]
    status = cli.main([str(network), *words])
    text = capsys.readouterr().err
    assert "E099" not in text and "Traceback" not in text
    assert (status == 0) == (code is None or code.startswith("W")), text
    assert code is None or any(f"N2D2-{one}" in text for one in code.split("|")), text
