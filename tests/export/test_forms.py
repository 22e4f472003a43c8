"""A kernel form is added as files: a class and a header, in a copy of the project in which nothing is edited."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.kernel_sweep import need

ROOT = Path(__file__).resolve().parents[2]

CLASS = '''"""Rows from their last weight to their first."""

from n2d2py.exports.cpp.forms.contract import KernelFacts, KernelForm, form
from n2d2py.exports.cpp.isa import FULLY_CONNECTED
from n2d2py.exports.cpp.parts import NATIVE, PORTABLE, chosen
from n2d2py.exports.cpp.selection import Panels


@form
class Backwards(KernelForm[Panels]):
    """Rows from their last weight to their first."""

    name, which, kernels, headers, time = "rows backwards", FULLY_CONNECTED, ("fullyConnected",), ("n2d2/backwards.hpp",), 0.1

    def fits(self, facts: KernelFacts) -> str | None:
        return None if facts.weight_type == "std::int8_t" and facts.storage is None else "its weights are no whole bytes"

    def pack(self, facts: KernelFacts) -> Panels:
        return Panels(facts.rows[:, ::-1].reshape(-1), facts.bias)

    def isa(self, facts: KernelFacts) -> str:
        return chosen(self.sets, PORTABLE).replace(NATIVE, "n2d2::Backwards")
'''

HEADER = """#ifndef N2D2_BACKWARDS_HPP
#define N2D2_BACKWARDS_HPP
#include "n2d2/fullyconnected.hpp"
namespace n2d2 {
struct Backwards {};
template <class Cfg>
struct FullyConnected<Cfg, Backwards> {
    typedef typename Cfg::Input Input;
    typedef typename Cfg::Output Output;
    enum : int { W = Input::Width, C = Input::Channels, K = Input::Height * W * C };
    static void run(const unsigned char* in, unsigned char* out, const std::int8_t* weights, const typename Cfg::Sum* bias) {
        for (int o = 0; o < static_cast<int>(Output::Channels); ++o) {
            typename Cfg::Sum sum = bias[o];
            for (int k = 0; k < static_cast<int>(K); ++k)
                sum += weights[o * K + K - 1 - k] * line<Input>(in, k / (W * C))[k / C % W * Input::Stride + k % C];
            line<Output>(out, 0)[o] = Cfg::Epilogue::apply(sum, o);
        }
    }
};
}  // namespace n2d2
#endif
"""


@pytest.mark.compiles
def test_a_form_is_a_class_and_a_header(tmp_path):
    """The export of the copy selects it for the layers that it fits, compiles it, and computes what the simulator does."""
    need("g++")
    for name in ("n2d2py", "kernels"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("export_templates", "params", "models", "setup.cfg"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "n2d2py/exports/cpp/forms/backwards.py").write_text(CLASS)
    (tmp_path / "kernels/n2d2/backwards.hpp").write_text(HEADER)
    words = "models/LeNet.ini -seed 1 -w models/LeNet.npz -export CPP -nbbits 8 -calib 4 -db-export 10 -compare -o out"
    command = [sys.executable, "-m", "n2d2py", *words.split()]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "N2D2PY_DATA": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    configs = [path.read_text() for path in (tmp_path / "out/export_CPP_int8/dnn/include").glob("*.hpp")]
    assert sum("n2d2/backwards.hpp" in text and "n2d2::Backwards" in text for text in configs) == 2
    assert "identical" in done.stdout + done.stderr
