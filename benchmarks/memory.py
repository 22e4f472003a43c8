"""Static memory of known networks under every strategy, each plan proved, as Markdown tables.

    python benchmarks/memory.py [-quick]

The networks are the int8 graphs of `tests/memory/networks.py`. `-quick` leaves out the row streaming, whose
planning takes most of the time. Times are seconds of planning on the machine named in the first line.
"""
from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "memory"), str(ROOT / "benchmarks")]

import networks  # noqa: E402
from exports import machine  # noqa: E402
from n2d2py.memory import MemoryProblem, Settings, StreamPlanner, check_plan, plan_memory  # noqa: E402

NETWORKS = {
    "resnet8 32": networks.resnet8,
    "vww MobileNetV1 0.25 96": networks.vww,
    "kws DS-CNN 49x10": networks.ds_cnn,
    "AD autoencoder": networks.autoencoder,
    "MobileNetV1 0.25 128": lambda: networks.mobilenet_v1(0.25, 128),
    "MobileNetV1 0.25 224": lambda: networks.mobilenet_v1(0.25, 224),
    "MobileNetV1 1.0 224": lambda: networks.mobilenet_v1(1.0, 224),
    "MobileNetV2 0.35 224": lambda: networks.mobilenet_v2(0.35, 224),
    "MobileNetV2 1.0 224": lambda: networks.mobilenet_v2(1.0, 224),
    "ResNet-18 224": networks.resnet18,
    "ResNet-50 224": networks.resnet50,
    "SqueezeNet 1.1 224": networks.squeezenet11,
    "GoogLeNet 224": networks.googlenet,
    "DenseNet-121 224": networks.densenet121,
    "U-Net small 128": networks.unet,
}


def columns(quick: bool) -> dict:
    """Title -> function from a problem to a plan."""
    made = {f"`{title or name}`": (lambda p, name=name: plan_memory(p, strategy=name)) for name, title in (
        ("None", ""), ("OptimizeMaxLifetimeMinSizeFirst", "...MinSizeFirst"),
        ("OptimizeMaxLifetimeMaxSizeFirst", "...MaxSizeFirst"), ("OptimizeMaxHoleMaxLifetimeFirst", "...MaxHole..."),
        ("OptimizeAuto", ""), ("OptimizeOverlap", ""))}
    if not quick:
        made["`OptimizeStream`"] = lambda p: StreamPlanner().plan(p, Settings())
        made["the same, `StreamInput=1`"] = lambda p: StreamPlanner(True).plan(p, Settings())
    return made


def cell(problem: MemoryProblem, make) -> str:
    """Arena and planning time of one plan.

    Raises:
        SystemExit: when the checker objects to the plan.
    """
    start = time.perf_counter()
    plan = make(problem)
    seconds = time.perf_counter() - start
    faults = check_plan(problem, plan)
    if faults:
        raise SystemExit(f"not proved: {faults[0]}")
    return f"{plan.arena_bytes:,} ({seconds:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-quick", action="store_true")
    chosen = columns(parser.parse_args().quick)
    print(f"Machine: {machine()}. Bytes (seconds of planning); every plan is proved.\n")
    print("| network | tensors | " + " | ".join(chosen) + " |\n|---" + "|---:" * (len(chosen) + 1) + "|")
    for name, network in NETWORKS.items():
        problem = network()
        total = sum(t.bytes for t in problem.tensors.values())
        cells = [cell(problem, make) for make in chosen.values()]
        print(f"| {name} | {total:,} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
