"""Concatenation of channels."""

from n2d2py.operators.concat.op import Concat

__all__ = ["Concat"]
