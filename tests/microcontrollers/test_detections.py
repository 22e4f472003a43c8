"""Post-processing on boards: the kernels against their definitions."""

import pytest
from support import decision_cases, embedding_cases, heat_map_cases
from support.board_export import board_program
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
    cases, write = list(detection_cases(32, seed=9)), "semihosting_write(text)"
    printed = board_program(small, name, program(cases, write), tmp_path)
    assert list(map(int, printed.split())) == [value for case in cases for value in case.wanted]
    for module, drawn in (
        (decision_cases, decision_cases.decision_cases(48, seed=9)),
        (heat_map_cases, heat_map_cases.heat_map_cases(42, seed=9)),
        (embedding_cases, embedding_cases.embedding_cases(24, seed=9)),
    ):
        given = list(drawn)
        printed = board_program(small, name, module.program(given, write), tmp_path)
        assert list(map(int, printed.split())) == module.wanted(given)
