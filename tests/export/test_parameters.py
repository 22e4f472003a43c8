"""Every export parameter changes the export, or a message says that it does not."""

import re
from itertools import product
from pathlib import Path

import pytest
from support.extra_targets import INSTALLED
from support.tables import few_fast, run_rows

from n2d2py.cli import main
from n2d2py.exports import find_target
from n2d2py.exports.registry import EXTRAS, installed_targets, known_parameters

pytestmark = pytest.mark.usefixtures("without_report")

HERE = Path(__file__).parent
TARGETS = {
    "int8": ("CPP", "8"),
    "float": ("CPP", "-32"),
    "mcu": ("CPP_MCU", "8"),
    "onnx": ("ONNX", "8"),
    **{EXTRAS[name]: (name, "8") for name in ("NCNN", "NVDLA") if name in INSTALLED},
}
_VALUES = """
    States=a:b StateCalls=3 Constants=a:1 IncludeInputInBuffer=0 IncludeOutputInBuffer=0 OptimizeBufferMemory=0
    OptimizeNoBranchConcat=0 FuseResidualAdd=0 MemoryAlignment=32 BufferAlignment=1024 MemoryManagerStrategy=OptimizeStream
    MemoryMode=Small MemoryBudget=0 Memories=A:1k:1,B:1M:4 MaxExtraMacs=5 PackActivations=1 StreamInput=1 OpenMP=0
    Namespace=other WeightsFormat=string WeightsFile=1 PackWeights=0 PrepackWeights=0 Winograd=0 SmallCode=1 SIMD=none
    RuntimeDispatch=1 Core=cortex-m0 TestVectors=2 SpeedForFlash=1 CopyWeights=double SingleFile=1 MLPerfTiny=ic01 Fp16Storage=1 RoundBlobs=1 Opset=18 IntegerIO=1
    ExactRange=1 Int4Weights=1 ModelArray=0 Kernels=Reference Accelerator=ethos-u55-32 VelaSystemConfig=A VelaMemoryMode=B
    VelaConfig=C VelaOptimise=Size VelaArenaCacheSize=1 NVDLAConfig=nv_large NVDLAPrecision=fp16 NVDLAFirmware=0.11
    NVDLACalibration=table.json NVDLAFallback=1
"""
KNOWN = {key.name for key in known_parameters(*installed_targets()).keys}
VALUES = {name: value for name, _, value in (word.partition("=") for word in _VALUES.split()) if name in KNOWN}
"""A value for every parameter that is not its default."""
REFUSED = {("nvdla", "NVDLAPrecision"), ("nvdla", "NVDLACalibration"), ("mcu", "MLPerfTiny")}
OF_INTEGERS = {("float", name) for name in ("FuseResidualAdd", "PackWeights", "PrepackWeights", "WeightsFormat", "Winograd")}
"""Those that are for integers only: in floating point each is warned of."""
OF_MODELS = {"States", "StateCalls", "Constants"}
"""Those that are for the inputs of ONNX and TFLite files."""
ALONE = {*"CopyWeights ExactRange Int4Weights MaxExtraMacs PackActivations PackWeights PrepackWeights".split(), *OF_MODELS}
"""Those that have no effect without another one, without low-bit or signed tensors, or here, where the network is an INI file."""
UNUSED = {
    ("nvdla", "NVDLAFallback"),
    *OF_INTEGERS,
    *((target, name) for target in TARGETS for name in OF_MODELS),
    *((target, name) for target in ("int8", "mcu", "float", "onnx") for name in ALONE),
    ("ncnn", "Fp16Storage"),
    ("ncnn", "RoundBlobs"),
}
"""Those that matter to other networks or precisions only: no layer of this one runs on the CPU, adds bytes, or has weights of few bits, and
none in floating point reads integers."""


def export(out: Path, target: str, parameters: str, *words: str) -> int:
    kind, bits = TARGETS[target]
    out.mkdir()
    (out / "params.ini").write_text(parameters)
    common = ["-seed", "1", "-w", "/dev/null", "-calib", "2", "-quality", "fast", "-db-export", "0", "-quiet"]
    arguments = ["-export", kind, "-nbbits", bits, "-export-parameters", str(out / "params.ini"), "-o", str(out)]
    return main([str(HERE / "parameters.ini"), *common, *arguments, *words])


def made(out: Path) -> dict[str, bytes]:
    """The files of an export by name, without those that tell what was asked for."""
    (folder,) = out.glob("export_*")
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        name: path.read_bytes()
        for path in files
        if (name := path.relative_to(folder).as_posix()) not in ("manifest.json", "README.md")
        and not name.startswith("statistics/")
    }


@pytest.fixture(scope="module")
def default(tmp_path_factory):
    found: dict[str, dict[str, bytes]] = {}

    def of(target: str) -> dict[str, bytes]:
        if target not in found:
            out = tmp_path_factory.mktemp("default") / target
            assert export(out, target, "") == 0
            found[target] = made(out)
        return found[target]

    return of


def test_all_parameters_are_tried():
    assert set(VALUES) == KNOWN


EXPORTS = [pytest.param(name, marks=[pytest.mark.slow] * (name == "float")) for name in TARGETS]


def read_by(target: str) -> list[str]:
    """The parameters that a target reads."""
    read = {key.name for key in find_target(TARGETS[target][0]).parameters.keys}
    return [name for name in VALUES if name in read]


def is_warned_of(name: str, said: str) -> bool:
    return re.search(rf"warning N2D2-W109: .*params.ini:\d+: {name} has no effect: .*; remove it", said) is not None


@pytest.mark.parametrize("target", EXPORTS)
def test_a_parameter_has_an_effect_or_is_warned_of(target, tmp_path, default, capsys):
    shared = read_by("int8") if target == "mcu" else []  # the same generator reads them
    rows = [(name, {"name": name}) for name in read_by(target) if name not in shared]
    run_rows(check_parameter, rows, {"target": target, "tmp_path": tmp_path, "default": default, "capsys": capsys})


def check_parameter(name, target, tmp_path, default, capsys):
    status = export(tmp_path / "out", target, f"{name}={VALUES[name]}\n")
    said = capsys.readouterr().err
    if (target, name) in REFUSED:
        assert status == 1 and re.search(r"error N2D2-E7\d\d", said) and (name in said or VALUES[name] in said)
        return
    assert status == 0
    assert is_warned_of(name, said) == (name in ALONE or (target, name) in OF_INTEGERS)
    assert (made(tmp_path / "out") != default(target)) == ((target, name) not in UNUSED)


@pytest.mark.parametrize("target", EXPORTS)
def test_parameters_that_a_target_does_not_read_are_warned_of(target, tmp_path, default, capsys):
    """All at once: each has a warning of its own, and none changes a byte."""
    others = [name for name in VALUES if name not in read_by(target)]
    assert export(tmp_path / "out", target, "".join(f"{name}={VALUES[name]}\n" for name in others)) == 0
    said = capsys.readouterr().err
    assert [name for name in others if not is_warned_of(name, said)] == []
    assert made(tmp_path / "out") == default(target)


@pytest.mark.parametrize(
    "parameters, name",
    [
        ("RuntimeDispatch=1\nSIMD=none", "RuntimeDispatch"),
        ("StreamInput=1\nIncludeInputInBuffer=0", "IncludeInputInBuffer"),
        ("MemoryManagerStrategy=OptimizeAuto\nBufferAlignment=64", "BufferAlignment"),
        ("MemoryManagerStrategy=None\nBufferAlignment=64", "BufferAlignment"),
        ("MemoryManagerStrategy=None\nFuseResidualAdd=0", "FuseResidualAdd"),
    ],
)
def test_a_parameter_that_another_overrules_is_warned_of(parameters, name, tmp_path, capsys):
    assert export(tmp_path / "out", "int8", parameters + "\n") == 0
    assert f"{name} has no effect: " in capsys.readouterr().err


def test_weights_of_8_bits_in_a_network_of_16_have_a_format(tmp_path, capsys):
    texts = []
    for form in ("text", "string"):
        assert export(tmp_path / form, "int8", f"WeightsFormat={form}\n[fc]\nQuantWeightBits=8\n", "-nbbits", "16") == 0
        texts.append(made(tmp_path / form))
    assert texts[0] != texts[1]
    assert "W109" not in capsys.readouterr().err


@pytest.mark.parametrize("target", TARGETS)
def test_defaults_are_no_demand(target, tmp_path, capsys):
    assert export(tmp_path / "out", target, (HERE.parents[1] / "params" / "default.ini").read_text(), "-strict") in (0, 1)
    assert "W109" not in capsys.readouterr().err


LAYERS = ("a", "b", "sum", "dw", "left", "pool", "fc")


@pytest.mark.parametrize(
    ("layer", "simd"),
    few_fast(dict.fromkeys([("a", "auto"), ("dw", "auto"), ("b", "none"), *product(LAYERS, ("auto", "none"))]), 3),
)
def test_a_tile_is_for_layers_that_work_in_tiles(layer, simd, tmp_path, default, capsys):
    status = export(tmp_path / "out", "int8", f"SIMD={simd}\n[{layer}]\nTile=avx2:4x2:4096\n")
    said = capsys.readouterr().err
    if layer in ("a", "b", "left") and simd == "auto":
        assert status == 0 and made(tmp_path / "out") != default("int8")
    else:
        assert (
            status == 1 and f"E705: Tile=avx2:4x2:4096 of [{layer}] " in said and not list((tmp_path / "out").glob("export_*"))
        )


def test_a_precision_of_a_layer_is_warned_of_in_floating_point(tmp_path, capsys):
    keys = {"QuantBits": "16", "QuantWeightBits": "16", "Quantize": "0"}
    text = "".join(f"[{layer}]\n" + "".join(f"{key}={value}\n" for key, value in keys.items()) for layer in LAYERS)
    assert export(tmp_path / "out", "float", text) == 0
    said = capsys.readouterr().err
    for layer, key in product(LAYERS, keys):
        assert re.search(rf"params.ini:\d+ \[{layer}\]: {key} has no effect: the export has no integers", said), (layer, key)


@pytest.mark.parametrize("layer", ["sum", "pool"])
def test_a_width_of_weights_is_for_layers_with_weights(layer, tmp_path, capsys):
    assert export(tmp_path / "out", "int8", f"[{layer}]\nQuantWeightBits=16\n") == 0
    assert re.search(rf"\[{layer}\]: QuantWeightBits has no effect: \w+ has no weights", capsys.readouterr().err)


@pytest.mark.parametrize("target, key", [("int8", "Tiles"), *[("nvdla", "Tile")] * ("nvdla" in TARGETS)])
def test_an_unknown_key_of_a_layer_is_warned_of(target, key, tmp_path, capsys):
    assert export(tmp_path / "out", target, f"[a]\n{key}=avx2:4x2:4096\n") == 0
    said = capsys.readouterr().err
    assert f"W102: {tmp_path / 'out' / 'params.ini'}:1 [a]: key '{key}'" in said
    assert ("did you mean 'Tile'?" in said) == (key == "Tiles")
