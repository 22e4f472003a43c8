"""The figures of an export that other programs read: `statistics/summary.json`."""

from __future__ import annotations

import math
from typing import Any

from n2d2py.report.data import ReportData
from n2d2py.report.layers import LayerRow, totals
from n2d2py.targets import agreement

__all__ = ["SCORE_LABELS", "summary"]

SCORE_LABELS = ("float", "simulated", "compiled")


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def summary(data: ReportData, rows: list[LayerRow]) -> dict[str, Any]:
    """Network, precision, cost, scores and comparison as JSON data.

    `scores` holds top-1 percent by label, null where not run or not labelled; `mse` the same for
    auto-encoders, only when there is one. An SQNR without any error is null, and a figure that is not finite.
    """
    sums = totals(rows)
    others = [label for label, _ in data.scores if label not in SCORE_LABELS]  # of targets with a runner of their own
    scores = {label: data.score(label) for label in dict.fromkeys((*SCORE_LABELS, *others))}
    result: dict[str, Any] = {
        "network": data.network,
        "nbbits": data.qgraph.bits,
        "arena_bytes": data.plan.arena_bytes if data.plan is not None else None,
        "weights_bytes": sums.parameter_bytes,
        "packed_weights_bytes": sums.flash_bytes,
        "parameters": sums.parameters,
        "macs": sums.macs,
        "layers": sums.layers,
        "scores": {label: score.top1 if score is not None else None for label, score in scores.items()},
    }
    base = scores["float"]
    if base is not None and others:
        result["agreement"] = {label: agreement(base, score) for label in others if (score := scores[label]) is not None}
    if any(score is not None and score.errors is not None for score in scores.values()):
        result["mse"] = {label: _finite(score.mse) if score is not None else None for label, score in scores.items()}
    result["compare"] = {
        c.layer: {
            "sqnr_db": _finite(c.sqnr_db),
            "cosine": _finite(c.cosine),
            "max_error": _finite(c.max_error),
            "saturated_percent": 100 * c.saturated,
            "unused_percent": 100 * c.unused,
            "alone_sqnr_db": _finite(c.alone_db),
            "identical": c.identical,
        }
        for c in data.comparisons
    }
    return result
