"""Targets that are separate packages: tests of them are left out where they are not installed."""

from n2d2py import entry_points
from n2d2py.exports.registry import EXTRAS

INSTALLED = entry_points.targets().keys() & EXTRAS.keys()
"""The names of those that are installed."""
