"""Trains small networks of modern kinds with PyTorch and exports them as `modern.py` and `peers.py` read them.

    N2D2_DATA=FOLDER python benchmarks/modern_networks.py OUTPUT [convnext] [conformer] [gru] [-seed N] [-seconds S]

Each becomes a folder of OUTPUT: NAME.ts.onnx (input `input`, output `output`, opset 17), calib.npy (stimuli that calibrate), eval.npz
(x: those that are measured, y: labels). None of these stimuli was trained on. Data: FOLDER/cifar10 and FOLDER/kws.

- convnext: 3x32x32 -> 10; stem of 2, three stages of blocks (depthwise 7x7, LayerNorm, Linear, GELU, Linear, scale of the layer);
- conformer: 1x49x10 -> 12, speech features; a Linear to 48, two blocks (half a feed-forward layer with SiLU, attention of 4 heads, pointwise
  convolution with GLU, depthwise convolution over time, BatchNorm, SiLU, pointwise, half a feed-forward layer, LayerNorm);
- gru: 1x49x10 -> 12, the same features; two GRU layers.

Training takes S seconds (20): scores are low; compare with floating point.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from common import DATA
from PIL import Image
from torch import nn

_MEAN, _DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


class LayerNorm2d(nn.LayerNorm):
    """LayerNorm over the channels of maps (N, C, H, W)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNextBlock(nn.Module):
    """A block of ConvNeXt; the scale of the layer begins at 0.1."""

    def __init__(self, width: int):
        super().__init__()
        self.spatial = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm, self.first, self.second = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.spatial(x).permute(0, 2, 3, 1))
        y = self.scale * self.second(nn.functional.gelu(self.first(y)))
        return x + y.permute(0, 3, 1, 2)


def convnext() -> nn.Module:
    """Stages of 32, 64 and 96 channels."""
    layers: list[nn.Module] = [nn.Conv2d(3, 32, 2, 2), LayerNorm2d(32), ConvNextBlock(32)]
    for before, width, depth in ((32, 64, 2), (64, 96, 1)):
        layers += [LayerNorm2d(before), nn.Conv2d(before, width, 2, 2), *(ConvNextBlock(width) for _ in range(depth))]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(96), nn.Linear(96, 10))


class Attention(nn.Module):
    """Attention of `heads` over (N, T, width)."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads, self.project, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, t, width = x.shape
        q, k, v = self.project(x).reshape(n, t, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        shares = (q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5).softmax(-1)
        return self.out((shares @ v).transpose(1, 2).reshape(n, t, width))


def _feed_forward(width: int) -> nn.Module:
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))


class ConformerBlock(nn.Module):
    """A block of the Conformer, without relative positions."""

    def __init__(self, width: int):
        super().__init__()
        self.first, self.last, self.end = _feed_forward(width), _feed_forward(width), nn.LayerNorm(width)
        self.before, self.attention = nn.LayerNorm(width), Attention(width, 4)
        self.norm, self.gate = nn.LayerNorm(width), nn.Conv1d(width, 2 * width, 1)
        self.spatial = nn.Conv1d(width, width, 7, padding=3, groups=width)
        self.batch, self.out = nn.BatchNorm1d(width), nn.Conv1d(width, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + 0.5 * self.first(x)
        x = x + self.attention(self.before(x))
        y = nn.functional.glu(self.gate(self.norm(x).transpose(1, 2)), dim=1)
        x = x + self.out(nn.functional.silu(self.batch(self.spatial(y)))).transpose(1, 2)
        return self.end(x + 0.5 * self.last(x))


class Conformer(nn.Module):
    """Two blocks of width 48 over 49 frames of 10 features."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.blocks = nn.Linear(10, 48), nn.Sequential(ConformerBlock(48), ConformerBlock(48))
        self.leave = nn.Linear(48, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.leave(self.blocks(self.enter(x.flatten(1, 2))).mean(1))


class Recurrent(nn.Module):
    """Two GRU layers of 48 over 49 frames of 10 features."""

    def __init__(self) -> None:
        super().__init__()
        self.layers, self.leave = nn.GRU(10, 48, 2, batch_first=True), nn.Linear(48, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.leave(self.layers(x.flatten(1, 2))[0][:, -1])


def _pictures(part: str) -> tuple[np.ndarray, np.ndarray]:
    """Pictures (N, 3, 32, 32) of CIFAR-10, normalized, and their classes."""
    names = sorted(path.name for path in (DATA / "cifar10" / part).iterdir())
    files = [(file, k) for k, name in enumerate(names) for file in sorted((DATA / "cifar10" / part / name).iterdir())]
    x = np.stack([np.asarray(Image.open(file).convert("RGB")) for file, _ in files]).transpose(0, 3, 1, 2) / 255
    x = (x - np.reshape(_MEAN, (3, 1, 1))) / np.reshape(_DEVIATION, (3, 1, 1))
    return x.astype(np.float32), np.array([k for _, k in files])


def _data(name: str) -> tuple[np.ndarray, np.ndarray, int]:
    """Stimuli, labels, and how many of them, from the first on, are trained on."""
    order = np.random.default_rng(7)
    if name == "convnext":
        (x, y), (more, labels) = _pictures("test"), _pictures("train")
        mixed = order.permutation(len(more))
        return np.concatenate([x, more[mixed]]), np.concatenate([y, labels[mixed]]), len(x) + len(more) - 200
    stored = np.load(DATA / "kws" / "kws_mfcc.npz")
    mixed = order.permutation(len(stored["x"]))
    x, y = stored["x"][mixed], stored["y"][mixed]
    return ((x - x.mean()) / x.std()).astype(np.float32), y, len(x) - 150


def _train(net: nn.Module, x: np.ndarray, y: np.ndarray, seconds: float) -> None:
    optimizer = torch.optim.AdamW(net.parameters(), 2e-3, weight_decay=0.05)
    inputs, labels, start = torch.from_numpy(x), torch.from_numpy(y).long(), time.process_time()
    net.train()
    while (spent := (time.process_time() - start) / seconds) < 1:
        optimizer.param_groups[0]["lr"] = 2e-3 * (1 - spent)
        drawn = torch.randint(len(inputs), (32,))
        noisy = inputs[drawn] + 0.1 * torch.randn_like(inputs[drawn])
        loss = nn.functional.cross_entropy(
            net(noisy.flip(3) if inputs.shape[1] == 3 and spent * 100 % 1 < 0.5 else noisy), labels[drawn]
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()


def write_onnx(net: nn.Module, sample: torch.Tensor, file: Path, outputs: list[str], dynamic: bool = True) -> None:
    """The network as an ONNX file of opset 17 with the input `input`; `dynamic`: of any batch."""
    names = {"input_names": ["input"], "output_names": outputs, "opset_version": 17, "dynamo": False}
    axes = {each: {0: "n"} for each in ["input", *outputs]} if dynamic else None
    torch.onnx.export(net, (sample,), str(file), dynamic_axes=axes, **names)


NETWORKS = {"convnext": convnext, "conformer": Conformer, "gru": Recurrent}


def make(name: str, output: Path, seed: int, seconds: float) -> str:
    """Trains and writes one network; returns a line that describes it."""
    torch.manual_seed(seed)
    net, (x, y, trained) = NETWORKS[name](), _data(name)
    _train(net, x[:trained], y[:trained], seconds)
    folder, middle = output / name, trained + (len(x) - trained) // 2
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "calib.npy", x[trained:middle])
    np.savez_compressed(folder / "eval.npz", x=x[middle:], y=y[middle:])
    with torch.no_grad():
        found = net(torch.from_numpy(x[middle:])).argmax(1).numpy()
    file = folder / f"{name}.ts.onnx"
    write_onnx(net, torch.from_numpy(x[:1]), file, ["output"], dynamic=name != "gru")
    size = sum(p.numel() for p in net.parameters())
    return f"{name}: {size} parameters, {100 * (found == y[middle:]).mean():.1f} % of {len(found)}"


def main() -> None:
    """Makes the networks that are named, all by default."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=", ".join(NETWORKS))
    parser.add_argument("-seed", type=int, default=0)
    parser.add_argument("-seconds", type=float, default=20)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for name in given.networks or NETWORKS:
        print(make(name, given.output, given.seed, given.seconds), flush=True)


if __name__ == "__main__":
    main()
