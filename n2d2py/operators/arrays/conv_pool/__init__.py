"""Convolutions and pools over up to three axes, with weights that may be computed in the network."""

from n2d2py.operators.arrays.conv_pool.op import ArrayConvPool

__all__ = ["ArrayConvPool"]
