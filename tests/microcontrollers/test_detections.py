"""Detections on boards: the kernel against the definition."""

from __future__ import annotations

import pytest
from support.board_export import board_program, need_core
from support.detection_cases import detection_cases, program


@pytest.mark.parametrize(
    "name",
    [
        "cortex-m4",
        pytest.param("rv32imc", marks=pytest.mark.slow),
        pytest.param("cortex-m55", marks=pytest.mark.slow),
        pytest.param("cortex-m0", marks=pytest.mark.slow),
    ],
)
def test_kernels_on_a_board(small, name, tmp_path):
    """Without a C++ library; unaligned accesses fault."""
    need_core(name)
    cases = list(detection_cases(50, seed=9))
    printed = board_program(small, name, program(cases, "semihosting_write(text)"), tmp_path)
    assert list(map(int, printed.split())) == [value for case in cases for value in case.wanted]
