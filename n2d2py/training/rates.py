"""Learning rates over a training, as N2D2's solvers change them. No PyTorch here."""

from __future__ import annotations

from math import cos, exp, pi

from n2d2py.frontend.ini.recipes import SolverSettings


def learning_rate(solver: SolverSettings, seen: int, total: int) -> float:
    """The rate after `seen` stimuli; without MaxIterations, the policies that have an end reach it after `total` stimuli.

    With r the LearningRate, n = seen, e the end, k = n // LearningRateStepSize and d = LearningRateDecay:

    =================  =========================================
    StepDecay          r d^k
    ExponentialDecay   r exp(-d k)
    InvTDecay          r / (1 + d k)
    InvDecay           r (1 + d n)^-Power
    PolyDecay          r (1 - n / e)^Power
    CosineDecay        r max(MinDecay, (1 + cos(pi n / e)) / 2)
    =================  =========================================

    In the first WarmUpDuration stimuli, times a factor that rises from WarmUpLRFrac to 1.
    """
    end = solver.max_iterations or total
    share = min(seen / end, 1.0) if end else 0.0
    k, decay = seen // solver.learning_rate_step_size, solver.learning_rate_decay
    factor = {
        "None": lambda: 1.0,
        "StepDecay": lambda: decay**k,
        "ExponentialDecay": lambda: exp(-decay * k),
        "InvTDecay": lambda: 1 / (1 + decay * k),
        "InvDecay": lambda: (1 + decay * seen) ** -solver.power,
        "PolyDecay": lambda: (1 - share) ** solver.power,
        "CosineDecay": lambda: max(solver.min_decay, (1 + cos(pi * share)) / 2),
    }[solver.learning_rate_policy]()
    if seen < solver.warm_up_duration:
        factor *= solver.warm_up_lr_frac + (1 - solver.warm_up_lr_frac) * seen / solver.warm_up_duration
    return solver.learning_rate * factor
