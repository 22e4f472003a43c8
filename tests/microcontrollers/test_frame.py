"""Frames of a camera on boards: the kernels against the definition, and the memory that a frame takes."""

import pytest
from support.board_export import board_program
from support.frame_cases import frame_cases, program


@pytest.mark.parametrize(
    "name, count",
    [
        ("cortex-m4", 56),
        pytest.param("rv32imc", 56, marks=pytest.mark.slow),
        pytest.param("cortex-m0", 56, marks=pytest.mark.slow),
        pytest.param("cortex-m55", 112, marks=pytest.mark.slow),
    ],
)
def test_kernels_on_a_board(small, name, count, tmp_path):
    """Without a C++ library; unaligned accesses fault."""
    cases = list(frame_cases(count, seed=count))
    printed = board_program(small, name, program(cases, "semihosting_write(text)"), tmp_path)
    assert printed.split() == [case.wanted for case in cases]
