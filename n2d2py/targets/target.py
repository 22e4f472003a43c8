"""Scoring target, as read by a frontend and used by `Scorer`."""

from dataclasses import dataclass
from pathlib import Path

from n2d2py.errors import Location, N2D2Error


@dataclass(frozen=True)
class ScoreTarget:
    """One scored output.

    Attributes:
        name: section name, for example "fc.Target"; also names the result folder.
        tensor: graph tensor whose values are scored.
        top_n: number of best outputs that may include the label.
        mapping: path of a LabelsMapping file, or "".
        as_data: the expected output is the input.
        kind: N2D2's type; the scorer refuses unknown ones.
        hue: LabelsHueOffset.
        high, low: TargetValue and DefaultValue, the training targets of the correct output and of the others.
        unscored: error of a key that changes scores, raised when the target is scored or trained.
        stored: reference of a TargetCompare: folder, file pattern, axis order, swapped axes.
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
