"""Integers of .tflite files, equal to those of LiteRT's reference kernels in every layer, in both rescaling modes of the exports.

They look at `n2d2py.contracts.quant.file_rounding` and the quantizers of `n2d2py.operators`.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from support.e2e_run import compiled_at_once
from support.tables import every

pytest.importorskip("ai_edge_litert", reason="the referee, ai-edge-litert, is not installed")

from support.litert import Reference, agreement, channels_first
from support.tflite_cases import CASES
from support.tflite_files import Small, rewritten

import n2d2py
from n2d2py.cli import main
from n2d2py.contracts.quant.file_rounding import pool_rescale

pytestmark = pytest.mark.usefixtures("without_report")

TARGETS = ("CPP", "CPP_MCU")
DATA = Path(os.environ.get("N2D2_DATA", "../shared/data"))
FILES = sorted(
    {**{p.name: p for p in DATA.glob("field/real/*.tflite")}, **{p.name: p for p in DATA.glob("models/*.tflite")}}.values()
)
REFUSED = {"tflm_mnist_lstm", "tflm_mnist_lstm_int8", "tflm_keyword_8bit"}
"""Files with 16-bit integers or recurrent layers."""
_EXACT = ("average", "dense", "hard_swish", "leaky", "mean", "prelu", "quantize", "relu", "resize", "transpose_conv")


def _stored(made: Small, path: Path, stored: np.ndarray, target: str):
    """Compares for stored inputs (N, H, W, C)."""
    grid = made.file._tensors[made.x].quantization
    x = ((stored - grid.zeroPoint[0]) * np.float32(grid.scale[0])).astype(np.float32)
    return agreement(path, x.transpose(0, 3, 1, 2) if x.ndim == 4 else x, target=target)


def _layer(code: str, scale: float, step: float, zero: int, activation: int = 0, bias: int = 0):
    """A layer of weighted sums over one pixel of 8 channels whose scales give ties: those of the weights are powers of two times `scale`."""
    m = Small((1, 4, 4, 8), (0.5, -3))
    scales = np.float32(scale) * 2.0 ** np.arange(8).astype(np.float32)
    values = m.rng.integers(-3, 4, (8, 8)).astype(np.int8)
    values[0], values[7] = 0, 127
    shift = m.tensor("b", (8,), (scales * np.float32(0.5), 0), np.int32, m.rng.integers(-40, 41, 8).astype(np.int32) + bias)
    if code == "FULLY_CONNECTED":
        w = m.tensor("w", (8, 8), (scales, 0), np.int8, values, 0)
        fields = {"fusedActivationFunction": activation, "keepNumDims": True}
        return m, m.add(code, [m.x, w, shift], (1, 4, 4, 8), (step, zero), "FullyConnectedOptions", **fields)
    fields = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1, "fusedActivationFunction": activation}
    if code == "CONV_2D":
        w = m.tensor("w", (8, 1, 1, 8), (scales, 0), np.int8, values[:, None, None], 0)
        return m, m.add(code, [m.x, w, shift], (1, 4, 4, 8), (step, zero), "Conv2DOptions", **fields)
    w = m.tensor("w", (1, 1, 1, 8), (scales, 0), np.int8, values[None, None, :1], 3)
    inputs, fields["depthMultiplier"] = [m.x, w, shift], 1
    return m, m.add(code, inputs, (1, 4, 4, 8), (step, zero), "DepthwiseConv2DOptions", **fields)


@every("target", TARGETS)
@every("code", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
@every("scale, step", [(2.0**-6, 1.0), (2.0**-6, 0.7), (0.013, 0.9), (2.0**-11, 0.37), (0.4, 0.3)])
def test_weighted_sums(code, scale, step, target, tmp_path):
    """Ties of both signs, results below the zero point, with and without a rectifier, factors above 1 (shifts to the left)."""
    for activation in (0, 1):
        made, output = _layer(code, scale, step, -20, activation)
        stored = made.rng.integers(-128, 128, (40, 4, 4, 8))
        found = _stored(made, made.write(tmp_path, output), stored, target)
        assert found.layers and found.same == found.elements, found.counts


@every("target", TARGETS)
@every("code", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_the_scales_of_uint8_convolutions_are_multiplied_in_float32(code, target, tmp_path):
    """In float64 their product is below the power of two times the step that makes every odd accumulator a tie."""
    made = Small((1, 4, 4, 8), (0.1, 117), np.uint8)
    values = made.rng.integers(98, 103, (8, 1, 1, 8) if code == "CONV_2D" else (1, 1, 1, 8)).astype(np.uint8)
    w = made.tensor("w", values.shape, (0.05, 100), np.uint8, values)
    product = np.float32(0.1) * np.float32(0.05)
    bias = made.tensor("b", (8,), (product, 0), np.int32, made.rng.integers(-40, 41, 8).astype(np.int32))
    fields = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    options = "Conv2DOptions" if code == "CONV_2D" else "DepthwiseConv2DOptions"
    output = made.add(code, [made.x, w, bias], (1, 4, 4, 8), (2 * product, 120), options, np.uint8, **fields)
    found = _stored(made, made.write(tmp_path, output), made.rng.integers(0, 256, (40, 4, 4, 8)), target)
    assert found.layers and found.same == found.elements, found.counts


@every("target", TARGETS)
def test_outputs_without_weights(target, tmp_path):
    """The largest bias of a file, that of a channel whose weights are zeros, costs no other channel its rounding."""
    made, output = _layer("CONV_2D", 0.003, 0.9, -20, 1)
    path = rewritten(made.write(tmp_path, output), _large_bias)
    found = _stored(made, path, made.rng.integers(-128, 128, (40, 4, 4, 8)), target)
    assert found.layers and found.same == found.elements, found.counts


def _large_bias(schema, model):
    (bias,) = (one for one in model.subgraphs[0].tensors if one.name in (b"b", "b"))
    data = np.array(model.buffers[bias.buffer].data, np.uint8)
    data[:4] = np.array([2**30 + 77], "<i4").view(np.uint8)
    model.buffers[bias.buffer].data = data


@every("target", TARGETS)
@every("code, options", [("ADD", "AddOptions"), ("SUB", "SubOptions"), ("MUL", "MulOptions")])
@every("grids", [((0.1, 5), (0.2, -7), (0.2, 3)), ((0.25, -128), (0.25, 127), (0.5, 0)), ((0.011, 0), (0.93, 4), (0.7, -9))])
def test_all_pairs_of_bytes(code, options, grids, target, tmp_path):
    """Two tensors that meet in every pair, half of their results in the middle of two integers."""
    made = Small((1, 256, 256, 2), grids[0])
    halves = [
        made.add("STRIDED_SLICE", [made.x, *(made.constant(f"{name}{at}", v) for name, v in given)], (1, 256, 256, 1), grids[0], "StridedSliceOptions")
        for at in (0, 1)
        for given in [(("a", [0, 0, 0, at]), ("b", [1, 256, 256, at + 1]), ("c", [1, 1, 1, 1]))]
    ]  # fmt: skip
    other = made.add("QUANTIZE", [halves[1]], (1, 256, 256, 1), (grids[0][0], grids[1][1]), "QuantizeOptions")
    y = made.add(code, [halves[0], other], (1, 256, 256, 1), grids[2], options)
    stored = np.stack(np.meshgrid(np.arange(-128, 128), np.arange(-128, 128)), axis=-1)[None]
    found = _stored(made, made.write(tmp_path, y), stored, target)
    assert found.layers and found.same == found.elements, found.counts


@every("target", TARGETS)
@every("grid", [(0.1, -128), (0.1, 0), (0.1, 11), (0.1, 127)])
@every("size, padding", [((2, 2), 1), ((2, 4), 0), ((5, 3), 0), ((8, 8), 1), ((1, 2), 0)])
def test_means_of_stored_integers(size, padding, grid, target, tmp_path):
    """AVERAGE_POOL_2D of any zero point, with windows beyond the image: ties go away from 0 of the file."""
    made = Small((1, 8, 8, 4), grid)
    shape = [8 if padding == 0 else 8 - side + 1 for side in size]
    window = {"padding": padding, "strideH": 1, "strideW": 1, "filterHeight": size[0], "filterWidth": size[1]}
    output = made.add("AVERAGE_POOL_2D", [made.x], (1, *shape, 4), grid, "Pool2DOptions", **window)
    stored = made.rng.integers(-6, 7, (20, 8, 8, 4)) + made.rng.integers(-120, 121, (20, 1, 1, 1))
    found = _stored(made, made.write(tmp_path, output), stored, target)
    assert found.layers and found.same == found.elements, found.counts


def test_divisors_of_all_windows():
    """1 / count of every sum of so many bytes, as integers divide."""
    for count in (1, 2, 3, 4, 6, 7, 12, 49, 64, 100, 576):
        rescale, sums = pool_rescale(np.array([count])), np.arange(-128 * count, 127 * count + 1)
        assert rescale is not None
        away = np.sign(sums) * ((2 * np.abs(sums) + count) // (2 * count))
        assert np.array_equal(rescale.apply(sums, -128, 127), away)


@every("target", TARGETS)
@every("name", [name for name in CASES if name.startswith(_EXACT) and not name.endswith("_16")])
def test_operators(name, target, tmp_path):
    made, output = CASES[name]()
    path = made.write(tmp_path, output)
    kind = made.file._tensors[made.x].type
    low, high = (0, 256) if kind == made.schema.TensorType.UINT8 else (-128, 128)
    shape = made.file._tensors[made.x].shape
    found = _stored(made, path, made.rng.integers(low, high, (32, *shape[1:])), target)
    assert found.layers and found.same == found.elements, found.counts


@pytest.mark.skipif(not FILES, reason="there are no .tflite files in $N2D2_DATA/field/real or $N2D2_DATA/models")
@every("target", TARGETS)
@pytest.mark.parametrize("path", [path for path in FILES if path.stem not in REFUSED], ids=lambda path: path.stem)
def test_every_layer_of_given_files(path, target, tmp_path):
    """Random and smooth inputs. Softmax alone may be a step off."""
    path = rewritten(path, _biases_of_one_axis, tmp_path / path.name)
    rng = np.random.default_rng(3)
    found = agreement(path, None, target=target, inputs_of=lambda shape, low, high: _inputs(rng, shape, low, high))
    assert len(found.counts) >= 4
    other = {name for name, kind in found.kinds.items() if kind == "Softmax"}
    assert {name: count for name, count in found.counts.items() if count[0] and name not in other} == {}
    assert max(found.layers.values()) <= 1


def _biases_of_one_axis(schema, model):
    """TFLite's first converters gave biases the axis of their weights, which LiteRT refuses."""
    for one in model.subgraphs[0].tensors:
        if one.quantization is not None and one.shape is not None and len(one.shape) == 1:
            one.quantization.quantizedDimension = 0


def _inputs(rng: np.random.Generator, shape: tuple[int, ...], low: int, high: int) -> np.ndarray:
    made = rng.integers(low, high + 1, (6, *shape))
    for one in made[::2]:
        walk = np.cumsum(rng.normal(0, 3, one.size)).reshape(one.shape) + rng.integers(low, high + 1)
        one[...] = np.clip(walk, low, high)
    return made


def test_the_export_says_what_may_differ(tmp_path, capfd):
    """The layers, by reason; nothing where all are equal."""
    made, output = CASES["softmax_of_lines"]()
    path = made.write(tmp_path, output)
    assert main([str(path), "-export", "CPP", "-o", str(tmp_path / "out"), "-db-export", "0"]) == 0
    assert "may be a step off those of LiteRT's kernels" in capfd.readouterr().err
    made, output = CASES["leaky_relu"]()
    path = made.write(tmp_path, output)
    assert main([str(path), "-export", "CPP", "-o", str(tmp_path / "other"), "-db-export", "0"]) == 0
    assert "a step off" not in capfd.readouterr().err


@every("target", ["CPP", "CPP_MCU"])
@every("name", ["conv_relu", "conv_uint8", "conv_same", "hard_swish", "prelu", "resize_bilinear_odd"])
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
    for net in [n2d2py.load_simulator(folder), *([compiled_at_once(folder)] if target == "CPP" else [])]:
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
    for net in (n2d2py.load_simulator(folder), compiled_at_once(folder)):
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
