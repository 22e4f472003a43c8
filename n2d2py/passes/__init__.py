"""Rewrites of the float graph that keep its results: one class for each."""

from n2d2py.passes.base import Entry, FuseReport, Match, Pass
from n2d2py.passes.fuse import fuse, keep_real, passes

__all__ = ["Entry", "FuseReport", "Match", "Pass", "fuse", "keep_real", "passes"]
