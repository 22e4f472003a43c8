"""A layer that only applies an activation function."""

from n2d2py.operators.activation.op import Activation

__all__ = ["Activation"]
