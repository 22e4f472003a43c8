"""The names of the files of an NVDLA export, which its runner reads again."""

from __future__ import annotations

__all__ = ["CALIBRATION", "LAYERS", "LOADABLE", "stimuli_files"]

LOADABLE = "out.nvdla"
LAYERS = "layers.json"
CALIBRATION = "calibration.json"


def stimuli_files(inputs: int) -> list[str]:
    """Names of the files with the stored values of each input: stimuli.npy, or stimuli0.npy, stimuli1.npy, ..."""
    return ["stimuli.npy"] if inputs == 1 else [f"stimuli{i}.npy" for i in range(inputs)]
