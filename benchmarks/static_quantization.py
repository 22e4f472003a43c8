"""What onnxruntime.quantization makes of a float file: QDQ, a weight scale for each output channel, after its own pre-processing."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import input_shapes

__all__ = ["write_static"]


def write_static(
    model: Path,
    made: Path,
    stimuli: Sequence[np.ndarray] | Sequence[dict[str, np.ndarray]],
    method: str = "MinMax",
    activations: str = "QUInt8",
    **extra: Any,
) -> None:
    """Writes the quantized file `made` of the file `model`.

    `stimuli` (...) of the first input, or arrays by input with the axes of the file, calibrate one by one, by a method of CalibrationMethod; `activations`: their QuantType; `extra`: its extra options.
    """
    from onnxruntime import quantization as q
    from onnxruntime.quantization.shape_inference import quant_pre_process

    name = next(iter(input_shapes(model)))

    class Reader(q.CalibrationDataReader):
        def __init__(self) -> None:
            self.set_range(0, len(stimuli))

        def __len__(self) -> int:
            return len(stimuli)

        def set_range(self, start_index: int, end_index: int) -> None:
            self._rest = iter(range(start_index, end_index))

        def get_next(self) -> dict[str, np.ndarray] | None:  # pyright: ignore[reportIncompatibleMethodOverride]  (None ends it)
            index = next(self._rest, None)
            one = {} if index is None else stimuli[index]
            return None if index is None else one if isinstance(one, dict) else {name: one[None]}

    with tempfile.TemporaryDirectory() as folder:
        prepared = Path(folder) / "prepared.onnx"
        quant_pre_process(str(model), str(prepared), skip_symbolic_shape=True)
        q.quantize_static(
            str(prepared),
            str(made),
            Reader(),
            quant_format=q.QuantFormat.QDQ,
            per_channel=True,
            activation_type=q.QuantType[activations],
            weight_type=q.QuantType.QInt8,
            calibrate_method=q.CalibrationMethod[method],
            extra_options=extra,
        )
