"""benchmarks/guard.py tells a checkout whose exports became slower from one whose exports did not."""

import json
import sys
from pathlib import Path

import pytest
from support.programs import need

ROOT = Path(__file__).resolve().parents[2]
TOOL = """
import json, sys
from pathlib import Path

words = sys.argv
loops = json.loads((Path(__file__).parent.parent / "loops.json").read_text())[Path(words[1]).stem]
if loops is None:
    raise SystemExit("error: refused")
folder = Path(words[words.index("-o") + 1]) / "export_CPP_int8"
folder.mkdir()
(folder / "Makefile").write_text("all:\\n\\tmkdir -p bin && g++ -O1 $(ARCH) -o bin/run_export main.cpp\\n")
(folder / "main.cpp").write_text('''
#include <cstdio>
#include <cstdlib>
#include <cstring>
extern "C" __attribute__((noinline)) int net_forward_raw(int loops) {
    volatile int sum = 0;
    for (int i = 0; i < loops; ++i)
        sum = sum + i;
    return sum;
}
int main(int, char** words) {
    if (std::strcmp(words[1], "-outputs") == 0)
        return std::fclose(std::fopen(words[2], "w"));
    int sum = 0;
    for (int i = 0; i <= std::atoi(words[2]); ++i)
        sum += net_forward_raw(LOOPS);
    std::printf("{\\\\"min_us\\\\": %d}", sum == 0 ? 1 : 2);
    return 0;
}
'''.replace("LOOPS", str(loops)))
"""


@pytest.fixture
def guard(monkeypatch):
    need("valgrind", "make", "g++")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import guard

    yield guard
    for name in ("guard", "latency", "common", "static_quantization"):
        sys.modules.pop(name, None)


def checkout(folder: Path, loops: dict[str, int | None]) -> str:
    """A folder whose package makes an export that counts to `loops`, by network."""
    package = folder / "n2d2py"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(TOOL)
    (folder / "loops.json").write_text(json.dumps(loops))
    return str(folder)


def networks(folder: Path, *names: str) -> list[str]:
    for name in names:
        (folder / f"{name}.ini").touch()
    return ["-networks", *(str(folder / f"{name}.ini") for name in names), "-rounds", "0"]


def test_planted_slowdown(guard, tmp_path, capsys):
    base = checkout(tmp_path / "base", {"one": 10000, "three": 10000})
    head = checkout(tmp_path / "head", {"one": 10100, "three": 10300})
    words = networks(tmp_path, "one", "three")
    assert guard.main([base, head, *words]) == 1
    said = capsys.readouterr().out
    first, second = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in said.splitlines() if "%" in line and "|" in line
    ]
    assert (first[0], first[3], first[-1]) == ("one", "+1.00 %", "same")
    assert (second[0], second[3], second[-1]) == ("three", "+3.00 %", "slower")
    assert said.splitlines()[-1] == "three is slower: +3.00 % instructions."
    guard.main([base, head, *words])
    assert capsys.readouterr().out == said


@pytest.mark.parametrize(
    ("counts", "verdict", "failed"),
    [
        ((1000, 1020), "same", False),
        ((1000, 1021), "slower", True),
        ((1000, 979), "faster", False),
        ((1000, None), "no export any more", True),
        ((None, 1000), "not compared", False),
    ],
)
def test_verdicts(guard, counts, verdict, failed):
    row = guard.Row("net", counts)
    assert (row.verdict, row.failed) == (verdict, failed)
    assert bool(row.remarks()) == (verdict != "same")


@pytest.mark.parametrize(
    ("words", "reason"),
    [(["no-such-revision"], "neither a folder nor a revision"), ([".", "-networks", "none.ini"], "no file none.ini")],
)
def test_nothing_to_compare(guard, words, reason, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        guard.main(words)
    assert ended.value.code == 2 and reason in capsys.readouterr().err
