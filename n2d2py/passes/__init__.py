"""Rewrites of the float graph that keep its results: one class for each."""

from n2d2py.passes.base import Entry, FuseReport, Pass
from n2d2py.passes.fuse import fuse, keep_real, passes

__all__ = ["Entry", "FuseReport", "Pass", "fuse", "keep_real", "passes"]
