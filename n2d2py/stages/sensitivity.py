"""`-sensitivity N`: the layers ranked by what they cost; and the same, unasked, where integers lose too much."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from n2d2py import log
from n2d2py.data.stimuli import Stimuli
from n2d2py.quant.search.sensitivity import LayerLoss, layer_losses
from n2d2py.report import sensitivity_advice, sensitivity_csv, sensitivity_text
from n2d2py.stages.quantize import QuantizedNetwork
from n2d2py.stages.score import Scores


@dataclass(frozen=True)
class Sensitivity:
    """Cost of each layer, the worst first, over so many stimuli; `text` says it to the user."""

    text: str = ""
    losses: tuple[LayerLoss, ...] = ()
    stimuli: int = 0


LARGE_LOSS = 2.0
"""Points of the float score; integers that lose more are explained."""

_STIMULI = 10
_WORST = 5


def sensitivity_stage(
    quantized: QuantizedNetwork, asked: int, stimuli: Stimuli | None, scores: Scores, folder: Path
) -> Sensitivity:
    """The requested analysis, over `asked` stimuli, or what a large loss calls for; nothing when neither is so.

    With it statistics/sensitivity.csv is written.
    """
    lost = points_lost(scores)
    if quantized.types is None or stimuli is None or not (asked or lost > LARGE_LOSS):
        return Sensitivity()
    chosen = stimuli.spread(asked or _STIMULI)
    inputs = np.concatenate([x for x, _, _ in chosen.batches(16)])
    biases = quantized.types.biases
    losses = layer_losses(quantized.float_graph, quantized.graph, inputs, biases.shifts if biases else None)
    (folder / "statistics").mkdir(parents=True, exist_ok=True)
    (folder / "statistics" / "sensitivity.csv").write_text(sensitivity_csv(losses))
    text = sensitivity_text(losses) if asked else ""
    if lost > LARGE_LOSS:
        log.warning(
            "W504",
            f"the integers score {lost:.2f} points less than floating point",
            remedy="read below which layers cost most and what to try" if losses else None,
        )
        text += sensitivity_advice(losses[:_WORST], quantized.quality)
    return Sensitivity(text, tuple(losses), len(chosen))


def points_lost(scores: Scores) -> float:
    """The largest loss of a target's top-1 score (or AUC in per cent) from float to simulated, in points; 0 without."""
    found = [0.0]
    for rows in scores.rows.values():
        by_label = {label.split()[0]: score for label, score in rows}
        first, second = by_label.get("float"), by_label.get("simulated")
        if first is not None and second is not None and first.errors is None and first.count:
            found.append(100.0 * (first.correct / first.count - second.correct / max(second.count, 1)))
    return max(found)
