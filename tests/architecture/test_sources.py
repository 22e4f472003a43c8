"""Rules of every file: typed functions, no path of a machine, LF."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "n2d2py"
PLUGINS = sorted((ROOT / "plugins").glob("*/*/"))
FILES = sorted(path for package in (PACKAGE, *PLUGINS) for path in package.rglob("*.py"))

MACHINE = re.compile(rb"(?<![\w./{}$-])/(?:work|root|opt|home|mnt)/[\w.-]")
TEXTS = (".py", ".md", ".ini", ".cfg", ".hpp", ".j2", ".txt", ".toml", ".in", ".yml", ".sh", "")


def tracked() -> list[Path]:
    """The files of the repository: those that git would keep, else all that are no build products."""
    try:
        done = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True, capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / line for line in done.stdout.splitlines() if (ROOT / line).is_file()]


def test_every_public_function_is_typed():
    wrong = []
    for path in FILES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                if node.returns is None or any(argument.annotation is None for argument in arguments):
                    wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
    assert wrong == []


def test_no_file_holds_a_path_of_a_machine():
    wrong = []
    for path in tracked():
        if path.suffix in TEXTS and path != Path(__file__).resolve():
            found = MACHINE.search(path.read_bytes())
            if found:
                wrong.append(f"{path.relative_to(ROOT)}: {found.group().decode()}")
    assert wrong == []


def test_text_files_end_their_lines_with_lf():
    assert [
        str(path.relative_to(ROOT))
        for path in tracked()
        if path.suffix in TEXTS and b"\r\n" in path.read_bytes() and b"\0" not in path.read_bytes()
    ] == []


def test_nothing_is_left_for_later():
    mark = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X:")).encode())
    assert [str(path.relative_to(ROOT)) for path in tracked() if path.suffix in TEXTS and mark.search(path.read_bytes())] == []
