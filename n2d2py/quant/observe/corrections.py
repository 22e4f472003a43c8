"""Effect of the corrections of biases on stimuli that they were not estimated from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class BiasCorrections:
    """Which layers have corrected biases, and the figures that say so.

    Attributes:
        stimuli: on which they were verified; 0: too few to hold any back.
        kept, dropped: layers whose correction lowers, or does not, the squared error of their own output.
        corrected, plain: error at the outputs of the network, with the kept corrections and without any: root of the squared
            error by the power of the output, mean of the squares over outputs.
        shifts: by layer, what was added to the bias of each output (C), in units of the output; none where `corrected` is not
            the smaller one.
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
        """That at the outputs of the network unchanged."""
        return self.corrected if self.used else self.plain

    def line(self) -> str:
        """The result in a line."""
        layers = f"{len(self.kept)} of {len(self.kept) + len(self.dropped)} layers"
        if not self.stimuli:
            return f"bias correction: {layers}, not verified: fewer than three stimuli leave none to hold back"
        verdict = "kept" if self.used else "dropped"
        return (
            f"bias correction {verdict}: error at the outputs on {self.stimuli} held-back stimuli {self.corrected:.4g} with it "
            f"({layers}), {self.plain:.4g} without"
        )

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON data."""
        return {
            "used": self.used,
            "stimuli": self.stimuli,
            "error_corrected": self.corrected,
            "error_plain": self.plain,
            "kept_layers": list(self.kept),
            "dropped_layers": list(self.dropped),
        }
