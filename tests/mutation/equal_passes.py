"""Mutants of n2d2py/passes that no test can tell from the original: see `equivalent.py`."""

from __future__ import annotations

from entry import Equivalent

__all__ = ["EQUIVALENT"]

EQUIVALENT: tuple[Equivalent, ...] = (
    Equivalent(
        "n2d2py/passes/fuse_padding.py",
        "FusePadding._padded",
        "_sum(op.pads, padding)",
        "_sum(padding, op.pads)",
        "It adds whole numbers in pairs.",
    ),
)
