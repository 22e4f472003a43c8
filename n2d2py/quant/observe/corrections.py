"""Effect of bias corrections on held-out samples."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class BiasCorrections:
    """The corrected layers, with their figures.

    Attributes:
        stimuli: number of held-out samples; 0: too few to hold any out.
        kept, dropped: layers whose correction lowers, or does not lower, the squared error of their output.
        corrected, plain: error at the network outputs with the kept corrections and without: root of the mean, over outputs, of
            error power / signal power.
        shifts: by layer, the correction of each output's bias (C), in units of the output; empty unless `corrected` is smaller.
    """

    stimuli: int
    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    corrected: float
    plain: float
    shifts: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def used(self) -> bool:
        """True if the network has corrected biases."""
        return bool(self.shifts)

    @property
    def error(self) -> float:
        """Error at the network outputs with the biases in use."""
        return self.corrected if self.used else self.plain

    def line(self) -> str:
        """Return the result in one line."""
        layers = f"{len(self.kept)} of {len(self.kept) + len(self.dropped)} layers"
        if not self.stimuli:
            return f"bias correction: {layers}, not verified: fewer than three stimuli leave none to hold back"
        verdict = "kept" if self.used else "dropped"
        return (
            f"bias correction {verdict}: error at the outputs on {self.stimuli} held-back stimuli {self.corrected:.4g} with it "
            f"({layers}), {self.plain:.4g} without"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        return {
            "used": self.used,
            "stimuli": self.stimuli,
            "error_corrected": self.corrected,
            "error_plain": self.plain,
            "kept_layers": list(self.kept),
            "dropped_layers": list(self.dropped),
        }
