"""Where to clip a tensor: the largest magnitude that its integers shall represent.

Modes are N2D2's (`-act-clipping-mode`): None, MSE, KL-Divergence, Quantile.
"""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic.histogram import BINS, Histogram
from n2d2py.errors import InternalError

CLIPPING_MODES = ("None", "MSE", "KL-Divergence", "Quantile")
WEIGHT_CLIPPING_MODES = ("None", "MSE", "KL-Divergence")
_COARSE = 96
_FINE = 24
_KL_BINS = 2048


def activation_threshold(histogram: Histogram, mode: str, levels: int, quantile: float = 0.9999) -> float:
    """Return the clipping threshold of a tensor; `levels` is the largest stored value (127, 255, ...).

    "MSE" has the least error on other samples for the histogram expected of these. 1 for a tensor that is always zero.
    """
    if histogram.largest == 0.0:
        return 1.0
    if mode == "None":
        return histogram.largest
    counts, edges = histogram.magnitudes()
    if mode == "MSE":
        threshold = mse_threshold(counts, edges, histogram.largest, levels)
    elif mode == "KL-Divergence":
        counts[0] -= histogram.zeros  # every scale represents zero exactly
        threshold = kl_threshold(counts, edges, levels)
    elif mode == "Quantile":
        threshold = quantile_threshold(counts, edges, quantile)
    else:
        raise InternalError(f"clipping mode {mode}")
    return min(threshold, histogram.largest)


def _quantization_error(x: np.ndarray, p: np.ndarray, threshold: float, levels: int) -> float:
    step = threshold / levels
    error = x / step
    np.minimum(np.rint(error, out=error), levels, out=error)
    error *= step
    np.subtract(x, error, out=error)
    return float(np.dot(p, np.square(error, out=error)))


def mse_threshold(counts: np.ndarray, edges: np.ndarray, largest: float, levels: int) -> float:
    """Return the threshold with the least expected squared error of quantized magnitudes.

    A coarse scan of [largest / 32, largest] on a logarithmic grid, then a fine one around the best; ties go to the larger.
    """
    used = np.flatnonzero(counts)
    x = np.minimum((edges[used] + edges[used + 1]) / 2, largest)
    p = counts[used].astype(np.float64)
    if used[0] == 0:
        x[0] = 0.0 if used.size > 1 else x[0]

    def best(candidates: np.ndarray) -> int:
        return int(np.argmin([_quantization_error(x, p, t, levels) for t in candidates]))

    coarse = largest * np.geomspace(1.0, 1.0 / 32, _COARSE)
    k = best(coarse)
    fine = np.linspace(coarse[max(k - 1, 0)], coarse[min(k + 1, _COARSE - 1)], _FINE)
    return float(fine[best(fine)])


def kl_threshold(counts: np.ndarray, edges: np.ndarray, levels: int) -> float:
    """Return the threshold that minimises KL(p || q) between the clipped histogram and its quantized form.

    The method of S. Migacz, "8-bit inference with TensorRT", GTC 2017, on 2,048 bins: clipped mass
    goes to the last bin kept of p; q spreads each level's mass evenly over the non-empty bins it covers.
    """
    p_all = counts.reshape(_KL_BINS, BINS // _KL_BINS).sum(axis=1).astype(np.float64)
    last = int(np.flatnonzero(p_all)[-1]) + 1
    best, best_divergence = last, np.inf
    step = max(1, (last - levels) // 128) if last > levels else 1
    for bins in range(last, min(levels, last) - 1, -step):
        p = p_all[:bins].copy()
        q_source = p.copy()
        p[-1] += p_all[bins:].sum()
        level = np.minimum((np.arange(bins) * levels) // bins, levels - 1)
        filled = (q_source > 0).astype(np.float64)
        mass = np.bincount(level, weights=q_source, minlength=levels)
        members = np.bincount(level, weights=filled, minlength=levels)
        q = np.divide(mass, members, out=np.zeros(levels), where=members > 0)[level] * filled
        valid = p > 0
        total_q = q.sum()
        if total_q == 0:
            continue
        ratio = (p[valid] / p.sum()) / np.maximum(q[valid] / total_q, 1e-12)
        divergence = float(np.sum(p[valid] / p.sum() * np.log(ratio)))
        if divergence < best_divergence - 1e-12:
            best, best_divergence = bins, divergence
    return float(edges[best * (BINS // _KL_BINS)])


def quantile_threshold(counts: np.ndarray, edges: np.ndarray, quantile: float) -> float:
    """Return the upper edge of the first bin at which the cumulated share of values reaches `quantile`."""
    share = np.cumsum(counts) / counts.sum()
    return float(edges[int(np.searchsorted(share, quantile)) + 1]) if quantile < 1 else float(edges[-1])
