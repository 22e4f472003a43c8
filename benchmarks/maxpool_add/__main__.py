"""dst = add(max_pool(src1; 3, stride 2, pad 1), src2): the export against PyTorch and ONNX Runtime, in one run.

    python -m benchmarks.maxpool_add [-runs N] [-threads N]

For three sizes of batch 32: milliseconds of the export built without SIMD and threads, with either, with both; those of
the peers; and what share of a memory copy's bytes per second the export reaches. All results are compared. The export
works on images of height, width, channels, the peers on their own layout, channels first; conversions are not timed.
Needs torch and onnxruntime.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.common import build, header, in_turns, row, session

SIZES = {"small": (32, 16, 28), "mid": (32, 32, 56), "large": (32, 64, 112)}
BUILDS = {
    "none": ["ARCH=-march=x86-64 -fno-tree-vectorize -fno-tree-slp-vectorize", "OPENMP=0"],
    "SIMD": ["OPENMP=0"],
    "OpenMP": ["ARCH=-march=x86-64 -fno-tree-vectorize -fno-tree-slp-vectorize"],
    "OpenMP+SIMD": [],
}


def model(batch: int, channels: int, size: int):
    """The graph as ONNX."""
    import onnx

    return onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        MaxPoolAdd (float[{batch}, {channels}, {size}, {size}] src1, float[{batch}, 1, {size // 2}, {size // 2}] src2)
            => (float[{batch}, {channels}, {size // 2}, {size // 2}] dst) {{
            pooled = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (src1)
            dst = Add(pooled, src2)
        }}""")


def fastest(works: dict, runs: int) -> dict[str, float]:
    """Milliseconds of the fastest run of each, all of them taking turns, so that what else the machine does hits all."""

    def seconds(work) -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    turns = in_turns({name: partial(seconds, work) for name, work in works.items()}, runs + 1)
    return {name: 1e3 * min(times[1:]) for name, times in turns.items()}


def exported(folder: Path, graph: Path) -> Path:
    """The folder of the export."""
    from n2d2py.cli import main

    (folder / "p.ini").write_text("IncludeInputInBuffer=0\n")
    words = f"{graph} -nbbits -32 -export CPP -db-export 0 -export-parameters {folder / 'p.ini'} -quiet -o {folder}"
    assert main(words.split()) == 0
    return folder / "export_CPP_float32"


def library(project: Path, options: list[str]):
    """The library of the export, built with variables of its Makefile."""
    from n2d2py.exports.cpp.library import _Library

    return _Library(next((build(project, *options, "lib") / "lib").glob("*.so")), "MaxPoolAdd")


def batch_of(lib, sources: list[np.ndarray], result: np.ndarray):
    """A function that runs the export on each image of a batch (N, H, W, C)."""
    from ctypes import c_void_p

    arena = np.empty(lib.arena_bytes() + 64, np.uint8)
    base = c_void_p(arena.ctypes.data + -arena.ctypes.data % 64)
    calls = [
        (
            (c_void_p * 2)(*(x.ctypes.data + i * x.strides[0] for x in sources)),
            (c_void_p * 1)(result.ctypes.data + i * result.strides[0]),
        )
        for i in range(len(result))
    ]

    def run(arena=arena) -> None:  # which the pointer does not keep
        for inputs, outputs in calls:
            lib.forward_raw(inputs, outputs, base)

    return run


def peers(graph, x: np.ndarray, y: np.ndarray, threads: int) -> tuple[dict, np.ndarray]:
    """A function for each peer, and the result."""
    import torch

    run = session(graph.SerializeToString(), True, threads)
    expected = run.run(None, {"src1": x, "src2": y})[0]
    torch.set_num_threads(threads)
    a, b = torch.from_numpy(x), torch.from_numpy(y)

    def pool(tensor):
        with torch.inference_mode():
            return torch.nn.functional.max_pool2d(tensor, 3, 2, 1) + b

    np.testing.assert_array_equal(pool(a).numpy(), expected)
    last = a.contiguous(memory_format=torch.channels_last)
    works = {
        "ONNX Runtime": lambda: run.run(None, {"src1": x, "src2": y}),
        "PyTorch": lambda: pool(a),
        "PyTorch, channels last": lambda: pool(last),
    }
    return works, expected


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-runs", type=int, default=15)
    parser.add_argument("-threads", type=int, default=2)
    arguments = parser.parse_args()
    import onnx

    rng = np.random.default_rng(0)
    rows = []
    for name, (batch, channels, size) in SIZES.items():
        graph = model(batch, channels, size)
        x = rng.normal(size=(batch, channels, size, size)).astype(np.float32) - 1
        y = rng.normal(size=(batch, 1, size // 2, size // 2)).astype(np.float32)
        sources = [np.ascontiguousarray(v.transpose(0, 2, 3, 1)) for v in (x, y)]
        result = np.empty((batch, size // 2, size // 2, channels), np.float32)
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary) / "MaxPoolAdd.onnx"
            onnx.save(graph, path)
            project = exported(Path(temporary), path)
            ready = {build: library(project, options) for build, options in BUILDS.items()}
            os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
            others, expected = peers(graph, x, y, 1)
            works = {build: batch_of(lib, sources, result) for build, lib in ready.items()}
            for work in works.values():
                result[:] = 0
                work()
                np.testing.assert_array_equal(result.transpose(0, 3, 1, 2), expected)
            copied = np.empty_like(sources[0])
            everything = fastest({**works, **others, "copy": lambda: np.copyto(copied, sources[0])}, arguments.runs)
            times, others = ({name: everything[name] for name in some} for some in (works, others))
            copy = everything["copy"]
        traffic = sum(v.nbytes for v in (*sources, result)) / times["SIMD"]
        share = traffic / (2 * sources[0].nbytes / copy)
        best = min(others.values())
        title, figures = f"{name}, {batch}x{channels}x{size}x{size}", [f"{v:.2f}" for v in (*times.values(), *others.values())]
        rows.append([title, *figures, f"{best / times['SIMD']:.1f}", f"{copy:.2f}", f"{share:.0%}"])
    head = ["Size, ms", *BUILDS, *others, "fastest peer / SIMD", "copy", "share of the copy's bytes/s"]
    print(f"Peers and `none`, `SIMD` on one thread; OpenMP on {arguments.threads}.\n")
    header(*head)
    for cells in rows:
        row(*cells)


if __name__ == "__main__":
    main()
