"""Sums of bytes in integers: those of ONNX Runtime's DequantizeLinear, Add and QuantizeLinear, for all pairs of bytes."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from support.onnx_models import runtime_outputs, text_model
from support.tables import every

from n2d2py.arithmetic import NumType
from n2d2py.contracts.quant.file_rounding import byte_form
from n2d2py.graph.forms import Aligned
from n2d2py.options import read_command
from n2d2py.pipeline import load_network
from n2d2py.stages.calibrate import calibrate_stage
from n2d2py.stages.quantize import quantize_stage

U8, S8 = NumType(8, False), NumType(8, full=True)


def drawn(rng: np.random.Generator) -> tuple[list[NumType], NumType, bool]:
    """The types of two inputs and an output as quantizers give them, and whether a Relu follows."""
    step = float(np.float32(rng.uniform(0.005, 0.2)))
    made = []
    for ratio in (*rng.uniform(0.15, 1.3, 2), 1.0):
        signed = bool(rng.integers(2))
        zero = int(rng.choice([0, rng.integers(-128, 128)])) + (0 if signed else 128)
        made.append(
            NumType(8, signed, scale=float(np.float32(step * ratio)), zero_point=zero if signed else zero % 256, full=signed)
        )
    return made[:2], made[2], bool(rng.integers(2))


def model(inputs: list[NumType], output: NumType, relu: bool, operator: str = "Add") -> onnx.ModelProto:
    """Two tensors of integers, dequantized, combined and quantized."""
    kinds = dict(zip("aby", (*inputs, output), strict=True))
    constants = {f"{name}_scale": np.float32(kind.scale) for name, kind in kinds.items()}
    constants |= {f"{name}_zero": np.array(kind.zero_point, kind.dtype) for name, kind in kinds.items()}
    a, b, y = (f"{kind.dtype.name}[1,1,256,256] {name}" for name, kind in kinds.items())
    body = f"""a_real = DequantizeLinear (a, a_scale, a_zero) b_real = DequantizeLinear (b, b_scale, b_zero)
        sum = {operator} (a_real, b_real) last = {"Relu" if relu else "Identity"} (sum) y = QuantizeLinear (last, y_scale, y_zero)"""
    return text_model(f"{a}, {b} => {y}", body, constants)


def all_pairs(inputs: list[NumType]) -> list[np.ndarray]:
    """Every pair of stored integers, (1, 1, 256, 256)."""
    first, second = (np.arange(kind.qmin, kind.qmax + 1).astype(kind.dtype) for kind in inputs)
    return [np.broadcast_to(each, (1, 1, 256, 256)).copy() for each in (first[:, None], second[None, :])]


def in_onnx_runtime(made: onnx.ModelProto, inputs: list[NumType]) -> np.ndarray:
    """What its separate operators give for all pairs."""
    return runtime_outputs(made, dict(zip("ab", all_pairs(inputs), strict=True)), optimize=False)[0]


@pytest.mark.parametrize(("operator", "operation"), [("Add", "Sum"), ("Sub", "Sum"), ("Mul", "Prod")])
def test_what_onnx_runtime_gives(operator, operation):
    rng, found = np.random.default_rng(5), []
    for _ in range(40):
        inputs, output, relu = drawn(rng)
        if operation == "Prod":
            output = output.with_scale(float(np.float32(inputs[0].scale * inputs[1].scale * rng.uniform(50, 250))))
        wanted = in_onnx_runtime(model(inputs, output, relu, operator), inputs)
        low = max(output.qmin, output.zero_point) if relu else output.qmin
        scales = np.array([kind.scale for kind in inputs], np.float32) * np.float32([1, -1 if operator == "Sub" else 1])
        made = byte_form(operation, scales, inputs, output, (low, output.qmax))
        found.append(made is not None)
        if made is None:
            continue
        x, y = (each.astype(np.int64) - kind.zero_point for each, kind in zip(all_pairs(inputs), inputs, strict=True))
        m, offset = made.multipliers, made.offset[0]
        sums = m[0] * x + m[1] * y + offset if operation == "Sum" else x * y
        assert np.abs(sums).max() <= made.bound < 2**31
        assert np.abs(m).max() < 2**23 and m.dtype == made.offset.dtype == np.int32
        stored = np.clip(np.rint(sums.astype(np.float32) * made.rescale.factors[0]) + output.zero_point, low, output.qmax)
        np.testing.assert_array_equal(stored, wanted)
    assert sum(found) > 34


def test_differences_of_equal_scales():
    """Multipliers have the signs of the scales; where all scales are equal, sums are exact and halves do not occur."""
    kinds = [NumType(8, scale=0.5, full=True)] * 2
    made = byte_form("Sum", np.array([0.5, -0.5], np.float32), kinds, NumType(8, scale=0.5, full=True), (-128, 127))
    assert made.multipliers[0] == -made.multipliers[1] > 0 and made.offset[0] == 0
    assert made.bound == 256 * made.multipliers[0]


@every(
    ("operation", "inputs", "scales"),
    [
        ("Sum", [NumType(16, scale=0.01), U8], [0.01, 0.02]),
        ("Sum", [U8, U8, U8], [0.01, 0.02, 0.03]),
        ("Sum", [U8], [0.01]),
        ("Sum", [U8, U8], [0.0, 0.02]),
        ("Prod", [U8, U8], [np.inf, 0.02]),
        ("Sum", [U8, U8], [1e-30, 1e30]),
        ("Max", [U8, U8], [0.01, 0.02]),
    ],
)
def test_none(operation, inputs, scales):
    assert byte_form(operation, np.array(scales, np.float32), inputs, NumType(8, scale=0.013), (-127, 127)) is None


def test_halves_that_go_to_even_have_no_multipliers():
    """q_0 / 2 + q_1 / 2 is a half for every second pair, and rounds down as often as up: only the ratios themselves agree, without an
    offset."""
    scales, kinds = np.array([0.5, 0.5], np.float32), [NumType(8, scale=0.5, full=True)] * 2
    made = byte_form("Sum", scales, kinds, NumType(8, scale=1.0, full=True), (-128, 127))
    assert made is None or (made.offset[0] == 0 and set(made.multipliers * made.rescale.factors[0]) == {0.5})


def test_layers_of_a_file(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(8)
    for operator in ("Add", "Sub", "Mul"):
        inputs, output, relu = drawn(rng)
        made = model(inputs, output, relu, operator)
        onnx.save(made, "net.onnx")
        path, options = read_command(["net.onnx", "-export", "CPP"])
        network = calibrate_stage(load_network(path, options), options.calibration)
        quantized = quantize_stage(network, options.quantization).graph
        node = next(node for node in quantized.nodes if node.op.kind == "ElemWise")
        assert isinstance(node.form, Aligned)
        stored = [
            (each.astype(np.int64) - kind.zero_point + quantized.type(name).zero_point).astype(quantized.type(name).dtype)
            for each, kind, name in zip(all_pairs(inputs), inputs, node.inputs, strict=True)
        ]
        moved = quantized.type(node.output).zero_point - output.zero_point
        found = node.op.run_integer(stored, node, quantized)[0].astype(np.int64) - moved
        np.testing.assert_array_equal(found.ravel(), in_onnx_runtime(made, inputs).ravel())
