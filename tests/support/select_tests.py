"""Select the tests of a file: prints the paths that cover it, for `bin/test --for FILE`."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {
    "n2d2py/frontend/ini": ("frontend_ini", "ini"),
    "n2d2py/frontend/onnx": ("frontend_onnx",),
    "n2d2py/frontend/tflite": ("frontend_tflite",),
    "n2d2py/exports/mcu": ("microcontrollers",),
    "n2d2py/exports": ("export",),
    "n2d2py/plugin": ("plugins",),
    "n2d2py/options": ("cli/test_options.py",),
    "n2d2py/commands": ("cli",),
    "kernels/n2d2/mcu": ("microcontrollers/test_kernel_sweep.py",),
    "kernels": ("golden", "kernels/test_sweep.py", "kernels/test_simd.py"),
    "export_templates": ("export/test_cpp_project.py", "export/test_cpp_files.py"),
    "plugins/nvdla": ("nvdla",),
    "models": ("models", "golden"),
}
"""Folder -> the tests of what it holds; a package that is not listed has a folder of the same name."""


def tests_for(name: str) -> list[str]:
    """Return the test files and folders for a file of the project, relative to the checkout.

    They are those of its package, and the test modules that name its module or its header.
    """
    path = Path(name)
    if path.parts[0] == "tests":
        return [name]
    folder = next((one for one in map(str, path.parents) if one in FOLDERS), None)
    found = [f"tests/{one}" for one in FOLDERS[folder]] if folder else [f"tests/{path.parts[1]}"] if len(path.parts) > 2 else []
    module = Path(*path.parts[2:]) if path.parts[0] == "plugins" else path
    word = path.name if path.suffix == ".hpp" else ".".join(module.with_suffix("").parts)
    naming = [
        one
        for one in sorted((ROOT / "tests").rglob("test_*.py"))
        if re.search(rf"\b{re.escape(word)}\b", one.read_text("utf-8"))
    ]
    found += [one.relative_to(ROOT).as_posix() for one in naming]
    return list(dict.fromkeys(one for one in found if (ROOT / one).exists()))


if __name__ == "__main__":
    print("\n".join(dict.fromkeys(one for name in sys.argv[1:] for one in tests_for(name))))
