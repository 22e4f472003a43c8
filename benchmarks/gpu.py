"""Measures one inference on a GPU beside ncnn's Vulkan and the CPU export, as a Markdown table.

    python benchmarks/gpu.py [-device NAME] [-n INFERENCES] [-rounds N] [-cpu] NET[=CALIB[=NCNN]] ...

NET is an ONNX or INI file. CALIB is what `-calib-data` takes; without it the ranges are those of random inputs. Of each network three
projects are written: Vulkan and CPP with 8 bits, and NCNN in float32, which ncnn runs with Vulkan and its own options. NCNN is a folder
with a .param and a .bin file of another converter (pnnx), which takes the place of the last one. The programs take turns; of each round the
median time of an inference counts, of all rounds the smallest one. A network that ncnn cannot express has no such column. `-device` is a
part of the device's name, for both.

`-cpu` measures the processor time of all threads instead, for drivers that run on the CPU of a loaded machine. An inference of a project then
costs what more inferences cost more.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

import numpy as np
from common import ROOT, TOOL, build, header, row

_LONG_US = 2e6
"""Wall time of the inferences whose processor time is measured."""


def exported(network: str, calibration: str, target: str, bits: int, folder: Path) -> Path | None:
    """The project of a network; None where the target cannot express it."""
    words = f"-export {target} -nbbits {bits} -db-export 1 -quality fast -calib 20 -o {folder}".split()
    words += ["-calib-data", calibration] if calibration else []
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*TOOL, network, *words], capture_output=True, text=True, env=environment)
    made = sorted(folder.glob(f"export_{target}_*"))
    if done.returncode or not made:
        print(f"{Path(network).name}: -export {target}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return made[0] if target == "NCNN" else build(made[0])


def bench(project: Path, count: int, on_cpu: bool, **environment: str) -> float:
    """Microseconds of one inference of a compiled project: the median of `count`, or the processor time of each."""
    median, _ = _run(project, count, environment)
    if not on_cpu:
        return median
    many = max(count, int(_LONG_US / median))
    (_, short), (_, long) = (_run(project, each, environment) for each in (1, 1 + many))
    return (long - short) / many


def _run(project: Path, count: int, environment: dict[str, str]) -> tuple[float, float]:
    """The median time of an inference, and the processor time of the program, in microseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [project / "bin" / "run_export", "-bench", str(count)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ, **environment})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return float(json.loads(done.stdout.splitlines()[-1])["median_us"]), 1e6 * spent


def ncnn_bench(project: Path, count: int, on_cpu: bool, device: str) -> float:
    """Microseconds of one inference in ncnn with Vulkan, the median of `count`, or their processor time."""
    ncnn = import_module("ncnn")

    names = [ncnn.get_gpu_info(index).device_name() for index in range(ncnn.get_gpu_count())]
    net = ncnn.Net()
    net.opt.use_vulkan_compute = True
    net.set_vulkan_device(next((index for index, name in enumerate(names) if device in name), 0))
    net.load_param(str(next(project.glob("*.param"))))
    net.load_model(str(next(path for path in project.glob("*.bin") if ".param" not in path.name)))
    blob = ncnn.Mat(np.zeros(_input_shape(project), np.float32))
    times, clock = [], time.process_time if on_cpu else time.perf_counter
    for _ in range(count + 1):
        start = clock()
        extractor = net.create_extractor()
        extractor.input(net.input_names()[0], blob)
        for name in net.output_names():
            extractor.extract(name)
        times.append(1e6 * (clock() - start))
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
    parser.add_argument("-cpu", action="store_true")
    parser.add_argument("networks", nargs="+")
    chosen = parser.parse_args()
    environment = {"N2D2_VULKAN_DEVICE": chosen.device} if chosen.device else {}
    header("network", "Vulkan, us", "ncnn Vulkan float32, us", "CPP, one thread, us", "ncnn / Vulkan")
    for text in chosen.networks:
        network, calibration, converted = (*text.split("="), "", "")[:3]
        with tempfile.TemporaryDirectory() as place:
            made = {
                target: exported(network, calibration, target, bits, Path(place) / target)
                for target, bits in (("Vulkan", 8), ("CPP", 8), *([] if converted else [("NCNN", -32)]))
            }
            made.setdefault("NCNN", Path(converted))
            ways = {
                "Vulkan": lambda project: bench(project, chosen.n, chosen.cpu, **environment),
                "NCNN": lambda project: ncnn_bench(project, chosen.n, chosen.cpu, chosen.device),
                "CPP": lambda project: bench(project, chosen.n, chosen.cpu, OMP_NUM_THREADS="1"),
            }
            best: dict[str, float] = {}
            for _ in range(chosen.rounds):
                for target, way in ways.items():
                    if (project := made[target]) is not None:
                        best[target] = min(best.get(target, float("inf")), way(project))
        cells = [f"{best[target]:.0f}" if target in best else "-" for target in ways]
        ratio = f"{best['NCNN'] / best['Vulkan']:.2f}" if {"NCNN", "Vulkan"} <= set(best) else "-"
        row(Path(network).stem, *cells, ratio)


if __name__ == "__main__":
    main()
