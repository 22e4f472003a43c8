"""Targets that are extras: tests of them are skipped where they are not installed."""

import pytest

from n2d2py import entry_points

HAS_NVDLA = "NVDLA" in entry_points.targets()
NO_NVDLA = "n2d2py_nvdla is not installed: pip install ./plugins/nvdla"

needs_nvdla = pytest.mark.skipif(not HAS_NVDLA, reason=NO_NVDLA)
