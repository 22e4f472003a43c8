"""Measures one inference on a GPU beside ncnn's Vulkan and the CPU export, as a Markdown table.

    python benchmarks/gpu.py [-device NAME] [-n INFERENCES] [-rounds N] NET.onnx[=CALIB] ...

CALIB is what `-calib-data` takes; without it the ranges are those of random inputs. Of each network three projects are written: Vulkan and
CPP with 8 bits, and NCNN in float32, which ncnn runs with Vulkan and its own options. The programs take turns; of each round the median
time of an inference counts, of all rounds the smallest one. A network that ncnn cannot express has no such column. `-device` is a part
of the device's name, for both.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]


def exported(network: str, calibration: str, target: str, bits: int, folder: Path) -> Path | None:
    """The project of a network; None where the target cannot express it."""
    words = [
        sys.executable,
        "-m",
        "n2d2py",
        network,
        "-export",
        target,
        "-nbbits",
        str(bits),
        "-db-export",
        "1",
        "-o",
        str(folder),
    ]
    words += ["-calib", "20", *(["-calib-data", calibration] if calibration else [])]
    done = subprocess.run(
        [*words, "-quality", "fast"], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    made = sorted(folder.glob(f"export_{target}_*"))
    if done.returncode or not made:
        print(f"{Path(network).name}: -export {target}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    if target != "NCNN":
        subprocess.run(["make", "-s", "-j4"], cwd=made[0], check=True, stdout=subprocess.DEVNULL)
    return made[0]


def bench(project: Path, count: int, **environment: str) -> float:
    """Microseconds of one inference of a compiled project, the median of `count`."""
    words = [project / "bin" / "run_export", "-bench", str(count)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ, **environment})
    return float(json.loads(done.stdout.splitlines()[-1])["median_us"])


def ncnn_bench(project: Path, count: int, device: str) -> float:
    """Microseconds of one inference in ncnn with Vulkan, the median of `count`."""
    ncnn = import_module("ncnn")

    names = [ncnn.get_gpu_info(index).device_name() for index in range(ncnn.get_gpu_count())]
    net = ncnn.Net()
    net.opt.use_vulkan_compute = True
    net.set_vulkan_device(next((index for index, name in enumerate(names) if device in name), 0))
    net.load_param(str(next(project.glob("*.param"))))
    net.load_model(str(next(path for path in project.glob("*.bin") if ".param" not in path.name)))
    blob = ncnn.Mat(np.zeros(_input_shape(project), np.float32))
    times = []
    for _ in range(count + 1):
        start = time.perf_counter()
        extractor = net.create_extractor()
        extractor.input(net.input_names()[0], blob)
        for name in net.output_names():
            extractor.extract(name)
        times.append(1e6 * (time.perf_counter() - start))
    return float(np.median(times[1:]))


def _input_shape(project: Path) -> list[int]:
    """(C, H, W) of the input, by the first layer of the parameter file."""
    line = next(text for text in next(project.glob("*.param")).read_text("utf-8").splitlines() if text.startswith("Input"))
    sizes = dict(word.split("=") for word in line.split() if "=" in word)
    return [int(sizes[key]) for key in ("2", "1", "0") if int(sizes.get(key, 0))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-device", default="")
    parser.add_argument("-n", type=int, default=50)
    parser.add_argument("-rounds", type=int, default=3)
    parser.add_argument("networks", nargs="+")
    chosen = parser.parse_args()
    environment = {"N2D2_VULKAN_DEVICE": chosen.device} if chosen.device else {}
    print(
        "| network | Vulkan, us | ncnn Vulkan float32, us | CPP, one thread, us | ncnn / Vulkan |\n|---|---|---|---|---|",
        flush=True,
    )
    for text in chosen.networks:
        network, _, calibration = text.partition("=")
        with tempfile.TemporaryDirectory() as place:
            made = {
                target: exported(network, calibration, target, bits, Path(place) / target)
                for target, bits in (("Vulkan", 8), ("CPP", 8), ("NCNN", -32))
            }
            ways = {
                "Vulkan": lambda project: bench(project, chosen.n, **environment),
                "NCNN": lambda project: ncnn_bench(project, chosen.n, chosen.device),
                "CPP": lambda project: bench(project, chosen.n, OMP_NUM_THREADS="1"),
            }
            best: dict[str, float] = {}
            for _ in range(chosen.rounds):
                for target, way in ways.items():
                    if (project := made[target]) is not None:
                        best[target] = min(best.get(target, float("inf")), way(project))
        cells = [f"{best[target]:.0f}" if target in best else "-" for target in ways]
        ratio = f"{best['NCNN'] / best['Vulkan']:.2f}" if {"NCNN", "Vulkan"} <= set(best) else "-"
        print(f"| {Path(network).stem} | {' | '.join(cells)} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
