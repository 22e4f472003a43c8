"""The compiled export, built and run by the tool in a copy of the project, so that the export itself stays as written."""

from __future__ import annotations

import json
import os
import platform
import shutil
import timeit
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.arithmetic.audio import AudioSource
from n2d2py.arithmetic.sensor import SensorSource
from n2d2py.concurrency import cores
from n2d2py.exports.cpp.build import BuiltCopy, start
from n2d2py.exports.cpp.library import Export
from n2d2py.exports.stimuli import from_hwc, hwc_field
from n2d2py.graph import QuantGraph
from n2d2py.runtime.runner import Latency, read_profile


class CompiledExport(BuiltCopy):
    """A built copy of a written C++ export; removed at the end."""

    remedy = "install g++ and make"
    needed = "g++ (or set CXX)"

    @classmethod
    def missing(cls, parameters: Mapping[str, Any]) -> str:
        installed = shutil.which("make") is not None and shutil.which(os.environ.get("CXX") or "g++") is not None
        return "" if installed else "no C++ compiler or make"

    def build(self) -> None:
        steps = len(list(self.folder.rglob("*.cpp")))
        self._command("make", f"-j{cores()}", "all", "lib", what="building the export", steps=steps)

    def _command(self, *words: str, what: str = "running the export", steps: int | None = None) -> str:
        """Run a command in the project, with a bar over the lines that it prints. Raise E810 with the first line that tells why
        when it fails."""
        with start(words, self.folder) as process:
            printed = [line.strip() for line in log.progress(process.stdout or (), what, total=steps, unit="file")]
        if process.returncode:
            raise self.failed(" ".join(words), printed, f"exit status {process.returncode}")
        return "\n".join(printed)

    def outputs(self, graph: QuantGraph, count: int) -> dict[str, np.ndarray]:
        """Return the stored outputs (count, C, H, W) by tensor of bin/run_export over all exported stimuli."""
        file = self.folder / "outputs.bin"
        printed = self._command(str(self.folder / "bin" / "run_export"), "-outputs", str(file), steps=count)
        log.detail("%s", printed.splitlines()[-1] if printed else "run_export printed nothing")
        row = np.dtype([(name, *hwc_field(graph.shape(name), graph.type(name).dtype)) for name in graph.user_outputs])
        rows = self.read_results(file, row, count)
        return {name: from_hwc(rows[name], graph.shape(name)) for name in graph.user_outputs}

    def sizes(self) -> dict[str, int]:
        if _cached():
            # A compiler cache gives objects back without their call graphs: with those of the others the stack would
            # depend on what the cache holds. Frames alone give the same bound every time.
            for graph in self.folder.rglob("build/**/*.ci"):
                graph.unlink()
        return self.read_sizes(self._command("make", "-s", "size", what="measuring the export"))

    def built_with(self) -> str:
        return self._command(os.environ.get("CXX") or "g++", "--version", what="asking the compiler").splitlines()[0]

    def latency(self, inferences: int) -> Latency | None:
        """Output of `run_export -bench` and `-profile`: the whole inference alone, then with a clock between layers."""
        program, count = str(self.folder / "bin" / "run_export"), str(inferences)
        whole = json.loads(self._command(program, "-bench", count, what="timing the export").splitlines()[-1])
        layers = read_profile(self._command(program, "-profile", count, what="timing the layers"))
        return Latency(whole["median_us"], whole["min_us"], whole["threads"], inferences, _processor(), layers)

    def conversion_cost(self, inferences: int) -> str:
        export = Export(self.folder / "lib" / f"lib{self.details['namespace']}.so", self.details["namespace"], self.details)
        source = export.contract.source
        if source is None or not inferences or "conversion_bytes" not in self.details:
            return ""
        if isinstance(source, AudioSource):
            frames = source.frames_of(export.info.inputs[0].stored[1:]).count
            samples, what = np.arange(source.samples(frames), dtype=np.int16), f"{frames} frames of a sound"
            run = partial(export.from_audio, samples)
        elif isinstance(source, SensorSource):
            samples, what = np.zeros((source.hop, source.axes), np.int16), f"{source.hop} samples"
            run = partial(export.from_sensor, samples)
        else:
            wide, high = source.measured_size(*export.info.inputs[0].stored[:1:-1])
            run = partial(export.from_frame, source.layout.encode(np.zeros((high, wide, 3), np.uint8)), wide)
            what = f"a frame of {wide}x{high}"
        return f"{1e6 * min(timeit.repeat(run, number=1, repeat=inferences)):.4g} us for {what}"

    def network(self) -> Export:
        return Export(self.folder / "lib" / f"lib{self.details['namespace']}.so", self.details["namespace"])


def _processor() -> str:
    return cpu_info("model name") or platform.processor() or platform.machine()


def cpu_info(field: str) -> str:
    """Return the value of the first line of /proc/cpuinfo for a field; "" without one."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(field)), "")


def _cached() -> bool:
    """True if the compiler is called through ccache."""
    words = (os.environ.get("CXX") or "g++").split()
    program = shutil.which(words[0]) if words else None
    return program is not None and Path(program).resolve().name == "ccache" and not os.environ.get("CCACHE_DISABLE")
