"""Pages of the documentation that are run: their files are written, their `sh` blocks executed, as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[str, str, str]]:
    """(language, file or "", text) of each fenced block of docs/PAGE; "../README.md" is the README."""
    return _BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))


def write_files(page: str, folder: Path) -> None:
    """Writes the files of a page: the blocks with a title."""
    for _, name, text in blocks(page):
        if name:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")


def commands(page: str) -> list[str]:
    """The `sh` blocks of a page, in order."""
    return [text for language, name, text in blocks(page) if language == "sh" and not name]


def texts(page: str) -> list[str]:
    """The blocks of output that a page shows."""
    return [text for language, _, text in blocks(page) if language == "text"]


def run_page(page: str, folder: Path, environment: dict[str, str] | None = None) -> list[str]:
    """Writes the files and runs the commands of a page in a folder, with this Python and this tool; what each block prints."""
    write_files(page, folder)
    return [run_block(block, folder, environment) for block in commands(page)]


def run_block(block: str, folder: Path, environment: dict[str, str] | None = None) -> str:
    """stdout and stderr of the commands of a block, in bash, which ends with the first that fails."""
    if environment is None:
        tools = folder / ".tools"
        tools.mkdir(exist_ok=True)
        for name, words in (("n2d2py", "-m n2d2py"), ("python", "")):
            (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
            (tools / name).chmod(0o755)
        path = os.pathsep.join([str(tools), os.environ["PATH"]])
        optimize = os.environ.get("OPT", "-O1")  # what is built is run once
        environment = {
            **os.environ,
            "PATH": path,
            "OPT": optimize,
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}"
    return done.stdout
