"""Trains the network of `models/LeNet.ini` on the digits and writes `models/LeNet.npz`.

Keys `<layer>_weights` (OCHW for Conv, OC for Fc) and `<layer>_biases` (O), float32. The inputs of
fc1 are in channel, row, column order; conv3's output is 1x1, so its channels are the inputs.

Usage: python train_lenet.py          (needs PyTorch; half a minute on one core)
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import numpy as np
import trainer
from torch import nn

OUTPUT = Path(__file__).resolve().parent.parent / "LeNet.npz"


class LeNet(nn.Sequential):
    """LeNet-5's layer sizes with ReLU and max pooling: 1x32x32 in [0, 1] to 10 logits."""

    def __init__(self) -> None:
        super().__init__(
            OrderedDict(
                conv1=nn.Conv2d(1, 6, 5),
                relu1=nn.ReLU(),
                pool1=nn.MaxPool2d(2),
                conv2=nn.Conv2d(6, 16, 5),
                relu2=nn.ReLU(),
                pool2=nn.MaxPool2d(2),
                conv3=nn.Conv2d(16, 120, 5),
                relu3=nn.ReLU(),
                flatten=nn.Flatten(),
                fc1=nn.Linear(120, 84),
                relu4=nn.ReLU(),
                drop1=nn.Dropout(0.2),
                fc2=nn.Linear(84, 10),
            )
        )


def main() -> None:
    """Trains, writes the weights and prints the accuracies."""
    network = trainer.train(LeNet, seed=1, epochs=120, peak=3e-3)
    arrays = {}
    for name, layer in network.named_children():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            arrays[f"{name}_weights"] = layer.weight.detach().numpy()
            arrays[f"{name}_biases"] = layer.bias.detach().numpy()
    np.savez(OUTPUT, **arrays)
    print(f"LeNet: train {trainer.accuracy(network, 'train'):.2f}%, test {trainer.accuracy(network, 't10k'):.2f}%")


if __name__ == "__main__":
    main()
