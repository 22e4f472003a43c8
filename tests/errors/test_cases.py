"""Wrong input of every kind: code, place and remedy, the exit status, and that no file is written or changed."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from support.error_cases import headline, messages, read_cases, snapshot
from support.extra_targets import INSTALLED
from support.tables import run_rows

from n2d2py.exports.registry import EXTRAS

FILES = sorted((Path(__file__).parent / "cases").glob("*.txt"))
ABSENT = EXTRAS.keys() - INSTALLED


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_cases(file, work, tmp_path, monkeypatch, capsys):
    rows = [(case.title, {"case": case}) for case in read_cases(file)]
    assert len({title for title, _ in rows}) == len(rows) >= 3
    rows = [row for row in rows if ABSENT.isdisjoint(row[1]["case"].words)]
    if find_spec("torch") is None:  # what is wrong in a training is found by the training
        rows = [row for row in rows if not any(w.startswith("-learn") for w in row[1]["case"].words) or row[1]["case"].missing]
    run_rows(check, rows, {"work": work, "tmp_path": tmp_path, "monkeypatch": monkeypatch, "capsys": capsys})


def check(case, work, tmp_path, monkeypatch, capsys):
    with work(tmp_path, monkeypatch) as workspace:
        case.prepare(workspace)
        before = snapshot(workspace.parent)
        status = case.run()
        printed = capsys.readouterr()
        kinds = {"error", *(line.split()[0] for line in case.lines)}
        found = messages(printed.err, *kinds)
        assert list(map(headline, found)) == list(map(headline, case.lines))
        assert all("; " in line for line in found if line.startswith("error")), "an error without its remedy"
        assert status == case.status
        assert "Traceback" not in printed.err and "N2D2-E099" not in printed.err
        if status:
            assert case.lines and printed.out == ""
            assert snapshot(workspace.parent) == before
