"""Plug-ins of installed packages, and kernels for one instruction set."""

import platform
import shutil

import numpy as np
import pytest
from support.programs import run_command

from n2d2py.cli import main
from n2d2py.contracts.operator import operator_kinds
from n2d2py.plugin.load import isolated, load_plugins

OPERATOR = """from n2d2py.plugin import Operator, operator
@operator
class Installed(Operator):
    header, call, ini, moves_values = "installed.hpp", "installed::run", "Installed", True
    def compute(self, x):
        return x
"""

KERNEL = """from n2d2py.plugin import kernel, plugin_header
@kernel("Pool", "zeros::Tag", plugin_header(__file__, "zeros.hpp"), isa="Avx2")
def fits(layer):
    return True if layer.op.kernel == (2, 2) else f"its windows are {layer.op.kernel}"
"""

ZEROS = """#ifndef ZEROS_HPP
#define ZEROS_HPP
#include "n2d2/pool.hpp"
namespace zeros { struct Tag {}; }
#if N2D2_AVX2
namespace n2d2 {
template <class Cfg>
struct PoolMax<Cfg, zeros::Tag> {
    template <int Count>
    static void window(const unsigned char*, Span, Span, int channel, typename Cfg::Output::Type* out) {
        for (int i = 0; i < Count; ++i)
            out[channel + i] = 0;
    }
};
}  // namespace n2d2
#endif
#endif
"""


def install(folder, names: str) -> None:
    """A package with a plug-in, as pip leaves it: the module, its header, and the metadata with the entry points."""
    package, metadata = folder / "installed_plugin", folder / "installed_plugin-1.0.dist-info"
    package.mkdir()
    metadata.mkdir()
    (package / "__init__.py").write_text("")
    (package / "operators.py").write_text(OPERATOR)
    (package / "notes.py").write_text("raise RuntimeError('only the module that is named is read')")
    (package / "installed.hpp").write_text("")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: installed-plugin\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[n2d2py.plugins]\n{names}\n")


def test_entry_point(tmp_path, monkeypatch):
    install(tmp_path, "installed = installed_plugin.operators")
    monkeypatch.syspath_prepend(str(tmp_path))
    with isolated():
        load_plugins([])
        assert "Installed" in operator_kinds()
        load_plugins([])  # once, however often
    assert "Installed" not in operator_kinds()


@pytest.mark.slow
@pytest.mark.skipif(
    platform.machine() != "x86_64" or shutil.which("g++") is None or "avx2" not in open("/proc/cpuinfo").read(),
    reason="no x86-64 machine with AVX2 and g++",
)
def test_kernel_for_one_instruction_set(tmp_path):
    """Only the AVX2 build has the plug-in's kernel, which stores zeros; the portable one that of the project."""
    import onnx

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "zeros.py").write_text(KERNEL)
    (tmp_path / "mine" / "zeros.hpp").write_text(ZEROS)
    onnx.save(
        onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        net (float[1, 3, 8, 8] x) => (float[1, 3, 2, 2] y) {
            a = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
            b = HardSigmoid (a)
            y = MaxPool <kernel_shape = [3, 3]> (b)
        }"""),
        tmp_path / "net.onnx",
    )
    with isolated():
        words = f"{tmp_path / 'net.onnx'} -plugin {tmp_path / 'mine'} -export CPP -calib 8 -db-export 4 -quiet -o {tmp_path}"
        assert main(words.split()) == 0
    project = tmp_path / "export_CPP_int8"
    table = (project / "statistics" / "layers.txt").read_text()
    assert "zeros::Tag" in table and "no zeros::Tag: its windows are (3, 3)" in table
    results = []
    for arch in ("-march=x86-64", "-mavx2"):
        run_command("make", "-s", "-j2", f"ARCH={arch}", "OPT=-O1", "lib", "bin/run_export", cwd=project)
        run_command("bin/run_export", "-outputs", "all.bin", cwd=project)
        results.append(np.fromfile(project / "all.bin", np.int16))
    assert len(set(results[0])) > 1 and len(set(results[1])) == 1
