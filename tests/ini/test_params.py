"""Export parameters: defaults, typed values, places of errors, layers."""

from ast import literal_eval
from pathlib import Path

import pytest
from support.error_cases import headline
from support.errors import error_line, error_of
from support.tables import every

from n2d2py.errors import N2D2Error
from n2d2py.exports import load_params
from n2d2py.exports.cpp.parameters import CppParameters
from n2d2py.exports.mcu.project import McuParameters
from n2d2py.exports.registry import built_in_targets, known_parameters, preset_names
from n2d2py.ini import Params

_DEFAULTS = """
    States="" StateCalls=0 Constants="" IncludeInputInBuffer=True IncludeOutputInBuffer="auto" OptimizeBufferMemory=True
    OptimizeNoBranchConcat=True FuseResidualAdd=True MemoryAlignment=1 BufferAlignment=16
    MemoryManagerStrategy="OptimizeOverlap" MemoryMode="auto" MemoryBudget=-1 Memories=() MaxExtraMacs=0.0 PackActivations=False
    StreamInput=False OpenMP=True Namespace="" WeightsFormat="auto" WeightsFile=False PackWeights=True PrepackWeights=True
    Winograd=True SmallCode=False SIMD="auto" RuntimeDispatch=False Core="cortex-m4" TestVectors=3 SpeedForFlash=False
    CopyWeights="single" SingleFile=False MLPerfTiny="none" Opset=0 IntegerIO=False ExactRange=False Int4Weights=False
    Kernels="XNNPACK" ModelArray=True
"""
DEFAULTS = {name: literal_eval(value) for name, value in (word.split("=") for word in _DEFAULTS.split())}


def read(text: str) -> Params:
    Path("params.ini").write_text(text)
    return load_params("params.ini")


def refusal(text: str) -> list[str]:
    return [headline(item.line()) for item in error_of(read, text).errors]


def test_defaults():
    assert load_params(None).as_dict() == DEFAULTS
    assert read("; nothing\n").as_dict() == DEFAULTS
    assert [(key.name, key.default) for key in known_parameters().keys] == list(DEFAULTS.items())


def test_values_comments_and_places(warned):
    params = read(
        "\ufeff; a note\r\nMemoryAlignment = 4 ; bytes\r\n# other\n"
        'IncludeInputInBuffer=0\nNamespace="my_net" # n\nWeightsFormat=string\n'
        "MemoryManagerStrategy=None\n"
    )
    assert params.as_dict() == {
        **DEFAULTS,
        "MemoryAlignment": 4,
        "IncludeInputInBuffer": False,
        "Namespace": "my_net",
        "WeightsFormat": "string",
        "SIMD": "auto",
        "MemoryManagerStrategy": "None",
    }
    assert params.is_given("MemoryAlignment") and not params.is_given("OpenMP")
    assert str(params.where("MemoryAlignment")) == "params.ini:2"
    assert params.where("OpenMP") is None
    assert warned() == []


def test_a_target_reads_its_parameters_as_attributes():
    """A value of a parameter that the target does not read has no effect; what a class converts is converted."""
    read = McuParameters.of({"Core": "cortex-m7", "OpenMP": False, "IncludeOutputInBuffer": "0", "Opset": 18})
    assert (read.core.name, read.openmp, read.include_output, read.buffer_alignment) == ("cortex-m7", True, False, 4)
    assert "OpenMP" in {key.name for key in CppParameters.schema("CPP").keys}
    assert "OpenMP" not in {key.name for key in McuParameters.schema("CPP_MCU").keys}
    with pytest.raises(N2D2Error, match="Memories and MemoryBudget=9 exclude each other"):
        CppParameters.of({"Memories": ("A:1k:1",), "MemoryBudget": 9})


@pytest.mark.parametrize("target", built_in_targets(), ids=lambda target: target.name)
def test_a_parameter_without_a_value_has_its_default(target):
    kind = target.parameter_type
    assert kind.of({key.name: key.default for key in target.parameters.keys}) == kind.of({}) == kind()


def test_wrong_values_are_listed_together():
    assert refusal(
        "MemoryAlignment=0\nOpenMP=maybe\n\nMemoryManagerStrategy=OptimizeMaxLifetime\nNamespace=9net\nWeightsFormat=txt\n"
    ) == [
        "N2D2-E122: params.ini:1",
        "N2D2-E109: params.ini:2",
        "N2D2-E122: params.ini:4",
        "N2D2-E122: params.ini:5",
        "N2D2-E122: params.ini:6",
    ]


@every("name", ["class", "a b", "a-b", "a__b", "_A", "std", "int"])
def test_namespaces_that_cpp_refuses(name):
    assert refusal(f"Namespace={name}\n")[0] == "N2D2-E122: params.ini:1"


def test_unknown_and_repeated_keys_warn(warned):
    params = read("MemoryAlignement=4\nMemoryAlignment=2\nMemoryAlignment=8\nXyzzy=1\nNbDSPs=3\n")
    assert params["MemoryAlignment"] == 8
    assert warned() == [
        "N2D2-W101: params.ini:3",
        "N2D2-W102: params.ini:1",
        "N2D2-W102: params.ini:4",
        "N2D2-W108: params.ini",
    ]


def test_layers(warned):
    params = read('OpenMP=0\n[conv1]\nNbInstantiation=4\nA="x"\n[conv_2]\nB=1\n')
    assert params.layers["conv1"] == {"NbInstantiation": "4", "A": "x"}
    params.check_layers(["conv1", "conv2"])
    assert warned() == ["N2D2-W107: params.ini:5 [conv_2]"]


@every(
    "text, message",
    [
        ("OpenMP\n", "E104: params.ini:1"),
        ('\nNamespace="a\n', "E103: params.ini:2"),
        ("[a]\nX=1\n[a]\n", "E106: params.ini:3 [a]"),
        ("[[a]]\n", "E121: params.ini:1 [[a]"),
        ("[a] b\n", "E121: params.ini:1 [a]"),
        ("Namespace='''x\nOpenMP=1\n", None),
    ],
)
def test_malformed_text(text, message):
    lines = refusal(text)
    assert len(lines) == 1
    assert lines[0] == "N2D2-" + message if message else lines[0].startswith("N2D2-E1")


def test_missing_file():
    assert headline(error_line(load_params, "folder/none.ini")) == "N2D2-E101: folder/none.ini"


def test_a_name_is_a_preset_unless_it_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_params("low_memory").as_dict() == load_params("low_memory.ini").as_dict() != load_params(None).as_dict()
    (tmp_path / "low_memory").write_text("MemoryAlignment=32\n")
    assert load_params("low_memory")["MemoryAlignment"] == 32
    assert load_params("low_memory.ini")["MemoryAlignment"] == 1
    assert load_params("./low_memory")["MemoryAlignment"] == 32


@pytest.mark.parametrize(("typed", "named"), [("low_memry", ("low_memory",)), ("xyz", preset_names())])
def test_an_unknown_preset_names_the_nearest_or_all(typed, named):
    error = error_of(load_params, typed)
    assert headline(str(error)) == f"N2D2-E101: {typed}"
    assert error.remedy and all(name in error.remedy for name in named)
