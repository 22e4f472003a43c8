"""Draws or trains small networks of the kinds that are hard to quantize, and exports them as `peers.py` reads them.

    python benchmarks/drawn_networks.py OUTPUT [NETWORK ...]

Each becomes a folder of OUTPUT: NAME.onnx (input `input`, opset 17, open batch), calib.npy (100 samples that calibrate) and eval.npz (x: 100
others). Seeds are fixed by the name. What is trained is trained for a number of steps, so that two runs give the same network. A folder
that is there is kept.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from modern_networks import Attention, write_onnx
from torch import nn
from torch.nn import functional as F

SAMPLES = 100
Draw = np.random.Generator
Data = Callable[[Draw, int], np.ndarray]


# ---- data ------------------------------------------------------------------------------------------------
def smooth(rng: Draw, *shape: int, width: int = 4) -> np.ndarray:
    """Noise whose last axis is averaged over `width` values, of variance 1."""
    x = rng.normal(size=(*shape[:-1], shape[-1] + width - 1)).cumsum(-1)
    x = np.concatenate([x[..., width - 1 : width], x[..., width:] - x[..., :-width]], -1)
    return (x / x.std()).astype(np.float32)


def images(channels: int, size: int, low: float = 0.0) -> Data:
    """Smooth images (n, channels, size, size) between `low` and 1."""

    def draw(rng: Draw, n: int) -> np.ndarray:
        x = smooth(rng, n, channels, size, size, width=5)
        x = np.swapaxes(smooth(rng, n, channels, size, size, width=5), -1, -2) + x
        return (low + (1 - low) / (1 + np.exp(-1.5 * x))).astype(np.float32)

    return draw


def tokens(count: int, width: int) -> Data:
    """Rows (n, count, width) of variance 1."""
    return lambda rng, n: np.swapaxes(smooth(rng, n, width, count), 1, 2).copy()


def raw_sequence(rng: Draw, n: int) -> np.ndarray:
    """40 frames of 12 features about 100, of deviation 20."""
    return 100 + 20 * tokens(40, 12)(rng, n)


def power_frames(rng: Draw, n: int) -> np.ndarray:
    """Power spectra (n, 32, 40): 60 dB between quiet and loud."""
    return np.exp(1.5 * tokens(32, 40)(rng, n) + 2 * rng.normal(size=(n, 1, 1))).astype(np.float32)


UNITS = np.array([1013.0, 0.02, 21.0, 4e4, 0.5, -9.8], np.float32)


def sensor_values(rng: Draw, n: int) -> np.ndarray:
    """Windows (n, 6, 32) of six sensors, each in its unit."""
    return (UNITS[:, None] * (1 + np.array([0.01, 1, 0.3, 0.5, 1, 0.2])[:, None] * smooth(rng, n, 6, 32))).astype(np.float32)


def traces(rng: Draw, n: int) -> np.ndarray:
    """Seismic-like shots (n, 1, 32, 64): wavelets on noise, their amplitude a factor of 1000 apart."""
    t, x = np.arange(64.0), rng.laplace(0, 0.02, (n, 1, 32, 64))
    for shot in x[:, 0]:
        for _ in range(4):
            place, slope, size = rng.uniform(5, 45), rng.uniform(-0.5, 0.5), 10 ** rng.uniform(-1.5, 1.5)
            u = (t - place - slope * np.arange(32)[:, None]) / 2.5
            shot += size * (1 - 2 * u**2) * np.exp(-(u**2))
    return x.astype(np.float32)


# ---- networks ----------------------------------------------------------------------------------------------
class Apply(nn.Module):
    """A function of a tensor."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]):
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


class Recurrent(nn.Module):
    """A recurrent layer, and a Linear layer of each step or of the last one."""

    def __init__(self, cell: nn.Module, outputs: int, last: bool, scale: float = 1.0):
        super().__init__()
        self.cell, self.last = cell, last
        self.leave = nn.Linear(cell.hidden_size * (2 if cell.bidirectional else 1), outputs)
        for parameter in cell.parameters():
            parameter.data *= scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.cell(x)[0]
        return self.leave(y[:, -1] if self.last else y)


class Mask(nn.Module):
    """A mask of a GRU on the logarithm of power spectra, times the spectra."""

    def __init__(self) -> None:
        super().__init__()
        self.net = Recurrent(nn.GRU(40, 32, batch_first=True), 40, last=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(self.net(torch.log(x + 1e-3)))


class Residual(nn.Module):
    """x + net(x), cut to the length of net(x)."""

    def __init__(self, *layers: nn.Module):
        super().__init__()
        self.net = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.net(x)


class Concatenated(nn.Module):
    """x next to net(x), along the channels."""

    def __init__(self, *layers: nn.Module):
        super().__init__()
        self.net = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, self.net(x)], 1)


class RmsNorm(nn.Module):
    """x / sqrt(mean of x^2) * gain."""

    def __init__(self, width: int):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gain * x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)


class Gated(nn.Module):
    """down(silu(gate(x)) * up(x))."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class FirstToken(nn.Module):
    """A learned token in front of the others."""

    def __init__(self, width: int, scale: float):
        super().__init__()
        self.token = nn.Parameter(scale * torch.randn(1, 1, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)


def _spread(parameter: torch.Tensor, deviation: float) -> torch.Tensor:
    """Factors (first axis of the parameter), log-normal."""
    return torch.exp(deviation * torch.randn(parameter.shape[0]))


def transformer(width: int, rms: bool, blocks: int = 2) -> nn.Sequential:
    """Blocks of attention and an MLP over rows, a Linear layer before and after."""
    norm = RmsNorm if rms else nn.LayerNorm
    layers: list[nn.Module] = [nn.Linear(16, width)]
    for _ in range(blocks):
        mlp = (
            Gated(width, 2 * width)
            if rms
            else nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        )
        layers += [Residual(norm(width), Attention(width, 4)), Residual(norm(width), mlp)]
    return nn.Sequential(*layers, norm(width), nn.Linear(width, 10))


def _attentions(net: nn.Module) -> list[Attention]:
    return [one for one in net.modules() if isinstance(one, Attention)]


def outlier_channels() -> nn.Module:
    """Gains of LayerNorms that differ by a factor of 50, which the weights after them take back in part."""
    net = transformer(48, rms=False)
    for block in [one for one in net if isinstance(one, Residual)]:
        norm, after = block.net[0], block.net[1]
        first = after.project if isinstance(after, Attention) else after[0]
        factors = _spread(norm.weight, 1.2)
        norm.weight.data *= factors
        first.weight.data /= factors**0.9
    return net


def stream_outliers() -> nn.Module:
    """Three channels of the residual stream, 60 times the others."""
    net = transformer(48, rms=False)
    with torch.no_grad():
        net[0].weight[:3] *= 60
        net[0].bias[:3] += 40
    return net


def values_and_queries() -> nn.Module:
    """Channels of values 30 times the others, with the output projection divided; queries against keys the same."""
    net = transformer(48, rms=True)
    for attention in _attentions(net):
        with torch.no_grad():
            q, k, v = attention.project.weight.chunk(3)
            large, wide = torch.exp(1.3 * torch.randn(48)), torch.exp(1.3 * torch.randn(48))
            q *= large[:, None]
            k /= large[:, None]
            v *= wide[:, None]
            attention.out.weight /= wide
            attention.project.bias.zero_()
    return net


def attention_gains() -> nn.Module:
    """Queries and keys five times as large: sharp attention."""
    net = transformer(48, rms=False)
    with torch.no_grad():
        for attention in _attentions(net):
            attention.project.weight[:96] *= 3
    return net


def sink_token() -> nn.Module:
    """A first token 100 times the others."""
    net = transformer(48, rms=True)
    return nn.Sequential(net[0], FirstToken(48, 100.0), *list(net)[1:])


def sink_mlp() -> nn.Module:
    """A gated MLP that makes one value of the first token 300 times the others, as large language models have it."""
    net = transformer(48, rms=True)
    token = FirstToken(48, 3.0)
    gated = next(one for one in net.modules() if isinstance(one, Gated))
    with torch.no_grad():
        aim = token.token[0, 0] / token.token.norm()
        for part in (gated.gate, gated.up):
            part.weight[0] = 2 * aim
        gated.down.weight[5, 0] = 1.0
    return nn.Sequential(net[0], token, *list(net)[1:])


def temporal() -> nn.Module:
    """Dilated residual convolutions over time."""
    blocks = [
        Residual(nn.ConstantPad1d((2 * d, 0), 0.0), nn.Conv1d(32, 32, 3, dilation=d), nn.BatchNorm1d(32), nn.ReLU())
        for d in (1, 2, 4, 8)
    ]
    return nn.Sequential(nn.Conv1d(6, 32, 1), *blocks, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 8))


class Sensors(nn.Module):
    """Convolutions over sensors; their normalization is part of the network."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(6)
        self.norm.running_mean.copy_(torch.from_numpy(UNITS))
        self.norm.running_var.copy_(torch.from_numpy((UNITS * np.array([0.01, 1, 0.3, 0.5, 1, 0.2])) ** 2))
        self.norm.eps = 1e-9
        self.net = nn.Sequential(
            nn.Conv1d(6, 24, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(24, 24, 5, padding=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(384, 5),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(self.norm(x))


def _conv(before: int, after: int, stride: int = 1, kernel: int = 3, groups: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(after), nn.ReLU()]


class Detector(nn.Module):
    """Boxes in pixels and scores of two sizes of maps, as outputs of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(*_conv(3, 16, 2), *_conv(16, 24, 2))
        self.deep = nn.Sequential(*_conv(24, 32, 2), *_conv(32, 32))
        self.boxes = nn.ModuleList([nn.Conv2d(24, 4, 1), nn.Conv2d(32, 4, 1)])
        self.scores = nn.ModuleList([nn.Conv2d(24, 5, 1), nn.Conv2d(32, 5, 1)])

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        maps = [self.stem(x)]
        maps.append(self.deep(maps[0]))
        boxes = [64 * torch.sigmoid(head(one)).flatten(2) for head, one in zip(self.boxes, maps, strict=True)]
        scores = [torch.sigmoid(3 * head(one) - 1).flatten(2) for head, one in zip(self.scores, maps, strict=True)]
        return torch.cat(boxes, 2), torch.cat(scores, 2)


class Joined(Detector):
    """Boxes in pixels and scores in one output."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat(super().forward(x), 1)


class Unet(nn.Module):
    """Two levels, skips by Concat."""

    def __init__(self, channels: int = 16) -> None:
        super().__init__()
        c = channels
        self.first, self.second = (
            nn.Sequential(*_conv(1, c), *_conv(c, c)),
            nn.Sequential(*_conv(c, 2 * c), *_conv(2 * c, 2 * c)),
        )
        self.third = nn.Sequential(*_conv(2 * c, 2 * c))
        self.up, self.last = nn.ConvTranspose2d(2 * c, 2 * c, 2, 2), nn.ConvTranspose2d(2 * c, c, 2, 2)
        self.middle, self.end = nn.Sequential(*_conv(4 * c, 2 * c)), nn.Sequential(*_conv(2 * c, c), nn.Conv2d(c, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.first(x)
        b = self.second(F.max_pool2d(a, 2))
        y = self.middle(torch.cat([b, self.up(self.third(F.max_pool2d(b, 2)))], 1))
        return self.end(torch.cat([a, self.last(y)], 1))


def dense() -> nn.Module:
    """Two dense blocks of four layers."""
    layers, width = [nn.Conv2d(3, 16, 3, 2, 1)], 16
    for _ in range(2):
        for _ in range(4):
            layers.append(Concatenated(nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, 12, 3, padding=1, bias=False)))
            width += 12
        layers += [nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width // 2, 1), nn.AvgPool2d(2)]
        width //= 2
    return nn.Sequential(*layers, nn.BatchNorm2d(width), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


def mel_cnn() -> nn.Module:
    """Convolutions on the logarithm of spectra."""
    layers = [*_conv(1, 16, 2), *_conv(16, 32, 2), *_conv(32, 32)]
    log_image = Apply(lambda x: torch.log(torch.clamp(x, min=1e-3)).unsqueeze(1))
    return nn.Sequential(log_image, *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


def wide_depthwise() -> nn.Module:
    """Depthwise and pointwise layers with ReLU6 whose channels have ranges a factor of 100 apart."""
    layers: list[nn.Module] = [*_conv(3, 16, 2)]
    for before, after in ((16, 32), (32, 48), (48, 48)):
        layers += [*_conv(before, before, groups=before)[:2], nn.ReLU6(), *_conv(before, after, kernel=1)[:2], nn.ReLU6()]
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 10))
    for one in net.modules():
        if isinstance(one, nn.BatchNorm2d):
            one.weight.data *= _spread(one.weight, 1.2)
    return net


def super_resolution() -> nn.Module:
    """Twice the size by sub-pixel convolution."""
    return nn.Sequential(
        nn.Conv2d(1, 24, 5, padding=2),
        nn.ReLU(),
        nn.Conv2d(24, 24, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(24, 4, 3, padding=1),
        nn.PixelShuffle(2),
    )


def autoencoder() -> nn.Module:
    """Linear layers 64, 48, 8, 48, 64."""
    sizes = (64, 48, 8, 48)
    layers = [layer for a, b in pairwise(sizes) for layer in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(48, 64))


# ---- what is made -------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Family:
    """A network, its samples, and what it learns of them: `target` gives what the outputs should be; None leaves the weights as drawn."""

    net: Callable[[], nn.Module]
    data: Data
    target: Callable[[torch.Tensor], torch.Tensor] | None = None
    learned: Data | None = None
    steps: int = 300


def _class(x: torch.Tensor) -> torch.Tensor:
    """Four classes by the signs of two sums."""
    flat = ((x - x.mean(0)) / (x.std(0) + 1e-9)).flatten(1)
    half = flat.shape[1] // 2
    return 2 * (flat[:, :half].sum(1) > 0).long() + (flat[:, half:].sum(1) > 0).long()


def _halved(x: torch.Tensor) -> torch.Tensor:
    return F.avg_pool2d(x, 2)


FAMILIES = {
    "lstm_norm": Family(
        lambda: nn.Sequential(Apply(lambda x: (x - 100) / 20), Recurrent(nn.LSTM(12, 48, batch_first=True), 10, last=True)),
        raw_sequence,
    ),
    "bilstm": Family(
        lambda: Recurrent(nn.LSTM(16, 32, batch_first=True, bidirectional=True), 8, last=False, scale=2.0), tokens(24, 16)
    ),
    "gru_mask": Family(Mask, power_frames),
    "tcn": Family(temporal, lambda rng, n: smooth(rng, n, 6, 64)),
    "outlier_channels": Family(outlier_channels, tokens(20, 16)),
    "stream_outliers": Family(stream_outliers, tokens(20, 16)),
    "rms_gated": Family(lambda: transformer(48, rms=True), tokens(20, 16)),
    "values_queries": Family(values_and_queries, tokens(20, 16)),
    "attention_gains": Family(attention_gains, tokens(20, 16)),
    "sink_token": Family(sink_token, tokens(20, 16)),
    "sink_mlp": Family(sink_mlp, tokens(20, 16)),
    "sensors_conv": Family(Sensors, sensor_values, _class),
    "detector": Family(Detector, images(3, 32)),
    "detector_joined": Family(Joined, images(3, 32)),
    "seismic": Family(Unet, traces, torch.tanh, steps=200),
    "dense": Family(dense, images(3, 32, -1.0)),
    "mel_cnn": Family(mel_cnn, power_frames),
    "wide_depthwise": Family(wide_depthwise, images(3, 32)),
    "super_resolution": Family(super_resolution, images(1, 16), lambda x: F.interpolate(x, scale_factor=2.0, mode="bicubic")),
    "autoencoder": Family(autoencoder, lambda rng, n: 5 * smooth(rng, n, 64, width=12) - 20, lambda x: x, steps=600),
}


def _fit(net: nn.Module, x: torch.Tensor, target: Callable[[torch.Tensor], torch.Tensor], steps: int) -> None:
    optimizer, wanted = torch.optim.Adam(net.parameters(), 3e-3), target(x)
    for _ in range(steps):
        drawn = torch.randint(len(x), (32,))
        found = net(x[drawn])
        loss = F.mse_loss(found, wanted[drawn]) if wanted.is_floating_point() else F.cross_entropy(found, wanted[drawn])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def make(name: str, output: Path) -> Path:
    """Write one network where it is not there yet; returns its folder."""
    folder, family = output / name, FAMILIES[name]
    if (folder / "eval.npz").is_file():
        return folder
    seed = zlib.crc32(name.encode())
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    x = family.data(np.random.default_rng(seed), 400 + 2 * SAMPLES)
    learned, given, measured = np.split(x, [400, 400 + SAMPLES])
    net = family.net().train()
    if family.target is not None:
        _fit(net, torch.from_numpy(learned), family.target, family.steps)
    elif any(isinstance(one, nn.modules.batchnorm._BatchNorm) for one in net.modules()):
        with torch.no_grad():
            for _ in range(30):
                net(torch.from_numpy(learned[:100]))
    net.eval()
    folder.mkdir(parents=True, exist_ok=True)
    with torch.no_grad():
        found = net(torch.from_numpy(given[:1]))
    outputs = [f"output{k}" for k in range(len(found))] if isinstance(found, tuple) else ["output"]
    write_onnx(net, torch.from_numpy(given[:1]), folder / f"{name}.onnx", outputs)
    np.save(folder / "calib.npy", given)
    np.savez_compressed(folder / "eval.npz", x=measured)
    return folder


def main() -> None:
    """Makes the networks that are named, all by default."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=", ".join(FAMILIES))
    given = parser.parse_args()
    for name in given.networks or FAMILIES:
        print(make(name, given.output), flush=True)


if __name__ == "__main__":
    main()
