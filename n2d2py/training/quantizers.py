"""Quantizers for training as PyTorch modules: forward as `n2d2py.arithmetic.trained`, backward straight-through.

Sources of the gradients: LSQ, Esser et al., "Learned Step Size Quantization" (2019); SAT, Jin et al., "Towards Efficient
Training for Neural Network Quantization" (2019), with DoReFa weights and calibrated gradients of the clipping value (CG-PACT).
"""

# PyTorch is an extra: pyright runs without it too, and then takes n2d2py/torch.py for it
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from math import sqrt

import torch
from torch import Tensor, nn

from n2d2py.arithmetic.trained import bits_of, grid_top

MIN_POSITIVE = 1e-6
"""Lower bound of steps and clipping values."""


def _lsq(x: Tensor, step: Tensor, low: int, high: int, gain: float = 1.0) -> Tensor:
    """Return s clamp(round(x / s), low, high); dy/ds is multiplied by `gain`. One step, or steps that broadcast against x."""
    step = step.clone()
    if step.requires_grad:
        step.register_hook(lambda gradient: gain * gradient)
    quotient = torch.clamp(x / step, low, high)
    return (quotient + (torch.round(quotient) - quotient).detach()) * step


class TrainableQuantizer(nn.Module):
    """A quantizer, whose parameter, a step or an alpha, has the name `role` in N2D2's files; "" without one."""

    role = ""

    def tensors(self) -> dict[str, Tensor]:
        """Return what it learns, under N2D2's file names."""
        return dict(zip([self.role], self.parameters(), strict=False))


class LsqWeights(TrainableQuantizer):
    """Quantizer of weights (O, ...) to -2^(b-1) .. 2^(b-1) - 1 times `step`, of shape (1) or (O)."""

    role = "QWeight_LSQ_StepSize"

    def __init__(self, steps: int, step: Tensor):
        super().__init__()
        self.reach = 2 ** (bits_of(steps) - 1)
        self.step = nn.Parameter(step)

    def forward(self, weights: Tensor) -> Tensor:
        each = self.step.reshape(-1, *(1,) * (weights.dim() - 1)).double()
        gain = 1 / sqrt(weights.numel() / self.step.numel() * max(self.reach - 1, 1))
        return _lsq(weights.double(), each, -self.reach, self.reach - 1, gain).float()


class SatWeights(TrainableQuantizer):
    """tanh(w) / max |tanh(w)| on a grid of `n2d2py.arithmetic.trained`; real values in -1 .. 1 unless `quantizes`.

    `outputs`: ApplyScaling=1 divides by sqrt(outputs * variance of the result); 0: no division.
    """

    def __init__(self, steps: int, grid: str, quantizes: bool, outputs: int):
        super().__init__()
        self.steps, self.grid, self.quantizes, self.outputs = steps, grid, quantizes, outputs

    def forward(self, weights: Tensor) -> Tensor:
        bent = torch.tanh(weights.double())
        largest = bent.detach().abs().max()
        real = bent / largest if largest > 0 else bent
        if not self.quantizes:
            return real.float()
        unit = 1.0 / grid_top(self.steps, self.grid)
        with torch.no_grad():
            integers, scale = self._integers(real), unit
            if self.outputs and (variance := float((integers * scale).var(unbiased=False))) > 0:
                scale *= 1 / sqrt(self.outputs * variance)
            stored = float(torch.tensor(scale, dtype=torch.float32))
        gain = stored / unit
        return (gain * real + (integers * stored - gain * real).detach()).float()

    def _integers(self, real: Tensor) -> Tensor:
        top = grid_top(self.steps, self.grid)
        if self.steps == 1:
            return torch.where(real >= 0, 1.0, -1.0).double()
        if self.grid == "odd":
            return 2 * torch.round((real + 1) / 2 * self.steps) - self.steps
        return torch.clamp(torch.round(real * top), -top, top - 1 if self.grid == "full" else top)


class LsqActivation(TrainableQuantizer):
    """Quantizer of activations to 0 .. steps times `step`; with `first`, the first batch sets the step."""

    role = "QAct_LSQ_StepSize"

    def __init__(self, steps: int, step: float, first: bool):
        super().__init__()
        self.steps = steps
        self.step = nn.Parameter(torch.tensor([step]))
        self.waits: Tensor
        self.register_buffer("waits", torch.tensor(first))

    def forward(self, x: Tensor) -> Tensor:
        if self.training and bool(self.waits):
            with torch.no_grad():
                step = 2 * float(x.clamp(min=0).mean()) / sqrt(self.steps)
                self.step.fill_(step if step > MIN_POSITIVE else 1.0)
                self.waits.fill_(False)
        gain = 1 / sqrt(x[0].numel() * self.steps)
        return _lsq(x, self.step, 0, self.steps, gain)


class SatActivation(TrainableQuantizer):
    """Quantizer of activations to 0 .. steps times alpha / steps; unclipped x, too, give alpha a gradient."""

    role = "QAct_SAT_Alpha"

    def __init__(self, steps: int, alpha: float):
        super().__init__()
        self.steps = steps
        self.alpha = nn.Parameter(torch.tensor([alpha]))

    def forward(self, x: Tensor) -> Tensor:
        return _lsq(x, self.alpha / self.steps, 0, self.steps)
