"""Who may import whom: the order of the house, and libraries only where they belong."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "n2d2py"

# A room imports rooms of lower rank, or itself. Rooms of the same rank do not see each other.
RANKS = (
    ("errors", "error_codes", "log", "concurrency", "files", "registry"),
    ("resources", "ini", "arithmetic"),
    ("graph", "operators"),
    ("frontend", "data", "passes", "reference", "nvdla"),
    ("quant", "targets"),
    ("memory",),
    ("runtime",),
    ("export",),
    ("report",),
    ("plugin",),
    ("options",),
    ("stages",),
    ("pipeline",),
    ("cli", "docs"),
)
RANK = {room: rank for rank, rooms in enumerate(RANKS) for room in rooms}

TOGETHER = {("graph", "operators"), ("operators", "graph"), ("ini", "resources"), ("log", "errors"), ("registry", "errors")}
"""Pairs of one rank that belong together: a node holds an operator, an operator asks for shapes; ini finds
models/; log prints errors."""

ONNX_ONLY = {
    "onnx": ("frontend/onnx/", "reference/"),
    "onnxscript": ("frontend/onnx/",),
    "onnxruntime": ("reference/", "frontend/onnx/folding.py"),
}
LATE = ("matplotlib", "PIL", "onnx", "onnxruntime", "onnxscript", "jinja2")
"""Heavy libraries: `n2d2py -h` starts without them."""


@dataclass(frozen=True)
class Import:
    """One imported module: where, which, and whether it is imported when the file is (not in a function)."""

    file: str
    line: int
    module: str
    early: bool


def imports_of(path: Path) -> list[Import]:
    """All imports of a file, those under `if TYPE_CHECKING` left out."""
    name = path.relative_to(PACKAGE).as_posix()
    found: list[Import] = []

    def visit(node: ast.AST, early: bool) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return
        if isinstance(node, ast.Import):
            found.extend(Import(name, node.lineno, alias.name, early) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}:{node.lineno} imports relatively"
            modules = [f"n2d2py.{alias.name}" for alias in node.names] if node.module == "n2d2py" else [node.module]
            found.extend(Import(name, node.lineno, module, early) for module in modules)
        inside = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for child in ast.iter_child_nodes(node):
            visit(child, early and not inside)

    visit(ast.parse(path.read_text(encoding="utf-8")), True)
    return found


FILES = sorted(path for path in PACKAGE.rglob("*.py"))
IMPORTS = [one for path in FILES for one in imports_of(path)]


def room(module: str) -> str | None:
    """The first part below the package: "graph" of n2d2py.graph.shapes; None outside and for n2d2py.__version__."""
    parts = module.split(".")
    if parts[0] != "n2d2py" or len(parts) == 1 or parts[1].startswith("__"):
        return None
    return parts[1]


def home(file: str) -> str:
    """The room that a file is in."""
    return file.split("/")[0].removesuffix(".py")


def test_every_room_has_a_rank():
    rooms = {home(path.relative_to(PACKAGE).as_posix()) for path in FILES} - {"__init__", "__main__"}
    assert rooms == set(RANK)


def test_no_room_imports_a_higher_one():
    wrong = []
    for one in IMPORTS:
        source, target = home(one.file), room(one.module)
        if target is None or source in ("__init__", "__main__") or source == target or (source, target) in TOGETHER:
            continue
        if RANK[target] >= RANK[source]:
            wrong.append(f"{one.file}:{one.line} imports {one.module}")
    assert wrong == []


@pytest.mark.parametrize("library", sorted(ONNX_ONLY))
def test_onnx_libraries_stay_where_onnx_is_read_or_run(library):
    wrong = [
        f"{one.file}:{one.line}"
        for one in IMPORTS
        if one.module.split(".")[0] == library and not one.file.startswith(ONNX_ONLY[library])
    ]
    assert wrong == []


def test_the_frontends_do_not_know_each_other():
    ini = [one for one in IMPORTS if one.file.startswith("frontend/onnx/") and one.module.startswith("n2d2py.frontend.ini")]
    assert [f"{one.file}:{one.line}" for one in ini] == []


def test_an_exporter_knows_no_frontend_and_no_data():
    wrong = [
        f"{one.file}:{one.line} {one.module}"
        for one in IMPORTS
        if home(one.file) in ("export", "memory", "quant") and room(one.module) in ("frontend", "data", "passes")
    ]
    assert wrong == []


@pytest.mark.parametrize("file", ["quant/contract.py", "quant/forming.py"])
def test_the_contract_of_quantizers_knows_no_operator(file):
    found = {one.module for one in IMPORTS if one.file == file and room(one.module) == "operators"}
    assert found <= {"n2d2py.operators.base", "n2d2py.operators.functions"}


def test_pictures_and_plots_are_imported_late():
    wrong = [
        f"{one.file}:{one.line} {one.module}"
        for one in IMPORTS
        if one.early and one.module.split(".")[0] in ("matplotlib", "PIL")
    ]
    assert wrong == []


def test_help_and_version_load_no_heavy_library():
    import subprocess
    import sys

    code = (
        "import sys; from n2d2py.cli import main; main(['-h']); import n2d2py; "
        f"print([name for name in {LATE!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=PACKAGE.parent, text=True, capture_output=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
