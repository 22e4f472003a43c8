"""Who may import whom: the order of the house, and libraries only where they belong."""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "n2d2py"

FLOORS = """
errors entry_points log concurrency files naming registry version
executor resources figures ini
arithmetic
graph; contracts: functions operator windows; targets: target
contracts; memory: access problem plan scratch strips;
frontend.onnx: cut encodings external model validation
operators postprocessing
frontend data passes reference
quant: simulator
quant.observe targets
quant.weights
quant.types
quant: quantize
quant: prequantized statistics
quant.correct
quant.search
quant
memory
runtime
exports
report
plugin
training
stages
options pipeline
completion results
api torch
commands
. __main__ cli
"""
"""From the ground up, a floor a line (a line that ends with ";" goes on): modules of the package, or of a folder of it.

A module is on the floor of its longest prefix here and imports modules of lower floors, or of its own entry; entries of one floor do
not see each other. The contracts are what the facets of an operator are declared with; they know no operator.
"""
FLOOR: dict[str, tuple[int, str]] = {}
for number, line in enumerate(FLOORS.replace(";\n", ";").split("\n")[1:-1]):
    for folder, _, names in (part.rpartition(":") for part in line.split(";")):
        entries = (".".join(filter(None, ("n2d2py", folder.strip(), name.strip(".")))) for name in names.split())
        FLOOR |= {entry: (number, entry) for entry in entries}

TOGETHER = {"n2d2py.errors", "n2d2py.log", "n2d2py.registry", "n2d2py.ini", "n2d2py.resources"}
"""Entries that see those of their floor: ini finds models/; log prints errors."""

ONNX_ONLY = {
    "onnx": (
        "contracts/onnx/",
        "contracts/reference.py",
        "exports/onnx/",
        "frontend/models.py",
        "frontend/onnx/",
        "frontend/tflite/",
        "reference/",
    ),
    "onnxscript": ("frontend/onnx/",),
    "onnxruntime": ("exports/onnx/", "reference/", "frontend/onnx/folding.py"),
}
LATE = ("PIL", "torch", "onnx", "onnxruntime", "onnxscript", "jinja2")
"""Heavy libraries: `n2d2py -h` starts without them."""


@dataclass(frozen=True)
class Import:
    """One imported module: where, which, and whether it is imported when the file is (not in a function)."""

    file: str
    line: int
    module: str
    early: bool


def imports_of(path: Path) -> list[Import]:
    """All imports of a file, those in functions and under `if TYPE_CHECKING` too."""
    name = path.relative_to(PACKAGE).as_posix()
    found: list[Import] = []

    def visit(node: ast.AST, early: bool) -> None:
        early = early and not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
        if isinstance(node, ast.Import):
            found.extend(Import(name, node.lineno, alias.name, early) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{name}:{node.lineno} imports relatively"
            modules = {full if (full := f"{node.module}.{alias.name}") in MODULES else node.module for alias in node.names}
            found.extend(Import(name, node.lineno, module, early) for module in sorted(modules))
        early = early and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr):
                visit(child, early)

    visit(ast.parse(path.read_text(encoding="utf-8")), True)
    return found


@cache
def all_imports() -> list[Import]:
    """The imports of all files."""
    return [one for path in FILES for one in imports_of(path)]


def module_of(file: str) -> str:
    """The module that a file of the package is."""
    return ".".join(("n2d2py", *file.removesuffix(".py").removesuffix("__init__").rstrip("/").split("/"))).rstrip(".")


FILES = sorted(path for path in PACKAGE.rglob("*.py"))
MODULES = {module_of(path.relative_to(PACKAGE).as_posix()) for path in FILES}


def room(module: str) -> str | None:
    """The first part below the package: "graph" of n2d2py.graph.shapes; None outside and for n2d2py.__version__."""
    parts = module.split(".")
    if parts[0] != "n2d2py" or len(parts) == 1 or parts[1].startswith("__"):
        return None
    return parts[1]


def home(file: str) -> str:
    """The room that a file is in."""
    return file.split("/")[0].removesuffix(".py")


def floor(module: str) -> tuple[int, str]:
    """Number and entry of a module's floor: those of its longest prefix."""
    parts = module.split(".")
    return next(FLOOR[prefix] for end in range(len(parts), 0, -1) if (prefix := ".".join(parts[:end])) in FLOOR)


def test_every_module_has_a_floor():
    assert [module for module in sorted(MODULES) if floor(module)[1] == "n2d2py" and module != "n2d2py"] == []
    assert [entry for entry in FLOOR if not any(f"{module}.".startswith(f"{entry}.") for module in MODULES)] == []


def test_no_module_imports_one_of_a_higher_floor():
    wrong = []
    for one in all_imports():
        if one.module not in MODULES or one.module == "n2d2py":
            continue
        (below, entry), (above, target) = floor(module_of(one.file)), floor(one.module)
        if above > below or (
            above == below
            and entry != target
            and entry not in TOGETHER
            and below != FLOOR["n2d2py"][0]
            and not is_contract(entry)
        ):
            wrong.append(f"{one.file}:{one.line} imports {one.module}")
    assert wrong == []


def is_contract(entry: str) -> bool:
    """Whether an entry is one of the modules of a contract, which make a floor together."""
    return FLOOR[entry][0] in (FLOOR["n2d2py.graph"][0], FLOOR["n2d2py.contracts"][0])


def cycles() -> list[tuple[str, ...]]:
    """The groups of modules that reach each other by imports."""
    reached: dict[str, set[str]] = {module: set() for module in MODULES}
    direct: dict[str, set[str]] = {module: set() for module in MODULES}
    for one in all_imports():
        if one.module in MODULES and one.module != module_of(one.file):
            direct[module_of(one.file)].add(one.module)
    for module in MODULES:
        waiting = [module]
        while waiting:
            for target in direct[waiting.pop()] - reached[module]:
                reached[module].add(target)
                waiting.append(target)
    groups = {
        tuple(sorted(other for other in reached[module] if module in reached[other]))
        for module in MODULES
        if module in reached[module]
    }
    return sorted(groups)


def test_no_cycle_of_imports():
    assert cycles() == []


def test_public_classes_have_names_of_their_own():
    places: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(path.relative_to(PACKAGE).as_posix())
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


@pytest.mark.parametrize("library", sorted(ONNX_ONLY))
def test_onnx_libraries_stay_where_onnx_is_read_or_run(library):
    wrong = [
        f"{one.file}:{one.line}"
        for one in all_imports()
        if one.module.split(".")[0] == library and not one.file.startswith(ONNX_ONLY[library])
    ]
    assert wrong == []


def test_the_frontends_do_not_know_each_other():
    ini = [
        one for one in all_imports() if one.file.startswith("frontend/onnx/") and one.module.startswith("n2d2py.frontend.ini")
    ]
    assert [f"{one.file}:{one.line}" for one in ini] == []


def test_an_exporter_knows_no_frontend_and_no_data():
    wrong = [
        f"{one.file}:{one.line} {one.module}"
        for one in all_imports()
        if home(one.file) in ("exports", "memory", "quant") and room(one.module) in ("frontend", "data", "passes")
    ]
    assert wrong == []


def test_the_contract_of_quantizers_knows_no_operator():
    found = {
        one.module for one in all_imports() if one.file == "contracts/quant/quantizer.py" and room(one.module) == "operators"
    }
    assert found <= {"n2d2py.contracts.operator", "n2d2py.contracts.functions"}


def test_only_targets_know_their_names():
    from n2d2py.exports import target_names
    from n2d2py.exports.registry import EXTRAS

    rooms = ("ini", "quant", "memory", "runtime", "report", "stages", "pipeline", "options", "cli")
    names = {*target_names(), *EXTRAS} - {"ONNX", "TFLite"}  # formats that are read too
    texts = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in FILES}
    del texts["options/help.py"]  # commands to copy
    assert [f for f, text in texts.items() if home(f) in rooms and any(name in text for name in names)] == []


def test_the_package_knows_of_an_extra_target_the_name_alone():
    from n2d2py.exports.registry import EXTRAS

    texts = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8").lower() for path in FILES}
    for name in EXTRAS:
        assert [file for file, text in texts.items() if name.lower() in text] == ["exports/registry.py"]


def test_pillow_is_imported_late():
    wrong = [f"{one.file}:{one.line} {one.module}" for one in all_imports() if one.early and one.module.split(".")[0] == "PIL"]
    assert wrong == []


def test_help_loads_no_heavy_library_and_no_stage():
    import subprocess
    import sys

    code = "import sys; from n2d2py.cli import main; main(['-h']); import n2d2py; print('loaded:', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=PACKAGE.parent, text=True, capture_output=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert [name for name in LATE if name in loaded] == []
    working = {"data", "exports", "frontend", "graph", "memory", "operators", "passes", "reference", "report", "runtime"}
    assert [name for name in loaded if room(name) in working] == []
