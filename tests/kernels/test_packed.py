"""Weights of few bits: stored several in a byte, and every kernel that unpacks them bit for bit as with a byte for each."""

from __future__ import annotations

import numpy as np
import pytest
from support import kernel_harness as harness
from support.kernel_packed import KINDS, few_bits
from support.kernel_simd import AMX_TILES, EMULATED, ISAS, SANITIZERS, need_isa
from support.kernel_sweep import need

from n2d2py.exports.cpp.identifiers import Identifiers
from n2d2py.exports.cpp.layer import ExportChoices, layer_code
from n2d2py.exports.cpp.packing import Storage, storage_of


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


def test_portable(tmp_path):
    need("g++")
    harness.check_all(few_bits(1)[::2], tmp_path, "g++", ("-O1",))


@pytest.mark.parametrize("isa", ISAS)
def test_simd(tmp_path, isa):
    need("g++")
    harness.check_all(few_bits(2)[:: 3 if isa == "avx2" else 6], tmp_path, "g++", ("-O1", *need_isa(isa)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [("-O0",), ("-O3", "-march=native"), SANITIZERS, ("-O1", *EMULATED), ("-O1", *AMX_TILES, *EMULATED)],
    ids=("O0", "O3", "asan", "avx512", "amx"),
)
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_builds(tmp_path, compiler, flags):
    need(compiler)
    if EMULATED[0] in flags and compiler == "clang++":
        pytest.skip("SIMDe is tried with GCC")
    harness.check_all(few_bits(3), tmp_path, compiler, flags)
