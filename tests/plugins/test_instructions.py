"""An instruction set of a plug-in: a row of the table and the header that binds its kernels go through export, build and -compare."""

import numpy as np
import pytest
from support.programs import needs, run_command

from n2d2py.cli import main
from n2d2py.contracts.cpp.isa import condition, instruction_sets, sets_with
from n2d2py.errors import N2D2Error
from n2d2py.plugin.load import isolated, load_plugin

ROW = """from n2d2py.plugin import InstructionSet, plugin_header, register_instruction_set
HEADER = plugin_header(__file__, "toy.hpp")
register_instruction_set(InstructionSet(
    "toy", "the toy", "Toy", "N2D2_TOY", HEADER, "the test", "defined(TOY_MACHINE)",
    has=frozenset(("convolution", "fullyConnected", "runs")),
    tiles=((0, 0, 0), (2, 1, 4096)),
    flags=("-DTOY_MACHINE",),
    present="true",
))
"""

HEADER = """// The kernels of the toy: a multiply tile in plain C++, and runs of sums, which it counts.
#if defined(N2D2_BIND_CONVOLUTION) || defined(N2D2_BIND_FULLYCONNECTED)
#ifndef TOY_TILE
#define TOY_TILE
#include "n2d2/halfwords.hpp"
#include "n2d2/output.hpp"
namespace toy {
template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue>
struct Tile {
    enum : int { Each = 4 / static_cast<int>(sizeof(In)), Outputs = 16 * (Panels - 1) + LastOutputs };
    template <long Pitch, class At>
    static N2D2_NOINLINE void run(const std::uint8_t* x, const std::int8_t* w, const std::int32_t* bias, int output, const At& at) {
        for (int p = 0; p < Pixels; ++p) {
            std::int32_t sums[Outputs];
            for (int o = 0; o < Outputs; ++o) {
                const int panel = o / 16, outputs = panel == Panels - 1 ? LastOutputs : 16;
                sums[o] = bias[output + o];
                for (int i = 0; i < Words * Each; ++i) {
                    std::int16_t input;
                    std::memcpy(&input, x + p * Pitch + 2 * i, 2);
                    sums[o] += input * w[panel * 16 * Words * Each + (i / Each * outputs + o % 16) * Each + i % Each];
                }
            }
            n2d2::store<Epilogue, Outputs>(sums, output, at(p) + output);
        }
    }
};
struct Multiply {
    template <class In, int Words>
    struct Windows : n2d2::Halfwords<In, Words> {};
    template <class In, int Pixels, int Panels, int Words, int LastOutputs, class Epilogue>
    struct Tile : toy::Tile<In, Pixels, Panels, Words, LastOutputs, Epilogue> {};
    static constexpr int tilePixels(int) { return 3; }
    static constexpr int tilePanels(int) { return 1; }
    static constexpr int singlePanels() { return 2; }
};
}  // namespace toy
#endif
#endif

#if defined(N2D2_BIND_CONVOLUTION)
#include "n2d2/panels/panel_convolution.hpp"
N2D2_KERNEL(Convolution, PanelConvolution<Cfg, toy::Multiply>)

#elif defined(N2D2_BIND_FULLYCONNECTED)
#include "n2d2/panels/panel_fullyconnected.hpp"
N2D2_KERNEL(FullyConnected, PanelFullyConnected<Cfg, toy::Multiply>)

#elif defined(N2D2_BIND_RUNS)
N2D2_RUN_KERNEL(PortableRun<Epilogue, Varying>)
#endif
"""

NETWORK = """<ir_version: 8, opset_import: ["" : 17]>
net (float[1, 3, 9, 7] x) => (float[1, 5] y)
<float[19, 3, 3, 3] w1, float[19, 1, 3, 3] w2, float[19, 19, 1, 1] w3, float[5, 1197] w4> {
    a = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w1)
    b = Relu (a)
    c = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1], group = 19> (b, w2)
    d = Relu (c)
    e = Conv <kernel_shape = [1, 1]> (d, w3)
    f = Add (e, b)
    g = Relu (f)
    h = Flatten (g)
    y = Gemm <transB = 1> (h, w4)
}"""


def plugin(folder, row: str = ROW, header: str = HEADER):
    (folder / "mine").mkdir()
    (folder / "mine" / "toy.py").write_text(row)
    (folder / "mine" / "toy.hpp").write_text(header)
    return folder / "mine"


def network(folder, text: str = NETWORK):
    import onnx

    model = onnx.parser.parse_model(text)
    random = np.random.default_rng(1)
    for value in list(model.graph.value_info):
        if value.name.startswith("w"):
            shape = [size.dim_value for size in value.type.tensor_type.shape.dim]
            array = random.normal(0, 0.3, shape).astype(np.float32)
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
    del model.graph.value_info[:]
    onnx.save(model, folder / "net.onnx")
    return folder / "net.onnx"


def export(folder, *options: str) -> int:
    words = [network(folder), "-plugin", plugin(folder), "-export", "CPP", "-fuse", "-calib", "8", "-db-export", "4", "-quiet"]
    return main([str(word) for word in (*words, "-o", folder, *options)])


def test_a_plug_in_s_row_is_the_first_of_the_table(tmp_path):
    with isolated():
        load_plugin(plugin(tmp_path))
        assert instruction_sets()[0].name == "toy" and sets_with("convolution")[0] == "toy"
        assert (
            condition(sets_with("convolution")) == "N2D2_PANELS || N2D2_TOY"
            and condition(sets_with("depthwise")) == "N2D2_PANELS"
        )
    assert "toy" not in sets_with("convolution")


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('"toy", "the toy"', '"avx2", "the toy"', "its name avx2 is taken"),
        ('"fullyConnected"', '"pool"', "has names pool"),
        ('"toy.hpp"', '"other.hpp"', "'other.hpp' does not exist"),
        ("tiles=", "extends='mmx', tiles=", "extends names mmx"),
    ],
)
def test_a_wrong_row_is_refused(tmp_path, old, new, message):
    assert old in ROW
    with isolated(), pytest.raises(N2D2Error, match=f"E022: .*{message}"):
        load_plugin(plugin(tmp_path, ROW.replace(old, new)))


@pytest.mark.slow
@needs("g++", "make")
def test_export_build_and_compare(tmp_path, monkeypatch, capsys):
    """Every layer of the build for the toy gives Python's integers, and its convolutions are the toy's."""
    monkeypatch.setenv("CXXFLAGS", "-DTOY_MACHINE -Wall -Wextra -Wpedantic -Wconversion -Werror")
    monkeypatch.setenv("OPT", "-O1")
    monkeypatch.setenv("ARCH", " ")
    with isolated():
        assert export(tmp_path, "-compare", "4") == 0
    assert "compiled values identical to Python's" in capsys.readouterr().out
    folder = tmp_path / "export_CPP_int8"
    assert "toy" in (folder / "statistics" / "layers.txt").read_text()
    run_command("make", "-s", "build/dnn/src/layers_1.o", cwd=folder)
    used = run_command("nm", "-C", "build/dnn/src/layers_1.o", cwd=folder)
    assert "toy::Tile<" in used


BEND = """from n2d2py.plugin import Function, function
@function
class Bend(Function):
    onnx, ini, header, call = "toy::Bend", "Bend", "bend.hpp", "toy::Bend"
    def compute(self, x):
        return x / (1 + x * x)
"""

BEND_HEADER = """#ifndef TOY_BEND
#define TOY_BEND
namespace toy {
template <class T, class Parameters>
struct Bend {
    static T apply(T x) { return x / (T(1) + x * x); }
};
}  // namespace toy
#endif
"""


@pytest.mark.slow
@needs("g++", "make")
@pytest.mark.parametrize("bits", ["8", "-32"])
def test_an_instruction_set_and_a_function_of_one_file_each_are_compared(tmp_path, monkeypatch, capsys, bits):
    """Nothing else says anything of them: the network goes through import, integers, C++ and -compare."""
    monkeypatch.setenv("CXXFLAGS", "-DTOY_MACHINE -Wall -Wextra -Wpedantic -Wconversion -Werror")
    monkeypatch.setenv("OPT", "-O1")
    monkeypatch.setenv("ARCH", " ")
    bent = NETWORK.replace("d = Relu (c)", "d = toy.Bend (c)").replace('["" : 17]', '["" : 17, "toy" : 1]')
    assert bent.count("toy") == 2
    folder = plugin(tmp_path)
    (folder / "bend.py").write_text(BEND)
    (folder / "bend.hpp").write_text(BEND_HEADER)
    with isolated():
        words = [network(tmp_path, bent), "-plugin", folder, "-export", "CPP", "-nbbits", bits, "-compare", "4", "-o", tmp_path]
        words += ["-calib", "8"] if bits == "8" else ["-calib-data", tmp_path / "x.npy"]
        np.save(tmp_path / "x.npy", np.random.default_rng(2).normal(size=(4, 3, 9, 7)).astype(np.float32))
        assert main([str(word) for word in (*words, "-quiet", "-db-export", "4")]) == 0
    assert "compiled values " + ("identical" if bits == "8" else "equal") in capsys.readouterr().out
    written = tmp_path / ("export_CPP_int8" if bits == "8" else "export_CPP_float32")
    code = "".join(path.read_text() for path in written.rglob("*.?pp"))
    assert ("toy::Bend<" in code) == (bits == "-32") and "N2D2_TOY" in code


@pytest.mark.slow
@needs("g++", "make")
def test_one_binary_holds_the_toy_beside_the_others(tmp_path, monkeypatch):
    (tmp_path / "p.ini").write_text("RuntimeDispatch=1\n")
    with isolated():
        assert export(tmp_path, "-export-parameters", str(tmp_path / "p.ini")) == 0
    folder = tmp_path / "export_CPP_int8"
    run_command("make", "-s", "-j2", "OPT=-O1", "CXXFLAGS=-Werror", cwd=folder)
    found = []
    for name in ("portable", "toy"):
        monkeypatch.setenv("N2D2_ISA", name)
        run_command("bin/run_export", "-outputs", "all.bin", cwd=folder)
        found.append((folder / "all.bin").read_bytes())
    assert found[0] == found[1]
