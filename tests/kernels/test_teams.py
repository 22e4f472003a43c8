"""A team that has to wait for a thread which gets no processor does without it for a while."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
PROGRAM = """
#include <chrono>
#include <cstdio>
#include <thread>

#include "n2d2/parallel.hpp"

// One call; the second thread comes late by `delay` milliseconds, before the barrier or behind it. How many threads there were.
int call(int delay, bool barrier) {
    int threads = 0;
    n2d2::Team<true>::run([&](const n2d2::Member& member) {
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
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    (tmp_path / "teams.cpp").write_text(PROGRAM)
    flags = ["-std=c++11", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-fopenmp", f"-I{KERNELS}"]
    subprocess.run(["g++", *flags, "teams.cpp", "-o", "teams"], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "teams"], check=True, text=True, stdout=subprocess.PIPE).stdout == "1 1 1\n1 1 1\n"
