"""The folder as a library of PlatformIO, a module of Zephyr, a library of Arduino and a CMSIS pack: built as their builders do."""

import json
import re
import subprocess
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path

import numpy as np
import pytest
from support.board_export import export_for_boards, need_core, tool
from support.programs import need

from n2d2py.exports.mcu.boards import core
from n2d2py.quant.simulator import simulate
from n2d2py.runtime.graph_file import GRAPH_FILE, read_graph

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


CC = """use std::{path::PathBuf, process::Command};
pub struct Build { words: Vec<String>, sources: Vec<PathBuf> }
impl Build {
    pub fn new() -> Self { Build { words: Vec::new(), sources: Vec::new() } }
    pub fn cpp(&mut self, _: bool) -> &mut Self { self }
    pub fn cpp_link_stdlib(&mut self, _: Option<&str>) -> &mut Self { self }
    pub fn std(&mut self, name: &str) -> &mut Self { self.flag(&format!("-std={name}")) }
    pub fn opt_level(&mut self, level: u32) -> &mut Self { self.flag(&format!("-O{level}")) }
    pub fn define(&mut self, name: &str, value: &str) -> &mut Self { self.flag(&format!("-D{name}={value}")) }
    pub fn include(&mut self, folder: &str) -> &mut Self { self.flag(&format!("-I{folder}")) }
    pub fn flag_if_supported(&mut self, flag: &str) -> &mut Self { self.flag(flag) }
    pub fn flag(&mut self, flag: &str) -> &mut Self { self.words.push(flag.into()); self }
    pub fn files(&mut self, files: Vec<PathBuf>) -> &mut Self { self.sources.extend(files); self }
    pub fn compile(&self, name: &str) {
        let out = PathBuf::from(std::env::var("OUT_DIR").unwrap());
        let sources: Vec<_> = self.sources.iter().map(|one| std::fs::canonicalize(one).unwrap()).collect();
        let words: Vec<_> = self.words.iter().map(|one| match one.strip_prefix("-I") {
            Some(folder) => format!("-I{}", std::fs::canonicalize(folder).unwrap().display()),
            None => one.clone(),
        }).collect();
        assert!(Command::new("g++").current_dir(&out).args(words).arg("-c").args(sources).status().unwrap().success());
        let objects = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
        let objects = objects.filter(|path| path.extension().is_some_and(|suffix| suffix == "o"));
        assert!(Command::new("ar").arg("rcs").arg(out.join(format!("lib{name}.a"))).args(objects).status().unwrap().success());
        println!("cargo:rustc-link-lib=static={name}\\ncargo:rustc-link-search=native={}", out.display());
    }
}
"""
"""Stands in for the crate cc, which only a registry has: the functions that build.rs calls, for this machine."""
RUST = """fn main() {
    let mut input = [0; small::INPUT_ELEMENTS];
    for (to, from) in input.iter_mut().zip(std::fs::read(std::env::args().nth(1).unwrap()).unwrap()) {
        *to = from as small::Input;
    }
    let (mut output, mut real, mut arena) = ([0; small::OUTPUT_ELEMENTS], [0.0; small::OUTPUT_ELEMENTS], small::Arena::new());
    small::forward(&input, &mut output, &mut arena);
    small::dequantize_output(&output, &mut real);
    println!("{:?} {:?} {}", output, real, small::best_output(&output));
    let mut again = [0; small::INPUT_ELEMENTS];
    let step = small::INPUT_SCALE as f32;
    small::quantize_input(&input.map(|stored| (stored as i32 - small::INPUT_ZERO_POINT) as f32 * step), &mut again);
    assert!(again == input);
}
"""


def test_rust(packed, tmp_path):
    """The crate on this machine, from a vector of the export to the outputs of Python."""
    need("cargo", "g++")
    dependencies = f'small = {{ path = "{packed}" }}\n[patch.crates-io]\ncc = {{ path = "cc" }}\n'
    head = '[package]\nname = "{0}"\nversion = "1.0.0"\nedition = "2021"\n'
    files = {
        "Cargo.toml": head.format("program") + "[dependencies]\n" + dependencies,
        "src/main.rs": RUST,
        "cc/Cargo.toml": head.format("cc"),
        "cc/src/lib.rs": CC,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    vector = packed / "test/vectors/000.bin"
    printed = run(
        "cargo", "run", "--offline", "--quiet", "--config", 'build.rustflags="-Dwarnings"', "--", vector, folder=tmp_path
    )
    graph = read_graph(packed / GRAPH_FILE)
    kind, shape = graph.type(graph.inputs[0]), graph.shape(graph.inputs[0])
    stored = np.fromfile(vector, kind.dtype, int(np.prod(shape))).reshape(1, *shape[2:], shape[1])
    (output,) = simulate(graph, [np.moveaxis(stored, 3, 1)]).values()
    outgoing, values = graph.type(graph.outputs[0]), output.reshape(-1).astype(int)
    real = ((values - outgoing.zero_point) * outgoing.scale).astype(np.float32)
    integers, reals, best = re.fullmatch(r"(\[.*\]) (\[.*\]) (\d+)\n", printed).groups()  # type: ignore[union-attr]
    assert json.loads(integers) == values.tolist() and int(best) == values.argmax()
    assert np.array_equal(np.array(json.loads(reals), np.float32), real)


@pytest.mark.slow
@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m0"])
def test_clang_for_arm(packed, tmp_path, core):
    """The compilers of Arm and IAR are not here; clang stands in for them, without a C++ library."""
    need_core("cortex-m4")
    headers = run(f"{ARM.prefix}gcc", "-print-sysroot", folder=tmp_path).strip() + "/include"
    headers = headers if Path(headers).is_dir() else "/usr/include/newlib"
    words = ["--target=arm-none-eabi", f"-mcpu={core}", "-mthumb", "-std=c++11", "-O2", *STRICT]
    words += ["-nostdinc++", "-DN2D2_NO_LIBRARY=1", "-isystem", headers]
    for portable in ([], ["-DN2D2_ISA_PORTABLE"]):
        run("clang++", *words, *portable, "-c", packed / "src" / "small.cpp", "-o", "small.o", folder=tmp_path)


def test_zip(packed):
    """One file with the sources of each package, and neither boards nor tests."""
    run("make", "-s", "zip", folder=packed)
    with zipfile.ZipFile(packed / "small.zip") as file:
        names = set(file.namelist())
    assert {
        "library.properties",
        "Cargo.toml",
        "src/small.hpp",
        "src/lib.rs",
        "zephyr/module.yml",
        "n2d2py.small.pdsc",
    } <= names
    assert {name.partition("/")[0] for name in names}.isdisjoint({"boards", "test", "stimuli", "build"})


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
def test_zephyr(tmp_path):
    """A memory of tensors has the section of a region of the device tree (zephyr/linker/devicetree_regions.h)."""
    need_core("cortex-m4")
    given = "Memories=FAST:3k:1, AXI:3k:4, LAST:1M:9\nMemoryMode=Balanced\n"
    packed = export_for_boards(Path(__file__).parent / "small.ini", tmp_path, parameters=given)
    module = dict(line.strip().split(": ") for line in (packed / "zephyr/module.yml").read_text().splitlines() if ": " in line)
    assert module["name"] == "small" and (packed / module["kconfig"]).read_text().startswith("config N2D2_SMALL\n")
    (tmp_path / "CMakeLists.txt").write_text(ZEPHYR + f"add_subdirectory({packed / module['cmake']} small)\n")
    toolchain = f"-DCMAKE_TOOLCHAIN_FILE={packed}/cmake/cortex-m4.cmake"
    run("cmake", "-S", ".", "-B", "build", "-DCMAKE_CXX_STANDARD=11", toolchain, folder=tmp_path)
    run("cmake", "--build", "build", "-j2", folder=tmp_path)
    sections = tool("cortex-m4", "objdump", "-h", tmp_path / "build" / "small" / "libsmall_network.a")
    assert re.search(r" AXI\.small +00000", sections)


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
    assert [one.name for one in (small / "src").iterdir()] == ["lib.rs"]
    assert not (small / "library.properties").exists() and not list(small.glob("*.pdsc"))
    assert (small / "library.json").is_file() and (small / "zephyr" / "module.yml").is_file()
