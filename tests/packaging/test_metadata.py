"""What the package index shows: links that lead somewhere, the versions that are supported."""

from __future__ import annotations

import configparser
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def setup_module():
    spec = importlib.util.spec_from_file_location("n2d2py_setup", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def links(text: str) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", text)


def test_links_of_the_readme_are_absolute_where_the_address_is_known(setup_module):
    text = setup_module.description("https://example.org/n2d2py", "1.2.3")
    found = links(text)
    assert len(found) == len(links((ROOT / "README.md").read_text())) > 5
    for link in found:
        assert link.startswith("https://")
        match = re.fullmatch(r"https://example\.org/n2d2py/(blob|raw)/v1\.2\.3/([^#]+)(#.*)?", link)
        if match:
            assert (ROOT / match[2]).exists(), link
            assert (match[1] == "raw") == (Path(match[2]).suffix in (".png", ".svg"))


def test_links_are_text_where_it_is_not(setup_module):
    text = setup_module.description("", "1.2.3")
    assert all(link.startswith("https://") for link in links(text))
    assert setup_module.addresses("") == {} and "# n2d2py" in text


def test_the_python_versions_are_those_of_the_classifiers():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    versions = re.findall(r"Python :: 3\.(\d+)", config["metadata"]["classifiers"])
    assert versions == ["10", "11", "12", "13"]
    assert config["options"]["python_requires"] == f">=3.{versions[0]}"
    assert f'target-version = "py3{versions[0]}"' in (ROOT / "ruff.toml").read_text()


def test_an_ini_is_exported_without_extras(tmp_path):
    """In floating point and integers, with scores; an ONNX file and the export ONNX name the extra that they require."""
    lacking = ("onnx", "onnxruntime", "matplotlib", "pandas", "torch", "ai_edge_litert", "ncnn")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({lacking}))\nfrom n2d2py.cli import main\nsys.exit(main(sys.argv[1:]))"
    )
    models, command = ROOT / "models", [sys.executable, "-c", code]
    ini = [models / "LeNet.ini", "-w", models / "LeNet.npz", "-nb-test", "20", "-db-export", "2", "-test"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": str(tmp_path)}  # no compiler: scores of Python are enough
    for more in (["-nbbits", "-32"], ["-calib", "20"]):
        done = subprocess.run(
            [*command, *ini, "-export", "CPP", *more], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0 and "100.00%" in done.stdout, done.stderr
    assert not list(tmp_path.rglob("*.png")) and (tmp_path / "export_CPP_int8" / "statistics" / "report.html").is_file()
    for words in ([models / "MobileNet.onnx", "-export", "CPP"], [*ini, "-export", "ONNX", "-calib", "2"]):
        done = subprocess.run([*command, *words], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 1 and "N2D2-E320" in done.stderr and "pip install 'n2d2py[onnx]'" in done.stderr


def test_the_extras_hold_what_the_base_does_not():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    names = {line.split()[0] for line in config["options"]["install_requires"].splitlines() if line}
    assert names == {"configobj", "flatbuffers", "jinja2", "numpy", "pillow", "tqdm"}
    extras = {key: set(config["options.extras_require"][key].split("\n")) - {""} for key in ("onnx", "plots", "test")}
    assert extras["onnx"] | extras["plots"] <= extras["test"]
