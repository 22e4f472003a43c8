"""The codes of the warnings of the NCNN target."""

from __future__ import annotations

CODES = {"W703": ("export parameter without effect on this model", "remove the parameter")}
"""Code -> (what it means, the general remedy)."""
