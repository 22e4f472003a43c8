"""The scripts of `bin/`, on machines that lack something and with a stand-in for the tool."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COREUTILS = tuple("basename bash cat chmod cmp cp dirname env make mkdir nproc printf readlink rm sed sh".split())

# Stands for the tool: notes its arguments and writes what the scripts read of an export.
TOOL = r'''
import pathlib, sys
arguments = sys.argv[1:]
with open(pathlib.Path(__file__).parent.parent / "calls.txt", "a") as calls:
    calls.write(" ".join(arguments) + "\n")
where = pathlib.Path(arguments[arguments.index("-o") + 1] if "-o" in arguments else ".")
export = where / "export_CPP_int8"
(export / "statistics").mkdir(parents=True)
(export / "statistics" / "report.html").write_text("<p>report</p>")
(export / "Makefile").write_text("""all:
\t@mkdir -p bin
\t@printf '#!/bin/sh\\necho Score: 99%%\\n' > bin/run_export
\t@chmod +x bin/run_export
""")
'''


def script(path: Path, text: str) -> None:
    path.write_text(f"#!{shutil.which('bash')}\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder for PATH with the usual small commands, but no Python and no compiler."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in COREUTILS:
        found = shutil.which(name)
        if found is None:
            pytest.skip(f"{name} is not installed")
        (folder / name).symlink_to(found)
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout, in a path with a blank, of the scripts alone."""
    folder = tmp_path / "check out"
    shutil.copytree(ROOT / "bin", folder / "bin")
    shutil.copy(ROOT / "setup.cfg", folder)
    return folder


@pytest.fixture
def ready(checkout: Path) -> Path:
    """A checkout whose .venv is set up, with the stand-in for the tool."""
    (checkout / ".venv" / "bin").mkdir(parents=True)
    script(checkout / ".venv" / "bin" / "python", f'exec "{sys.executable}" "$@"')
    shutil.copy(ROOT / "setup.cfg", checkout / ".venv" / ".installed-base")
    shutil.copytree(ROOT / "n2d2py", checkout / "n2d2py", ignore=shutil.ignore_patterns("__pycache__"))
    (checkout / "n2d2py" / "__main__.py").write_text(TOOL)
    for folder, names in {"models": ("LeNet.ini", "LeNet.npz", "MobileNet.ini"), "params": ("a.ini", "b.ini")}.items():
        (checkout / folder).mkdir()
        for name in names:
            (checkout / folder / name).write_text("")
    return checkout


def run(command: Path, *arguments: str, tools: Path | None = None, cwd: Path | None = None) -> subprocess.CompletedProcess:
    environment = {**os.environ, **({"PATH": str(tools)} if tools else {})}
    environment.pop("CXX", None)
    return subprocess.run(
        [shutil.which("bash"), str(command), *arguments], env=environment, text=True, cwd=cwd, capture_output=True, check=False
    )


def python_of_version(tools: Path, name: str, version: str, *, has_venv: bool = True) -> None:
    """A Python that answers the scripts' questions as that version would."""
    new = tuple(map(int, version.split("."))) >= (3, 10)
    script(
        tools / name,
        f'''case "$*" in
        --version) echo "Python {version}" ;;
        *version_info*) exit {0 if new else 1} ;;
        *ensurepip*) exit {0 if has_venv else 1} ;;
        *) echo "{name} $*"; exit 3 ;;
    esac''',
    )


@pytest.mark.parametrize("name", ["test", "lint", "n2d2py"])
def test_no_python(checkout, tools, name):
    done = run(checkout / "bin" / name, tools=tools)
    assert done.returncode == 1
    assert done.stderr.startswith("error: python3 is missing: install Python 3.10 or later")
    assert done.stderr.count("\n") == 1


def test_a_new_python_beside_an_old_one_is_taken(checkout, tools):
    python_of_version(tools, "python3", "3.8.10")
    python_of_version(tools, "python3.11", "3.11.2")
    done = run(checkout / "bin" / "n2d2py", "NET.ini", "-h", tools=tools)
    assert done.stdout == "python3.11 -m n2d2py NET.ini -h\n"


def test_the_environment_holds_the_plugins_of_the_checkout(ready, tools):
    (ready / "plugins" / "some").mkdir(parents=True)
    (ready / "plugins" / "some" / "setup.cfg").write_text("[metadata]\nname = some\n")
    script(ready / ".venv" / "bin" / "python", 'echo "$*" >> "$(dirname "$0")/calls"')
    calls = ready / ".venv" / "bin" / "calls"
    for _ in range(2):
        assert run(ready / "bin" / "test", tools=tools, cwd=ready).returncode == 0
    installed = [line for line in calls.read_text().splitlines() if " install " in line]
    checkout, plugins = installed  # without the runtimes that plug-ins ask for
    assert checkout.endswith(f"-e {ready}[onnx,test]") and plugins.endswith(f"--no-deps -e {ready}/plugins/some")


@pytest.mark.parametrize("missing", ["g++", "make"])
def test_no_build_tools(ready, tools, missing):
    if missing == "make":
        script(tools / "g++", "true")
        (tools / "make").unlink()
    done = run(ready / "bin" / "demo", tools=tools)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {missing} is missing: install ")
    assert done.stderr.count("\n") == 1


def test_the_tool_runs_from_any_folder_and_through_a_link(ready, tmp_path):
    (tmp_path / "link").symlink_to(ready / "bin" / "n2d2py")
    done = run(tmp_path / "link", "a b.ini", "-o", str(tmp_path / "out"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (ready / "calls.txt").read_text() == f"a b.ini -o {tmp_path / 'out'}\n"
    assert (tmp_path / "out" / "export_CPP_int8").is_dir()


def test_the_demo_exports_builds_runs_and_names_the_report(ready, tools, tmp_path):
    script(tools / "g++", "true")
    done = run(ready / "bin" / "demo", tools=tools, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (ready / "calls.txt").read_text() == (
        "models/MobileNet.ini -seed 1 -w /dev/null -export CPP -fuse -nbbits 8 -calib -1 -db-export 100 -test\n"
    )
    assert "Score: 99%" in done.stdout
    assert done.stdout.endswith(f"{ready}/export_CPP_int8/statistics/report.html\n")
