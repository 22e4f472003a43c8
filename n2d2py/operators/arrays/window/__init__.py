"""Convolutions and pools over up to three axes, with weights that may be computed in the network."""

from n2d2py.operators.arrays.window.op import ArrayWindow

__all__ = ["ArrayWindow"]
