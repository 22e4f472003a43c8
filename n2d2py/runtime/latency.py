"""Time of an inference of a built export, in all and layer by layer, against the peak of the machine."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ROW = re.compile(r"(?P<title>\S.*?) +(?P<kind>\S+) +(?P<median>[\d.]+) +[\d.]+% +(?P<least>[\d.]+)(?P<rest>(?: +[\d.]+%?)*)")
_LIMIT = re.compile(r"limit: share of what ([\d.]+) G multiply-accumulates/s, or reading ([\d.]+) GB/s")


@dataclass(frozen=True)
class LayerTime:
    """Microseconds of one layer: median and least of all inferences.

    Attributes:
        limit: least time that the machine would need for its products or its bytes, over the time that it took, in
            percent; None where the machine's limit is not known.
    """

    layer: str
    median_us: float
    least_us: float
    limit: float | None = None


@dataclass(frozen=True)
class Latency:
    """Microseconds of one inference, and of its layers in the order in which they run.

    Attributes:
        inferences: how many were timed.
        source: what measured, where; for people.
        gmacs, gbytes: billions of multiply-accumulates, and of bytes read, per second that are the limit; None where the
            machine's limit is not known.
    """

    median_us: float
    least_us: float
    threads: int
    inferences: int
    source: str
    layers: tuple[LayerTime, ...] = ()
    gmacs: float | None = None
    gbytes: float | None = None

    @property
    def bound(self) -> float | None:
        """Share of the machine's limit that the layers reach together, in percent; None where it is not known."""
        known = [layer for layer in self.layers if layer.limit is not None]
        took = sum(layer.least_us for layer in known)
        return sum(layer.least_us * (layer.limit or 0.0) for layer in known) / took if took > 0 else None


def read_profile(text: str) -> tuple[tuple[LayerTime, ...], tuple[float, float] | None]:
    """The layers that `run_export -profile` printed, and the machine's (G multiply-accumulates/s, GB/s) where it knows them."""
    layers = []
    for line in text.splitlines()[1:]:
        row = _ROW.fullmatch(line.strip())
        if row is not None:
            last = row["rest"].split()[-1:] or [""]
            limit = float(last[0][:-1]) if last[0].endswith("%") else None
            layers.append(LayerTime(row["title"], float(row["median"]), float(row["least"]), limit))
    found = _LIMIT.search(text)
    return tuple(layers), (float(found[1]), float(found[2])) if found else None
