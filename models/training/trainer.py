"""One training loop for both networks: AdamW, one-cycle rate, deformed images, averaged weights.

Seeded, single-threaded and free of nondeterministic kernels: the same PyTorch on the same kind of
CPU gives the same weights.
"""

from __future__ import annotations

import math

import digits
import numpy as np
import torch
from torch import nn
from torch.nn import functional

BATCH = 64


def deform(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Images (N, 1, S, S) moved and dimmed at random, each by its own values.

    Rotation +-12 degrees, scale 0.88 to 1.12 per axis, shear +-0.12, shift +-3 of 32 pixels, gain
    0.85 to 1.15.
    """
    count, size = images.shape[0], images.shape[-1]

    def uniform(bound: float) -> torch.Tensor:
        return (torch.rand(count, generator=generator) * 2 - 1) * bound

    angle, shear = uniform(math.radians(12)), uniform(0.12)
    scale_x, scale_y = 1 + uniform(0.12), 1 + uniform(0.12)
    shift_x, shift_y = uniform(6 / size), uniform(6 / size)
    cos, sin = torch.cos(angle), torch.sin(angle)
    rows = [
        torch.stack([cos / scale_x, (shear - sin) / scale_x, shift_x], 1),
        torch.stack([sin / scale_y, cos / scale_y, shift_y], 1),
    ]
    grid = functional.affine_grid(torch.stack(rows, 1), list(images.shape), align_corners=False)
    moved = functional.grid_sample(images, grid, align_corners=False)
    return (moved * (1 + uniform(0.15))[:, None, None, None]).clamp(0, 1)


def accuracy(network: nn.Module, part: str) -> float:
    """Percentage of right answers on "train" or "t10k"."""
    images, labels = digits.load(part)
    network.eval()
    with torch.no_grad():
        found = network(torch.from_numpy(images)).argmax(1).numpy()
    return 100 * float(np.mean(found == labels))


def train(make: type[nn.Module], *, seed: int, epochs: int, peak: float) -> nn.Module:
    """A trained `make()`, with exponential averages of its parameters and statistics.

    `peak` is the highest learning rate. The test set is not looked at.
    """
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(seed)
    images, labels = (torch.from_numpy(values) for values in digits.load("train"))
    network = make()
    averaged = torch.optim.swa_utils.AveragedModel(
        network, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.995), use_buffers=True
    )
    optimizer = torch.optim.AdamW(network.parameters(), lr=peak, weight_decay=0.01)
    steps = epochs * math.ceil(len(images) / BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, peak, total_steps=steps)
    for epoch in range(epochs):
        network.train()
        order = torch.randperm(len(images), generator=generator)
        for start in range(0, len(images), BATCH):
            chosen = order[start : start + BATCH]
            scores = network(deform(images[chosen], generator))
            loss = functional.cross_entropy(scores, labels[chosen], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            averaged.update_parameters(network)
        if (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1}/{epochs}: loss {loss.item():.3f}", flush=True)
    averaged.eval()
    return averaged.module
