"""Measurements of a built export: bytes by the linker, time by its own clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from n2d2py import log
from n2d2py.report import Footprint
from n2d2py.runtime import Latency, Runner

_EVERY = {True: "for every input", False: "for the first stimulus; other data may take others"}


@dataclass(frozen=True)
class BuildMetrics:
    """Bytes of a build by what they are for, what built it, its time where that was asked for, its instructions where they were counted."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    compiler: str = ""
    latency: Latency | None = None
    instructions: tuple[str, int, bool] | None = None


def measured(run: Runner, inferences: int) -> BuildMetrics:
    """Measure a build, its time over `inferences` (0: not at all), and say in a line each what came of it."""
    sizes = run.sizes()
    latency = run.latency(inferences) if inferences else None
    counted = run.instructions()
    if sizes:
        log.notice("%s", Footprint.of_build(sizes, "").line())
    if counted is not None:
        log.notice("instructions: %s per inference on %s, %s", f"{counted[1]:,}", counted[0], _EVERY[counted[2]])
    if latency is not None:
        bound = "" if latency.bound is None else f", {latency.bound:.0f} % of the machine's limit"
        threads = f"{latency.threads} thread{'s' if latency.threads > 1 else ''}"
        log.notice("latency: %.4g us median, %.4g us minimum, %s%s", latency.median_us, latency.least_us, threads, bound)
    return BuildMetrics(sizes, run.built_with() if sizes else "", latency, counted)
