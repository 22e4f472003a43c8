"""Mutants of n2d2py/quant that no test can tell from the original: see `equivalent.py`."""

from __future__ import annotations

from entry import Equivalent

__all__ = ["EQUIVALENT"]

EQUIVALENT: tuple[Equivalent, ...] = (
    Equivalent(
        "n2d2py/quant/mixed.py",
        "wide_tensors",
        "break",
        "continue",
        "What is left stays at or below the limit for all names behind it.",
    ),
    Equivalent(
        "n2d2py/quant/histogram.py",
        "Histogram.deviation",
        "np.dot(self.positive + self.negative, self._middles() ** 2)",
        "np.dot(self._middles() ** 2, self.positive + self.negative)",
        "Of two lines the products are the same, and are added in the same order.",
    ),
    Equivalent(
        "n2d2py/quant/rounding.py",
        "descend",
        "change.any()",
        "True",
        "Only time is saved: a change of 0 everywhere moves nothing, and sweeps that move nothing end where they began.",
    ),
    Equivalent(
        "n2d2py/quant/statistics.py",
        "batch_size",
        "min(64, _BATCH_ELEMENTS // max(total, 1))",
        "min(65, _BATCH_ELEMENTS // max(total, 1))",
        "Stimuli run in batches that fit the memory; no result depends on their size.",
    ),
    Equivalent(
        "n2d2py/quant/correct.py",
        "_corrected",
        "found is None or judged is None",
        "found is None and judged is None",
        "Both are the errors of one layer on other stimuli, and it depends on the layer whether there are any.",
    ),
    Equivalent(
        "n2d2py/quant/correct.py",
        "_corrected",
        "found is None or judged is None",
        "judged is None",
        "Both are the errors of one layer on other stimuli, and it depends on the layer whether there are any.",
    ),
    Equivalent(
        "n2d2py/quant/correct.py",
        "_corrected",
        "found is None or judged is None",
        "found is None",
        "Both are the errors of one layer on other stimuli, and it depends on the layer whether there are any.",
    ),
    Equivalent(
        "n2d2py/quant/weighted.py",
        "WeightedQuantizer.prequantized",
        "constant.any()",
        "True",
        "Only time is saved: where no output is constant all values stay as they are.",
    ),
    Equivalent(
        "n2d2py/quant/channels.py",
        "_factors",
        "widest <= 0",
        "widest < 0",
        "Where the largest value is 0 all factors are 1, whose expected error is the first, and the first candidate is none.",
    ),
    Equivalent(
        "n2d2py/quant/level_counts.py",
        "LevelCounts",
        "-2 ** 62",
        "-2 ** 61",
        "No stored integer has more than 32 bits, so either is below all of them.",
    ),
    Equivalent(
        "n2d2py/quant/quantize.py",
        "float_graph",
        "result.verify()",
        "pass",
        "`verify` raises only where a graph was broken by a defect elsewhere.",
    ),
    Equivalent(
        "n2d2py/quant/equalize.py",
        "_balance",
        "(-1,) + (1,) * (weights.ndim - 1)",
        "(-2,) + (1,) * (weights.ndim - 1)",
        "NumPy takes every negative size as the one to be found.",
    ),
    Equivalent(
        "n2d2py/quant/spectra.py",
        "power_layers",
        "_power_behind(graph, node.inputs[0], {})",
        "_power_behind(graph, node.inputs[-1], {})",
        "A logarithm has one input, which is the first and the last.",
    ),
    Equivalent(
        "n2d2py/quant/equalize.py",
        "_balance",
        "np.minimum(r1, r2) > 1e-09",
        "np.minimum(r1, r2) >= 1e-09",
        "The largest weights are numbers of 32 bits, none of which is 1e-9.",
    ),
)
