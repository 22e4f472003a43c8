"""Every option that chooses integers says that it has no effect on a file that comes quantized."""

from __future__ import annotations

import onnx
import pytest
from support.quantized_models import Model

from n2d2py.options.table import OPTIONS
from n2d2py.options.typed import CHOICES, read_command
from n2d2py.pipeline import load_network
from n2d2py.stages.calibrate import calibrate_stage
from n2d2py.stages.quantize import quantize_stage

APART = ("flash-budget", "no-mixed-precision", "calib-reload")
"""Those that exclude others."""


@pytest.mark.parametrize("apart", [False, True])
def test_options_that_choose_integers_are_warned_of(apart, tmp_path, caplog):
    model = Model((4, 6, 6))
    model.outputs.append(model.rounded(model.add("Sigmoid", model.rounded("x", 0.03, 5)), 0.0079, -20))
    onnx.save(model.proto(), tmp_path / "net.onnx")
    chosen = [option for option in OPTIONS if option.name in CHOICES and (option.name in APART) == apart]
    words = [str(tmp_path / "net.onnx"), "-export", "CPP", "-o", str(tmp_path)]
    for option in chosen:
        value = {
            "act-clipping-mode": "Quantile",
            "wt-rounding": "nearest",
            "input-bits": "8",
            "output-bits": "8",
            "wt-bits": "4",
        }
        words.append(f"-{option.name}")
        if option.kind != "flag":
            words.append(value.get(option.name) or str(option.choices[-1] if option.choices else option.default or 1))
    path, options = read_command(words)
    quantize_stage(calibrate_stage(load_network(path, options), options.calibration), options.quantization, options.choices)
    (line,) = (record.getMessage() for record in caplog.records if "W503" in record.getMessage())
    named = line.replace(",", " ").split()
    assert {option.name for option in chosen} - {"act-rescaling-mode"} <= {word[1:] for word in named if word.startswith("-")}
    assert "-act-rescaling-mode" not in named
