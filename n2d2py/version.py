"""The version of n2d2py; `setup.cfg` reads it here."""

from __future__ import annotations

__version__ = "0.5.0"
