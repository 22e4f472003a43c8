"""What calibrating costs: core seconds and peak memory for N images, beside plain inference by ONNX Runtime on the same ones.

    python benchmarks/calibration.py [-n N]... [NET.ini]

Images are those of the calibration and test sets of the network, again and again where N is larger. Core seconds are those of
the process, so that other work on the machine does not count; reading and preparing the images is measured apart.
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from common import ROOT, header, machine, row

from n2d2py import log
from n2d2py.concurrency import ordered_map
from n2d2py.data.stimuli import Stimuli
from n2d2py.options import read_command
from n2d2py.pipeline import load_network
from n2d2py.quant.statistics import batch_size, collect
from n2d2py.reference.engine import FloatEngine
from n2d2py.stages.fuse import fuse_stage


def seconds(work) -> tuple[float, float]:
    """(core seconds of the process, seconds on the clock) of a call."""
    start, clock = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - start, time.perf_counter() - clock


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", nargs="?", type=Path, default=ROOT / "tests" / "networks" / "mobilenet_v2.ini")
    parser.add_argument("-n", type=int, action="append")
    arguments = parser.parse_args()
    log.setup(quiet=True, verbose=False, strict=False)
    logging.disable(logging.WARNING)
    words = [str(arguments.network), "-w", "/dev/null", "-export", "CPP", "-calib", "-1"]
    network, _ = fuse_stage(load_network(*read_command(words)), integer=True)
    graph, size = network.graph, batch_size(network.graph)
    sets = [network.data.get(name) for name in ("Validation", "Test")]
    places = [(part, k) for part in sets if part is not None for k in range(len(part))]

    def stimuli(count: int) -> Stimuli:
        chosen = [places[k % len(places)] for k in range(count)]
        return Stimuli([""] * count, np.full(count, -1), sets[0].shape, lambda k: chosen[k][0][chosen[k][1]])

    plain = FloatEngine(graph, threads=1)
    print(f"Machine: {machine()}. {arguments.network.stem}, batches of {size}.\n")
    header("images", "reading", "inference by ONNX Runtime", "calibration", "more than inference", "peak memory", texts=0)
    for count in arguments.n or (100, 1000):

        def batches():
            return (x for x, _, _ in stimuli(count).batches(size))

        def drain(iterator) -> None:
            for _ in iterator:
                pass

        reading = seconds(lambda: drain(batches()))
        inference = seconds(lambda: drain(ordered_map(plain.run, batches())))
        calibration = seconds(lambda: collect(graph, batches()))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        pure, whole = inference[0] - reading[0], calibration[0] - reading[0]
        clock = f"{whole:.1f} s ({calibration[1]:.0f} s on the clock)"
        row(f"{count}", f"{reading[0]:.1f} s", f"{pure:.1f} s", clock, f"{whole / pure:.2f} times", f"{peak:.0f} MiB")


if __name__ == "__main__":
    main()
