"""Sounds on boards: the kernels against the definition."""

import pytest
from support.audio_cases import AudioCase, audio_cases, program, sounds
from support.board_export import board_program

from n2d2py.arithmetic.audio import read_audio


@pytest.mark.parametrize(
    "name", ["cortex-m4", *(pytest.param(name, marks=pytest.mark.slow) for name in ("cortex-m0", "cortex-m55", "rv32imc"))]
)
def test_kernels_on_a_board(small, name, tmp_path):
    """Without a C++ library; unaligned accesses fault."""
    cases = audio_cases(80, seed=9, length=900)
    assert board_program(small, name, program(cases, "semihosting_write(text)"), tmp_path).split() == [c.wanted for c in cases]


@pytest.mark.parametrize("text, low, high", [("log_mel:mels=40", 12_000, 17_000), ("log_mel:preset=tflm", 22_000, 27_500)])
def test_instructions_of_a_frame(text, low, high, small, tmp_path):
    """40 bands of 30 ms at 16 kHz on a Cortex-M4, with the copy of the samples and the thresholds of 8 bits."""
    (_, samples), *_ = list(sounds(9, 480, seed=1))[8:]
    case = AudioCase(read_audio(text), samples, 480)
    marks = [f'__asm__ volatile(".inst.n 0xbf{half}" ::: "memory");' for half in ("70", "80")]
    written = program([case], "semihosting_write(text)", *marks)
    _, count = board_program(small, "cortex-m4", written, tmp_path, "count").split()
    assert low < int(count) < high, count  # 16,520 and 26,869 measured
