"""-tune: the tiles of convolutions, measured in one build, kept in a file, used again."""

import platform
import shutil
import sys
import types
from dataclasses import replace
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from support.errors import error_line, refused
from support.export_networks import chain, random_inputs, request, residual, write_export

import n2d2py
from n2d2py import entry_points
from n2d2py.errors import InternalError, N2D2Error
from n2d2py.exports import Target, find_target, load_params, register, registry, target_names
from n2d2py.exports.cpp import tune
from n2d2py.exports.cpp.tune import tile_constants
from n2d2py.quant.simulator import simulate
from n2d2py.registry import Registry


def test_tiles_become_constants():
    found = tile_constants("avx2:6x1:8192 neondot:3x2:24576")
    avx2 = "(N2D2_AVX2 && !N2D2_AVXVNNI) ?"
    assert found == {
        "TilePixels": f"{avx2} 6 : (N2D2_NEON_DOT && !N2D2_NEON_I8MM) ? 3 : 0",
        "TilePanels": f"{avx2} 1 : (N2D2_NEON_DOT && !N2D2_NEON_I8MM) ? 2 : 0",
        "WindowBytes": f"{avx2} 8192 : (N2D2_NEON_DOT && !N2D2_NEON_I8MM) ? 24576 : 0",
    }


@pytest.mark.parametrize(
    "written, reason",
    [
        ("", "empty"),
        ("avx2", "is no"),
        ("mmx:6x1:8192", "is no"),
        ("avx2:0x1:8192", "beyond"),
        ("avx2:6x9:8192", "beyond"),
        ("avx2:6x1:900000", "beyond"),
        ("avx2:6x1:12", "beyond"),
    ],
)
def test_tiles_that_are_none(written, reason):
    with pytest.raises(ValueError, match=reason):
        tile_constants(written)


def with_tile(graph, tile: str):
    """An export whose first convolution has the tile."""
    first = next(node for node in graph.nodes if node.op.kind == "Conv")
    return replace(request(graph), layer_parameters={first.name: {"Tile": tile}})


def test_a_form_is_chosen_by_the_parameter(tmp_path):
    written = {
        tile: "".join(
            path.read_text()
            for path in write_export(tmp_path / tile[5:], with_tile(residual(True), tile)).rglob("layers_*.cpp")
        )
        for tile in ("avx2:winograd", "avx2:direct")
    }
    assert "#elif (N2D2_AVX2 && !N2D2_AVXVNNI)\n" in written["avx2:winograd"] and "N2D2_AVX2" not in written["avx2:direct"]


def test_a_layer_without_the_form_is_refused(tmp_path):
    none = "E705: Tile=sse4:winograd of .*: the layer has no Winograd form .*stride 1, dilation 1"
    with pytest.raises(N2D2Error, match=none):
        write_export(tmp_path / "out", with_tile(chain(True), "sse4:winograd"))
    others = "E705: Tile=avx512vnni:winograd of .*: the layer has a Winograd form for avxvnni, avx2, sse4, neon only"
    with pytest.raises(N2D2Error, match=others):
        write_export(tmp_path / "out", with_tile(residual(True), "avx512vnni:winograd"))


def test_tiles_go_through_the_file_of_export_parameters(tmp_path):
    file = tmp_path / "params.ini"
    file.write_text("OpenMP=0\n" + tune.tuned_text({"/conv/1": "avx2:3x2:24576"}))
    params = load_params(file)
    assert params.layers["/conv/1"] == {"Tile": "avx2:3x2:24576"} and params["OpenMP"] is False


def test_tiles_of_other_instruction_sets_stay():
    found = tune.with_tiles(
        {"a": {"Tile": "avx2:6x1:8192 neon:4x1:8192", "QuantBits": "16"}}, {"a": "avx2:3x2:8192", "b": "avx2:4x1:8192"}
    )
    assert found == {"a": {"Tile": "neon:4x1:8192 avx2:3x2:8192", "QuantBits": "16"}, "b": {"Tile": "avx2:4x1:8192"}}


@pytest.mark.parametrize("command", ["false", "no-such-program", "echo {binary}"])
def test_a_program_that_cannot_be_timed(tmp_path, command):
    assert "E808: -tune-command" in error_line(tune._run, tmp_path, 1, command)


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64" or shutil.which("make") is None, reason="needs make and x86-64")
def test_an_export_is_tuned(tmp_path):
    graph = chain(True)
    made = request(graph)
    out = write_export(tmp_path / "out", made)
    layers = list(made.plan.order)
    tune.tune_export(out, layers, layers, 2, "env OMP_NUM_THREADS=1 {binary}")
    assert (out / tune.TUNED_FILE).read_text().startswith("; Tiles measured by -tune")
    again = write_export(
        tmp_path / "again", request(graph, layer_parameters={"conv/1": {"Tile": "avx2:3x2:1024 sse4:1x2:1024"}})
    )
    assert (
        "TilePixels = (N2D2_AVX2 && !N2D2_AVXVNNI) ? 3 : N2D2_SSE41 ? 1 : 0"
        in (again / "dnn" / "include" / "conv_1.hpp").read_text()
    )
    x = random_inputs(graph, 1)[0]
    np.testing.assert_array_equal(n2d2py.load_export(again).run_raw(x), simulate(graph, [x])["fc"])


class Other(Target):
    name = "OTHER"


@pytest.fixture
def plugins(monkeypatch):
    """Entry points to find; a module `other_package` that they may name."""
    found: list[EntryPoint] = []
    module = types.ModuleType("other_package")
    module.Other, module.number = Other, 3
    monkeypatch.setitem(sys.modules, "other_package", module)
    monkeypatch.setattr(entry_points, "entry_points", lambda group: found if group == "n2d2py.plugins" else [])
    monkeypatch.setattr(registry, "_found", Registry("the installed export"))
    return lambda name, value: found.append(EntryPoint(name, value, "n2d2py.plugins"))


def test_the_cpp_export_is_known():
    assert target_names()[0] == "CPP"
    assert find_target("CPP").name == "CPP"
    assert find_target("CPP") is find_target("CPP")


def test_an_unknown_export_is_refused_with_the_known_ones():
    assert "E700: -export: the export 'CP' is unknown; did you mean 'CPP'" in error_line(find_target, "CP")


def test_a_target_that_is_not_installed_is_refused_with_its_extra(plugins):
    with pytest.raises(N2D2Error, match=r'E721: -export: the export .NVDLA. is not installed; pip install "n2d2py\[nvdla\]"'):
        find_target("NVDLA")
    assert refused("E700: .*did you mean 'NVDLA'", find_target, "NVDL")


def test_a_module_of_declarations_is_no_target(plugins):
    plugins("OTHER", "other_package")
    assert "OTHER" not in target_names()


def test_a_name_is_registered_once():
    find_target("CPP")
    with pytest.raises(InternalError, match="CPP is registered twice"):
        register(type("Twice", (Target,), {"name": "CPP"})())


def test_a_plugin_is_found(plugins):
    plugins("OTHER", "other_package:Other")
    assert target_names() == ("CPP", "CPP_MCU", "ONNX", "TFLite", "OTHER")
    assert isinstance(find_target("OTHER"), Other)
    assert find_target("OTHER") is find_target("OTHER")


def test_a_plugin_does_not_replace_an_export_of_the_tool(plugins):
    plugins("CPP", "other_package:Other")
    assert type(find_target("CPP")).__name__ == "CppTarget"


@pytest.mark.parametrize(
    "value, reason",
    [
        ("missing_package:Other", "ModuleNotFoundError"),
        ("other_package:Absent", "AttributeError"),
        ("other_package:number", "is not a Target named 'OTHER'"),
    ],
)
def test_a_broken_plugin_is_named(plugins, value, reason):
    plugins("OTHER", value)
    assert refused(f"E714: plug-in {value}.*{reason}", find_target, "OTHER")


def test_two_plugins_of_one_name_are_refused(plugins):
    plugins("OTHER", "other_package:Other")
    plugins("OTHER", "second_package:Other")
    assert "other_package:Other and second_package:Other" in error_line(find_target, "OTHER")
