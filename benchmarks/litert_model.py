"""Makes a .tflite file of a QDQ model, so that LiteRT can be timed on the same integers as the other runtimes.

    python benchmarks/litert_model.py MODEL_qdq.onnx [MODEL.tflite]

The model is read and written as `n2d2py MODEL_qdq.onnx -export TFLite` does with IntegerIO=1: its tensors keep their scales and zero
points (uint8 becomes int8, both less 128), inputs and outputs are int8, batch 1, channels last. The command prints how far the outputs
are from those of ONNX Runtime.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from common import session

import n2d2py
from n2d2py import log
from n2d2py.exports import ExportRequest, find_target


def write_litert(model: Path, path: Path) -> Path:
    """Writes the QDQ file `model` as the .tflite file `path` and returns that.

    Raises:
        N2D2Error: E701 for what TFLite does not have.
    """
    log.setup(quiet=True, verbose=False, strict=False)
    loaded = n2d2py.load(model, "TFLite")
    graph = n2d2py.quantize(loaded, n2d2py.calibrate(loaded, options=n2d2py.CalibrationOptions(stimuli=1)), bits=8).graph
    prepared = find_target("TFLite").prepare(ExportRequest(graph, parameters={"IntegerIO": True}))
    prepared.check()
    path.write_bytes(prepared.result.data)
    return path


def main() -> None:
    """The command."""
    from ai_edge_litert.interpreter import Interpreter

    model = Path(sys.argv[1])
    path = write_litert(model, Path(sys.argv[2]) if len(sys.argv) > 2 else model.with_suffix(".tflite"))
    run = session(model)
    interpreter = Interpreter(model_path=str(path))
    interpreter.allocate_tensors()
    (entry,), (last,) = interpreter.get_input_details(), interpreter.get_output_details()
    worst, equal, count = 0.0, 0, 0
    for seed in range(10):
        integers = np.random.default_rng(seed).integers(-128, 128, entry["shape"]).astype(np.int8)
        scale, zero = entry["quantization"]
        image = ((integers.astype(np.float32) - zero) * np.float32(scale)).transpose(0, 3, 1, 2)
        interpreter.set_tensor(entry["index"], integers)
        interpreter.invoke()
        scale, zero = last["quantization"]
        ours = (interpreter.get_tensor(last["index"]).astype(np.float32) - zero) * np.float32(scale)
        steps = np.abs(ours.reshape(-1) - run.run(None, {run.get_inputs()[0].name: image})[0].reshape(-1)) / scale
        worst, equal, count = max(worst, steps.max()), equal + int((steps < 0.5).sum()), count + steps.size
    print(
        f"{path}: {path.stat().st_size:,} bytes; on 10 random inputs {100 * equal / count:.1f} % of the outputs are those of "
        f"ONNX Runtime, the farthest is {worst:.0f} steps away"
    )


if __name__ == "__main__":
    main()
