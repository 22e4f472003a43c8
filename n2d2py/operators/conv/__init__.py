"""Two-dimensional convolution (cross-correlation): dense, grouped, depthwise."""

from n2d2py.operators.conv.op import Conv

__all__ = ["Conv"]
