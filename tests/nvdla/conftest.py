"""Skips the tests of this folder where the NVDLA target is not installed."""

from pathlib import Path

import pytest
from support.extra_targets import HAS_NVDLA, NO_NVDLA


class Absent(pytest.Module):
    """A test module that is not imported."""

    def collect(self):
        """Skip the module, with the reason."""
        pytest.skip(NO_NVDLA, allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """The module to collect; None for the usual one."""
    return None if HAS_NVDLA else Absent.from_parent(parent, path=module_path)
