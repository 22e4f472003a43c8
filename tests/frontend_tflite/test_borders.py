"""Inputs and outputs of exports of .tflite files: the 8-bit types of the file, and LiteRT's integers."""

from __future__ import annotations

import numpy as np
import pytest
from support.tables import every

pytest.importorskip("ai_edge_litert", reason="the referee, ai-edge-litert, is not installed")

from support.litert import Reference, channels_first
from support.tflite_cases import CASES
from support.tflite_files import Small

import n2d2py


@every("target", ["CPP", "CPP_MCU"])
@every("name", ["conv_relu", "conv_uint8", "conv_same"])
def test_stored_integers_are_those_of_the_file(name, target, tmp_path):
    made, output = CASES[name]()
    path = made.write(tmp_path, output)
    folder = n2d2py.export(path, target, folder=tmp_path).folder
    interpreter = Reference(path).interpreter
    (given,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    limits = np.iinfo(given["dtype"])
    x = made.rng.integers(limits.min, limits.max + 1, given["shape"]).astype(given["dtype"])
    interpreter.set_tensor(given["index"], x)
    interpreter.invoke()
    want = channels_first(interpreter.get_tensor(result["index"]))
    for net in [n2d2py.load_simulator(folder), *([n2d2py.load_export(folder)] if target == "CPP" else [])]:
        for port, details in ((net.info.inputs[0], given), (net.info.outputs[0], result)):
            assert (port.dtype, port.zero_point) == (details["dtype"], details["quantization"][1])
        found = net.run_raw(channels_first(x))
        # rescaling in fixed point rounds otherwise than LiteRT, by a step
        assert found.dtype == want.dtype and np.abs(found.astype(int) - want).max() <= (target == "CPP_MCU")
        real = (channels_first(x) - np.float32(given["quantization"][1])) * np.float32(given["quantization"][0])
        np.testing.assert_array_equal(net.info.outputs[0].type.quantize(net(real)), found)
    header = (folder / "include" / "m.h").read_text()
    for port, details in (("input", given), ("output", result)):
        assert f"typedef {np.dtype(details['dtype']).name}_t m_{port}_t;" in header
        assert f"m_{port.upper()}_ZERO_POINT = {details['quantization'][1]}" in header


def test_a_pass_through_of_the_input_keeps_its_integers(tmp_path):
    made = Small((1, 4, 4, 3), (0.05, -128))
    path = made.write(tmp_path, made.add("RELU", [made.x], (1, 4, 4, 3), (0.05, -128)))
    x = made.rng.integers(-128, 128, (2, 3, 4, 4)).astype(np.int8)
    folder = n2d2py.export(path, "CPP", folder=tmp_path).folder
    for net in (n2d2py.load_simulator(folder), n2d2py.load_export(folder)):
        np.testing.assert_array_equal(net.run_raw(x), x)


def test_pictures_of_a_file_with_channels_first(tmp_path):
    """A file of 1 x 3 x 6 x 5, which converters from PyTorch write: a byte of a picture is the stored integer, as int8 less 128."""
    from PIL import Image

    made = Small((1, 3, 6, 5), (0.05, -128))
    path = made.write(tmp_path, made.add("RELU", [made.x], (1, 3, 6, 5), (0.05, -128)))
    rows = made.rng.integers(0, 256, (6, 5, 3)).astype(np.uint8)
    (tmp_path / "data").mkdir()
    Image.fromarray(rows).save(tmp_path / "data" / "0.png")
    (x,) = n2d2py.load(path, options=n2d2py.LoadOptions(data=tmp_path / "data")).network.data.sets["Validation"].batches(1)
    np.testing.assert_allclose(x[0][0], rows.transpose(1, 2, 0) * np.float32(0.05), rtol=1e-6)
