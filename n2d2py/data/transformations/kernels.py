"""Kernels of filters: Gaussian, Laplacian and difference of Gaussians, Gabor."""

from __future__ import annotations

import numpy as np


def _grid(width: int, height: int) -> tuple[np.ndarray, np.ndarray]:
    """x and y of each element, from the centre."""
    y, x = np.mgrid[:height, :width]
    return x - (width - 1) / 2, y - (height - 1) / 2


def _zero_sum(kernel: np.ndarray) -> np.ndarray:
    """The kernel with its positive values summing to 1 and its negative ones to -1."""
    above, below = kernel[kernel > 0].sum(), -kernel[kernel <= 0].sum()
    return kernel / np.where(kernel > 0, above if above > 0 else 1.0, below if below > 0 else 1.0)


def gaussian(width: int, height: int, sigma: float) -> np.ndarray:
    """exp(-(x^2 + y^2) / (2 sigma^2)) / (2 pi sigma^2), cut to the size, not normalized again."""
    x, y = _grid(width, height)
    return np.exp(-(x * x + y * y) / (2 * sigma**2)) / (2 * np.pi * sigma**2)


def laplacian_of_gaussian(width: int, height: int, sigma: float) -> np.ndarray:
    """-(1 - r) exp(-r) with r = (x^2 + y^2) / (2 sigma^2), of zero sum."""
    x, y = _grid(width, height)
    radius = (x * x + y * y) / (2 * sigma**2)
    return _zero_sum(-(1 - radius) * np.exp(-radius) / (np.pi * sigma**4))


def difference_of_gaussians(width: int, height: int, sigma1: float, sigma2: float) -> np.ndarray:
    """exp(-d / 2 sigma1^2) / sigma1 - exp(-d / 2 sigma2^2) / sigma2, d = x^2 + y^2, zero sum."""
    x, y = _grid(width, height)
    distance = x * x + y * y
    return _zero_sum(
        (np.exp(-distance / (2 * sigma1**2)) / sigma1 - np.exp(-distance / (2 * sigma2**2)) / sigma2) / np.sqrt(2 * np.pi)
    )


def gabor(width: int, height: int, theta: float, sigma: float, wavelength: float, psi: float, gamma: float) -> np.ndarray:
    """A wave of this length, phase psi and direction theta (radians) under a Gaussian, zero sum.

    The Gaussian has the deviation sigma along the wave and sigma / gamma across.
    """
    x, y = _grid(width, height)
    along = x * np.cos(theta) + y * np.sin(theta)
    across = -x * np.sin(theta) + y * np.cos(theta)
    wide = sigma / gamma
    envelope = np.exp(-0.5 * ((along / sigma) ** 2 + (across / wide) ** 2))
    return _zero_sum(envelope * np.cos(2 * np.pi / wavelength * along + psi) / (2 * np.pi * sigma * wide))
