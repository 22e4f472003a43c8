"""Keys of quantizers in INI sections: defaults, which stored value counts, and each refusal in its words.

They look at `n2d2py.frontend.ini.quantizers`, `n2d2py.frontend.ini.trained` and `n2d2py.frontend.ini.contract`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from n2d2py import log
from n2d2py.arithmetic.trained import sat_weights
from n2d2py.errors import N2D2Error
from n2d2py.frontend.ini.network import build_graph
from n2d2py.frontend.ini.trained import has_quantized_training, refuse_quantized_training
from n2d2py.frontend.ini.weights import WeightStore
from n2d2py.ini import load_document

FC = "[c]\nInput=sp\nType=Fc\nNbOutputs=5\n"
REAL = np.random.default_rng(3).normal(size=(5, 8)).astype(np.float32)
SHAPE = (8, 1, 1)


def stored(**arrays) -> Path:
    """A file of arrays of the layer."""
    given = {"biases": np.zeros(5), **arrays}
    made: dict[str, Any] = {f"c_{role}": np.asarray(values, np.float32) for role, values in given.items()}
    np.savez("w.npz", **made)
    return Path("w.npz")


def warned() -> list[str]:
    return [warning.line() for warning in log.warnings_seen()]


# ---- weights ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("mode", "steps", "grid", "moved", "told"),
    [
        ("Default", 15, "odd", 2, False),
        ("Default", 15, "odd", 4, True),
        ("Integer", 15, "odd", 2, False),
        ("Integer", 15, "odd", 4, True),
        ("Symmetric", 15, "symmetric", 1, False),
        ("Symmetric", 15, "symmetric", 2, True),
        ("FullRange", 15, "full", 1, False),
        ("FullRange", 15, "full", 2, True),
        ("Default", 3, "odd", 2, False),
        ("Default", 3, "odd", 4, True),
    ],
)
def test_weights_that_are_a_step_apart_are_of_one_training(mode, steps, grid, moved, told, build, monkeypatch):
    """Three of forty are elsewhere: more than a twentieth, where that is several steps."""
    notes: list[str] = []
    monkeypatch.setattr("n2d2py.log.notice", lambda text, *given: notes.append(text % given))
    integers, scale = sat_weights(REAL, steps, grid)
    other = integers.copy().reshape(-1)
    top = {"odd": steps, "symmetric": (steps - 1) // 2, "full": (steps + 1) // 2 - 1}[grid]
    places = [at for at, value in enumerate(other) if value + moved <= top and abs(value) < np.abs(other).max()][:3]
    assert len(places) == 3
    other[places] += moved
    text = FC + f"QWeight=SAT\nQWeight.Range={steps}\nQWeight.QuantMode={mode}\n"
    params = build(text, SHAPE, weights=stored(weights=REAL, quant_weights=other.reshape(5, 8) * scale)).params("c")
    np.testing.assert_allclose(params["weights"], integers * np.float32(scale), rtol=1e-6)
    said = f"c: {steps.bit_length()}-bit weights, {grid} grid; 7.50 % differ from the stored quantized ones"
    assert (said in notes) != told
    assert warned() == ([f"N2D2-W421: net.ini:2 [c]: {said}; check that both files are of one training"] if told else [])


@pytest.mark.parametrize(("count", "told"), [(2, False), (3, True)])
def test_binary_weights_of_another_sign(count, told, build):
    """Each is another weight: more than a twentieth of forty is three."""
    integers, scale = sat_weights(REAL, 1, "odd")
    other = integers.reshape(-1).copy()
    other[:count] *= -1
    build(FC + "QWeight=SAT\nQWeight.Range=1\n", SHAPE, weights=stored(weights=REAL, quant_weights=other.reshape(5, 8) * scale))
    assert [line[:9] for line in warned()] == (["N2D2-W421"] if told else [])


@pytest.mark.parametrize("grid", ["odd", "symmetric", "full"])
def test_the_grid_of_stored_weights_goes_before_the_key(grid, build):
    integers, scale = sat_weights(REAL, 15, grid)
    arrays = {"weights": REAL, "quant_weights": integers * scale}
    params = build(FC + "QWeight=SAT\nQWeight.Range=15\n", SHAPE, weights=stored(**arrays)).params("c")
    np.testing.assert_allclose(params["weights"], integers * np.float32(scale), rtol=1e-6)


@pytest.mark.parametrize("scaled", [0, 1])
def test_stored_weights_without_scaling_go_first(scaled, build, monkeypatch):
    notes: list[str] = []
    monkeypatch.setattr("n2d2py.log.notice", lambda text, *given: notes.append(text % given))
    integers, scale = sat_weights(REAL, 15, "odd")
    arrays = {"quant_weights": integers * scale, "quant_weights_quant": integers * scale * 3}
    text = FC + f"QWeight=SAT\nQWeight.Range=15\nQWeight.ApplyScaling={scaled}\n"
    params = build(text, SHAPE, weights=stored(**arrays)).params("c")
    np.testing.assert_allclose(params["weights"], integers * np.float32(scale), rtol=1e-6)
    np.testing.assert_allclose(params["weight_scales"], [scale], rtol=1e-6)
    assert "c: quant_weights are taken as they are stored (odd grid)" in notes


@pytest.mark.parametrize("each", [0, 1])
def test_stored_weights_of_lsq_are_taken_as_they_are(each, build):
    steps = np.linspace(0.1, 0.5, 5) if each else np.array([0.25])
    values = np.rint(REAL) * steps.reshape(-1, 1)
    text = FC + f"QWeight=LSQ\nQWeight.Range=15\nQWeight.PerChannel={each}\n"
    params = build(text, SHAPE, weights=stored(quant_weights=values, QWeight_LSQ_StepSize=steps)).params("c")
    assert np.array_equal(params["weights"], values.astype(np.float32))
    assert np.array_equal(params["weight_scales"], steps.astype(np.float32))


@pytest.mark.parametrize("steps", [3, 15, 255])
@pytest.mark.parametrize("each", [0, 1])
def test_the_first_step_of_lsq(each, steps, build):
    """2 mean |w| / sqrt(largest integer), of the initial weights, for all or for each output."""
    plain = build(FC, SHAPE).params("c")["weights"].astype(np.float64)
    params = build(FC + f"QWeight=LSQ\nQWeight.Range={steps}\nQWeight.PerChannel={each}\n", SHAPE).params("c")
    wanted = 2 * np.abs(plain).mean(axis=1 if each else (0, 1)) / np.sqrt((steps + 1) // 2 - 1)
    np.testing.assert_allclose(params["weight_scales"], np.atleast_1d(wanted), rtol=1e-6)


@pytest.mark.parametrize("each", [0, 1])
def test_a_step_of_the_document(each, build):
    params = build(
        FC + f"QWeight=LSQ\nQWeight.StepSize=0.5\nQWeight.PerChannel={each}\n", SHAPE, weights=stored(weights=REAL)
    ).params("c")
    assert params["weight_scales"].tolist() == [0.5] * (5 if each else 1)
    np.testing.assert_array_equal(params["weights"], np.rint(REAL / 0.5) * 0.5)


def test_one_wrong_step_of_several(refusal):
    steps = [0.5, 0.25, -0.125, 0.5, 1]
    found = refusal(FC + "QWeight=LSQ\nQWeight.PerChannel=1\n", SHAPE, weights=stored(weights=REAL, QWeight_LSQ_StepSize=steps))
    assert found == "N2D2-E425: net.ini:2 [c]: 'c_QWeight_LSQ_StepSize' is -0.125, not above 0; check the training of the layer"


CONV = "[c]\nInput=sp\nType=Conv\nKernelSize=1\nNbOutputs=5\nConfigSection=k\n{keys}[k]\n{config}"


@pytest.mark.parametrize(
    ("keys", "config", "taken"),
    [
        ("QWeight=LSQ\nQWeight.PerChannel=1\n", "WeightsExportFormat=HWCO\n", False),
        ("QWeight=LSQ\nQWeight.PerChannel=0\n", "WeightsExportFormat=HWCO\n", True),
        ("QWeight=LSQ\nQWeight.PerChannel=1\n", "", True),
        ("QWeight=SAT\n", "WeightsExportFormat=HWCO\n", True),
    ],
)
def test_steps_of_outputs_need_weights_output_by_output(keys, config, taken, build, refusal):
    text = CONV.format(keys=keys, config=config)
    if taken:
        assert "weight_scales" in build(text, SHAPE).params("c")
    else:
        assert refusal(text, SHAPE) == (
            "N2D2-E124: net.ini:9 [c]: QWeight.PerChannel=1 with weights that are not stored output by output is not supported; "
            "store them in the order OCHW, without a mapping"
        )


@pytest.mark.parametrize("remap", ["", "OutputsRemap=4:1,0:4,1:4,2:4,3:4\n"])
def test_steps_follow_their_outputs(remap, build):
    """Those of the stored outputs, in the order of the layer."""
    steps = [0.1, 0.2, 0.3, 0.4, 0.5]
    text = CONV.format(keys="QWeight=LSQ\nQWeight.PerChannel=1\n", config=remap)
    found = build(
        text.replace(",0:4", ",0:9"), SHAPE, weights=stored(weights=REAL.reshape(5, 8, 1, 1), QWeight_LSQ_StepSize=steps)
    )
    wanted = [0.2, 0.3, 0.4, 0.5, 0.1] if remap else steps
    np.testing.assert_allclose(found.params("c")["weight_scales"], wanted, rtol=1e-6)


# ---- outputs ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("keys", "arrays", "ignore", "scale"),
    [
        ("QAct=SAT", None, False, 8 / 255),
        ("QAct=SAT\nQAct.Range=15", None, False, 8 / 15),
        ("QAct=SAT\nQAct.Alpha=6", None, False, 6 / 255),
        ("QAct=LSQ", None, False, 100),
        ("QAct=LSQ\nQAct.StepSize=0.5\nQAct.Range=7", None, False, 0.5),
        ("QAct=SAT\nQAct.Alpha=6", {"QAct_SAT_Alpha": [3]}, False, 3 / 255),
        ("QAct=LSQ\nQAct.StepSize=0.5", {"QAct_LSQ_StepSize": [0.25]}, False, 0.25),
        ("QAct=LSQ", {"QAct_LSQ_StepSize": [0.25]}, False, 0.25),
        ("QAct=LSQ\nQAct.StepSize=0.5", {}, False, 0.5),
        ("QAct=LSQ\nQAct.StepSize=0.5", {}, True, 0.5),
        ("QAct=LSQ", {}, True, 100),
        ("QAct=SAT", {}, True, 8 / 255),
        ("QAct=SAT\nQAct.Alpha=6", {}, True, 6 / 255),
        ("QAct=SAT", {}, False, "the weights 'c_QAct_SAT_Alpha' are not in w.npz"),
        ("QAct=SAT\nQAct.Alpha=6", {}, False, "the weights 'c_QAct_SAT_Alpha' are not in w.npz"),
        ("QAct=LSQ", {}, False, "the weights 'c_QAct_LSQ_StepSize' are not in w.npz"),
        ("QAct=SAT", {"QAct_SAT_Alpha": [0]}, False, "'c_QAct_SAT_Alpha' is 0, not above 0"),
        ("QAct=LSQ", {"QAct_LSQ_StepSize": [-2]}, False, "'c_QAct_LSQ_StepSize' is -2, not above 0"),
    ],
)
def test_the_scale_of_an_output(keys, arrays, ignore, scale, build, refusal):
    """The stored value; that of the document where nothing is stored, of LSQ also where other arrays are."""
    weights = None if arrays is None else stored(weights=REAL, **arrays)
    if isinstance(scale, str):
        assert scale in refusal(FC + keys, SHAPE, weights=weights, ignore_missing=ignore)
        return
    kind = build(FC + keys, SHAPE, weights=weights, ignore_missing=ignore).graph.nodes[-1].op.type
    steps = int(keys.partition("Range=")[2] or 255)
    assert (kind.bits, kind.signed, kind.zero_point, kind.qmin, kind.qmax) == (8, False, 0, 0, steps)
    assert kind.scale == pytest.approx(scale, rel=1e-6)


def test_names_behind_a_quantized_output(build):
    """The layer keeps its tensor; names that are taken are numbered."""
    net = build(
        "[c_real]\nInput=sp\nType=Dropout\nNbOutputs=8\n[c_quantized]\nInput=c_real\nType=Dropout\nNbOutputs=8\n"
        + FC.replace("=sp", "=c_quantized")
        + "QAct=SAT\n",
        SHAPE,
    )
    layer, quantize = net.graph.nodes[-2:]
    assert layer.name == "c" and layer.outputs == quantize.inputs and quantize.outputs == ["c"]
    assert layer.outputs[0] not in ("c", "c_real", "c_quantized") and quantize.name not in ("c", "c_real", "c_quantized")
    assert net.graph.shape("c") == net.graph.shape(layer.outputs[0]) == (1, 5)


# ---- keys -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("key", ["QWeight.Range", "QAct.Range"])
@pytest.mark.parametrize("value", [0, 2, 16, 128, 254, 256, 511])
def test_steps_that_are_no_number_of_bits(key, value, refusal):
    quantizer = key.partition(".")[0]
    assert refusal(FC + f"{quantizer}=SAT\n{key}={value}\n", SHAPE) == (
        f"N2D2-E122: net.ini:7 [c]: {value} steps are no number of bits; give one of 1, 3, 7, 15, 31, 63, 127, 255: 1 to 8 bits"
    )


@pytest.mark.parametrize("key", ["QWeight.StepSize", "QAct.StepSize", "QAct.Alpha"])
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("0", "E122: net.ini:7 [c]: 0 is not above 0; give a positive number"),
        ("-0.5", "E122: net.ini:7 [c]: -0.5 is not above 0; give a positive number"),
        ("inf", "E109: net.ini:7 [c]: {key}=inf is not a number; give a number"),
        ("nan", "E109: net.ini:7 [c]: {key}=nan is not a number; give a number"),
    ],
)
def test_values_above_0(key, value, text, refusal):
    quantizer = key.partition(".")[0]
    assert refusal(FC + f"{quantizer}=LSQ\n{key}={value}\n", SHAPE) == f"N2D2-{text.format(key=key)}"


DEFAULTS = {
    "QWeight": {
        "QWeight.Range": ("255", "127", ()),
        "QWeight.QuantMode": ("Default", "Symmetric", ("SAT",)),
        "QWeight.StepSize": ("100", "201", ("LSQ",)),
        "QWeight.PerChannel": ("0", "1", ("LSQ",)),
        "QWeight.ApplyQuantization": ("1", "0", ("SAT",)),
        "QWeight.ApplyScaling": ("0", "1", ("SAT",)),
    },
    "QAct": {"QAct.Range": ("255", "127", ()), "QAct.Alpha": ("8", "17", ("SAT",)), "QAct.StepSize": ("100", "201", ("LSQ",))},
}
EFFECTS = [
    (kind, used, key, value, told)
    for kind, keys in DEFAULTS.items()
    for key, (default, other, only) in keys.items()
    for used in ("", "SAT", "LSQ")
    for value, told in ((default, False), (other, not used or bool(only and used not in only)))
]


@pytest.mark.parametrize(("kind", "used", "key", "value", "told"), EFFECTS)
def test_keys_of_other_quantizers_have_no_effect(kind, used, key, value, told, build):
    """A key at its default says nothing."""
    build(FC + f"{kind}={used}\n{key}={value}\n", SHAPE)
    lines = [line for line in warned() if "W422" in line]
    if not told:
        assert not lines
        return
    what = (
        f"no effect with {kind}={used}; remove it, or give another {kind}"
        if used
        else f"no effect without {kind}; give {kind}=SAT or LSQ"
    )
    assert lines == [f"N2D2-W422: net.ini:7 [c]: {key}: {what}"]


def test_several_keys_of_another_quantizer(build):
    build(FC + "QWeight=SAT\nQWeight.StepSize=2\nQWeight.PerChannel=1\n", SHAPE)
    assert [line for line in warned() if "W422" in line] == [
        "N2D2-W422: net.ini:7 [c]: QWeight.StepSize, QWeight.PerChannel: no effect with QWeight=SAT; remove them, or give another QWeight"
    ]


@pytest.mark.parametrize(
    ("layer", "keys", "names", "what"),
    [
        ("Type=Pool\nPooling=Max\nPoolSize=1\nNbOutputs=8", "QWeight=SAT", "QWeight", "weights"),
        (
            "Type=Pool\nPooling=Max\nPoolSize=1\nNbOutputs=8",
            "QWeight.Range=15\nQWeight=SAT",
            "QWeight.Range, QWeight",
            "weights",
        ),
        ("Type=Dropout\nNbOutputs=8", "QAct=SAT", "QAct", "activation"),
        ("Type=Dropout\nNbOutputs=8", "QAct.Alpha=2\nQWeight=SAT", "QAct.Alpha, QWeight", "activation"),
        ("Type=Fc\nNbOutputs=5", "QBias=SAT", "QBias", "quantized bias"),
        ("Type=Fc\nNbOutputs=5", "QAct=SAT\nQBiasRange=1", "QBiasRange", "quantized bias"),
        ("Type=Softmax\nNbOutputs=8", "QBias=1\nQAct=SAT", "QBias, QAct", "quantized bias"),
    ],
)
def test_layers_that_have_no_such_thing(layer, keys, names, what, refusal):
    kind = layer.partition("=")[2].partition("\n")[0]
    found = refusal(f"[c]\nInput=sp\n{layer}\n{keys}\n", SHAPE)
    assert (
        found.startswith("N2D2-E242: net.ini:")
        and f"[c]: {names}: a layer of Type={kind} has no {what} to quantize; put them into" in found
    )


def test_descriptions_read_keys_of_no_quantizer():
    Path("net.ini").write_text("[sp]\n[c]\nInput=sp\nType=Dropout\nNbOutputs=8\nQAct=SAT\n")
    document = load_document(Path("net.ini"))
    document.described = True
    assert build_graph(document, (1, 8, 1, 1), None, 1).shape("c") == (1, 8, 1, 1)


# ---- what a layer is built with -----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("layer", "rows"),
    [
        ("Type=Conv\nKernelDims=3 2\nNbOutputs=4", (12,) * 4),
        ("Type=Conv\nKernelDims=3 2\nNbOutputs=4\nMapping.NbGroups=2", (6,) * 4),
        ("Type=Conv\nKernelDims=3 2\nNbOutputs=3\nMapping(sp)=1 0 1 1 1 0", (12, 6, 6)),
        ("Type=Conv\nKernelDims=3 2\nNbOutputs=3\nMapping(sp)=1 0 0 1 0 1", (12, 0, 6)),
        ("Type=Fc\nNbOutputs=5", (70,) * 5),
        ("Type=Dropout\nNbOutputs=2", ()),
    ],
)
def test_weights_of_each_output(layer, rows):
    Path("net.ini").write_text(f"[sp]\n[c]\nInput=sp\n{layer}\n")
    weights = WeightStore(None)
    weights.recipes = {}
    build_graph(load_document(Path("net.ini")), (1, 2, 5, 7), weights, 1)
    assert weights.recipes["c"].rows == rows


@pytest.mark.parametrize(("most", "taken"), [(12, True), (11, False)])
def test_the_most_parameters(most, taken, build, refusal, monkeypatch):
    monkeypatch.setattr("n2d2py.frontend.ini.contract.MAX_ELEMENTS", most)
    text = "[c]\nInput=sp\nType=Conv\nKernelDims=1 2\nNbOutputs=2\n"
    if taken:
        assert build(text, (3, 4, 4)).params("c")["weights"].size == 12
    else:
        assert refusal(text, (3, 4, 4)) == (
            "N2D2-E229: net.ini:2 [c]: the layer needs 12 weights (2x3x2x1), at most 11 are supported; "
            "check NbOutputs and the dimensions of its input"
        )


def test_names_of_what_joins_inputs(build):
    """They are no section's, and no tensor's."""
    drop = "[{0}]\nInput=sp\nType=Dropout\nNbOutputs=3\n"
    net = build(drop.format("a") + "[c]\nInput=sp,a\nType=Dropout\nNbOutputs=6\n" + drop.format("c_concat"))
    (helper,) = (node for node in net.graph.nodes if node.helper)
    assert (helper.name, helper.outputs, helper.inputs, str(helper.location)) == (
        "c_concat_",
        ["c_concat_"],
        ["sp", "a"],
        "net.ini:6 [c]",
    )
    net = build("[c_concat]\nInput=sp\nType=Dropout\nNbOutputs=3\n" + "[c]\nInput=sp,c_concat\nType=Dropout\nNbOutputs=6\n")
    assert [node.name for node in net.graph.nodes] == ["c_concat", "c_concat_", "c"]
    assert net.graph.node("c").inputs == ["c_concat_"]


def test_one_input_is_not_joined(build):
    net = build("[c]\nInput=sp\nType=Dropout\nNbOutputs=3\n")
    assert [node.inputs for node in net.graph.nodes] == [["sp"]]


def test_parameters_of_a_description_take_no_memory():
    Path("net.ini").write_text("[sp]\n[c]\nInput=sp\nType=Fc\nNbOutputs=5\n")
    params = build_graph(load_document(Path("net.ini")), (1, 8, 1, 1), None, 1).node("c").params
    assert params["weights"].shape == (5, 8) and not params["weights"].any() and params["weights"].strides == (0, 0)


def test_a_layer_without_weights_has_an_output(build):
    """What its quantizer does not read is said there too."""
    build("[c]\nInput=sp\nType=Activation\nActivationFunction=Rectifier\nNbOutputs=8\nQAct=SAT\nQAct.StepSize=2\n", SHAPE)
    assert [line for line in warned() if "W422" in line] == [
        "N2D2-W422: net.ini:8 [c]: QAct.StepSize: no effect with QAct=SAT; remove it, or give another QAct"
    ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[c]\nInput=sp\nType=Fc\nQWeight=SAT\n", True),
        ("[c]\nInput=sp\nType=Fc\nQAct=LSQ\n", True),
        ("[b]\nInput=sp\nType=Fc\n[c]\nInput=b\nType=Fc\nQAct=LSQ\n", True),
        ("[c]\nInput=sp\nType=Fc\nQAct=\nQWeight=\n", False),
        ("[c]\nInput=sp\nType=Fc\nQAct.Range=15\n", False),
        ("[c]\nType=Fc\nQWeight=SAT\n", False),
        ("[c]\nInput=sp\nType=Fc\n", False),
    ],
)
def test_documents_that_were_trained_with_quantizers(text, wanted):
    Path("net.ini").write_text("[sp]\n" + text)
    assert has_quantized_training(load_document(Path("net.ini"))) == wanted


def refused_keys(text: str) -> list[str]:
    Path("net.ini").write_text(text)
    with pytest.raises(N2D2Error) as caught:
        refuse_quantized_training(load_document(Path("net.ini")))
    return [
        error.line().partition("; without")[0] + " / " + error.line().partition("; without ")[2].partition(" it")[0]
        for error in caught.value.errors
    ]


OLDER = "the quantization of activations of early versions is not supported"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("QWeight=SAT\n[sp]\n", ["net.ini:1: QWeight: no key of all layers / this key"]),
        (
            "QAct.Range=15\nQWeight=SAT\nQWeight.Range=15\n[sp]\n",
            [
                "net.ini:2: QWeight, QWeight.Range: no key of all layers / these keys",
                "net.ini:1: QAct.Range: no key of all layers / this key",
            ],
        ),
        ("QBias=1\n[sp]\n", ["net.ini:1: QBias: no key of all layers / this key"]),
        (
            "[sp]\n[a]\nInput=sp\nActivationFunction.QuantizationLevels=3\n[b]\nActivationFunction.QuantizationDelay=2\n"
            "ActivationFunction.QuantizationLevels=7\n",
            [
                f"net.ini:4 [a]: ActivationFunction.QuantizationLevels, ActivationFunction.QuantizationDelay: {OLDER} / these keys"
            ],
        ),
        (
            "[sp]\n[a]\nActivationFunction.Log2RoundingRate=1\n",
            [f"net.ini:3 [a]: ActivationFunction.Log2RoundingRate: {OLDER} / this key"],
        ),
        (
            "ActivationFunction.Log2RoundingRate=1\n[sp]\n",
            [f"net.ini:1: ActivationFunction.Log2RoundingRate: {OLDER} / this key"],
        ),
    ],
)
def test_keys_that_are_no_layer_s(text, lines):
    """Each kind in one line, with the first place of each name; unused sections count."""
    assert refused_keys(text) == [f"N2D2-E242: {line}" for line in lines]


def test_keys_of_layers_are_taken_elsewhere():
    Path("net.ini").write_text("[sp]\n[a]\nInput=sp\nType=Fc\nNbOutputs=3\nQWeight=SAT\nQAct=SAT\nQBias=1\n")
    refuse_quantized_training(load_document(Path("net.ini")))
