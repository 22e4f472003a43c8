"""The same network and the same stimuli have the same integers: types, bounds and values of every tensor, with all options.

Weights and stimuli are multiples of powers of two, so that the sums of floating point are exact, on any machine in any order;
where factors of channels scale them, they agree to six digits. What is compared is kept in same_integers.json, one line for each
tensor. Whoever changes the quantization on purpose looks at the difference, and writes the file again:

    python tests/quant/test_same_integers.py

They look at `n2d2py.quant.correct`, `n2d2py.quant.covariance`, `n2d2py.quant.narrow` and `n2d2py.quant.weighted`.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper, parser

from n2d2py import log
from n2d2py.arithmetic import Rescale
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.graph import Graph, Precision, QuantGraph
from n2d2py.passes import fuse
from n2d2py.quant.calibration import quantize
from n2d2py.quant.channels import channel_factors, scale_channels
from n2d2py.quant.equalize import equalize
from n2d2py.quant.float_fallback import insert_conversions
from n2d2py.quant.mixed import rounding_costs, wide_tensors
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.prequantized import quantize_prequantized
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.quant.statistics import collect
from n2d2py.quant.types import choose_types

KEPT = Path(__file__).resolve().parent / "same_integers.json"
OPTIONS = {
    "default": {},
    "16 bits": {"bits": 16},
    "no clipping": {"act_clipping": "None", "equalize": False},
    "KL, weights by KL": {"act_clipping": "KL-Divergence", "wt_clipping": "KL-Divergence"},
    "quantile, weights by MSE": {"act_clipping": "Quantile", "quantile": 0.98, "wt_clipping": "MSE"},
    "a scale for each layer": {"per_output": False},
    "signed": {"unsigned": False, "output_bits": 16},
    "double shift": {"rescaling": "Double-shift"},
    "single shift, a scale for each layer": {"rescaling": "Single-shift", "per_output": False, "equalize": False},
    "fixed point, reduced range": {"rescaling": "Fixed-point", "reduce_range": True},
    "corrected": {"correct_bias": True, "sequential": True},
    "adaptive rounding": {"adaptive_rounding": True, "input_bits": 0, "output_bits": 0},
    "mixed": {"mixed": True, "input_bits": 16, "wide_joins": False},
}
NETWORKS = {
    "chain": (
        "a = Conv <pads = [1,1,1,1]> (x, w_8_4_3_3, b_8)\n r = Relu (a)\n p = MaxPool <kernel_shape = [2,2], strides = [2,2]> (r)\n"
        "c = Conv <group = 8, pads = [1,1,1,1]> (p, w_8_1_3_3)\n s = Clip (c, zero, six)\n g = GlobalAveragePool (s)\n"
        "f = Flatten (g)\n y = Gemm <transB = 1> (f, w_5_8, b_5)",
        OPTIONS,
    ),
    "branches": (
        "a = Conv (x, w_4_4_1_1, b_4)\n r = Relu (a)\n s = Sub (r, x)\n c = Conv <pads = [1,1,1,1]> (s, w_4_4_3_3, b_4)\n"
        "u = Add (c, r)\n v = Relu (u)\n m = Max (v, a)\n n = Mul (m, a)\n k = Min (n, x)\n"
        "y = AveragePool <kernel_shape = [2,2], strides = [2,2], pads = [0,0,1,1], count_include_pad = 1> (k)",
        ["default", "16 bits", "signed", "corrected", "mixed", "double shift", "single shift, a scale for each layer"],
    ),
    "joins": (
        "a = Conv (x, w_4_4_1_1, b_4)\n r = Relu (a)\n g = Mul (x, wide)\n c = Conv (g, w_4_4_1_1, b_4)\n"
        "j = Concat <axis = 1> (r, a, c)\n l = LeakyRelu <alpha = 0.125> (j)\n t = Slice (l, two, ten, one)\n"
        "d = Conv <strides = [2,2]> (t, w_6_8_1_1)\n y = Concat <axis = 1> (d, d)",
        ["default", "16 bits", "mixed", "signed", "a scale for each layer", "corrected", "no clipping"],
    ),
    "padding": (
        "q = Pad (x, pads, minus)\n a = Conv (q, w_4_4_3_3, b_4)\n r = Relu (a)\n q2 = Pad (r, pads)\n q3 = Pad (q2, pads, far)\n"
        'z = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (q3, , twice)\n'
        "y = Conv <strides = [2,2]> (z, w_4_4_3_3)",
        ["default", "16 bits", "KL, weights by KL", "quantile, weights by MSE"],
    ),
    "functions": (
        "o = Clip (x, mone, six)\n a = Conv (o, w_4_4_1_1, b_4)\n h = HardSigmoid <alpha = 0.25> (a)\n t = Mul (a, h)\n c = Conv (t, w_4_4_1_1)\n"
        "b = Abs (c)\n k = PRelu (b, slope)\n i = ThresholdedRelu <alpha = 0.5> (k)\n d = Conv (i, w_4_4_1_1, b_4)\n y = Clip (d, mone, one1)",
        ["default", "16 bits", "signed", "no clipping"],
    ),
    "gains": (
        "m = Mul (x, gain)\n n = Add (m, shift)\n a = Conv (n, w_4_4_1_1)\n b = BatchNormalization <epsilon = 0.0> (a, s_4, b_4, b_4, v_4)\n"
        "r = Relu (b)\n d = ConvTranspose <strides = [2,2]> (r, w_4_4_2_2, b_4)\n e = Mul (d, gain)\n"
        "g = DepthToSpace <blocksize = 2> (e)\n f = Flatten (g)\n y = Gemm <transB = 1> (f, w_3_1024, b_3)",
        [
            "default",
            "16 bits",
            "a scale for each layer",
            "double shift",
            "fixed point, reduced range",
            "adaptive rounding",
            "corrected",
        ],
    ),
    "islands": (
        "a = Conv (x, w_4_4_1_1, b_4)\n r = Relu (a)\n e = Floor (r)\n c = Conv (e, w_4_4_1_1)\n i = ArgMax <axis = 1> (c)\n"
        "k = Cast <to = 1> (i)\n u = Add (c, k)\n y = Conv (u, w_4_4_1_1)",
        ["default", "16 bits", "corrected"],
    ),
    "widths": (
        "a = Conv (x, w_4_4_3_3, b_4)\n r = Relu (a)\n c = Conv (r, w_4_4_1_1)\n d = Conv (r, w_4_4_1_1, b_4)\n u = Add (c, d)\n y = Relu (u)",
        ["default", "16 bits", "corrected", "double shift"],
    ),
    "dense": (
        "f = Flatten (x)\n a = Gemm <transB = 1> (f, w_16_256, b_16)\n r = Relu (a)\n b = Gemm <transB = 1> (r, w_8_16)\n"
        "c = Gemm <transB = 1> (r, w_8_16, b_8)\n u = Mul (b, c)\n y = Gemm <transB = 1> (u, w_6_8, b_6)",
        ["default", "16 bits", "adaptive rounding", "fixed point, reduced range", "single shift, a scale for each layer"],
    ),
    "pairs": (
        "a = Conv (x, w_8_4_3_3, b_8)\n r = Relu (a)\n c = Conv (r, w_4_8_1_1, b_4)\n s = Relu (c)\n"
        "d = Conv <group = 4> (s, w_4_1_3_3, b_4)\n t = Relu (d)\n e = Conv (t, w_6_4_1_1)\n f = Flatten (e)\n"
        "g = Gemm <transB = 1> (f, w_8_96, b_8)\n h = Relu (g)\n y = Gemm <transB = 1> (h, w_3_8, b_3)",
        ["default", "a scale for each layer", "single shift, a scale for each layer", "corrected", "adaptive rounding"],
    ),
    "multiplied": (
        "a = Conv (x, w_4_4_1_1, b_4)\n r = Relu (a)\n c = Conv <group = 4> (r, w_8_1_3_3, b_8)\n s = Relu (c)\n"
        "d = Conv <group = 2> (s, w_6_4_1_1)\n t = Clip (d, zero, six)\n y = Conv <group = 6> (t, w_6_1_1_1, b_6)",
        ["default", "a scale for each layer", "corrected"],
    ),
    "filled": (
        "a = Conv (x, w_4_4_1_1, b_4)\n r = Relu (a)\n f = Flatten (r)\n p = Pad (f, ends, zero)\n q = Pad (f, ends, far)\n"
        "c = Conv (x, w_4_4_1_1)\n s = Relu (c)\n g = Flatten (s)\n o = Pad (g, ends, minus)\n t = Concat <axis = 1> (p, q, o)\n"
        "y = Gemm <transB = 1> (t, w_3_777)",
        ["default", "16 bits", "mixed"],
    ),
    "quantized": (
        "xq = QuantizeLinear (x, s1, z1)\n xd = DequantizeLinear (xq, s1, z1)\n wd = DequantizeLinear <axis = 0> (wq, s2)\n"
        "a = Conv <pads = [1,1,1,1]> (xd, wd)\n aq = QuantizeLinear (a, s3, z3)\n ad = DequantizeLinear (aq, s3, z3)\n"
        "p = MaxPool <kernel_shape = [2,2], strides = [2,2]> (ad)\n pq = QuantizeLinear (p, s3, z3)\n pd = DequantizeLinear (pq, s3, z3)\n"
        "v = AveragePool <kernel_shape = [2,2], strides = [2,2]> (ad)\n vq = QuantizeLinear (v, s1, z1)\n vd = DequantizeLinear (vq, s1, z1)\n"
        "u = Add (pd, vd)\n uq = QuantizeLinear (u, s3, z1)\n y = DequantizeLinear (uq, s3, z1)",
        ["default"],
    ),
    "quantized in part": (
        "xq = QuantizeLinear (x, s1, z1)\n xd = DequantizeLinear (xq, s1, z1)\n wd = DequantizeLinear <axis = 0> (wq, s2)\n"
        "p = AveragePool <kernel_shape = [2,2], strides = [2,2]> (xd)\n a = Conv <pads = [1,1,1,1]> (p, wd)\n"
        "h = HardSigmoid <alpha = 0.25> (p)\n m = Mul (h, p)\n u = Add (m, p)\n k = Max (u, p)\n v = Sub (a, k)\n"
        "vq = QuantizeLinear (v, s3, z3)\n vd = DequantizeLinear (vq, s3, z3)\n g = GlobalAveragePool (vd)\n"
        "gq = QuantizeLinear (g, s1, z1)\n y = DequantizeLinear (gq, s1, z1)",
        ["default"],
    ),
}
"""The text of each network, and the options that it is quantized with."""
SCALARS = {
    "zero": 0.0,
    "six": 6.0,
    "wide": 32.0,
    "minus": -0.5,
    "far": 2.0,
    "mone": -1.0,
    "one1": 1.0,
    "s1": 0.0625,
    "s3": 0.125,
}
OTHERS = {
    "two": np.array([2]),
    "ten": np.array([10]),
    "one": np.array([1]),
    "pads": np.array([0, 0, 1, 0, 0, 0, 1, 2]),
    "z1": np.array(-3, np.int8),
    "z3": np.array(7, np.int8),
    "s2": np.array([0.5, 0.25, 0.125, 0.0625], np.float32) / 8,
    "twice": np.array([1, 1, 2, 2], np.float32),
    "ends": np.array([0, 1, 0, 2]),
    "slope": np.array([0.25, 0.5, -0.25, 1.5], np.float32).reshape(4, 1, 1),
    "gain": np.array([0.5, 2.0, 1.0, -4.0], np.float32).reshape(4, 1, 1),
    "shift": np.array([0.25, 0.0, -1.0, 1.5], np.float32).reshape(4, 1, 1),
    "v_4": np.array([1.0, 4.0, 0.25, 16.0], np.float32),
    "s_4": np.array([1.0, 0.5, 2.0, -1.0], np.float32),
}
PRECISIONS = {
    "widths": {
        "c": Precision(bits=16),
        "d": Precision(weight_bits=16),
        "a": Precision(weight_bits=8),
        "y": Precision(quantize=False),
    }
}


def constants(text: str) -> dict[str, np.ndarray]:
    """Those that the text names; of w_* and b_* eighths, the same for the same name."""
    rng, found = np.random.default_rng(7), {}
    names = {word.strip(",()") for word in text.replace("(", "( ").split()}
    for name in sorted(names):
        if name in SCALARS:
            found[name] = np.array(SCALARS[name], np.float32)
        elif name in OTHERS:
            found[name] = OTHERS[name]
        elif name == "wq":
            found[name] = rng.integers(-128, 128, (4, 4, 3, 3)).astype(np.int8)
        elif name[:2] in ("w_", "b_"):
            shape = [int(size) for size in name[2:].split("_")]
            spread = 8 if len(shape) > 1 else 16
            found[name] = (rng.integers(-spread, spread + 1, shape) / 8).astype(np.float32)
    return found


def stimuli() -> np.ndarray:
    """Sixteenths, few of them large."""
    rng = np.random.default_rng(11)
    values = rng.integers(-24, 25, (24, 4, 8, 8)) * rng.choice([1, 1, 1, 2], (24, 4, 8, 8))
    return (values / 16).astype(np.float32)


@cache
def fused(name: str) -> Graph:
    """The float network as it is quantized."""
    text = NETWORKS[name][0]
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> {name.split()[0]} (float[N,4,8,8] x) => (float[N] y) {{ {text} }}'
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    model.graph.initializer.extend(numpy_helper.from_array(value, key) for key, value in constants(text).items())
    graph = import_onnx(model)
    graph.precisions.update(PRECISIONS.get(name, {}))
    return fuse(graph, integer=True)[0]


def quantized(name: str, chosen: str) -> QuantGraph:
    """As the stage `calibrate` does it."""
    graph, options, x = fused(name), QuantOptions(**OPTIONS[chosen]), stimuli()
    if name.startswith("quantized"):
        return quantize_prequantized(graph, options)[0]
    graph, samples = insert_conversions(graph), [x[:8], x[8:16]]
    if options.equalize and not options.per_output:
        graph = equalize(graph)
    elif options.equalize:
        graph = scale_channels(graph, channel_factors(graph, samples))
    histograms = collect(graph, [x[:16], x[16:]]).histograms
    if options.mixed:
        costs = rounding_costs(graph, choose_types(graph, histograms, {}, options), x[:8])
        options = replace(options, mixed=False, wide=wide_tensors(costs))
    return quantize(graph, histograms, options, {}, samples)[0]


def factors(rescale: Rescale | None) -> str:
    """The kind of a rescale and a checksum of its numbers, to six digits: the last bits depend on the machine's float sums."""
    if rescale is None:
        return ""
    values = [value for _, value in sorted(vars(rescale).items()) if value is not None]
    numbers = [f"{float(number):.6g}" for value in values for number in np.ravel(value)]
    return f" {type(rescale).__name__} {zlib.crc32(' '.join(numbers).encode())}"


def lines(name: str, chosen: str) -> dict[str, str]:
    """What is kept of a quantized network: a line for each tensor."""
    graph = quantized(name, chosen)
    values = simulate(graph, quantize_inputs(graph, [stimuli()[:6]]), keep=True)
    nodes = {output: node for node in graph.nodes for output in node.outputs}
    found = {"network": f"{graph.name}, {graph.bits} bits, {graph.inputs} to {graph.outputs}"}
    for tensor in (name for name in graph.tensors if name in values):
        kind, array = graph.type(tensor), values[tensor]
        stored = f"{'' if kind.signed else 'u'}int{kind.bits} x {kind.scale:.5g} + {kind.zero_point}"
        held = "" if kind.is_float else f" {array.reshape(-1)[:6].tolist()} {zlib.crc32(array.astype('<i8').tobytes())}"
        node = nodes.get(tensor)
        made = f" {node.op.kind} bound {node.bound} clamp {node.clamp}{factors(node.rescale)}" if node is not None else ""
        found[tensor] = f"{'float' if kind.is_float else stored}{made}{held}"
    return found


CASES = [(name, chosen) for name, (_, options) in NETWORKS.items() for chosen in options]


@pytest.mark.parametrize(("name", "chosen"), CASES)
def test_integers_change_on_purpose_only(name, chosen):
    log.setup(quiet=True)
    assert lines(name, chosen) == json.loads(KEPT.read_text())[name][chosen]


def main() -> None:
    """Writes what the tests compare with."""
    log.setup(quiet=True)
    found = {name: {chosen: lines(name, chosen) for chosen in options} for name, (_, options) in NETWORKS.items()}
    KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
