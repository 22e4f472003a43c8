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
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from exports import machine  # noqa: E402
from latency import PEERS, fastest  # noqa: E402

from n2d2py.commands.tune import MOMENT, bench  # noqa: E402

NETWORKS = (("LSTM", 50, 128, 256), ("GRU", 50, 128, 256), ("LSTM", 1, 128, 128), ("LSTM", 20, 40, 64), ("GRU", 20, 40, 64))
"""Cell, steps, inputs, hidden units; 128 and 128 of one step are Silero VAD's."""


def write_network(path: Path, cell: str, steps: int, size: int, hidden: int) -> None:
    """An ONNX file: (steps, 1, size) to the recurrent layer, its last state to 10 outputs."""
    rng = np.random.default_rng(size + hidden)
    rows = hidden * {"LSTM": 4, "GRU": 3}[cell]

    def drawn(name: str, *shape: int) -> TensorProto:
        return numpy_helper.from_array(rng.normal(0, shape[-1] ** -0.5, shape).astype(np.float32), name)

    nodes = [
        helper.make_node(
            cell, ["x", "w", "r", "b"], ["", "h"], hidden_size=hidden, **({"linear_before_reset": 1} if cell == "GRU" else {})
        ),
        helper.make_node("Squeeze", ["h", "axis"], ["last"]),
        helper.make_node("Gemm", ["last", "fc", "bias"], ["y"], transB=1),
    ]
    constants = [drawn("w", 1, rows, size), drawn("r", 1, rows, hidden), drawn("b", 1, 2 * rows), drawn("fc", 10, hidden)]
    constants += [drawn("bias", 10), numpy_helper.from_array(np.array([0]), "axis")]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [steps, 1, size]), ("y", [1, 10]))
    ]
    graph = helper.make_graph(nodes, cell, ends[:1], ends[1:], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def exported(model: Path, kind: str, *words: str) -> tuple[Path, str]:
    """The folder of an export of a network, and what the command printed."""
    steps, _, size = (int(one.dim_value) for one in onnx.load(model).graph.input[0].type.tensor_type.shape.dim)
    data = model.with_suffix(".npz")
    np.savez(
        data, images=np.random.default_rng(1).normal(0, 1, (40, steps * size)).astype(np.float32), labels=np.zeros(40, int)
    )
    command = [
        sys.executable,
        "-m",
        "n2d2py",
        str(model),
        "-export",
        kind,
        "-nbbits",
        "8",
        "-calib",
        "-1",
        "-calib-data",
        str(data),
    ]
    done = subprocess.run([*command, *words, "-o", str(model.parent / model.stem)], cwd=ROOT, capture_output=True, text=True)
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
    print(f"{machine()}\n\n| cell, steps x inputs to units | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}")
    with tempfile.TemporaryDirectory() as name:
        for cell, steps, size, hidden in NETWORKS:
            model = Path(name) / f"{cell.lower()}_{steps}_{size}_{hidden}.onnx"
            write_network(model, cell, steps, size, hidden)
            title = f"{cell}, {steps} x {size} to {hidden}"
            if arguments.mcu:
                _, text = exported(model, "CPP_MCU", "-test")
                count = int(re.search(r"instructions: ([0-9,]+)", text)[1].replace(",", ""))
                macs = steps * {"LSTM": 4, "GRU": 3}[cell] * hidden * (size + hidden)
                print(f"| {title} | {count:,} | {count / macs:.2f} |", flush=True)
                continue
            folder, _ = exported(model, "CPP")
            subprocess.run(["make", "-j2"], cwd=folder, check=True, capture_output=True)
            runs = others(model, cell)
            repeats = max(10, int(MOMENT / bench(folder, 1, 20)))
            rounds = [
                (bench(folder, 1, repeats), {one: fastest(run) for one, run in runs.items()}) for _ in range(arguments.rounds)
            ]
            ratios = [
                f"{statistics.median(found[one] / own for own, found in rounds):.2f}" if one in runs else "-" for one in names
            ]
            own = statistics.median(own for own, _ in rounds) * 1e6
            print(f"| {title} | {own:.1f} | {' | '.join(ratios)} |", flush=True)


if __name__ == "__main__":
    main()
