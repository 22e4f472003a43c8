"""The lists of `setup.cfg` against the tree: what is left out would be missing in a wheel."""

from __future__ import annotations

import configparser
import subprocess
from pathlib import Path

import pytest

from n2d2py.version import __version__

ROOT = Path(__file__).resolve().parents[2]
SHARED = ("kernels", "export_templates", "params", "models")
NOT_SHIPPED = ("__pycache__", ".ruff_cache")


def read_setup() -> configparser.ConfigParser:
    setup = configparser.ConfigParser()
    setup.optionxform = str
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    return setup


def files_under(folder: Path) -> set[str]:
    return {
        str(path.relative_to(ROOT))
        for path in folder.rglob("*")
        if path.is_file() and not any(part in NOT_SHIPPED for part in path.parts)
    }


def listed() -> dict[str, list[str]]:
    """Paths in the checkout matched by each line of data_files, folders included."""
    return {
        target: [str(path.relative_to(ROOT)) for pattern in patterns.replace(",", "\n").split() for path in ROOT.glob(pattern)]
        for target, patterns in read_setup()["options.data_files"].items()
    }


def test_every_shared_file_is_listed_once():
    found = [path for target, paths in listed().items() if target != "share/man/man1" for path in paths]
    expected = set().union(*(files_under(ROOT / name) for name in SHARED))
    missing = sorted({str(Path(path).parent) for path in expected - set(found)})
    assert not missing, f"add a line to [options.data_files] of setup.cfg for: {missing}"
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_every_file_lands_at_its_place():
    for target, paths in listed().items():
        assert paths, f"{target} matches no file"
        for path in paths:
            assert (ROOT / path).is_file(), f"{target} matches the folder {path}"
            assert target in (f"share/n2d2py/{Path(path).parent.as_posix()}", "share/man/man1")


def test_every_python_folder_is_a_package():
    package = ROOT / "n2d2py"
    folders = {path.parent for path in package.rglob("*.py")}
    assert package in folders
    assert not sorted(str(folder) for folder in folders if not (folder / "__init__.py").is_file())


def test_the_package_holds_only_python_and_what_is_listed():
    listed_data = {f"n2d2py/{name}" for name in read_setup()["options.package_data"]["n2d2py"].split()}
    others = {path for path in files_under(ROOT / "n2d2py") if not path.endswith((".py", ".pyc"))}
    assert others == listed_data == {"n2d2py/py.typed"}, "files in n2d2py/ that a wheel would leave out"


def test_requirements_have_lower_bounds_only():
    setup = read_setup()
    extras = {name: group for name, group in setup["options.extras_require"].items() if name != "lint"}
    groups = [setup["options"]["install_requires"], *extras.values()]
    lines = [line for group in groups for line in group.splitlines() if line]
    assert len(lines) >= 9
    for line in lines:
        assert len(line.split(">=")) == 2 and not set(line) & set("<~!,"), line


def test_a_plugin_has_the_version_of_the_tool_and_asks_for_it():
    for path in sorted(ROOT.glob("plugins/*/setup.cfg")):
        setup = configparser.ConfigParser()
        setup.read(path, encoding="utf-8")
        assert setup["metadata"]["version"] == __version__
        assert f"n2d2py == {__version__}" in setup["options"]["install_requires"].splitlines()
        assert f"{setup['metadata']['name']} >= {__version__}" in read_setup()["options.extras_require"][path.parent.name]


def test_formatters_and_checkers_have_one_version():
    """Another version writes other spaces, or finds other things."""
    lines = [line for line in read_setup()["options.extras_require"]["lint"].splitlines() if line]
    assert lines and all(len(line.split(" == ")) == 2 for line in lines)


def test_nothing_needed_is_ignored_by_git():
    paths = sorted(set().union(*(files_under(ROOT / name) for name in (*SHARED, "n2d2py"))))
    try:
        run = subprocess.run(
            ["git", "check-ignore", "--no-index", "--stdin"],
            cwd=ROOT,
            text=True,
            input="\n".join(paths),
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("git is not installed")
    if run.returncode == 128:
        pytest.skip("not a git checkout")
    ignored = [path for path in run.stdout.splitlines() if not path.endswith(".pyc")]
    assert not ignored
