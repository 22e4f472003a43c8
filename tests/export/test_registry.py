"""Finding an export by its name."""

from __future__ import annotations

import sys
import types
from importlib.metadata import EntryPoint

import pytest

from n2d2py import entry_points
from n2d2py.errors import InternalError, N2D2Error
from n2d2py.exports import Target, find_target, register, registry, target_names
from n2d2py.registry import Registry


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
    with pytest.raises(N2D2Error, match="E700: -export: the export 'CP' is unknown; did you mean CPP. known: CPP"):
        find_target("CP")


def test_a_target_that_is_not_installed_is_refused_with_its_extra(plugins):
    with pytest.raises(N2D2Error, match=r'E721: -export: the export .NVDLA. is not installed; pip install "n2d2py\[nvdla\]"'):
        find_target("NVDLA")
    with pytest.raises(N2D2Error, match="E700: .*did you mean NVDLA"):
        find_target("NVDL")


def test_a_module_of_declarations_is_no_target(plugins):
    plugins("OTHER", "other_package")
    assert "OTHER" not in target_names()


def test_a_name_is_registered_once():
    find_target("CPP")
    with pytest.raises(InternalError, match="CPP is registered twice"):
        register(type("Twice", (Target,), {"name": "CPP"})())


def test_a_plugin_is_found(plugins):
    plugins("OTHER", "other_package:Other")
    assert target_names() == ("CPP", "CPP_MCU", "NCNN", "ONNX", "TFLite", "Vulkan", "OTHER")
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
    with pytest.raises(N2D2Error, match=f"E714: plug-in {value}.*{reason}"):
        find_target("OTHER")


def test_two_plugins_of_one_name_are_refused(plugins):
    plugins("OTHER", "other_package:Other")
    plugins("OTHER", "second_package:Other")
    with pytest.raises(N2D2Error, match="other_package:Other and second_package:Other"):
        find_target("OTHER")
