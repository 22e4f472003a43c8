"""Learning rates over a training, as N2D2's solvers change them. No PyTorch here."""

from __future__ import annotations

from math import cos, exp, pi

from n2d2py.frontend.ini.recipes import SolverSettings


def learning_rate(solver: SolverSettings, seen: int, total: int, step: int) -> float:
    """Return the rate after `seen` of `total` samples, where each step of the solver learns `step` of them.

    StepDecay, ExponentialDecay, InvTDecay and CosineDecay count samples; InvDecay and PolyDecay count steps (N2D2's iterations).
    With r the LearningRate, k = seen // LearningRateStepSize, n = seen / step, d = LearningRateDecay and m = MinDecay:

    =================  ==================================================
    StepDecay          r d^k
    ExponentialDecay   r exp(-d k)
    InvTDecay          r / (1 + d k)
    InvDecay           r (1 + d n)^-Power
    PolyDecay          r (1 - n / MaxIterations)^Power
    CosineDecay        r (m + (1 - m) (1 + cos(pi p)) / 2)
    =================  ==================================================

    p is (seen - WarmUpDuration) / (MaxIterations - WarmUpDuration). During the WarmUpDuration, the rate of CosineDecay rises
    linearly from r WarmUpLRFrac to r. Without MaxIterations, PolyDecay and CosineDecay end with the training.
    """
    k, decay = seen // solver.learning_rate_step_size, solver.learning_rate_decay
    factor = {
        "None": lambda: 1.0,
        "StepDecay": lambda: decay**k,
        "ExponentialDecay": lambda: exp(-decay * k),
        "InvTDecay": lambda: 1 / (1 + decay * k),
        "InvDecay": lambda: (1 + decay * seen / step) ** -solver.power,
        "PolyDecay": lambda: (1 - _share(seen / step, solver.max_iterations or total / step)) ** solver.power,
        "CosineDecay": lambda: _cosine(solver, seen, total),
    }[solver.learning_rate_policy]()
    return solver.learning_rate * factor


def _cosine(solver: SolverSettings, seen: int, total: int) -> float:
    warm = solver.warm_up_duration
    if seen < warm:
        return solver.warm_up_lr_frac + (1 - solver.warm_up_lr_frac) * seen / warm
    share = _share(seen - warm, (solver.max_iterations or total) - warm)
    return solver.min_decay + (1 - solver.min_decay) * (1 + cos(pi * share)) / 2


def _share(count: float, end: float) -> float:
    """Return the part of `end` that is over, at most 1; 1 for an end that lies before the start."""
    return min(count / end, 1.0) if end > 0 else 1.0
