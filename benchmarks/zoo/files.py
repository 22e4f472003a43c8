"""Writes the networks as ONNX files, by both exporters of PyTorch, with random weights."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from measure import images
from networks import NETWORKS

__all__ = ["EXPORTERS", "write"]

EXPORTERS = ("dynamo", "torchscript")


def write(name: str, exporter: str, path: Path, size: int | None = None) -> None:
    """The network `name` at `path` (batch 1), as `exporter` spells it with its default opset; `size` in place of the zoo's height and width.

    Weights are PyTorch's initial ones (seed 0). Each batch normalisation has a drawn gain and shift and has seen a
    batch of images, then its statistics are disturbed; gains of layers that start near 0 are drawn too. Raises ImportError for a missing library.
    """
    import torch

    torch.manual_seed(0)
    entry = NETWORKS[name]
    size = size or entry.size
    network = _disturbed(entry.make(), torch.as_tensor(images(8, size, 3)))
    sample = torch.randn(1, 3, size, size)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(network, (sample,), str(path), dynamo=exporter == "dynamo", external_data=False, verbose=False)


def _disturbed(network: Any, batch: Any) -> Any:
    import torch
    from torch import nn

    random = np.random.default_rng(0)

    def drawn(low: float, high: float, like: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(random.uniform(low, high, like.shape), dtype=like.dtype)

    norms = [m for m in network.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    for parameter in network.parameters():
        if parameter.dim() <= 1 or 1 in (parameter.numel(), parameter.shape[0] * parameter.shape[-1]) or parameter.std() < 1e-3:
            if float(parameter.detach().abs().max()) < 1e-2:  # gains and shifts that training would move away from 0
                parameter.data[:] = drawn(-0.3, 0.3, parameter)
    for norm in norms:
        norm.momentum = None
        if norm.affine:
            norm.weight.data[:] = drawn(0.6, 1.4, norm.weight)
            norm.bias.data[:] = drawn(-0.4, 0.4, norm.bias)
    network.train()
    for module in network.modules():
        if "Drop" in type(module).__name__ or "StochasticDepth" in type(module).__name__:
            module.eval()
    with torch.no_grad():
        network(batch)
    for norm in norms:
        norm.running_mean += drawn(-0.05, 0.05, norm.running_mean) * norm.running_var.sqrt()
        norm.running_var *= drawn(0.95, 1.05, norm.running_var)
    return network.eval()
