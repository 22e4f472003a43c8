"""A small network trained with quantization: its INI, its folder of weights as N2D2 writes one, and its outputs by NumPy in float64."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

INI = """DefaultModel=Frame_CUDA
[sp]
SizeX=8
SizeY=8
NbChannels=2
[Conv_def]
Type=Conv
KernelSize=3
ActivationFunction=Linear
QWeight={kind}
QWeight.Range={steps}
QWeight.QuantMode={mode}
ConfigSection=no_bias
[Bn_def]
Type=BatchNorm
ActivationFunction=Linear
QAct={kind}
QAct.Range={act}
QActSolver=SGD
[no_bias]
NoBias=1
[conv1] Conv_def
Input=sp
NbOutputs=6
Padding=1
QWeight.Range=255
[bn1] Bn_def
Input=conv1
NbOutputs=6
[pool1]
Input=bn1
Type=Pool
PoolDims=2 2
Stride=2
Pooling=Max
NbOutputs=6
Mapping.ChannelsPerGroup=1
[conv2] Conv_def
Input=pool1
NbOutputs=5
Padding=1
{more}
[bn2] Bn_def
Input=conv2
NbOutputs=5
[fc]
Input=bn2
Type=Fc
NbOutputs=3
QWeight={kind}
QWeight.Range={steps}
QWeight.QuantMode={mode}
{scaling}
[fc.Target]
"""


@dataclass
class Trained:
    """`steps`, `act`: Range of the weights (255 in the first layer) and of the activations; `mode`: QWeight.QuantMode."""

    steps: int = 15
    act: int = 15
    mode: str = "Default"
    kind: str = "SAT"
    seed: int = 0
    more: str = ""
    gains: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self.weights = {
            "conv1": rng.normal(0, 0.4, (6, 2, 3, 3)),
            "conv2": rng.normal(0, 0.3, (5, 6, 3, 3)),
            "fc": rng.normal(0, 0.2, (3, 80)),
        }
        self.bias = rng.normal(0, 0.3, 3)
        self.steps_of = {"conv1": 255, "conv2": self.steps, "fc": self.steps}
        self.norm = {}
        for layer, outputs in (("bn1", 6), ("bn2", 5)):
            scales = self.gains.get(layer, rng.normal(0, 1, outputs))
            self.norm[layer] = {
                "scales": scales,
                "biases": rng.normal(1, 0.5, outputs),
                "means": rng.normal(0, 0.3, outputs),
                "variances": rng.uniform(2, 6, outputs),
            }
        self.alpha = {"bn1": 2.375, "bn2": 3.0625}
        self.step = {"conv1": 0.0078125, "conv2": 0.05078125, "fc": 0.0390625}

    @property
    def ini(self) -> str:
        scaling = "QWeight.ApplyScaling=1" if self.kind == "SAT" else ""
        return INI.format(kind=self.kind, steps=self.steps, mode=self.mode, act=self.act, more=self.more, scaling=scaling)

    def levels(self, layer: str) -> tuple[np.ndarray, float]:
        """(integers, scale) of a layer's weights, by the formulas of the papers."""
        w, steps = self.weights[layer].astype(np.float32).astype(np.float64), self.steps_of[layer]
        bits = int(np.log2(steps + 1))
        if self.kind == "LSQ":
            s = self.step[layer]
            return np.clip(np.round(w / s), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1), s
        t = np.tanh(w) / np.abs(np.tanh(w)).max()
        if steps == 1:
            integers, scale = np.sign(t), 1.0
        elif self.mode == "Symmetric":
            integers, scale = np.round(t * ((steps - 1) // 2)), 1 / ((steps - 1) // 2)
        else:
            integers, scale = 2 * np.round((t * 0.5 + 0.5) * steps) - steps, 1 / steps
        if layer == "fc":
            scale *= 1 / np.sqrt(3 * np.var(integers * scale))
        return integers, scale

    def write(self, folder: Path, *, real: bool = True, quantized: bool = False) -> None:
        """Writes the text files into `folder`: weights before and behind the quantizer, as asked."""
        folder.mkdir(exist_ok=True)
        for layer, values in self.weights.items():
            if real:
                _text(folder / f"{layer}_weights.syntxt", values)
            if quantized:
                integers, scale = self.levels(layer)
                suffix = "_quant" if layer == "fc" else ""
                _text(folder / f"{layer}_quant_weights{suffix}.syntxt", integers * scale)
            if self.kind == "LSQ":
                _text(folder / f"{layer}_QWeight_LSQ_StepSize.syntxt", np.array([self.step[layer]]))
        _text(folder / "fc_biases.syntxt", self.bias)
        for layer, arrays in self.norm.items():
            for name, values in arrays.items():
                _text(folder / f"{layer}_{name}.syntxt", values)
            role, value = "QAct_SAT_Alpha", self.alpha[layer]
            if self.kind == "LSQ":
                role, value = "QAct_LSQ_StepSize", value / self.act
            _text(folder / f"{layer}_{role}.syntxt", np.array([value]))

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """The network's outputs (n, 3), without any integers."""
        x = self._block(x, "conv1", "bn1")
        x = x.reshape(len(x), 6, 4, 2, 4, 2).max(axis=(3, 5))
        x = self._block(x, "conv2", "bn2")
        integers, scale = self.levels("fc")
        return x.reshape(len(x), -1) @ (integers * scale).T + self.bias

    def _block(self, x: np.ndarray, layer: str, norm: str) -> np.ndarray:
        integers, scale = self.levels(layer)
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        y = np.einsum("nchwuv,ocuv->nohw", windows, integers * scale, optimize=True)
        p = {name: values[:, None, None] for name, values in self.norm[norm].items()}
        y = (y - p["means"]) / np.sqrt(p["variances"] + 1e-5) * p["scales"] + p["biases"]
        alpha = self.alpha[norm]
        return np.round(np.clip(y / alpha, 0, 1) * self.act) / self.act * alpha


def _text(path: Path, values: np.ndarray) -> None:
    rows = values.reshape(len(values), -1)
    path.write_text("\n".join(" ".join(f"{value:.9g}" for value in row) for row in rows))
