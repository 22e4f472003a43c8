"""Select the tests of a file: prints the paths that cover it, for `bin/test --for FILE`."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {
    "bin": ("packaging/test_scripts.py",),
    "docs": ("packaging/test_pages.py",),
    "export_templates": ("export/test_cpp_project.py", "export/test_cpp_files.py"),
    "kernels": ("golden", "kernels/test_sweep.py", "kernels/test_simd.py"),
    "kernels/n2d2/mcu": ("microcontrollers/test_kernel_sweep.py",),
    "models": ("models", "golden"),
    "n2d2py": ("api", "cli/test_command.py"),
    "n2d2py/commands": ("cli",),
    "n2d2py/contracts": ("operators", "kernels/test_code.py"),
    "n2d2py/contracts/quant": ("quant",),
    "n2d2py/exports": ("export",),
    "n2d2py/exports/mcu": ("microcontrollers",),
    "n2d2py/files": ("data",),
    "n2d2py/frontend/ini": ("frontend_ini", "ini"),
    "n2d2py/frontend/onnx": ("frontend_onnx",),
    "n2d2py/frontend/tflite": ("frontend_tflite",),
    "n2d2py/graph": ("operators", "passes"),
    "n2d2py/options": ("cli/test_options.py",),
    "n2d2py/plugin": ("plugins",),
    "n2d2py/postprocessing": ("e2e/test_detections.py", "kernels/test_detections.py", "kernels/test_heat_maps.py"),
    "n2d2py/runtime": ("api", "e2e/test_models.py"),
    "n2d2py/stages": ("api", "e2e/test_calibration.py", "e2e/test_models.py"),
    "params": ("export/test_parameters.py",),
    "plugins": ("packaging/test_wheel.py",),
}
"""Folder -> the tests of what it holds; a folder that is not listed has tests of the same name."""
TOO_MANY = 8
"""As many other test modules name only what all of them build on."""


def naming(word: str, folder: str = ".", pattern: str = "test_*.py") -> list[str]:
    """The files of tests that hold a word, which is a regular expression."""
    found = re.compile(rf"(?<![\w.]){word}(?![\w.]\w)")
    paths = sorted((ROOT / "tests" / folder).rglob(pattern))
    return [path.relative_to(ROOT).as_posix() for path in paths if found.search(path.read_text("utf-8"))]


def of_helper(module: str) -> list[str]:
    """The test modules that import a module of tests/support, or one of its modules that does."""
    modules, found = [module], set()
    for one in modules:
        word = rf"support(\.| import .*\b){one}"
        modules += [name for path in naming(word, "support", "*.py") if (name := Path(path).stem) not in modules]
        found.update(naming(word))
    return sorted(found)


def tests_for(name: str) -> list[str]:
    """Return the test files and folders for a file of the project, relative to the checkout.

    They are those of its folder, and the few other test modules that name its module or its header.
    """
    path = Path(name).resolve().relative_to(ROOT)
    if path.parts[:2] == ("tests", "support"):
        return of_helper(path.stem)
    if path.parts[0] == "tests":
        return [path.as_posix()]
    in_plugin = path.parts[0] == "plugins" and len(path.parts) > 2
    parents = [Path(*path.parts[:2])] if in_plugin else path.parents
    folders = [one for one in parents if one.as_posix() in FOLDERS or (one.name and (ROOT / "tests" / one.name).is_dir())]
    listed = FOLDERS.get(folders[0].as_posix(), (folders[0].name,)) if folders else ()
    found = [f"tests/{one}" for one in listed]
    if path.suffix in (".hpp", ".py"):
        module = Path(*path.parts[2:]) if in_plugin else path
        names = [path.name if path.suffix == ".hpp" else ".".join(module.with_suffix("").parts)]
        if path.parts[:2] == ("n2d2py", "operators"):  # tests import operators from support.ops
            names += re.findall(r"^class ([A-Z]\w+)", (ROOT / path).read_text("utf-8"), re.MULTILINE)
        word = rf"(?:ops\.)?(?:{'|'.join(map(re.escape, names))})"
        others = [one for one in naming(word) if not any(Path(one).is_relative_to(each) for each in found)]
        found += others if len(others) <= TOO_MANY or not found else []
    return found


if __name__ == "__main__":
    for given in sys.argv[1:]:
        if not (ROOT / given).exists():
            sys.exit(f"error: {given} is not a file of this checkout")
        print("\n".join(tests_for(given)))
