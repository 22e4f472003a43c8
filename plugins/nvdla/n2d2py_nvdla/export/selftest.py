"""Small loadables with a recorded input and the outputs that the functional model gives, to bring up a board with.

All of them read one grey image of 16x16 pixels, which NVIDIA's stock runtime takes; each adds an engine to those before.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.contracts.functions import Clip, Logistic
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.errors import N2D2Error
from n2d2py.operators.concat import Concat
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.pointwise import Activation
from n2d2py.operators.pool import Pool
from n2d2py.operators.resize import Resize
from n2d2py.operators.softmax import Softmax
from n2d2py.passes import keep_real
from n2d2py.quant.calibration import quantize
from n2d2py.quant.quantize import float_graph
from n2d2py.quant.statistics import collect
from n2d2py.quant.types.float_fallback import insert_conversions
from n2d2py_nvdla import Program, write_loadable
from n2d2py_nvdla.check import check_program
from n2d2py_nvdla.config import HardwareConfig, config
from n2d2py_nvdla.export.emit import emit
from n2d2py_nvdla.export.lower import lower
from n2d2py_nvdla.export.small_networks import RELU, SIZE, SelfTest, SmallNetwork, self_test, self_tests
from n2d2py_nvdla.firmware import FP16, INT8
from n2d2py_nvdla.model import run_program
from n2d2py_nvdla.tensors import dimg, raw_text, tensor_array, tensor_bytes

FIRMWARES = {"0.12": "v12", "0.11": "v10"}
"""Structures by firmware."""
PICTURE = "input.pgm"


@self_test("01_copy", "PDP alone: memory, one operation, its interrupt; the output is the input")
def _copy(net: SmallNetwork) -> str:
    return net.add("pool", Pool("Max", (1, 1)), "input")


@self_test("02_relu", "SDP alone, from memory to memory")
def _relu(net: SmallNetwork) -> str:
    return net.add("relu", Activation(Clip(0.0, 0.5 * net.white)), "input")


@self_test("03_pool", "PDP with windows and padding")
def _pool(net: SmallNetwork) -> str:
    return net.add("pool", Pool("Max", (3, 3), (2, 2), (1, 1, 1, 1)), "input")


@self_test("04_conv", "CONV and SDP on the fly, pixel input, weights, biases")
def _conv(net: SmallNetwork) -> str:
    return net.conv("conv", "input", 8)


@self_test("05_convs", "two convolutions: what the first leaves in the convolution buffer")
def _convs(net: SmallNetwork) -> str:
    return net.conv("conv2", net.conv("conv1", "input", 8), 12)


@self_test("07_sum", "a second operand of the SDP from memory")
def _sum(net: SmallNetwork) -> str:
    a = net.conv("conv1", "input", 8)
    return net.add("sum", ElemWise("Sum"), net.conv("conv2", a, 8), a, activation=RELU)


@self_test("08_concat", "results side by side in one cube")
def _concat(net: SmallNetwork) -> str:
    parts = [net.conv("conv1", "input", 32), net.conv("conv2", "input", 12)]
    return net.conv("conv3", net.add("concat", Concat(), *parts), 8, kernel=1, pad=0)


@self_test("09_resize", "strides of cubes that are not packed")
def _resize(net: SmallNetwork) -> str:
    return net.add("resize", Resize((2 * SIZE, 2 * SIZE)), net.conv("conv", "input", 12))


@self_test("11_sigmoid", "the SDP's look-up table", "has_y")
def _sigmoid(net: SmallNetwork) -> str:
    return net.add("sigmoid", Activation(Logistic()), net.conv("conv", "input", 8))


@self_test("12_deconv", "a transposed convolution; RUBIK where there is one")
def _deconv(net: SmallNetwork) -> str:
    return net.deconv("deconv", net.conv("conv", "input", 8), 8)


@self_test("06_network", "CONV, SDP and PDP interleaved, fully connected layers: dependencies")
def _network(net: SmallNetwork) -> str:
    a = net.add("pool1", Pool("Max", (2, 2), (2, 2)), net.conv("conv1", "input", 6))
    b = net.add("pool2", Pool("Max", (2, 2), (2, 2)), net.conv("conv2", a, 16))
    return net.fc("fc2", net.fc("fc1", b, 40), 10)


@self_test("13_softmax", "a second task, on the CPU of the runtime (EMU)")
def _softmax(net: SmallNetwork) -> str:
    return net.add("softmax", Softmax(), _network(net))


def _picture() -> np.ndarray:
    """Return the pixels from 0 to 255: a ramp, and noise on it."""
    noise = np.random.default_rng(7).integers(0, 96, (SIZE, SIZE))
    pixels = np.linspace(0, 255, SIZE * SIZE).reshape(SIZE, SIZE) + noise - 48
    pixels[0, 0], pixels[-1, -1] = 0, 255
    return np.clip(np.rint(pixels), 0, 255).astype(np.uint8)


def _stored(pixels: np.ndarray, precision: int) -> np.ndarray:
    """Return the values that NVIDIA's runtime computes from an image, without mean and divisor."""
    return np.floor(pixels * (127 / 255) + 0.5) if precision == INT8 else pixels.astype(np.float32)


def _compiled(case: SelfTest, one: HardwareConfig, precision: int, samples: np.ndarray, abi: str) -> tuple[bytes, Program]:
    net = SmallNetwork(case.name, 255.0 if precision == FP16 else 1.0)
    net.graph.outputs = [case.build(net)]
    if precision == FP16:
        typed = float_graph(net.graph, -32)
    else:
        options = QuantOptions(8, unsigned=False, equalize=False, correct_bias=False, adaptive_rounding=False)
        keep_real(net.graph, rows=False)
        graph = insert_conversions(net.graph)
        typed, _ = quantize(graph, collect(graph, [samples], case.name).histograms, options, {"input": (-1.0, 1.0)})
    lowered, problems = lower(typed, one, precision)
    if problems:
        raise problems[0]
    loadable = emit(lowered, abi).loadable
    program = Program.of(loadable, f"{case.name}.nvdla", abi)
    check_program(program, one)
    return write_loadable(loadable), program


def write_self_test(folder: Path, configuration: str, firmware: str = "0.12", precision: int = INT8) -> list[str]:
    """Write loadables, their input, the outputs that the model gives, a script and a README; the names of the cases.

    Raises:
        N2D2Error: E711 for a folder that holds something, E705 for a precision that the configuration lacks, E907 for one that
            does not exist.
    """
    one = config(configuration)
    if precision not in one.precisions:
        raise N2D2Error("E705", f"{one.name} computes in int8 only", remedy="use --precision int8, or nv_full")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise N2D2Error("E711", "there is something already", where=str(folder), remedy="name a new folder")
    pixels = _picture()
    values = _stored(pixels, precision)
    samples = (values if precision == FP16 else values / 127)[None, None].astype(np.float32)
    cases = [case for case in self_tests() if not case.needs or getattr(one, case.needs)]
    if precision == INT8 and FIRMWARES[firmware] == "v10":  # its CPU operations have fp16 only
        cases = [case for case in cases if case.build is not _softmax]
    files: dict[str, bytes] = {PICTURE: b"P5\n%d %d\n255\n" % (SIZE, SIZE) + pixels.tobytes()}
    rows = []
    for case in cases:
        data, program = _compiled(case, one, precision, samples, FIRMWARES[firmware])
        source, target = program.inputs[0][1], program.outputs[0][1]
        assert source is not None and target is not None
        given = tensor_bytes(source, values[None])
        found = run_program(program, [given], one, exact=precision == FP16).outputs[0]
        result = tensor_array(target, found)
        files[f"{case.name}.nvdla"] = data
        files[f"{case.name}.input.bin"] = given.tobytes()
        files[f"{case.name}.expected.bin"] = found.tobytes()
        files[f"{case.name}.expected.dimg"] = dimg(target, found, program.abi.name)
        files[f"{case.name}.expected.txt"] = raw_text(result).encode("ascii")
        operations = sum(1 for _ in program.dla_operations())
        size = "x".join(str(n) for n in result.shape)
        digest = hashlib.md5(files[f"{case.name}.expected.txt"]).hexdigest()
        rows.append(f"| {case.name} | {case.shows} | {operations} | {size} | {digest} |")
    kind = "int8" if precision == INT8 else "fp16"
    files["README.md"] = _readme(one, firmware, kind, rows).encode("utf-8")
    files["run.sh"] = _SCRIPT.encode("ascii")
    _write(folder, files)
    return [case.name for case in cases]


def _write(folder: Path, files: dict[str, bytes]) -> None:
    """All files, or none: they are written next to the folder, which is then renamed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        made = Path(name) / "made"
        made.mkdir()
        for file, data in files.items():
            (made / file).write_bytes(data)
        (made / "run.sh").chmod(0o755)
        if folder.exists():
            folder.rmdir()
        made.rename(folder)


_SCRIPT = """#!/bin/sh
# Runs every loadable of this folder with nvdla_runtime, and compares what it writes with what is expected.
# sh run.sh [path of nvdla_runtime]; ends with 1 when a value differs.
runtime=${1:-nvdla_runtime}
cd "$(dirname "$0")" || exit 2
wrong=0
for loadable in [0-9]*.nvdla; do
    name=${loadable%.nvdla}
    rm -f output.dimg
    echo "$name ..."
    "$runtime" --loadable "$loadable" --image input.pgm > "$name.log" 2>&1
    tail -c +37 "$name.expected.dimg" > wanted.tmp
    if [ -f output.dimg ] && tail -c +37 output.dimg | cmp -s - wanted.tmp; then
        echo "$name: as expected"
    else
        echo "$name: DIFFERS, see $name.log and $name.found.dimg"
        cp output.dimg "$name.found.dimg" 2> /dev/null
        wrong=1
    fi
done
rm -f wanted.tmp output.dimg
exit $wrong
"""


def _readme(one: HardwareConfig, firmware: str, kind: str, rows: list[str]) -> str:
    abi = "0.12" if firmware == "0.12" else "0.10 and 0.11"
    return "\n".join(
        [
            f"# Self-test for NVDLA {one.name}, {kind}, firmware {abi}",
            "",
            f"Every loadable reads `{PICTURE}` ({SIZE}x{SIZE} grey pixels). Run them in order: each adds something to those before, so",
            "that the first one that hangs or differs says where to look.",
            "",
            "```",
            "sh run.sh /path/to/nvdla_runtime                                       # on the board: all of them, compared",
            f"nvdla_runtime --loadable 01_copy.nvdla --image {PICTURE}               # one of them; it writes output.dimg",
            f"n2d2py-nvdla run 01_copy.nvdla --image {PICTURE}                        # the same on the functional model",
            "```",
            "",
            "`NAME.input.bin` and `NAME.expected.bin` are input and output as they lie in memory, for a runtime of your own;",
            "`NAME.expected.dimg` is what `nvdla_runtime` writes (its header of 36 bytes names the format by a number that differs",
            "between runtimes; `run.sh` compares what follows). `NAME.expected.txt` has the values by channel, line and column.",
            "",
            "| loadable | shows | operations | output (C x H x W) | MD5 of the values as text |",
            "|---|---|---|---|---|",
            *rows,
            "",
            "The expected values are those of the functional model. It gives the bytes of NVIDIA's runtime, firmware and C-model",
            "on the files that it was compared with; no silicon was among them.",
            "",
        ]
    )


def add_command(commands: Any) -> None:
    """Add `self-test` to the commands of n2d2py-nvdla."""
    parser = commands.add_parser(
        "self-test", help="write small loadables with their input and expected outputs, for a new board"
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="where to; a new folder")
    parser.add_argument("--config", default="nv_full", help="hardware configuration [nv_full]")
    parser.add_argument("--firmware", choices=tuple(FIRMWARES), default="0.12", help="the firmware of the kernel driver [0.12]")
    parser.add_argument("--precision", choices=("int8", "fp16"), default="int8", help="what to compute in [int8]")
    parser.set_defaults(run=_self_test)


def _self_test(arguments: argparse.Namespace) -> None:
    precision = INT8 if arguments.precision == "int8" else FP16
    names = write_self_test(arguments.folder, arguments.config, arguments.firmware, precision)
    log.notice("written: %s (%d loadables; begin with README.md)", arguments.folder, len(names))
