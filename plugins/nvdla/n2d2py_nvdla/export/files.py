"""The names of the files of an NVDLA export, which its runner reads again."""

from __future__ import annotations

LOADABLE = "out.nvdla"
LAYERS = "layers.json"
CALIBRATION = "calibration.json"
