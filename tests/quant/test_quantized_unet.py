"""A U-Net through the option sets of ONNX Runtime's quantizer: all are imported, and as near to the file as its own kernels."""

import numpy as np
import onnx
import pytest
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from support import quantized_models as models
from support.onnx_models import ModelBuilder
from support.quantized_models import exact

from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.passes import fuse
from n2d2py.quant.prequantized import quantize_prequantized
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.reference.engine import FloatEngine

S8, U8 = QuantType.QInt8, QuantType.QUInt8
SETS = {
    "u8u8": {"activation_type": U8, "weight_type": U8},
    "u8s8": {"activation_type": U8, "weight_type": S8},
    "s8s8": {"activation_type": S8, "weight_type": S8},
    "per channel": {"activation_type": S8, "weight_type": S8, "per_channel": True},
    "reduced": {"activation_type": U8, "weight_type": S8, "reduce_range": True},
    "symmetric": {"activation_type": S8, "weight_type": S8, "extra_options": {"ActivationSymmetric": True}},
    "percentile": {"activation_type": U8, "weight_type": S8, "calibrate_method": CalibrationMethod.Percentile},
    "entropy": {"activation_type": U8, "weight_type": S8, "calibrate_method": CalibrationMethod.Entropy},
    "pairs": {"activation_type": U8, "weight_type": S8, "extra_options": {"DedicatedQDQPair": True}},
    "int16": {"activation_type": QuantType.QInt16, "weight_type": S8},
    "uint16": {"activation_type": QuantType.QUInt16, "weight_type": S8, "per_channel": True},
    "operators u8u8": {"quant_format": QuantFormat.QOperator, "activation_type": U8, "weight_type": U8},
    "operators s8s8": {"quant_format": QuantFormat.QOperator, "activation_type": S8, "weight_type": S8},
}


class Data(CalibrationDataReader):
    def __init__(self):
        self.batches = iter(np.random.default_rng(5).normal(size=(4, 4, 3, 16, 16)).astype(np.float32))

    def get_next(self):
        return next(({"x": batch} for batch in self.batches), None)


def unet(mode: str) -> onnx.ModelProto:
    build = ModelBuilder(opset=21)
    add, rng = build.add, build.rng

    def conv(x: str, inputs: int, outputs: int, kernel: int = 3) -> str:
        w = rng.normal(size=(outputs, inputs, kernel, kernel)) * 1.2 / np.sqrt(inputs * kernel**2)
        return add("Conv", x, w, rng.normal(size=outputs) * 0.1, pads=[kernel // 2] * 4)

    def up(x: str, channels: int) -> str:
        if mode == "deconv":
            return add("ConvTranspose", x, rng.normal(size=(channels, channels, 2, 2)) * 0.3, strides=[2, 2])
        return add("Resize", x, "", [1.0, 1.0, 2.0, 2.0], mode=mode)

    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    a = add("Relu", conv("x", 3, 8))
    b = add("Relu", conv(add("MaxPool", a, **window), 8, 16))
    c = add("Relu", conv(add("AveragePool", b, **window), 16, 16))
    d = add("Relu", conv(add("Concat", up(c, 16), b, axis=1), 32, 8))
    e = add("Relu", conv(add("Concat", up(d, 8), a, axis=1), 16, 8))
    model = build.proto({"x": ["N", 3, 16, 16]}, add("Sigmoid", conv(e, 8, 1, 1)))
    model.ir_version = 10
    return model


def power(difference: np.ndarray) -> float:
    return float((difference.astype(np.float64) ** 2).sum())


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        pytest.param(name, mode, marks=[pytest.mark.slow] * ((number + (mode == "deconv")) % 2))
        for number, name in enumerate(SETS)
        for mode in ("linear", "deconv")
    ],
)
def test_a_unet_is_as_near_to_its_file_as_the_kernels_of_the_runtime(name, mode, tmp_path):
    quantize_static(unet(mode), tmp_path / "q.onnx", Data(), **{"quant_format": QuantFormat.QDQ, **SETS[name]})
    model = onnx.load(tmp_path / "q.onnx")
    network, _ = fuse(import_onnx(model), integer=True)
    graph, _ = quantize_prequantized(network, QuantOptions())
    x = np.random.default_rng(9).normal(size=(8, 3, 16, 16)).astype(np.float32)
    kind = graph.type(graph.outputs[0])
    found = kind.dequantize(simulate(graph, quantize_inputs(graph, [x]))[graph.outputs[0]])
    (runtime,) = models.reference(model, x)
    # the reference evaluator has no QOperators: the network before it was quantized is their referee
    wanted = models.reference(unet(mode), x)[0] if "quant_format" in SETS[name] else exact(model, x)
    assert power(found - wanted) < 1.3 * power(runtime - wanted)
    assert power(FloatEngine(network).run(x)[graph.outputs[0]] - wanted) < 0.01 * power(wanted)
