"""Exports run from Python: compiled and simulated."""

import ctypes
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from support.errors import error_line, refused
from support.export_networks import S8, U8, chain, random_inputs, request, residual, write_export
from support.programs import need

import n2d2py
from n2d2py.errors import N2D2Error
from n2d2py.exports.cpp import library
from n2d2py.exports.cpp.library import Export
from n2d2py.quant.simulator import simulate
from n2d2py.runtime import ArrayError, Simulator


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """The folder of an export by network and number form, each built once."""
    need("make", "g++")
    made: dict[tuple, Path] = {}

    def get(network, integer: bool = True) -> Path:
        key = (network.__name__, integer)
        if key not in made:
            made[key] = write_export(tmp_path_factory.mktemp("export") / "out", request(network(integer)))
        return made[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPT", "-O1")
        yield get


def both(folder: Path) -> list[Export | Simulator]:
    return [n2d2py.load_export(folder), n2d2py.load_simulator(folder)]


def test_it_describes_the_network(exports):
    for net in both(exports(residual)):
        info = net.info
        assert info.name == "residual"
        assert [(t.name, t.shape, t.dtype, t.scale, t.zero_point) for t in info.inputs] == [
            ("env", (1, 4, 7, 9), np.uint8, 1 / 128, 0)
        ]
        assert [(t.name, t.shape, t.type) for t in info.outputs] == [("fc", (1, 4), S8), ("add", (1, 6, 7, 9), U8)]
        assert [(t.name, t.operation) for t in info.layers] == [
            ("stem", "Conv"),
            ("deep", "Conv"),
            ("flat", "Conv"),
            ("add", "ElemWise"),
            ("mean", "Pool"),
            ("fc", "Fc"),
        ]
    assert n2d2py.load_export(exports(residual)).info.arena_bytes == 1808


@pytest.mark.parametrize("network", [chain, residual])
def test_stored_integers_are_those_of_the_simulator(network, exports):
    graph = network(True)
    x = random_inputs(graph, 7, 11)[0]
    expected = simulate(graph, [x], keep=True)
    for net in both(exports(network)):
        raw = net.run_raw(x)
        for found, name in zip(raw if len(graph.outputs) > 1 else (raw,), graph.outputs, strict=True):
            np.testing.assert_array_equal(found, expected[name])
            assert found.dtype == expected[name].dtype and found.flags.c_contiguous
        layers = net.layers(x)
        assert list(layers) == [node.name for node in graph.nodes]
        for node in graph.nodes:
            np.testing.assert_array_equal(layers[node.name], expected[node.output])


def test_real_numbers_are_quantized_and_outputs_dequantized(exports):
    graph = chain(True)
    x = np.random.default_rng(0).uniform(-0.5, 2.5, (3, 3, 12, 10))
    stored = U8.quantize(x)
    assert stored.min() == 0 and stored.max() == 255
    expected = S8.dequantize(simulate(graph, [stored])["fc"])
    for net in both(exports(chain)):
        y = net(x)
        assert y.dtype == np.float32 and y.shape == (3, 5)
        np.testing.assert_array_equal(y, expected)
        np.testing.assert_array_equal(
            net(x.astype(np.float32).transpose(0, 1, 3, 2).transpose(0, 1, 3, 2)),
            S8.dequantize(simulate(graph, [U8.quantize(x.astype(np.float32))])["fc"]),
        )
        np.testing.assert_array_equal(net.layers(x)["fc"], simulate(graph, [stored])["fc"])
        assert net(x[:0]).shape == (0, 5)


def test_floating_point_exports_run_the_same_way(exports):
    x = random_inputs(residual(False), 2)[0]
    compiled, simulated = both(exports(residual, False))
    for found, expected in zip(compiled(x), simulated(x), strict=True):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, atol=1e-4)
    for name, expected in simulated.layers(x).items():
        np.testing.assert_allclose(compiled.layers(x)[name], expected, atol=1e-4)


def test_inputs_that_do_not_fit_are_explained(exports):
    good = np.zeros((2, 3, 12, 10), np.uint8)
    for net in both(exports(chain)):
        for call, message in (
            (lambda: net(), "0 arrays for a network of 1 inputs; give env"),
            (lambda: net(good, good), "2 arrays for a network of 1 inputs"),
            (lambda: net(good[0]), r"has shape \(3, 12, 10\), not \(N, 3, 12, 10\); add the batch axis"),
            (lambda: net(good.transpose(0, 2, 3, 1)), r"has shape \(2, 12, 10, 3\).*reshape or transpose it"),
            (lambda: net(good.astype(complex)), "array of complex128"),
            (lambda: net(np.full(good.shape, np.nan)), "NaN"),
            (lambda: net.run_raw(good.astype(float)), r"array of float64; give stored integers \(uint8\)"),
            (lambda: net.run_raw(good - np.int16(1)), "holds -1 to -1; its integers go from 0 to 255"),
        ):
            with pytest.raises(ArrayError, match="E804: .*" + message) as caught:
                call()
            assert isinstance(caught.value, ValueError) and isinstance(caught.value, N2D2Error)
        np.testing.assert_array_equal(net.run_raw(good.astype(np.int64)), net.run_raw(good))


def test_threads_share_an_export(exports):
    graph = chain(True)
    net = n2d2py.load_export(exports(chain))
    inputs = [random_inputs(graph, 20, seed)[0] for seed in range(4)]
    results: list = [None] * 4

    def work(index: int) -> None:
        results[index] = net.run_raw(inputs[index])

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for x, found in zip(inputs, results, strict=True):
        np.testing.assert_array_equal(found, simulate(graph, [x])["fc"])


def _mapped(name: str) -> int:
    """How many files of this name are mapped into the memory of the process."""
    return len({line.split()[5] for line in Path("/proc/self/maps").read_text().splitlines() if name in line})


def test_the_library_is_built_when_it_is_stale_only(exports, tmp_path):
    folder = tmp_path / "out"
    shutil.copytree(exports(chain), folder, ignore=shutil.ignore_patterns("build", "lib", "bin"))
    x = random_inputs(chain(True), 1)[0]
    library = folder / "lib" / "libDigits_1.so"
    first = n2d2py.load_export(folder)
    built = library.stat().st_mtime_ns
    mapped = _mapped("libDigits_1")
    n2d2py.load_export(folder)
    assert library.stat().st_mtime_ns == built
    assert _mapped("libDigits_1") == mapped, "the same library is in memory once"
    old = first.run_raw(x)
    write_export(folder, request(chain(True, seed=9)))
    second = n2d2py.load_export(folder)
    np.testing.assert_array_equal(second.run_raw(x), simulate(chain(True, seed=9), [x])["fc"])
    np.testing.assert_array_equal(first.run_raw(x), old)  # the old one is still what it was
    source = folder / "dnn" / "src" / "layers_1.cpp"
    future = library.stat().st_mtime + 10
    os.utime(source, (future, future))
    built = library.stat().st_mtime_ns
    n2d2py.load_export(folder)
    assert library.stat().st_mtime_ns != built


def test_what_is_no_export_is_refused(tmp_path):
    assert refused("E805: .*no/where is not a C.. export", n2d2py.load_export, tmp_path / "no/where")
    assert refused("E806: .*is missing; export again", n2d2py.load_simulator, tmp_path)


def test_an_export_that_does_not_compile_is_one_line(tmp_path):
    need("make", "g++")
    folder = write_export(tmp_path / "out", request(chain(True)))
    (folder / "dnn" / "src" / "info.cpp").write_text("int x = ;\n")
    with pytest.raises(N2D2Error, match="E802: .*info.cpp:1:9: error: .*whole log is in .*build/make.log") as caught:
        n2d2py.load_export(folder)
    assert "\n" not in str(caught.value)
    assert "int x = ;" in (folder / "build" / "make.log").read_text()


def test_missing_tools_are_named(tmp_path, monkeypatch):
    need("make")
    folder = write_export(tmp_path / "out", request(chain(True)))
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert refused("E801: .*no-such-compiler", n2d2py.load_export, folder)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "E801" in error_line(n2d2py.load_export, folder)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    need("make")
    folder = write_export(tmp_path / "out", request(chain(True)))
    (folder / "build").write_text("a file")
    assert "E807" in error_line(n2d2py.load_export, folder)


def test_a_library_of_something_else_is_refused(exports, tmp_path):
    folder = write_export(tmp_path / "out", request(chain(True)))
    library = folder / "lib" / "libDigits_1.so"
    library.parent.mkdir()
    n2d2py.load_export(exports(residual))
    for content in (b"no library", (exports(residual) / "lib" / "libresidual.so").read_bytes()):
        library.write_bytes(content)
        assert "E803" in error_line(n2d2py.load_export, folder)


def test_the_package_imports_nothing_until_it_is_asked():
    code = (
        "import sys, n2d2py; assert 'numpy' not in sys.modules; n2d2py.load_export; "
        "assert 'numpy' in sys.modules; assert 'load_simulator' in dir(n2d2py)\n"
        "try:\n    n2d2py.nothing\nexcept AttributeError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], text=True, check=True, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert done.stdout == "module 'n2d2py' has no attribute 'nothing'\n"


@pytest.mark.parametrize(
    "name, size, low, high, lowest",
    [
        (b"int8", 1, -128, 127, -128),
        (b"int8", 1, -127, 127, -127),
        (b"int16", 2, -32768, 32767, -32768),
        (b"uint8", 1, 0, 255, 0),
        (b"uint8", 1, 0, 127, 0),
    ],
)
def test_types_of_a_library_keep_their_lowest_integer(name, size, low, high, lowest):
    """Quantized files use -128 too; reals are clipped where the file's own integers end."""
    described = library._Tensor(b"x", None, name, size, 2, 1, 1, 4, 0.5, 0, low, high)
    found = library._tensor(ctypes.pointer(described)).type.quantize(np.float32([-1e6, 0, 1]))
    assert found.tolist() == [lowest, 0, 2]
