"""docs/tutorials/microcontroller.md: its commands do what it says."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from support import pages
from support.board_export import need_core

PAGE = "tutorials/microcontroller.md"


@pytest.mark.slow
def test_commands(tmp_path):
    need_core("cortex-m4")
    pages.write_files(PAGE, tmp_path)
    shutil.copytree(pages.ROOT / "models", tmp_path / "models")
    environment = {**os.environ, "PYTHONPATH": str(pages.ROOT)}
    printed = []
    for words in (line.split() for block in pages.commands(PAGE) for line in block.splitlines()):
        command = [sys.executable, "-m", "n2d2py", *words[1:]] if words[0] == "n2d2py" else words
        done = subprocess.run(command, cwd=tmp_path, env=environment, text=True, capture_output=True)
        assert done.returncode == 0, (words, done.stderr)
        printed.append(done.stdout + done.stderr)
    assert len(printed) == 11
    assert "15 layers: compiled values identical to Python's" in printed[0]
    assert "3 vectors, 15 layers: identical" in printed[1]
    assert "It is a 0" in printed[5]
    assert "The lines show a 0" in printed[9]
    whole, lines = (int(re.findall(r"^arena +(\d+)$", printed[number], re.MULTILINE)[0]) for number in (2, 10))
    assert f"{lines:,} bytes instead of {whole:,}" in (pages.ROOT / "docs" / PAGE).read_text()
