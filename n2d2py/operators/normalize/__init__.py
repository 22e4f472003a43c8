"""Normalization along rows of a tensor."""

from n2d2py.operators.normalize.op import Normalize
