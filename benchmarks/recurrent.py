"""Times LSTM and GRU layers in integers against other runtimes, as a Markdown table.

    python benchmarks/recurrent.py [-rounds N] [-mcu]

Networks of one recurrent layer and a fully connected one, with weights drawn by seed, are exported by the command `n2d2py` and built by `make`; the
others, in the same rounds on one thread: ONNX Runtime in float32, what its quantize_dynamic makes of the file (DynamicQuantizeLSTM; it has none
for GRU), and OpenVINO in float32 where it is installed. A time is the fastest of a round, a ratio the median over the rounds of other / export.
-mcu: instructions of one inference of CPP_MCU on a Cortex-M4 (QEMU) in place of times.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from common import MOMENT, ROOT, TOOL, bench, build, header, in_turns, machine, ratio, row
from latency import PEERS, fastest
from onnx_net import Net

NETWORKS = (("LSTM", 50, 128, 256), ("GRU", 50, 128, 256), ("LSTM", 1, 128, 128), ("LSTM", 20, 40, 64), ("GRU", 20, 40, 64))
"""Cell, steps, inputs, hidden units; 128 and 128 of one step are Silero VAD's."""


def write_network(path: Path, cell: str, steps: int, size: int, hidden: int) -> None:
    """An ONNX file: (steps, 1, size) to the recurrent layer, its last state to 10 outputs."""
    net, rows = Net(size + hidden), hidden * {"LSTM": 4, "GRU": 3}[cell]
    shapes = (1, rows, size), (1, rows, hidden), (1, 2 * rows), (10, hidden), (10,)
    w, r, b, fc, bias = (net.drawn(shape[-1] ** -0.5, *shape) for shape in shapes)
    how = {"linear_before_reset": 1} if cell == "GRU" else {}
    state = net.add(cell, "x", w, r, b, outputs=["", "h"], hidden_size=hidden, **how)
    net.save(path, [steps, 1, size], net.add("Gemm", net.add("Squeeze", state, net.constant(0)), fc, bias, transB=1))


def exported(model: Path, kind: str, *words: str) -> tuple[Path, str]:
    """The folder of an export of a network, and what the command printed."""
    steps, _, size = (int(one.dim_value) for one in onnx.load(model).graph.input[0].type.tensor_type.shape.dim)
    data = model.with_suffix(".npz")
    np.savez(
        data, images=np.random.default_rng(1).normal(0, 1, (40, steps * size)).astype(np.float32), labels=np.zeros(40, int)
    )
    command = [
        *TOOL,
        str(model),
        *f"-export {kind} -nbbits 8 -calib -1 -calib-data {data} -o {model.parent / model.stem}".split(),
    ]
    done = subprocess.run([*command, *words], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return model.parent / model.stem / f"export_{kind}_int8", done.stdout + done.stderr


def others(model: Path, cell: str) -> dict[str, Callable[[], object]]:
    """An inference of each other runtime."""
    found = {"ONNX Runtime float32": PEERS["onnxruntime"](str(model), 1)}
    if cell == "LSTM":
        from onnxruntime.quantization import quantize_dynamic

        dynamic = model.with_name(f"{model.stem}_dynamic.onnx")
        quantize_dynamic(model, dynamic)
        found["ONNX Runtime dynamic int8"] = PEERS["onnxruntime"](str(dynamic), 1)
    with suppress(ImportError):
        found["OpenVINO float32"] = PEERS["openvino"](str(model), 1)
    return found


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-rounds", type=int, default=9)
    parser.add_argument("-mcu", action="store_true")
    arguments = parser.parse_args()
    names = ["ONNX Runtime float32", "ONNX Runtime dynamic int8", "OpenVINO float32"]
    columns = ["instructions of a Cortex-M4", "per MAC"] if arguments.mcu else ["us", *names]
    print(f"{machine()}\n")
    header("cell, steps x inputs to units", *columns)
    with tempfile.TemporaryDirectory() as name:
        for cell, steps, size, hidden in NETWORKS:
            model = Path(name) / f"{cell.lower()}_{steps}_{size}_{hidden}.onnx"
            write_network(model, cell, steps, size, hidden)
            title = f"{cell}, {steps} x {size} to {hidden}"
            if arguments.mcu:
                _, text = exported(model, "CPP_MCU", "-test")
                count = int(re.search(r"instructions: ([0-9,]+)", text)[1].replace(",", ""))
                macs = steps * {"LSTM": 4, "GRU": 3}[cell] * hidden * (size + hidden)
                row(title, f"{count:,}", f"{count / macs:.2f}")
                continue
            folder, _ = exported(model, "CPP")
            build(folder)
            runs = others(model, cell)
            repeats = max(10, int(MOMENT / bench(folder, 1, 20)))
            works = {"": partial(bench, folder, 1, repeats), **{one: partial(fastest, run) for one, run in runs.items()}}
            times = in_turns(works, arguments.rounds)
            ratios = [f"{ratio(times[one], times['']):.2f}" if one in runs else "-" for one in names]
            row(title, f"{1e6 * statistics.median(times['']):.1f}", *ratios)


if __name__ == "__main__":
    main()
