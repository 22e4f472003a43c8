"""Code that the programs share: the command and its exports, ONNX Runtime, tables. It adds n2d2py and tests/support to the path."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from n2d2py.concurrency import cores  # noqa: E402
from n2d2py.exports.cpp.processors import cpu_info  # noqa: E402

DATA = Path(os.environ.get("N2D2_DATA", ROOT.parent / "shared" / "data"))
T = TypeVar("T")
TOOL = (sys.executable, "-m", "n2d2py")
"""The command, of this checkout where it runs in ROOT."""
MOMENT = 0.15
"""Seconds of one turn of a measurement."""


def machine() -> str:
    """Return processor, cores, compiler and Python in one line."""
    compiler = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    processor = cpu_info("model name") or platform.machine()
    return f"{processor}, {cores()} cores, g++ {compiler}, Python {platform.python_version()}"


def export_words(network: Path, folder: Path, options: str) -> list[str]:
    """The arguments that export a network to C++ into `folder`: an INI with the weights beside it, or with drawn ones."""
    words = [str(network), *f"-seed 1 -export CPP -quiet {options}".split(), "-o", str(folder)]
    weights = network.with_suffix(".npz")
    return [*words, "-w", str(weights) if weights.is_file() else "/dev/null"] if network.suffix == ".ini" else words


def run_tool(words: Sequence[str]) -> None:
    """Runs the command of this checkout; raises CalledProcessError where it fails."""
    subprocess.run([*TOOL, *words], cwd=ROOT, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


def build(project: Path, *words: str) -> Path:
    """The project of an export, built by `make` with these targets and variables."""
    subprocess.run(["make", "-s", "-j2", *words], cwd=project, check=True, stdout=subprocess.DEVNULL)
    return project


def session(model: Path | bytes, optimized: bool = False, threads: int = 0, exact: bool = False) -> Any:
    """ONNX Runtime on a model; without optimizations node by node, as the file says.

    Its fused integer kernels saturate sums of byte products on processors without a dot product of bytes, unless they are `exact`
    (session.x64quantprecision=1).
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if threads:
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    source = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def header(*titles: str, texts: int = 1) -> None:
    """Prints the head of a table, whose first columns are `texts`, the others numbers."""
    print("| " + " | ".join(titles) + " |\n" + "|---" * texts + "|---:" * (len(titles) - texts) + "|", flush=True)


def row(*cells: str) -> None:
    """Prints a line of a table."""
    print("| " + " | ".join(cells) + " |", flush=True)


def run_export(project: Path, *words: str, threads: int = 1) -> str:
    """Return the output of the program of a built export."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(["bin/run_export", *words], cwd=project, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def bench(project: Path, threads: int, count: int) -> float:
    """Return the seconds of the fastest of `count` inferences of a built export."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_PROC_BIND": "true"}
    words = ["bin/run_export", "-bench", str(count)]
    done = subprocess.run(words, cwd=project, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["min_us"] / 1e6


def input_shapes(model: Path) -> dict[str, list[int]]:
    """The shape of each input of an ONNX model, 1 for what the file leaves open."""
    import onnx

    graph = onnx.load(model, load_external_data=False).graph
    constants = {tensor.name for tensor in graph.initializer}
    return {
        port.name: [axis.dim_value or 1 for axis in port.type.tensor_type.shape.dim]
        for port in graph.input
        if port.name not in constants
    }


def in_turns(works: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """The results of each work; all take turns in every round, so that other load hits all."""
    found: dict[str, list[T]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            found[name].append(work())
    return found


def ratio(times: Sequence[float], others: Sequence[float]) -> float:
    """The median over the rounds of time / other."""
    return statistics.median(a / b for a, b in zip(times, others, strict=True))
