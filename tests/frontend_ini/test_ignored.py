"""Keys of N2D2 without effect here: refused where they change results, else one warning for each kind; none is silent."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from support.errors import error_of
from support.onnx_models import text_model
from support.tables import every

from n2d2py import cli, log
from n2d2py.contracts.ini.layers import layer_types
from n2d2py.data import database_schemas, provider_schemas, transformation_schemas
from n2d2py.errors import N2D2Error
from n2d2py.exports.registry import known_parameters, load_params
from n2d2py.frontend.ini.network import GLOBALS, INPUT_SECTION
from n2d2py.frontend.ini.onnx_section import ONNX_LAYER, ONNX_SECTION
from n2d2py.frontend.ini.targets import TARGET
from n2d2py.options import read_command
from n2d2py.pipeline import load_network

NET = """{globals}
[sp]
Size=6 5 3
{sp}
{base}
[conv] {bases}
Input=sp
Type=Conv
KernelSize=3
NbOutputs=4
{layer}
[fc]
Input=conv
Type=Fc
NbOutputs=2
ConfigSection=common
[common]
{config}
[fc.Target]
{target}
"""


def load(*options: str, **parts: str):
    """The network of NET with these lines in its sections, as the command reads it."""
    blank = dict.fromkeys(("globals", "sp", "base", "bases", "layer", "config", "target"), "")
    Path("net.ini").write_text(NET.format(**{**blank, **parts}))
    log.setup(quiet=True)
    return load_network(*read_command(["net.ini", "-w", "/dev/null", *options]))


def refused(*options: str, **parts: str) -> list[str]:
    return [one.line() for one in error_of(load, *options, **parts).errors]


def warned() -> list[str]:
    return [one.line() for one in log.warnings_seen()]


@every(
    "key", ["QWeight=SAT", "QWeight.Range=15", "QWeightSolver.LearningRate=0.1", "QAct=LSQ", "QActSolver=SGD", "QAct.Alpha=6.0"]
)
def test_quantized_training_is_refused_outside_of_layers(key):
    name = key.split("=")[0]
    (line,) = refused(globals=key)
    assert line.startswith("N2D2-E242: net.ini:") and f": {name} " in line and "sections of layers" in line
    if "Solver" in name:  # N2D2 reads solvers in a ConfigSection, where only training needs them
        load(config=key)
        (line,) = warned()
        assert "N2D2-W108" in line and name in line
        return
    (line,) = refused(config=key)
    assert line.startswith("N2D2-E124: net.ini:") and f"'{name}'" in line and "sections of layers" in line


@pytest.mark.parametrize("key", ["QuantizationLevels=255", "QuantizationDelay=1000", "Log2RoundingRate=0.1"])
def test_quantized_activations_are_refused(key):
    (line,) = refused(layer=f"ActivationFunction=Rectifier\nActivationFunction.{key}")
    assert line.startswith("N2D2-E242: net.ini:") and f"ActivationFunction.{key.split('=')[0]} " in line


@every(
    "place, key",
    [
        ("layer", "Kernel=Gaussian"),
        ("layer", "Kernel.SizeX=3"),
        ("layer", "Kernel[0][1]=LoG"),
        ("layer", "WeightsSharing=fc"),
        ("layer", "KernelDepth=3"),
        ("sp", "TargetSizeX=8"),
    ],
)
def test_a_key_that_changes_results_is_refused(place, key):
    (line,) = refused(**{place: key})
    assert line.startswith("N2D2-E124: net.ini:") and f"'{key.split('=')[0]}'" in line
    if place != "sp":
        load("-describe", **{place: key})  # dimensions do not depend on it
    if place == "layer":
        assert len(warned()) == 1 and key.split("=")[0] in warned()[0]


@every(
    "key", ["ValueThreshold=0.5", "WeakTarget=3", "MaskLabelTarget=conv.Target", "MaskedLabel=2", "ROIsLabelTarget=conv.Target"]
)
def test_a_key_that_changes_scores_stops_no_export(key, capsys):
    """A warning without -test; with it an error before anything is calibrated."""
    load(target=key)
    assert len(warned()) == 1 and "N2D2-W108" in warned()[0] and key.split("=")[0] in warned()[0]
    words = ["net.ini", "-w", "/dev/null", "-calib-data", "x.npz", "-test"]
    np.savez("x.npz", x=np.zeros((4, 3, 5, 6), np.float32), y=np.zeros(4, np.int64))
    assert cli.main(words) == 1
    assert "N2D2-E124: net.ini" in (text := capsys.readouterr().err) and f"'{key.split('=')[0]}'" in text


@every(
    "place, key",
    [
        ("target", "ValueThreshold=0"),
        ("target", "WeakTarget=-2"),
        ("target", "MaskedLabelValue=0"),
        ("layer", "StrideZ=1"),
        ("layer", "PaddingZ=0"),
        ("layer", "DataType=Float32"),
        ("target", "TargetValue=1.0"),
        ("sp", "TargetSizeX=6\nTargetSizeY=5\nTargetNbChannels=3"),
        ("sp", "TargetSize=6 5 3"),
    ],
)
def test_a_value_that_means_what_is_done_anyway_passes(place, key):
    load(**{place: key})
    assert warned() == []


def test_keys_of_training_make_one_warning():
    load(
        layer="Solvers=SGD\nBackPropagate=0\nDataType=Float16",
        config="Solvers.Decay=0.1\nWeightsSolver.LearningRate=0.1\nDropConnect=0.5\nIncomingDelay=1",
        target="TargetValue=2\nImageLogFormat=png\nNbAnchors=2\nDataPath=x",
        sp="CachePath=x\nStimulusType=JitteredPeriodic",
    )
    kinds = [line.split("net.ini: ")[1].split(" have no effect")[0] for line in warned()]
    assert sorted(kinds) == [
        "keys of TargetCompare in other targets",
        "keys of caches and memory",
        "keys of images and logs of targets",
        "keys of spiking models",
        "keys of targets of boxes",
        "keys of training",
        "types of floating point",
    ]
    training = next(line for line in warned() if "keys of training" in line)
    assert training.startswith(
        "N2D2-W108: net.ini: keys of training have no effect here: Solvers, BackPropagate, Solvers.Decay, "
        "WeightsSolver.LearningRate, DropConnect, TargetValue in [conv], [common], [fc.Target]"
    )


@every("key", ["Clipping=6", "LeakSlope=0.1", "Alpha=2", "Threshold=3"])
def test_a_parameter_of_another_activation_is_a_warning(key):
    load(layer=f"ActivationFunction=Softplus\nActivationFunction.{key}")
    (line,) = warned()
    assert line.startswith("N2D2-W108") and f"ActivationFunction.{key.split('=')[0]}" in line


def test_export_parameters_of_other_exports_make_one_warning():
    Path("params.ini").write_text("NbDSPs=3\nFakeQuantization=1\n")
    log.setup(quiet=True)
    load_params("params.ini")
    (line,) = warned()
    assert "NbDSPs, FakeQuantization" in line


def write_onnx(path: str = "net.onnx") -> None:
    body = "conv = Conv (x, w) relu = Relu (conv) pool = GlobalMaxPool (relu)"
    onnx.save(text_model("float[1,3,5,6] x => float pool, float relu", body, {"w": (4, 3, 3, 3)}), path)


def load_with_onnx(text: str):
    write_onnx()
    Path("net.ini").write_text(f"[sp]\nSize=6 5 3\n[onnx]\nInput=sp\nType=ONNX\nFile=net.onnx\n{text}")
    log.setup(quiet=True)
    return load_network(*read_command(["net.ini", "-w", "/dev/null"]))


@every("section", ["conv", "relu", "onnx:Conv_def"])
@every("key", ["ActivationFunction=Linear", "NoBias=0", "Foo=1", "WeightsSharing=x", "ConfigSection=c"])
def test_keys_of_onnx_layers_are_refused(section, key):
    more = "[c]\nNoBias=0\n" if key.startswith("Config") else ""
    with pytest.raises(N2D2Error, match="E124.*'" + ("NoBias" if more else key.split("=")[0])):
        load_with_onnx(f"[{section}]\n{key}\n{more}")


@pytest.mark.parametrize("section", ["conv", "onnx:Conv_def"])
def test_keys_of_training_of_onnx_layers_are_a_warning(section):
    load_with_onnx(f"[{section}]\nConfigSection=c\nWeightsFiller=HeFiller\n[c]\nSolvers.LearningRate=0.1\n")
    line, filler = warned()
    assert (
        "keys of training" in line
        and "in [c]" in line
        and "ONNX_init=0" in filler
        and f"WeightsFiller in [{section}]" in filler
    )


def test_the_precision_of_an_onnx_layer_is_read():
    graph = load_with_onnx("[conv]\nQuantBits=16\n").graph
    assert graph.precision(graph.node("conv")).bits == 16 and warned() == []


def test_sections_behind_an_onnx_file_are_outputs_too():
    """Without targets: outputs of the file that nothing reads, and the last layers."""
    graph = load_with_onnx(
        "[fc]\nInput=onnx,pool\nType=Fc\nNbOutputs=2\n[side]\nInput=onnx,relu\nType=Softmax\nNbOutputs=4\n"
    ).graph
    assert graph.outputs == ["fc", "side"]
    graph = load_with_onnx("[fc]\nInput=onnx,pool\nType=Fc\nNbOutputs=2\n").graph
    assert graph.outputs == ["relu", "fc"]


def test_a_file_with_several_outputs_is_no_single_input():
    with pytest.raises(N2D2Error, match=r"E223.*outputs pool, relu; write Input=onnx,<output>"):
        load_with_onnx("[fc]\nInput=onnx\nType=Fc\nNbOutputs=2\n")


def test_each_of_two_files_gives_its_own_output():
    write_onnx()
    model = onnx.load("net.onnx")
    del model.graph.output[1]
    onnx.save(model, "one.onnx")
    for value in (*model.graph.node, *model.graph.output):
        for field in ("input", "output"):
            names = getattr(value, field, None)
            if names is not None:
                names[:] = [name if name in ("x", "w") else f"b_{name}" for name in names]
    model.graph.output[0].name = "b_pool"
    onnx.save(model, "two.onnx")
    Path("net.ini").write_text(
        "[sp]\nSize=6 5 3\n[a]\nInput=sp\nType=ONNX\nFile=one.onnx\n[b]\nInput=sp\nType=ONNX\nFile=two.onnx\n"
        "[fc]\nInput=b\nType=Fc\nNbOutputs=2\n"
    )
    graph = load_network(*read_command(["net.ini", "-w", "/dev/null"])).graph
    assert graph.node("fc").inputs == ["b_pool"] and graph.outputs == ["pool", "fc"]


def test_no_list_of_keys_is_silent():
    """Keys without a kind say nothing: only of layers and transformations that are refused as a whole, ConfigSection, and NbChannels, which is read."""
    schemas = [GLOBALS, INPUT_SECTION, ONNX_SECTION, ONNX_LAYER, TARGET, known_parameters()]
    schemas += [*provider_schemas(), *database_schemas()]
    outlined = {"Anchor", "ObjectDet", "RP", "Proposal", "ROIPooling", "FMP", "Distance"}
    schemas += [one for kind in layer_types().values() if kind.name not in outlined for one in (kind.schema, kind.config)]
    for schema in schemas:
        for entry in schema.accepted:
            assert entry.kind or entry.pattern.startswith(("ConfigSection", "NbChannels")), (schema.name, entry.pattern)
            assert not entry.kind or (entry.does and entry.remedy), (schema.name, entry.pattern)
    silent = {schema.name for schema in transformation_schemas() if any(not entry.kind for entry in schema.accepted)}
    assert all("ignored if ApplyTo" in schema.doc for schema in transformation_schemas() if schema.name in silent)
