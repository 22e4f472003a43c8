"""The folder as a library of PlatformIO, a module of Zephyr, a library of Arduino and a CMSIS pack: built as their builders do."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from support.board_export import export_for_boards, need_core
from support.programs import need

from n2d2py.exports.mcu.boards import core

ARM = core("cortex-m4")


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> Path:
    return export_for_boards(
        Path(__file__).parent / "small.ini", tmp_path_factory.mktemp("packed"), parameters="SingleFile=1\n"
    )


def run(*words: str | Path, folder: Path) -> str:
    done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


def linked(program: str, objects: list[Path], flags: list[str], export: Path, place: Path) -> None:
    """A program that calls the network, linked with `objects`; it may need nothing else."""
    (place / "main.cpp").write_text(program)
    board = export / "boards" / ARM.board
    run(f"{ARM.prefix}g++", *ARM.flags, "-Os", "-fno-exceptions", *flags, "-c", "main.cpp", folder=place)
    words = [*ARM.flags, "-nostartfiles", "-Wl,--gc-sections", "-T", board / "board.ld", *ARM.link]
    run(f"{ARM.prefix}gcc", *words, "main.o", *objects, board / "startup.c", "-lm", "-o", "main.elf", folder=place)


ARDUINO = """#include <stdint.h>
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define abs(x) ((x) > 0 ? (x) : -(x))
#define round(x) ((x) >= 0 ? (long)((x) + 0.5) : (long)((x) - 0.5))
#define bit(b) (1UL << (b))
#define F(s) (s)
#define B1 1
struct Port { void begin(unsigned long); void println(int); void println(unsigned long); };
extern Port Serial;
extern "C" { unsigned long micros(void); void delay(unsigned long); }
"""
"""What a sketch includes first: macros with names of the C++ library, and what the example calls."""
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wundef", "-Wsign-conversion", "-Werror"]
ALIGNED = "-Wcast-align=strict"
"""Which clang does not know."""


@pytest.mark.parametrize("standard", ["gnu++11", "gnu++20"])
def test_arduino_headers(packed, tmp_path, standard):
    """The implementation after macros such as min, the example as a sketch, with the warnings of strict projects."""
    need_core("cortex-m4")
    (tmp_path / "Arduino.h").write_text(ARDUINO)
    (example,) = (packed / "examples").glob("*/*.ino")
    assert example.stem == example.parent.name
    (tmp_path / "sketch.cpp").write_text(f'#include <Arduino.h>\n#include "{example}"\n')
    used = "#ifndef min\n#error\n#endif\n"
    implementation = '#include <Arduino.h>\n#define small_IMPLEMENTATION\n#include "small.hpp"\n'
    (tmp_path / "network.cpp").write_text(implementation + used)
    for source in ("sketch.cpp", "network.cpp"):
        words = [f"-std={standard}", "-Os", "-fno-exceptions", *STRICT, ALIGNED, "-I.", f"-I{packed / 'src'}"]
        run(f"{ARM.prefix}g++", *ARM.flags, *words, "-c", source, folder=tmp_path)


def test_esp_idf(packed, tmp_path):
    """idf_component_register, as the component's CMake file calls it (docs.espressif.com, build system), for the core of the ESP32-C3."""
    need_core("rv32imc")
    need("cmake")
    version = json.loads((packed / "library.json").read_text())["version"]
    assert f'version: "{version}"' in (packed / "idf_component.yml").read_text()
    (tmp_path / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.16)
project(idf LANGUAGES C CXX)
set(ESP_PLATFORM 1)
function(idf_component_register)
  cmake_parse_arguments(_ "" "" "SRCS;INCLUDE_DIRS;PRIV_INCLUDE_DIRS" ${{ARGN}})
  add_library(component STATIC ${{__SRCS}})
  target_include_directories(component PUBLIC ${{__INCLUDE_DIRS}} PRIVATE ${{__PRIV_INCLUDE_DIRS}} kernels/freestanding)
  set(COMPONENT_LIB component PARENT_SCOPE)
endfunction()
add_subdirectory({packed} small)
""")
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={packed}/cmake/rv32imc.cmake"
    run("cmake", "-S", ".", "-B", "build", "-DCMAKE_CXX_STANDARD=11", toolchain, folder=tmp_path)
    run("cmake", "--build", "build", "-j2", folder=tmp_path)
    assert (tmp_path / "build" / "small" / "libcomponent.a").is_file()


@pytest.mark.parametrize("core", ["cortex-m4", pytest.param("cortex-m0", marks=pytest.mark.slow)])
def test_clang_for_arm(packed, tmp_path, core):
    """The compilers of Arm and IAR are not here; clang stands in for them, without a C++ library."""
    need_core("cortex-m4")
    need("clang++")
    headers = run(f"{ARM.prefix}gcc", "-print-sysroot", folder=tmp_path).strip() + "/include"
    headers = headers if Path(headers).is_dir() else "/usr/include/newlib"
    words = ["--target=arm-none-eabi", f"-mcpu={core}", "-mthumb", "-std=c++11", "-O2", *STRICT]
    words += ["-nostdinc++", "-DN2D2_NO_LIBRARY=1", "-isystem", headers]
    for portable in ([], ["-DN2D2_ISA_PORTABLE"]):
        run("clang++", *words, *portable, "-c", packed / "src" / "small.cpp", "-o", "small.o", folder=tmp_path)


def test_big_endian_is_refused(packed, tmp_path):
    need_core("cortex-m4")
    words = [f"{ARM.prefix}g++", "-mcpu=cortex-m4", "-mthumb", "-mbig-endian", "-fsyntax-only", packed / "src" / "small.cpp"]
    done = subprocess.run(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert done.returncode and "the constants of the export are in little-endian order" in done.stderr


def test_arduino(packed, tmp_path):
    """All sources below src, with src as the only place of headers, and GNU's C++ as its cores have it (arduino.github.io,
    library specification)."""
    need_core("cortex-m4")
    fields = dict(line.split("=", 1) for line in (packed / "library.properties").read_text().splitlines())
    wanted = {"name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures"}
    assert wanted <= fields.keys() and (packed / "src" / fields["includes"]).is_file()
    objects = []
    for source in sorted((packed / "src").rglob("*.cpp")):
        objects.append(tmp_path / f"{source.stem}.o")
        flags = ["-std=gnu++14", "-Os", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-ffunction-sections"]
        run(f"{ARM.prefix}g++", *ARM.flags, *flags, f"-I{packed / 'src'}", "-c", source, "-o", objects[-1], folder=tmp_path)
    assert len(objects) == 1
    program = "#include <small.h>\nint one(void) { return small_api_version(); }\n"
    (tmp_path / "one.c").write_text(program)
    strict = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{packed / 'src'}"]
    run(f"{ARM.prefix}gcc", *ARM.flags, *strict, "-c", "one.c", folder=tmp_path)
    sketch = f"#include <{fields['includes']}>\nint main() {{ static small_input_t in[small_INPUT_ELEMENTS]; "
    sketch += "static small_output_t out[small_OUTPUT_ELEMENTS]; small::forward(in, out); return out[0]; }\n"
    linked(sketch, objects, [f"-I{packed / 'src'}"], packed, tmp_path)


@pytest.mark.slow
def test_platformio(packed, tmp_path):
    """srcDir, srcFilter, includeDir and flags of library.json (docs.platformio.org, library.json)."""
    need_core("cortex-m4")
    manifest = json.loads((packed / "library.json").read_text())
    assert manifest["name"] == "small" and (packed / manifest["build"]["includeDir"] / manifest["headers"]).is_file()
    build, objects = manifest["build"], []
    for pattern in build["srcFilter"]:
        assert pattern.startswith("+<") and pattern.endswith(">")
        for source in sorted((packed / build["srcDir"]).glob(pattern[2:-1])):
            objects.append(tmp_path / f"{source.parent.name}_{source.stem}.o")
            words = ["-std=gnu++11", "-Os", "-fno-exceptions", *build["flags"], f"-I{build['includeDir']}"]
            run(f"{ARM.prefix}g++", *ARM.flags, *words, "-c", source, "-o", objects[-1], folder=packed)
    program = f'extern "C" {{\n#include "{manifest["headers"]}"\n}}\n'
    program += "static void* pointers[1]; int main() { small_forward_raw(pointers, pointers, small_static_arena()); }\n"
    linked(program, objects, [f"-I{packed / build['includeDir']}"], packed, tmp_path)


ZEPHYR = """cmake_minimum_required(VERSION 3.13)
project(zephyr LANGUAGES C CXX)
set(CONFIG_N2D2_SMALL y)
function(zephyr_library_named name)
  add_library(${name} STATIC)
  set(ZEPHYR_CURRENT_LIBRARY ${name} PARENT_SCOPE)
endfunction()
function(zephyr_library_sources)
  target_sources(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endfunction()
function(zephyr_library_compile_definitions)
  target_compile_definitions(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endfunction()
function(zephyr_library_compile_options)
  target_compile_options(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endfunction()
function(zephyr_library_include_directories)
  target_include_directories(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endfunction()
function(zephyr_include_directories)
  include_directories(${ARGN})
endfunction()
"""
"""Zephyr's extensions of CMake, as far as the module calls them (docs.zephyrproject.org, modules)."""


@pytest.mark.slow
def test_zephyr(packed, tmp_path):
    need_core("cortex-m4")
    need("cmake")
    module = dict(line.strip().split(": ") for line in (packed / "zephyr/module.yml").read_text().splitlines() if ": " in line)
    assert module["name"] == "small" and (packed / module["kconfig"]).read_text().startswith("config N2D2_SMALL\n")
    (tmp_path / "CMakeLists.txt").write_text(ZEPHYR + f"add_subdirectory({packed / module['cmake']} small)\n")
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={packed}/cmake/cortex-m4.cmake"
    run("cmake", "-S", ".", "-B", "build", "-DCMAKE_CXX_STANDARD=11", toolchain, folder=tmp_path)
    run("cmake", "--build", "build", "-j2", folder=tmp_path)
    assert (tmp_path / "build" / "small" / "libsmall_network.a").is_file()


def test_cmsis_pack(packed):
    """The rules of the pack description (open-cmsis-pack.github.io, /package): its required elements in their order, a file name of
    vendor and name, files that are there, conditions that are defined, one version."""
    (path,) = packed.glob("*.pdsc")
    root = ElementTree.parse(path).getroot()
    order = [child.tag for child in root]
    assert root.tag == "package" and root.attrib["schemaVersion"]
    assert order[:5] == ["vendor", "name", "description", "url", "supportContact"]
    assert order[5:] == ["releases", "conditions", "components"]
    assert path.name == f"{root.findtext('vendor')}.{root.findtext('name')}.pdsc"
    defined = {one.attrib["id"] for one in root.iterfind("conditions/condition")}
    component = root.find("components/component")
    release = root.find("releases/release")
    assert component is not None and release is not None
    assert component.attrib["condition"] in defined and component.attrib["Cversion"] == release.attrib["version"]
    assert {"Cclass", "Cgroup"} <= component.attrib.keys() and component.findtext("description")
    files = [(one.attrib["category"], one.attrib["name"]) for one in component.iterfind("files/file")]
    assert {kind for kind, _ in files} == {"doc", "include", "header", "sourceCpp"}
    assert all((packed / name).exists() for _, name in files)
    assert {name for kind, name in files if kind == "header"} == {"src/small.h", "src/small.hpp"}


def test_nothing_more_without_the_parameter(small):
    assert not (small / "src").exists() and not (small / "library.properties").exists() and not list(small.glob("*.pdsc"))
    assert (small / "library.json").is_file() and (small / "zephyr" / "module.yml").is_file()
