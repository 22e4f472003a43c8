"""Weights of few bits: stored several in a byte, and every kernel that unpacks them bit for bit as with a byte for each."""

import subprocess

import numpy as np
import pytest
from support import kernel_harness as harness
from support.errors import refused
from support.kernel_builds import check_build, on_builds
from support.kernel_packed import KINDS, few_bits
from support.ops import Fc
from support.programs import run_command
from support.small_graphs import graph_of

from n2d2py.contracts.cpp.arrays import Storage, storage_of
from n2d2py.contracts.cpp.identifiers import Identifiers
from n2d2py.contracts.cpp.layer import ExportChoices, layer_code
from n2d2py.graph import Graph, Node
from n2d2py.quant.quantize import float_graph


def unpacked(data: np.ndarray, storage: Storage, count: int) -> np.ndarray:
    """The first `count` weights of a run of bytes, bit by bit."""
    bits = np.unpackbits(data, bitorder="little").reshape(-1, storage.bits)
    raw = (bits.astype(np.int64) << np.arange(storage.bits)).sum(axis=1)[:count]
    return storage.step * (raw ^ storage.flip) + storage.base


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_packed_and_come_back(kind):
    values, storage = KINDS[kind]
    rng = np.random.default_rng(1)
    for count in range(1, 68):
        weights = np.concatenate([values[[0, -1]], rng.choice(values, max(0, 3 * count - 2))])[: 3 * count].reshape(3, count)
        assert storage_of(np.append(weights.reshape(-1), values[[0, -1]])) == storage
        rows = storage.rows(weights).reshape(3, -1)
        assert rows.shape[1] == -(-count * storage.bits // 8)
        for row, packed in zip(weights, rows, strict=True):
            assert np.array_equal(unpacked(packed, storage, count), row)
        assert np.array_equal(unpacked(storage.run(weights), storage, 3 * count), weights.reshape(-1))


def test_nibbles_are_those_of_onnx():
    """Two's complement, the first one in the low bits."""
    import onnx

    weights = np.arange(-8, 8)
    tensor = onnx.helper.make_tensor("w", onnx.TensorProto.INT4, [16], weights)
    assert KINDS["4 bits"][1].rows(weights.reshape(1, -1)).tobytes() == tensor.raw_data or list(tensor.int32_data) == list(
        KINDS["4 bits"][1].rows(weights.reshape(1, -1))
    )


@pytest.mark.parametrize("values", [[-9, 6], [0, 8], [-127, 127], [-200, 3], [1, 257]])
def test_other_weights_are_not_packed(values):
    assert storage_of(np.array(values)) is None


def test_the_cases_are_packed():
    codes = [layer_code(case.node, case.graph, case.plan, Identifiers(case.graph)) for case in few_bits(1)]
    packed = ["WeightBits" in code.config for code in codes]
    assert np.mean(packed) > 0.9
    assert {f"WeightBits = {bits}" for bits in (1, 2, 4, 8)} <= {
        line.strip().rstrip(",") for code in codes for line in code.config.splitlines() if "WeightBits" in line
    }


def test_without_packing_a_weight_takes_a_byte():
    case = few_bits(1)[0]
    code = layer_code(case.node, case.graph, case.plan, Identifiers(case.graph), ExportChoices(packs_weights=False))
    (weights,) = [array for array in code.arrays if array.name.endswith("weights")]
    assert "WeightBits" not in code.config and weights.ctype == "std::int8_t"


@on_builds(
    {"-O0": 2, "-O0 avx2": 3},
    "-O0 amx|avx512|sse4",
    "g++|clang++ -O0|-O3,native|sanitizers",
    "-O1 emulated-avx512|emulated-amx",
)
def test_few_bits(tmp_path, build, every):
    check_build(few_bits(3)[::every], tmp_path, build)


@pytest.mark.parametrize("flags", ["-mf16c", "", "-mf16c -DN2D2_ISA_PORTABLE"])
def test_every_half(tmp_path, flags):
    """All finite halves, one by one and eight at a time, are the floats that NumPy makes of them."""
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
    run_command(
        "g++", *harness.WARNINGS, "-O0", *flags.split(), f"-I{harness.ROOT / 'kernels'}", "a.cpp", "-o", "a", cwd=tmp_path
    )
    found = np.frombuffer(subprocess.run([tmp_path / "a"], check=True, stdout=subprocess.PIPE).stdout, np.uint32).reshape(2, -1)
    halves = np.arange(65536).astype(np.uint16).view(np.float16)
    finite = np.isfinite(halves)
    expected = halves.astype(np.float32).view(np.uint32)
    assert (found[0][finite] == expected[finite]).all() and (found[1][finite] == expected[finite]).all()


def _graph(largest: float) -> Graph:
    weights = np.array([[largest, 1 / 3], [1e-7, -2.0]], np.float32)
    return graph_of({"x": (1, 2, 1, 1)}, Node("fc", Fc(), ["x"], ["y"], {"weights": weights, "bias": np.zeros(2, np.float32)}))


def test_weights_are_rounded_once():
    node = float_graph(_graph(1.0), -16).nodes[0]
    assert node.params["weights"].dtype == np.float16 and node.params["bias"].dtype == np.float32
    assert node.params["weights"][0, 1] == np.float16(1 / 3) and node.params["weights"][1, 0] != 0
    result = node.op.run([np.full((1, 2, 1, 1), 3, np.float32).reshape(1, 2)], node)[0]
    assert result.dtype == np.float32 and result[0, 0] == np.float32(3) + np.float32(3) * np.float32(np.float16(1 / 3))


def test_weights_beyond_the_range_are_refused():
    assert refused("E519.*layer 'fc' has a weight of magnitude 70000", lambda: float_graph(_graph(7e4), -16))
    assert float_graph(_graph(65519.0), -16).nodes[0].params["weights"][0, 0] == 65504
