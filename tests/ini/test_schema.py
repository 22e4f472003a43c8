"""Typed reading: kinds, defaults, unknown keys, ConfigSection, paths."""

from pathlib import Path

import pytest
from support.error_cases import headline
from support.errors import error_of
from support.tables import every

from n2d2py import log
from n2d2py.ini import TRAINING, Key, Kind, Schema, merge_config, resolve_path
from n2d2py.ini.document import read_environment_variable


def one(kind: Kind, **options) -> Schema:
    return Schema("Test", (Key("K", kind, **options),))


def errors(call) -> list[str]:
    return [headline(item.line()) for item in error_of(call).errors]


@every(
    "kind, text, expected",
    [
        (Kind.UINT, "30", 30),
        (Kind.UINT, "+3", 3),
        (Kind.UINT, "4294967295", 4294967295),
        (Kind.INT, "-3", -3),
        (Kind.FLOAT, "1.0e-5", 1e-5),
        (Kind.FLOAT, "-3", -3.0),
        (Kind.FLOAT, ".5", 0.5),
        (Kind.BOOL, "0", False),
        (Kind.BOOL, "1", True),
        (Kind.STRING, "a  b", "a  b"),
        (Kind.STRING, "", ""),
        (Kind.PATH, "/dev/null", "/dev/null"),
        (Kind.PATH, "~/x", "~/x"),
        (Kind.UINTS, "3 3", (3, 3)),
        (Kind.UINTS, "", ()),
        (Kind.INTS, "1 -2\t3", (1, -2, 3)),
        (Kind.FLOATS, "0.5 2", (0.5, 2.0)),
        (Kind.BOOLS, "0 1", (False, True)),
        (Kind.STRINGS, 'a "b c" d', ("a", "b c", "d")),
        (Kind.STRINGS, '"a b" "c d"', ("a b", "c d")),
        (Kind.NAMES, "a, b ,c", ("a", "b", "c")),
        (Kind.NAMES, "onnx,Net/AvgPool:0", ("onnx", "Net/AvgPool:0")),
        (Kind.DATATYPE, "Float16", "Float16"),
    ],
)
def test_kinds(load, warned, kind, text, expected):
    value = one(kind).read(load(f"[s]\nK={text}\n").section("s"))["K"]
    assert value == expected and type(value) is type(expected)
    assert warned() == []


@every(
    "kind, text, message",
    [
        (Kind.UINT, "-3", "E109: net.ini:2 [s]"),
        (Kind.UINT, "3 4", "E109: net.ini:2 [s]"),
        (Kind.UINT, "", "E109: net.ini:2 [s]"),
        (Kind.UINT, "1_0", "E109: net.ini:2 [s]"),
        (Kind.UINT, "4294967296", "E122: net.ini:2 [s]"),
        (Kind.INT, "1.5", "E109: net.ini:2 [s]"),
        (Kind.INT, "9" * 5000, "E109: net.ini:2 [s]"),
        (Kind.FLOAT, "abc", "E109: net.ini:2 [s]"),
        (Kind.FLOAT, "nan", "E109: net.ini:2 [s]"),
        (Kind.FLOAT, "1e999", "E109: net.ini:2 [s]"),
        (Kind.BOOL, "2", "E109: net.ini:2 [s]"),
        (Kind.UINTS, "3 x", "E109: net.ini:2 [s]"),
        (Kind.UINTS, "3,3", "E109: net.ini:2 [s]"),
        (Kind.NAMES, "a,,b", "E109: net.ini:2 [s]"),
        (Kind.DATATYPE, "float32", "E122: net.ini:2 [s]"),
        (Kind.UINT, "$(7 / 2)", "E109: net.ini:2 [s]"),
        (Kind.UINT, "[t]X", "E109: net.ini:2 [s]"),
    ],
)
def test_unreadable_values(load, kind, text, message):
    section = load(f"[s]\nK={text}\n").section("s")
    assert errors(lambda: one(kind).read(section)) == ["N2D2-" + message]


def test_enum(load):
    schema = one(Kind.ENUM, choices=("Max", "Average"))
    assert schema.read(load("[s]\nK=Max\n").section("s"))["K"] == "Max"
    section = load("[s]\nK=Avrage\n").section("s")
    assert errors(lambda: schema.read(section)) == ["N2D2-E122: net.ini:2 [s]"]


def test_bounds(load):
    section = load("[s]\nK=3 0\n").section("s")
    assert errors(lambda: one(Kind.UINTS, minimum=1).read(section)) == ["N2D2-E122: net.ini:2 [s]"]
    assert errors(lambda: one(Kind.INTS, maximum=2).read(section)) == ["N2D2-E122: net.ini:2 [s]"]


def test_an_integral_fraction_is_read_with_one_warning(load, warned):
    document = load("[d]\nK=$(224 / 2)\n[a] d\n[b] d\n")
    for name in ("a", "b"):
        assert one(Kind.UINT).read(document.section(name))["K"] == 112
    assert warned() == ["N2D2-W103: net.ini:2 [a]"]


@every("text, expected", [("true", True), ("Yes", True), ("ON", True), ("False", False), ("no", False), ("off", False)])
def test_words_for_booleans_are_read_with_a_notice(load, warned, capsys, text, expected):
    assert one(Kind.BOOL).read(load(f"[s]\nK={text}\n").section("s"))["K"] is expected
    assert capsys.readouterr().err == f"net.ini:2 [s]: K={text} is read as {int(expected)}\n"
    assert warned() == []


LAYER = Schema(
    "Conv",
    (
        Key("Input", Kind.NAMES),
        Key("KernelSize", Kind.UINT),
        Key("Stride", Kind.UINT, 1),
        Key("Mapping(*)", Kind.INTS, None),
        Key("PoolDims", Kind.UINTS, ()),
    ),
    accepted=TRAINING.for_keys("Solvers.*", "*Filler*"),
)


def test_defaults_given_and_places(load):
    values = LAYER.read(load("[s]\nInput=sp\nKernelSize=3\n").section("s"))
    assert (values["Stride"], values["PoolDims"]) == (1, ())
    assert values.is_given("KernelSize") and not values.is_given("Stride")
    assert not values.is_given("Mapping(sp)")
    assert str(values.where("KernelSize")) == "net.ini:3 [s]"
    assert str(values.where("Stride")) == "net.ini:1 [s]"
    assert values.section.name == "s"
    with pytest.raises(KeyError):
        values["NotInTheSchema"]


def test_patterns_of_keys(load, warned):
    values = LAYER.read(load("[s]\nInput=a,b\nKernelSize=3\nMapping(a)=1 0 \\\n 0 1\nMapping(b/c)=1\n").section("s"))
    assert values.matching("Mapping(*)") == {"Mapping(a)": (1, 0, 0, 1), "Mapping(b/c)": (1,)}
    assert warned() == []


def test_required_keys_and_bad_values_are_listed_together(load):
    section = load("[s]\nInputs=sp\nStride=x\n").section("s")
    assert errors(lambda: LAYER.read(section)) == [
        "N2D2-E108: net.ini:1 [s]",
        "N2D2-E108: net.ini:1 [s]",
        "N2D2-E109: net.ini:3 [s]",
    ]


def test_unknown_keys_warn_with_the_nearest_known_key(load, warned):
    document = load(
        "[d]\nStrid=2\nFoo=1\nSolvers.LearningRate=${UNDEFINED}\nWeightsFiller=He\n"
        "$M=1\n[s] d\nInput=sp\nKernelSize=3\n[t] d\nInput=sp\nKernelSize=3\n"
    )
    LAYER.read(document.section("s"))
    LAYER.read(document.section("t"))
    assert warned() == ["N2D2-W102: net.ini:2 [s]", "N2D2-W102: net.ini:3 [s]"]


def test_unknown_keys_are_errors_under_strict(load):
    log.setup(strict=True)
    LAYER.read(load("[s]\nInput=sp\nKernelSize=3\nStrid=2\n").section("s"))
    assert errors(log.raise_on_strict) == ["N2D2-W102: net.ini:4 [s]"]


CONFIG = Schema(
    "Conv configuration",
    (Key("NoBias", Kind.BOOL, False), Key("Name", Kind.STRING, "")),
    accepted=TRAINING.for_keys("Solvers.*", "WeightsSolver.*"),
)
OWN = Schema("Conv", (Key("Input", Kind.NAMES),))


def test_config_sections_later_ones_win(load, warned):
    document = load(
        "[s]\nInput=sp\nConfigSection=a , b\n[a]\nNoBias=1\nName=a\nWeightsSolver.LearningRate=1\n[b]\nName=${SECTION_NAME}\n"
    )
    values = OWN.read(document.section("s"), CONFIG)
    assert (values["NoBias"], values["Name"], values["Input"]) == (True, "b", ("sp",))
    assert str(values.where("NoBias")) == "net.ini:5 [a]"
    assert warned() == []


def test_config_section_of_the_model_takes_precedence(load):
    document = load("[s]\nInput=sp\nConfigSection=a\nConfigSection(Frame)=b\n[a]\nNoBias=1\n[b]\nName=frame\n")
    section = document.section("s")
    for model, expected in (
        ("Frame", (False, "frame")),
        ("Frame_CUDA", (False, "frame")),
        ("Transcode", (True, "")),
        ("", (True, "")),
    ):
        values = OWN.read(section, CONFIG, model)
        assert (values["NoBias"], values["Name"]) == expected


def test_config_section_problems(load, warned):
    document = load("[s]\nInput=sp\nConfigSection=comon\n[common]\nNoBais=1\n[t]\nInput=sp\nNoBias=1\nConfigSection=common\n")
    assert errors(lambda: OWN.read(document.section("s"), CONFIG)) == ["N2D2-E119: net.ini:3 [s]"]
    assert OWN.read(document.section("t"), CONFIG)["NoBias"] is False
    assert warned() == ["N2D2-W102: net.ini:8 [t]", "N2D2-W102: net.ini:5 [common]"]


def test_merge_config_without_config_section_is_empty(load):
    document = load("[s]\nInput=sp\n")
    merged = merge_config(document.section("s"), document, "Frame")
    assert (merged.keys(), merged.has("NoBias")) == ([], False)


def test_resolve_path_looks_in_the_working_directory_then_beside_the_ini(load, workdir):
    (workdir / "net").mkdir()
    (workdir / "net" / "w.bin").write_text("x")
    document = load("")
    document.path = Path("net/net.ini")
    assert resolve_path("w.bin", document.folder) == Path("net/w.bin")
    (workdir / "w.bin").write_text("y")
    assert resolve_path("w.bin", document.folder) == Path("w.bin")
    assert resolve_path("/dev/null", document.folder) == Path("/dev/null")
    assert resolve_path("none", document.folder) is None
    assert resolve_path(f"{read_environment_variable('N2D2_MODELS')}/w.bin", document.folder) == Path("net/w.bin")
    assert resolve_path("a\0b", document.folder) is None and resolve_path("", document.folder) is None
