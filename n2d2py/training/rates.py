"""Learning rate schedules of N2D2's solvers. This module needs no PyTorch."""

from collections.abc import Sequence
from math import cos, exp, pi

import numpy as np

from n2d2py.contracts.ini.recipes import SolverSettings


def learning_rate(solver: SolverSettings, steps: int, batch: int, total: int) -> float:
    """Return the rate of the next step after n = `steps` of IterationSize batches of `batch` samples; training learns `total`.

    `k` counts steps of LearningRateStepSize samples. During the WarmUpDuration, the rate of CosineDecay rises linearly from
    LearningRate * WarmUpLRFrac to LearningRate. Without MaxIterations, PolyDecay and CosineDecay end with the training.
    """
    step, size, decay = batch * solver.iteration_size, solver.learning_rate_step_size, solver.learning_rate_decay
    k = steps * step // size
    factor = {
        "None": lambda: 1.0,
        "StepDecay": lambda: decay**k,
        "ExponentialDecay": lambda: exp(-decay * k),
        "InvTDecay": lambda: 1 / (1 + decay * k),
        "InvDecay": lambda: (1 + decay * steps) ** -solver.power,
        "PolyDecay": lambda: (1 - _elapsed_fraction(steps, solver.max_iterations or total / step)) ** solver.power,
        "CosineDecay": lambda: _cosine(solver, k, solver.max_iterations or total / size),
    }[solver.learning_rate_policy]()
    return solver.learning_rate * factor


def _cosine(solver: SolverSettings, k: int, end: float) -> float:
    warm = solver.warm_up_duration
    if k < warm:
        return solver.warm_up_lr_frac + (1 - solver.warm_up_lr_frac) * k / warm
    return solver.min_decay + (1 - solver.min_decay) * (1 + cos(pi * _elapsed_fraction(k - warm, end - warm))) / 2


def _elapsed_fraction(count: float, end: float) -> float:
    return min(count / end, 1.0) if end > 0 else 1.0


def find_steepest_rate(losses: Sequence[tuple[float, float]]) -> float | None:
    """Return the rate with the steepest decrease of the loss over its logarithm; None if the loss falls by less than a tenth.

    `losses`: (rate, loss) of steps at exponentially rising rates. The losses are averaged over a tenth of the steps. Only those
    up to the lowest average count: beyond it, training diverges. Source: Smith, "Cyclical Learning Rates for Training Neural
    Networks" (2017), section 3.3.
    """
    width = max(len(losses) // 10, 1)
    sums = np.cumsum([0.0, *(loss for _, loss in losses)])
    smooth = (sums[width:] - sums[:-width]) / width
    least = int(np.argmin(smooth))
    if smooth[least] > 0.9 * smooth[0]:
        return None
    step = min(width, least)
    first = int(np.argmax(smooth[: least + 1 - step] - smooth[step : least + 1]))
    return losses[first + (step + width) // 2][0]
