"""Writes tests/quant/aimet: a small network, AIMET's encodings of it in three formats, and what AIMET computes with them.

    pip install aimet-onnx == 2.42.0 && python tests/quant/make_aimet_vectors.py

The outputs are those of AIMET's own simulation (`simulated`) and of its export as QDQ with int32 biases in ONNX Runtime (`qdq`).
"""

# pyright: reportMissingImports=false
import json
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from aimet_onnx.quantsim import QuantizationSimModel
from torch import nn

FOLDER = Path(__file__).parent / "aimet"


class Network(nn.Module):
    """Convolutions, one of them depthwise, a clamp, a sum, a pool and a linear layer."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(2, 6, 3, padding=1), nn.Conv2d(6, 6, 3, stride=2, padding=1, groups=6)
        self.c, self.d, self.f = nn.Conv2d(6, 8, 1), nn.Conv2d(6, 8, 1), nn.Linear(32, 5)

    def forward(self, x):
        y = self.b(torch.relu(self.a(x))).clamp(0, 6)
        return self.f(nn.functional.max_pool2d(self.c(y) + self.d(y), 2).flatten(1))


def run(session, x):
    return np.concatenate([session.run(None, {"image": x[k : k + 1]})[0] for k in range(len(x))])


def main() -> None:
    torch.manual_seed(3)
    FOLDER.mkdir(exist_ok=True)
    file = FOLDER / "net.onnx"
    names = {"input_names": ["image"], "output_names": ["classes"]}
    torch.onnx.export(Network().eval(), torch.zeros(1, 2, 8, 8), file, opset_version=17, dynamo=False, **names)
    x = np.random.default_rng(2).uniform(-1, 1, (16, 2, 8, 8)).astype(np.float32)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    for name, weights, activations in (("w8a8", "int8", "int8"), ("w4a16", "int4", "int16")):
        sim = QuantizationSimModel(
            onnx.load(file), param_type=weights, activation_type=activations, providers=["CPUExecutionProvider"]
        )
        sim.compute_encodings([{"image": x[k : k + 1]} for k in range(len(x))])
        qdq = onnxruntime.InferenceSession(sim.to_onnx_qdq(export_int32_bias=True).SerializeToString(), options)
        np.savez_compressed(FOLDER / f"{name}.npz", x=x, simulated=run(sim.session, x), qdq=run(qdq, x))
        with tempfile.TemporaryDirectory() as folder:
            for version in ("0.6.1", "1.0.0", "2.0.0"):
                sim.export(folder, "net", encoding_version=version)
                data = json.loads((Path(folder) / "net.encodings").read_text())
                (FOLDER / f"{name}_{version}.encodings").write_text(json.dumps(data) + "\n")


if __name__ == "__main__":
    main()
