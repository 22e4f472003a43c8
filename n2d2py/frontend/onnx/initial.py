"""Initial values of layers whose stored weights are not wanted (ONNX_init=0)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from n2d2py.operators.base import Op
from n2d2py.operators.batchnorm import BatchNorm
from n2d2py.operators.conv import Conv
from n2d2py.operators.fc import Fc

__all__ = ["initial_values"]

_NEUTRAL = {"bias": 0.0, "mean": 0.0, "scale": 1.0, "variance": 1.0}


def initial_values(op: Op, params: Mapping[str, np.ndarray | None], seed: int) -> dict[str, np.ndarray | None]:
    """Parameters of a Conv, Fc or BatchNorm in the shapes of `params`; those of other operators unchanged.

    Weights are normal with variance 2 / fan-in, a batch normalisation does nothing, biases are 0 where there are any (None stays None).
    """
    if not isinstance(op, (Conv, Fc, BatchNorm)):
        return dict(params)
    result = {}
    for role, array in params.items():
        if array is None:
            values = None
        elif role == "weights":
            deviation = np.sqrt(2.0 / max(1, int(np.prod(array.shape[1:]))))
            values = np.random.default_rng(seed).normal(0.0, deviation, array.shape).astype(np.float32)
        else:
            values = np.full(array.shape, _NEUTRAL[role], np.float32)
        result[role] = values
    return result
