"""Networks damaged at random, from fixed seeds: they run, or stop with one clear line, and never leave a trace."""

from __future__ import annotations

import random

import onnx
import pytest
from support.error_cases import EXPORT, messages, snapshot
from support.error_files import NETWORK, classifier

from n2d2py.cli import main

TOKENS = (
    "0",
    "-1",
    "1e309",
    "nan",
    "1000000000",
    "99999999999999999999",
    "3.5",
    "sp",
    "conv",
    "${X}",
    "$(1/0)",
    "[sp]SizeX",
    "[sp]Nothing",
    '"',
    "\\",
    "[",
    "]",
    "=",
    ";",
    "\x00",
    "é",
    "1 1 1",
    "Input=sp",
    "Type=Conv",
    "Type=Pool",
    "Type=ONNX",
    "Type=Softmax",
    "KernelDims=3 3",
    "Mapping.NbGroups=2",
    "[sp]",
    "[x] conv",
    "{{A}}",
)
NODES = (
    "Conv",
    "Relu",
    "Gemm",
    "Reshape",
    "Add",
    "MaxPool",
    "Transpose",
    "BatchNormalization",
    "Concat",
    "Clip",
    "Softmax",
    "Slice",
    "Pad",
    "MatMul",
    "Squeeze",
    "Shape",
    "Gather",
    "Resize",
    "Cast",
    "Constant",
)


def damaged_ini(choice: random.Random) -> str:
    lines = NETWORK.split("\n")
    for _ in range(choice.randint(1, 4)):
        at, kind = choice.randrange(len(lines)), choice.randrange(6)
        name = lines[at].split("=")[0]
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, choice.choice(TOKENS))
        elif kind == 2:
            lines[at] = lines[at][: choice.randint(0, len(lines[at]))]
        elif kind == 3:
            lines[at] = f"{name}={choice.choice(TOKENS)}"
        elif kind == 4:
            lines.insert(at, choice.choice(lines))
        else:
            lines[at] = f"{name}={choice.choice([line.split('=')[-1] for line in lines])}"
    return "\n".join(lines)


def damaged_onnx(choice: random.Random, data: bytes) -> bytes:
    kind = choice.randrange(4)
    if kind == 0:
        return data[: choice.randrange(len(data))]
    if kind == 1:
        changed = bytearray(data)
        changed[choice.randrange(len(data))] = choice.randrange(256)
        return bytes(changed)
    model = onnx.load_from_string(data)
    node = choice.choice(list(model.graph.node))
    if kind == 2:
        node.op_type = choice.choice(NODES)
    tensor = choice.choice(list(model.graph.initializer))
    tensor.dims[choice.randrange(len(tensor.dims))] = choice.choice([0, 1, 2, -1, 1 << 33])
    dimension = choice.choice(list(model.graph.input[0].type.tensor_type.shape.dim))
    if kind == 3:
        dimension.dim_value = choice.choice([0, -1, 3, 100000, 1 << 40])
    return model.SerializeToString()


def check(words: list[str], folder, capsys) -> None:
    before = snapshot(folder)
    status = main(words)
    printed = capsys.readouterr().err
    assert status in (0, 1, 2), printed
    assert "Traceback" not in printed and "E099" not in printed, printed
    assert bool(messages(printed, "error")) == bool(status)
    if status:
        assert snapshot(folder) == before
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(40))
def test_damaged_ini(seed, workspace, capsys):
    (workspace / "net.ini").write_text(damaged_ini(random.Random(seed)))
    check(["net.ini", *EXPORT.split(), "-w", "/dev/null"], workspace, capsys)


@pytest.mark.parametrize("seed", range(40))
def test_damaged_onnx(seed, workspace, capsys):
    classifier(workspace / "good.onnx")
    name = ("net.onnx", "good.onnx")[seed % 2]
    (workspace / "bad.onnx").write_bytes(damaged_onnx(random.Random(seed), (workspace / name).read_bytes()))
    check(["bad.onnx", "-describe"], workspace, capsys)
