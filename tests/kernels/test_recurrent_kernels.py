"""LSTM and GRU: C++ gives Python's bits, in integers and in floating point, portable and with every instruction set."""

from __future__ import annotations

import numpy as np
import pytest
from support import kernel_harness as harness
from support.kernel_simd import EMULATED, ISAS, need_emulated_avxvnni, need_isa
from support.kernel_sweep import SLOW_BUILDS, need
from support.recurrent_cases import everything

from n2d2py.arithmetic import NumType
from n2d2py.exports.cpp.selection import row_panels


def test_portable(tmp_path):
    need("g++")
    harness.check_all(everything(1, 3), tmp_path, flags=("-O0", "-DN2D2_ISA_PORTABLE"), units=2)


@pytest.mark.slow
@pytest.mark.parametrize("isa", ISAS)
def test_instruction_sets(tmp_path, isa):
    need("g++")
    harness.check_all(everything(2), tmp_path, "g++", ("-O3", *need_isa(isa)), units=2)


@pytest.mark.slow
@pytest.mark.parametrize("build", sorted(SLOW_BUILDS))
def test_in_every_build(build, tmp_path):
    compiler, flags = SLOW_BUILDS[build]
    need(compiler)
    harness.check_all(everything(3), tmp_path, compiler, flags)


@pytest.mark.slow
def test_emulated(tmp_path):
    need("g++")
    harness.check_all(everything(5), tmp_path, "g++", ("-O1", *EMULATED))


@pytest.mark.slow
def test_emulated_avxvnni(tmp_path):
    need("g++")
    harness.check_all(everything(6), tmp_path, "g++", ("-O1", *need_emulated_avxvnni()), units=2)


def test_panels_of_rows_and_what_their_sums_begin_with():
    """Each gate has panels of its own; what inputs are moved by is taken out modulo 2^32."""
    rows = np.arange(2 * 18 * 5).reshape(36, 5).astype(np.int8)
    (form,) = row_panels(rows, 18, NumType(16), 2**30)
    panels, begin = form.values[: 36 * 8], form.values[36 * 8 :].view("<i4")
    second = panels[18 * 8 :].reshape(-1)[: 2 * 16 * 4].reshape(2, 16, 4)
    assert second[0, 3].tolist() == rows[21, :4].tolist() and second[1, 3].tolist() == [rows[21, 4], 0, 0, 0]
    x = np.array([-32768, 32767, 5, -1, 0], np.int64)
    wrapped = (begin.astype(np.int64) + rows.astype(np.int64) @ (x + 32768)) & 0xFFFFFFFF
    assert wrapped.tolist() == ((rows.astype(np.int64) @ x) & 0xFFFFFFFF).tolist()
    assert row_panels(rows.astype(np.int16), 18, NumType(16), 2**30) == row_panels(rows, 18, NumType(16), 2**31) == ()
    assert not row_panels(rows, 18, NumType(8, False), 1)[0].values[36 * 8 :].any()
