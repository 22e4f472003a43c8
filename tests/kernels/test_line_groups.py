"""Lines that are made together over their input: in any order, the results are those of one after the other.

The programs are built without OpenMP and with N2D2_SHARES_BACKWARDS: what threads would share between two meetings runs
from the last piece to the first, the worst order for lines that are not as independent as LineOrder says.
"""

from pathlib import Path

import pytest
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_builds import ISAS, need_isa, set_name
from support.kernel_cases import K1, K3, S8, U8, Window
from support.kernel_overlaps import over, overlapping_cases
from support.programs import run_command

from n2d2py.contracts.cpp.layer import layer_code
from n2d2py.exports.cpp.tune import tile_constants

WORST = ("-O0", "-DN2D2_SHARES_BACKWARDS", "-DN2D2_PARALLEL_WORK=0")


def grouped_cases(seed: int) -> list[harness.Case]:
    """Layers that grow, shrink and keep their lines, at the planner's distance and with room of one line and of half the input."""
    sweep, made = cases.Sweep(seed), []
    halving = K3._replace(stride=(2, 2))
    for shape, outputs, window, groups in (
        ((1, 5, 17, 11), 24, K1, 1),
        ((1, 24, 17, 11), 5, K1, 1),
        ((1, 8, 17, 11), 8, K3, 1),
        ((1, 8, 17, 11), 20, halving, 1),
        ((1, 6, 13, 9), 36, K3, 2),
        ((1, 19, 17, 11), 19, halving, 19),
        ((1, 32, 15, 7), 32, K3, 32),
        ((1, 16, 17, 5), 16, Window((5, 3), (3, 1), (2, 1, 2, 1)), 16),
    ):
        made.append(sweep.conv(shape, outputs, window, ((U8, S8), (S8, U8))[len(made) % 2], groups=groups))
    made += [
        sweep.pool("Max", (1, 20, 17, 9), halving, False, (U8, U8)),
        sweep.pool("Average", (1, 7, 16, 9), Window((2, 2), (2, 2)), False, (S8, S8)),
    ]
    both = []
    for case in made:
        _, channels, height, width = case.graph.shape("x")
        line = channels * width
        both += [over(case, way, "x", slack) for way in (False, True) for slack in (0, line, line * height // 2)]
    return [case for case in both if case.inplace]


def check(made: list[harness.Case], folder, monkeypatch, isa: str | None, *flags: str) -> None:
    """With windows of a tile as a block, so that small layers too have tiles that are made together."""
    if isa is not None:
        constants = tile_constants(f"{set_name(isa)}:2x1:1024")
        monkeypatch.setattr(harness, "layer_code", lambda *layer: layer_code(*layer).tiled(constants))
    harness.check_all(made, folder, "g++", (*(flags or WORST), *(need_isa(isa) if isa else ())))


def test_groups_in_the_worst_order(tmp_path, monkeypatch):
    made = grouped_cases(1)
    assert len(made) > 40
    check(made[::4], tmp_path, monkeypatch, "avx2" if "avx2" in ISAS else None)


@pytest.mark.slow
@pytest.mark.parametrize("isa", [None, *ISAS])
def test_all_groups_in_the_worst_order(tmp_path, monkeypatch, isa):
    check([*grouped_cases(2), *overlapping_cases(5)[::2]], tmp_path, monkeypatch, isa)


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["2", "3", "7"])
def test_groups_on_threads(tmp_path, monkeypatch, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    check(
        grouped_cases(3), tmp_path, monkeypatch, "avx2" if "avx2" in ISAS else None, "-O2", "-fopenmp", "-DN2D2_PARALLEL_WORK=0"
    )


KERNELS = Path(__file__).resolve().parents[2] / "kernels"
PROGRAM = """
#include <chrono>
#include <cstdio>
#include <thread>

#include "n2d2/parallel.hpp"

// One call; the second thread comes late by `delay` milliseconds, before the barrier or behind it. How many threads there were.
int call(int delay, bool barrier) {
    int threads = 0;
    n2d2::Team<1L << 30>::run([&](const n2d2::Member& member) {
        if (member.self == 0)
            threads = member.threads;
        if (member.self == 1 && barrier)
            std::this_thread::sleep_for(std::chrono::milliseconds(delay));
        member.wait();
        if (member.self == 1 && !barrier)
            std::this_thread::sleep_for(std::chrono::milliseconds(delay));
    });
    return threads;
}

void pause(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

int main() {
    omp_set_num_threads(2);
    for (int barrier = 0; barrier < 2; ++barrier) {
        while (call(50, barrier != 0) != 2)  // other load may have come before
            pause(10);
        const int soon = call(0, false);
        pause(100);
        const int later = call(0, false);
        bool again = false;
        for (int i = 0; i < 200 && !again; ++i) {
            pause(100);
            again = call(0, false) == 2;
        }
        std::printf("%d %d %d\\n", soon, later, again);
    }
}
"""


@pytest.mark.slow
def test_waiting_has_an_end(tmp_path):
    (tmp_path / "teams.cpp").write_text(PROGRAM)
    flags = ["-std=c++11", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-fopenmp", f"-I{KERNELS}"]
    run_command("g++", *flags, "teams.cpp", "-o", "teams", cwd=tmp_path)
    assert run_command(tmp_path / "teams") == "1 1 1\n1 1 1\n"
