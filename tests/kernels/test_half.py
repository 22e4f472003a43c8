"""Weights in binary16: every number, and layers, against Python; what an export refuses."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
from support import kernel_harness as harness
from support.kernel_sweep import need

from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph, Node
from n2d2py.operators.fc import Fc
from n2d2py.quant.quantize import float_graph


@pytest.mark.parametrize("flags", ["-mf16c", "", "-mf16c -DN2D2_ISA_PORTABLE"])
def test_every_half(tmp_path, flags):
    """All finite halves, one by one and eight at a time, are the floats that NumPy makes of them."""
    need("g++")
    (tmp_path / "a.cpp").write_text("""#include <cstdio>
#include "n2d2/half.hpp"
int main() {
    static n2d2::Half all[65536];
    static float one[65536], wide[65536];
    for (int i = 0; i < 65536; ++i) all[i].bits = static_cast<std::uint16_t>(i);
    for (int i = 0; i < 65536; ++i) one[i] = all[i];
    for (int i = 0; i < 65536; i += 8) n2d2::widen<8>(all + i, wide + i);
    std::fwrite(one, 4, 65536, stdout);
    std::fwrite(wide, 4, 65536, stdout);
    return 0;
}
""")
    subprocess.run(
        ["g++", *harness.WARNINGS, "-O1", *flags.split(), f"-I{harness.ROOT / 'kernels'}", "a.cpp", "-o", "a"],
        cwd=tmp_path,
        check=True,
    )
    found = np.frombuffer(subprocess.run([tmp_path / "a"], check=True, stdout=subprocess.PIPE).stdout, np.uint32).reshape(2, -1)
    halves = np.arange(65536).astype(np.uint16).view(np.float16)
    finite = np.isfinite(halves)
    expected = halves.astype(np.float32).view(np.uint32)
    assert (found[0][finite] == expected[finite]).all() and (found[1][finite] == expected[finite]).all()


def _graph(largest: float) -> Graph:
    graph = Graph("net")
    graph.add_input("x", (1, 2, 1, 1))
    weights = np.array([[largest, 1 / 3], [1e-7, -2.0]], np.float32)
    graph.add(Node("fc", Fc(), ["x"], ["y"], {"weights": weights, "bias": np.zeros(2, np.float32)}))
    graph.outputs = ["y"]
    return graph


def test_weights_are_rounded_once():
    node = float_graph(_graph(1.0), -16).nodes[0]
    assert node.params["weights"].dtype == np.float16 and node.params["bias"].dtype == np.float32
    assert node.params["weights"][0, 1] == np.float16(1 / 3) and node.params["weights"][1, 0] != 0
    result = node.op.run([np.full((1, 2, 1, 1), 3, np.float32).reshape(1, 2)], node)[0]
    assert result.dtype == np.float32 and result[0, 0] == np.float32(3) + np.float32(3) * np.float32(np.float16(1 / 3))


def test_weights_beyond_the_range_are_refused():
    with pytest.raises(N2D2Error, match="E519.*layer 'fc' has a weight of magnitude 70000"):
        float_graph(_graph(7e4), -16)
    assert float_graph(_graph(65519.0), -16).nodes[0].params["weights"][0, 0] == 65504
