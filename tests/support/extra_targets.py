"""Targets that are packages of their own: tests of them are skipped where they are not installed."""

from pathlib import Path

import pytest

from n2d2py import entry_points
from n2d2py.exports.registry import EXTRAS

INSTALLED = entry_points.targets().keys() & EXTRAS.keys()
"""The names of those that are installed."""


def reason(target: str) -> str:
    """Return why the tests of a target are skipped."""
    return f"{target} is not installed: pip install ./plugins/{EXTRAS[target]}"


def needs(target: str) -> pytest.MarkDecorator:
    """Return the mark of a test of a target."""
    return pytest.mark.skipif(target not in INSTALLED, reason=reason(target))


def absent(folder: Path) -> str | None:
    """Return the target that the tests of a folder are about, such as tests/nvdla, if it is not installed."""
    return next((name for name, extra in EXTRAS.items() if extra == folder.name and name not in INSTALLED), None)


class Absent(pytest.Module):
    """A test module that is not imported, as its target is absent."""

    def collect(self):
        """Skip the module, with the reason."""
        pytest.skip(reason(str(absent(self.path.parent))), allow_module_level=True)
