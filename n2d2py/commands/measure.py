"""What exports are measured with: the machine's name, and the time of a built export."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from pathlib import Path

from n2d2py.concurrency import cores

MOMENT = 0.15
"""Seconds of one turn of a measurement."""


def machine() -> str:
    """Processor, cores, compiler and Python in one line."""
    model = platform.machine()
    try:
        names = [
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ]
        model = names[0] if names else model
    except OSError:
        pass
    compiler = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    return f"{model}, {cores()} cores, g++ {compiler}, Python {platform.python_version()}"


def bench(folder: Path, threads: int, count: int) -> float:
    """Seconds of the fastest of `count` inferences of a built export."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_PROC_BIND": "true"}
    done = subprocess.run(
        ["bin/run_export", "-bench", str(count)], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)["min_us"] / 1e6
