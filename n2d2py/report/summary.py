"""The figures of an export that other programs read: `statistics/summary.json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from n2d2py.files import finite
from n2d2py.report.comparison import loss_shares
from n2d2py.report.data import Footprint, ReportData
from n2d2py.report.in_float import float_layers_in, float_shares
from n2d2py.report.layers import LayerRow, layer_times, totals
from n2d2py.targets import agreement, common_positions

SCORE_LABELS = ("float", "simulated", "compiled")


def footprint(data: ReportData, rows: Sequence[LayerRow]) -> Footprint:
    """RAM and flash: as built, else as planned."""
    if data.built is not None:
        return data.built
    arena = sum(data.plan.used) + data.qgraph.state_bytes if data.plan is not None else None
    unpacked = sum(choice.prepacked_bytes for choice in data.kernels.values())
    return Footprint(arena, None, totals(rows).flash_bytes, None, "as planned, not built", unpacked=unpacked or None)


def summary(data: ReportData, rows: Sequence[LayerRow]) -> dict[str, Any]:
    """Network, precision, cost, scores and comparison as JSON data.

    `scores` holds top-1 percent by label, null where not run or not labelled; `mse` the same for auto-encoders, only when there
    is one. `samples`: how many each score has; `shared_samples`: how many of these the score of the float network has too,
    `agreement`: percent of them with the same label there. An SQNR without any error is null, and a figure that is not finite.
    `prepacked_weights_bytes`: static memory of weights that are unpacked once; left out where there are none. `memory` has RAM
    and flash with their parts, null where not measured; `latency` only when it was timed, `instructions` when they were
    counted; `table` a record for each layer. `in_float`: the layers that stay in floating point, and their shares.
    """
    sums, prepacked = totals(rows), sum(choice.prepacked_bytes for choice in data.kernels.values())
    others = [label for label, _ in data.scores if label not in SCORE_LABELS]  # of targets with a runner of their own
    in_float = float_layers_in(data.qgraph, data.graph)
    macs, size = float_shares(in_float)
    scores = {label: data.score(label) for label in dict.fromkeys((*SCORE_LABELS, *others))}
    result: dict[str, Any] = {
        "network": data.network,
        "nbbits": data.qgraph.bits,
        "arena_bytes": sum(data.plan.used) if data.plan is not None else None,
        **(
            {"memories": dict(zip((each.name for each in data.plan.memories), data.plan.used, strict=True))}
            if data.plan and data.plan.memories
            else {}
        ),
        **({"state_bytes": data.qgraph.state_bytes} if data.qgraph.states else {}),
        "weights_bytes": sums.parameter_bytes,
        "packed_weights_bytes": sums.flash_bytes,
        **({"prepacked_weights_bytes": prepacked} if prepacked else {}),
        "parameters": sums.parameters,
        "macs": sums.macs,
        "layers": sums.layers,
        "in_float": {"layers": [one.layer for one in in_float], "macs_percent": 100 * macs, "bytes_percent": 100 * size},
        "scores": {label: score.percent if score is not None else None for label, score in scores.items()},
    }
    result["samples"] = {label: len(score.indices) for label, score in scores.items() if score is not None}
    if (base := scores.pop("float")) is not None:
        known_scores = {label: score for label, score in scores.items() if score is not None}
        result["shared_samples"] = {label: len(common_positions(base, score)[0]) for label, score in known_scores.items()}
        result["agreement"] = {label: agreement(base, score) for label, score in known_scores.items()}
        scores["float"] = base
    if any(score is not None and score.errors is not None for score in scores.values()):
        result["mse"] = {label: score.mse if score is not None else None for label, score in scores.items()}
    names = "sqnr_db cosine max_error saturated_percent unused_percent alone_sqnr_db identical".split()
    result["compare"] = {}
    for c in data.comparisons:
        figures = c.sqnr_db, c.cosine, c.max_error, 100 * c.saturated, 100 * c.unused, c.alone_db, c.identical
        result["compare"][c.layer] = dict(zip(names, figures, strict=True))
    if data.biases is not None:
        result["bias_correction"] = data.biases.as_dict()
    memory = footprint(data, rows)
    known = {name: value for name, value in asdict(memory).items() if name != "unpacked" or value is not None}
    result["memory"] = {**known, "ram": memory.ram, "flash": memory.flash}
    if data.latency is not None:
        time = data.latency
        names = "median_us least_us threads inferences limit_percent source"
        figures = time.median_us, time.least_us, time.threads, time.inferences, time.bound, time.source
        result["latency"] = dict(zip(names.split(), figures, strict=True))
    if data.instructions is not None:
        result["instructions"] = dict(zip(("processor", "count", "every_input"), data.instructions, strict=True))
    result["table"] = _layers(data, rows)
    return finite(result)


def _layers(data: ReportData, rows: Sequence[LayerRow]) -> list[dict[str, Any]]:
    times, losses = layer_times(data, rows), loss_shares(data.losses)
    compared = {c.layer: c.sqnr_db for c in data.comparisons}
    found: list[dict[str, Any]] = []
    for k, row in enumerate(rows):
        time = times.get(k)
        sizes = {key: getattr(row, key) for key in ("macs", "parameter_bytes", "flash_bytes", "activation_bytes")}
        timed = {"median_us": time.median_us if time else None, "limit_percent": time.limit if time else None}
        cost = {"sqnr_db": compared.get(row.name), "loss_percent": losses.get(row.name)}
        first = {"layer": row.name, "type": row.type, "output": row.output_dims}
        found.append({**first, **sizes, **timed, **cost, "implementation": row.implementation})
    return found
