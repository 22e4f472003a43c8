"""The bridge to PyTorch, for those who train with a separate loop: a module from an INI, and its weights back.

module = n2d2py.torch.from_ini("net.ini")
...                                             # any loop; module(x)["softmax"]; module.clamp_parameters() after each step
n2d2py.torch.to_weights(module, "weights")      # then: n2d2py net.ini -w weights -export CPP -test
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from n2d2py.stages.load import load_stage
from n2d2py.stages.options import LoadOptions
from n2d2py.stages.train import not_trained, require_torch
from n2d2py.training.checkpoint import write_weights

if TYPE_CHECKING:
    from n2d2py.training.module import GraphModule


def from_ini(path: str | Path, weights: str | Path = "/dev/null", seed: int = 1) -> GraphModule:
    """Return the network of an INI as a module: called with x (N, C, H, W) it gives its outputs by name, or the tensors asked
    for. Layers with QWeight and QAct compute with the rounding of inference. `weights`: a folder or .npz as of `-w`. Raise E430
    without PyTorch, E431 for layers that cannot be trained, and what loading raises."""
    require_torch()
    from n2d2py.training.module import build_module

    network = load_stage(Path(path), LoadOptions(seed=seed, weights=weights, read_data=False, training="now"))
    store = network.weights
    if store is None or store.recipes is None:
        raise not_trained(Path(path))
    return build_module(network.graph, store.recipes, store)


def to_weights(module: GraphModule, folder: str | Path) -> Path:
    """Write the weights, statistics, steps and clipping values of a module as a folder that `-w` reads; the folder."""
    write_weights(Path(folder), module.arrays())
    return Path(folder)
