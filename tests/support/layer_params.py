"""Random parameters of weighted layers."""

import numpy as np


def real_params(rng: np.random.Generator, *shape: int) -> dict[str, np.ndarray]:
    """Weights of this shape and a bias, of which sums of inputs near 1 are near 1."""
    fan = max(1, int(np.prod(shape[1:])))
    return {
        "weights": (rng.normal(size=shape) / np.sqrt(fan)).astype(np.float32),
        "bias": rng.normal(size=shape[0]).astype(np.float32) / 4,
    }
