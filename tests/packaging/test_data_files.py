"""What is shipped: the lists of setup.cfg against the tree, the metadata, and what the models, data and parameter files hold."""

import configparser
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from n2d2py import log
from n2d2py.exports import load_params
from n2d2py.exports.registry import known_parameters
from n2d2py.ini import load_document
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
    lacking = ("onnx", "onnxruntime", "pandas", "torch", "ai_edge_litert", "ncnn")
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


MODELS = ROOT / "models"


def training_module(name: str):
    """A module of models/training, which is no package."""
    spec = importlib.util.spec_from_file_location(name, MODELS / "training" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def digits():
    return training_module("digits")


@pytest.fixture
def no_warnings():
    log.setup(quiet=True)
    yield
    assert not log.warnings_seen()


@pytest.mark.parametrize("part, count", [("train", 1287), ("t10k", 510)])
def test_the_digits(digits, part, count):
    images = digits.read_idx(digits.DATA / f"{part}-images-idx3-ubyte")
    labels = digits.read_idx(digits.DATA / f"{part}-labels-idx1-ubyte")
    assert images.shape == (count, 8, 8) and labels.shape == (count,)
    assert labels[:20].tolist() == [*range(10), *range(10)]
    assert set(labels.tolist()) == set(range(10))
    assert set(np.unique(images).tolist()) <= {int(v * 255 / 16 + 0.5) for v in range(17)}
    assert np.bincount(labels).min() > count // 10 * 0.9


def test_the_digits_are_those_of_scikit_learn(digits):
    datasets = pytest.importorskip("sklearn.datasets")
    source = datasets.load_digits()
    images = np.concatenate([digits.read_idx(digits.DATA / f"{part}-images-idx3-ubyte") for part in ("train", "t10k")])
    labels = np.concatenate([digits.read_idx(digits.DATA / f"{part}-labels-idx1-ubyte") for part in ("train", "t10k")])
    assert (labels == source.target).all()
    assert (np.round(images.astype(float) * 16 / 255) == source.images).all()


def test_idx_bytes_are_read_back(digits, tmp_path):
    make = training_module("make_digits")
    values = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    (tmp_path / "x").write_bytes(make.idx_bytes(values))
    assert (tmp_path / "x").read_bytes()[:8] == b"\0\0\x08\x03\0\0\0\x02"
    assert (digits.read_idx(tmp_path / "x") == values).all()


def test_the_training_sees_what_bilinear_enlargement_gives(digits):
    images = digits.read_idx(digits.DATA / "t10k-images-idx3-ubyte")[:20]
    enlarged = digits.enlarge(images).astype(int)
    for image, ours in zip(images, enlarged, strict=True):
        theirs = Image.fromarray(image).resize((32, 32), Image.Resampling.BILINEAR)
        assert abs(ours - np.asarray(theirs, int)).max() <= 1


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.ini")), ids=lambda path: path.stem)
def test_the_ini_files_read_without_warning(path, monkeypatch, no_warnings):
    monkeypatch.setenv("N2D2_DATA", "/data")
    document = load_document(path)
    names = {section.name for section in document.sections}
    several_inputs = any(section.has("Type") and section.raw("Type") == "Input" for section in document.sections)
    assert ({"sp"} if several_inputs else {"database", "sp"}) <= names
    assert any(".Target" in name for name in names)


def test_default_parameters_are_the_defaults(no_warnings):
    given = load_params(ROOT / "params" / "default.ini")
    assert given.as_dict() == load_params(None).as_dict()
    assert [key.name for key in known_parameters().keys if not given.is_given(key.name)] == []
