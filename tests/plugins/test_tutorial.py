"""The pages about operators of one's own: their files are short and their commands do what they say."""

import os
import subprocess
import sys

import pytest
from support.pages import ROOT, blocks, commands, write_files
from support.programs import needs

PAGES = ("tutorials/own_operator.md", "how-to/own_operator.md")


@pytest.mark.slow
@needs("g++", "make")
def test_commands(tmp_path):
    for page in PAGES:
        write_files(page, tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    printed = []
    for words in (line.split() for page in PAGES for block in commands(page) for line in block.splitlines()):
        program = [sys.executable, "-m", "n2d2py"] if words[0] == "n2d2py" else [sys.executable]
        done = subprocess.run([*program, *words[1:]], cwd=tmp_path, env=environment, text=True, capture_output=True)
        assert done.returncode == 0, (words, done.stderr)
        printed.append(done.stdout + done.stderr)
    assert len(printed) == 6
    assert "fuse: b: ScaleChannels - Clip became ScaleChannels" in printed[-1]
    assert "2 layers: compiled values identical to Python's" in printed[-1]
    assert "fuse: d: ElemWise - Abs became AbsDiff" in printed[2]
    assert "fuse: d:" not in printed[0] and "AbsDiff" in printed[0]


def test_lines():
    sizes = {name: len(text.splitlines()) for _, name, text in blocks(PAGES[0]) if name}
    assert sizes["absdiff/absdiff.py"] < 60 and sizes["absdiff/absdiff.hpp"] < 40
