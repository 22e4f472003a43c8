"""Fully connected layer."""

from n2d2py.operators.fc.op import Fc

__all__ = ["Fc"]
