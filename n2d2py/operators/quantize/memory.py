"""How a rounding goes through memory."""

from __future__ import annotations

from n2d2py.memory.access import memory_access, pointwise

memory_access("Quantize")(pointwise)
