"""A target of scoring; a frontend reads it, `Scorer` applies it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from n2d2py.errors import Location, N2D2Error


@dataclass(frozen=True)
class ScoreTarget:
    """One scored output.

    Attributes:
        name: section name, such as "fc.Target"; names its folder of results.
        tensor: graph tensor whose values are scored.
        top_n: how many of the best outputs may hold the label.
        mapping: path of a LabelsMapping file, or "".
        as_data: the expected output is the input.
        kind: N2D2's type; whoever scores refuses those that it does not know.
        hue: LabelsHueOffset.
        high, low: TargetValue and DefaultValue, which training wants of the right output and of the others.
        unscored: the error of a key that changes scores, raised where the target is scored or learned.
        stored: what a TargetCompare compares with: folder, file pattern, order of axes, axes exchanged.
    """

    name: str
    tensor: str
    top_n: int = 1
    mapping: str = ""
    as_data: bool = False
    binary_threshold: float = 0.5
    location: Location | None = None
    kind: str = "TargetScore"
    hue: float = 0.0
    stored: tuple[Path, str, str, bool] | None = None
    high: float = 1.0
    low: float = 0.0
    unscored: N2D2Error | None = None
