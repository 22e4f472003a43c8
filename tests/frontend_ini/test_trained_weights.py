"""Weights of single layers with QWeight: which quantizers are taken, from which files, and when two files are of other trainings.

The rules stand in `n2d2py.frontend.ini.quantizers`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.tables import every

from n2d2py import log
from n2d2py.arithmetic.trained import lsq_weights, sat_gain, sat_weights
from n2d2py.errors import N2D2Error

LAYERS = {
    "convolution": "Type=Conv\nNbOutputs=8\nKernelDims=3 3",
    "groups": "Type=Conv\nNbOutputs=8\nKernelDims=3 3\nMapping.NbGroups=2",
    "depthwise": "Type=Conv\nNbOutputs=4\nKernelDims=3 3\nMapping.ChannelsPerGroup=1",
    "two channels each": "Type=Conv\nNbOutputs=8\nKernelDims=3 3\nMapping.Size=2",
    "one channel each": "Type=Conv\nNbOutputs=4\nKernelDims=3 3\nMapping.Size=1\nMapping.OffsetX=1",
    "transposed": "Type=Deconv\nNbOutputs=8\nKernelDims=3 3",
    "fully connected": "Type=Fc\nNbOutputs=5",
}


def layer(kind: str, quantizer: str, *keys: str) -> str:
    return "\n".join(["[c]\nInput=sp", LAYERS.get(kind, kind), f"QWeight={quantizer}", *keys]) + "\n"


@every("kind", LAYERS)
@every("quantizer", ["LSQ", "SAT"])
@every("each", [0, 1])
def test_scales_of_a_layer(kind, quantizer, each, build, refusal):
    """One, or of LSQ one for each output, whose weights must stand together."""
    text = layer(kind, quantizer, "QWeight.Range=15", f"QWeight.PerChannel={each}")
    if quantizer == "LSQ" and each and kind == "two channels each":
        found = refusal(text, (4, 6, 6))
        assert "E124" in found and "weights that are not stored output by output is not supported" in found
        return
    params = build(text, (4, 6, 6)).params("c")
    outputs = len(params["weights"])
    assert params["weight_scales"].shape == ((outputs,) if quantizer == "LSQ" and each else (1,))
    steps = params["weights"] / params["weight_scales"].reshape(-1, *(1,) * (params["weights"].ndim - 1))
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-3)
    assert np.abs(steps).max() <= (8 if quantizer == "LSQ" else 15)


@every(
    ("quantizer", "keys", "text"),
    [
        ("Prune", "QWeight.Range=15", "QWeight=Prune is not supported: the result would differ"),
        ("SAT", "QWeight.QuantMode=Asymmetric", "QWeight.QuantMode=Asymmetric is not supported"),
        ("LSQ", "QWeight.QuantMode=Asymmetric", "QWeight.QuantMode=Asymmetric is not supported"),
        ("LSQ", "QWeight.Range=1", "its integers would be -1 and 0"),
        ("LSQ", "QWeight.Range=3", ""),
        ("SAT", "QWeight.Range=1", ""),
        ("SAT", "QWeight.QuantMode=FullRange", ""),
        ("SAT", "QWeight.QuantMode=Integer", ""),
    ],
)
def test_quantizers_that_are_taken(quantizer, keys, text, build, refusal):
    built = layer("fully connected", quantizer, keys)
    if text:
        found = refusal(built, (4, 1, 1))
        assert "N2D2-E124" in found and text in found
    else:
        assert "weight_scales" in build(built, (4, 1, 1)).params("c")


def folder(**arrays: np.ndarray) -> Path:
    made = Path("weights")
    made.mkdir(exist_ok=True)
    for role, values in arrays.items():
        rows = np.asarray(values).reshape(len(values), -1)
        (made / f"c_{role}.syntxt").write_text("\n".join(" ".join(f"{value:.9g}" for value in row) for row in rows))
    return made


REAL = np.random.default_rng(3).normal(size=(5, 4)).astype(np.float32)
BIAS = np.zeros((1, 5))


@every(("moved", "told"), [(0, False), (1, False), (2, True), (20, True)])
def test_a_twentieth_of_the_weights_may_be_others(moved, told, build):
    """One of twenty weights is as many as may differ by several steps."""
    integers, scale = sat_weights(REAL, 15, "odd")
    stored = integers.astype(np.float64)
    stored.flat[:moved] = np.where(stored.flat[:moved] > 0, -15, 15)
    log.setup(quiet=True)
    made = folder(weights=REAL, quant_weights=stored * scale, biases=BIAS)
    params = build(layer("fully connected", "SAT", "QWeight.Range=15"), (4, 1, 1), weights=made).params("c")
    assert any(warning.code == "W421" for warning in log.warnings_seen()) == told
    np.testing.assert_allclose(params["weights"], integers * scale, rtol=1e-6)  # those before the quantizer count


@every("given", ["weights", "quant_weights", "both"])
@every("scaled", [0, 1])
def test_files_of_sat(given, scaled, build):
    integers, scale = sat_weights(REAL, 7, "odd")
    scale *= sat_gain(integers, scale, 5) if scaled else 1.0
    role = "quant_weights_quant" if scaled else "quant_weights"
    arrays = {"weights": REAL, role: integers * scale}
    kept = {name: values for name, values in arrays.items() if given == "both" or (name == "weights") == (given == "weights")}
    text = layer("fully connected", "SAT", "QWeight.Range=7", f"QWeight.ApplyScaling={scaled}")
    params = build(text, (4, 1, 1), weights=folder(**kept, biases=BIAS)).params("c")
    np.testing.assert_allclose(params["weights"], integers * scale, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(params["weight_scales"], [scale], rtol=1e-4)


def test_weights_that_were_only_brought_to_one(build):
    text = layer("fully connected", "SAT", "QWeight.Range=7", "QWeight.ApplyQuantization=0")
    params = build(text, (4, 1, 1), weights=folder(weights=REAL, biases=BIAS)).params("c")
    wanted = np.tanh(REAL) / np.abs(np.tanh(REAL)).max()
    np.testing.assert_allclose(params["weights"], wanted, rtol=1e-5)
    assert "weight_scales" not in params


@every("stored", [None, 0.25])
@every("given", [None, 0.125])
def test_steps_of_lsq(stored, given, build, refusal):
    """The stored one, else that of the INI; a folder without either is refused."""
    arrays = {"weights": REAL, "biases": BIAS} | ({"QWeight_LSQ_StepSize": np.array([stored])} if stored else {})
    text = layer("fully connected", "LSQ", "QWeight.Range=15", *([f"QWeight.StepSize={given}"] if given else []))
    step = stored or given
    if step is None:
        assert "E421" in refusal(text, (4, 1, 1), weights=folder(**arrays))
        return
    params = build(text, (4, 1, 1), weights=folder(**arrays)).params("c")
    np.testing.assert_allclose(params["weight_scales"], [step])
    np.testing.assert_allclose(params["weights"], lsq_weights(REAL, 15, np.array([step])) * step, rtol=1e-6)


@pytest.mark.parametrize("step", [0.0, -0.5])
def test_steps_are_positive(step, build):
    made = folder(weights=REAL, biases=BIAS, QWeight_LSQ_StepSize=np.array([step]))
    with pytest.raises(N2D2Error, match="E425.*'c_QWeight_LSQ_StepSize' is .*, not above 0"):
        build(layer("fully connected", "LSQ", "QWeight.Range=15"), (4, 1, 1), weights=made)


def test_stored_weights_beside_the_grid_are_refused(build):
    made = folder(weights=REAL, quant_weights=REAL, biases=BIAS)
    with pytest.raises(N2D2Error, match="E425.*lie on no grid of QWeight.Range=3"):
        build(layer("fully connected", "SAT", "QWeight.Range=3"), (4, 1, 1), weights=made)


@every("quantizer", ["LSQ", "SAT"])
@every(("steps", "most"), [(255, None), (15, 15), (1, 1)])
def test_an_output_with_steps(quantizer, steps, most, build):
    key = "Alpha" if quantizer == "SAT" else "StepSize"
    text = f"[c]\nInput=sp\nType=Fc\nNbOutputs=5\nQAct={quantizer}\nQAct.Range={steps}\nQAct.{key}=0.75\n"
    net = build(text, (4, 1, 1))
    real, quantize = net.graph.nodes
    assert (real.outputs, quantize.inputs, quantize.outputs) == (["c_real"], ["c_real"], ["c"])
    kind = quantize.op.type
    assert (kind.bits, kind.qmin, kind.qmax) == (8, 0, most or 255)
    np.testing.assert_allclose(kind.scale, 0.75 / steps if quantizer == "SAT" else 0.75, rtol=1e-6)


@every(
    "keys, told",
    [
        ("QWeight=SAT\nQWeight.PerChannel=1", "QWeight.PerChannel: no effect with QWeight=SAT"),
        (
            "QWeight=LSQ\nQWeight.QuantMode=FullRange\nQWeight.ApplyScaling=1",
            "QWeight.QuantMode, QWeight.ApplyScaling: no effect with QWeight=LSQ",
        ),
        ("QWeight.Range=15", "QWeight.Range: no effect without QWeight"),
        ("QAct.Range=15\nQAct.Alpha=2", "QAct.Range, QAct.Alpha: no effect without QAct"),
        ("QAct=SAT\nQAct.StepSize=2", "QAct.StepSize: no effect with QAct=SAT"),
        ("QAct=LSQ\nQAct.Alpha=2", "QAct.Alpha: no effect with QAct=LSQ"),
        ("QWeight=SAT\nQWeight.Range=15\nQWeight.ApplyScaling=1\nQAct=SAT\nQAct.Alpha=2", ""),
        ("QWeight=LSQ\nQWeight.PerChannel=1\nQWeight.StepSize=0.1\nQAct=LSQ\nQAct.StepSize=2", ""),
        ("QWeight.Mode=Integer\nQWeight.SetOptInitStepSize=0", ""),
        ("QWeight=SAT\nQWeight.PerChannel=0", ""),
    ],
)
def test_keys_of_a_quantizer_that_is_not_there(keys, told, build):
    """What has no effect anyway, as keys of training, says so elsewhere."""
    build(f"[c]\nInput=sp\n{LAYERS['convolution']}\n{keys}\n", (4, 6, 6))
    found = [one.what for one in log.warnings_seen() if one.code == "W422"]
    assert found == ([told] if told else [])
