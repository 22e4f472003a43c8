"""A wheel in a clean environment finds everything, from a foreign folder, without the checkout."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from support.pages import blocks, commands, run_block, run_page
from support.programs import need, run_command

from n2d2py.exports.registry import EXTRAS

ROOT = Path(__file__).resolve().parents[2]
SHARED = ("kernels", "export_templates", "params", "models")
UNWANTED = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info", "export_CPP_*")

pytestmark = pytest.mark.slow


def files_under(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    }


def run(*command: object, cwd: Path) -> str:
    """Output of a command run without the variables that would lead to the checkout."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYTHONHOME", "N2D2PY_DATA", "N2D2_MODELS")
    }
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    done = run_command(*([str(part) for part in command]), cwd=cwd, env=environment)
    return done


@pytest.fixture(scope="module")
def clean(tmp_path_factory) -> Path:
    """The Python of an environment that holds the wheel, and this environment's other packages."""
    pytest.importorskip("setuptools", reason="the wheel is built without isolation")
    base = tmp_path_factory.mktemp("wheel")
    source = base / "source"
    shutil.copytree(ROOT, source, ignore=UNWANTED)
    run(
        sys.executable,
        *"-m pip wheel -q --no-deps --no-build-isolation --use-pep517 -w".split(),
        base / "dist",
        source,
        cwd=base,
    )
    shutil.rmtree(source)
    (wheel,) = (base / "dist").glob("*.whl")

    venv.create(base / "env", with_pip=False)
    python = base / "env" / "bin" / "python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(run(python, "-c", code, cwd=base).strip())
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", wheel, cwd=base)
    return python


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    folder = tmp_path / "foreign"
    folder.mkdir()
    return folder


def test_the_package_is_whole(clean: Path, foreign: Path):
    code = "import n2d2py; print(n2d2py.__file__)"
    home = Path(run(clean, "-c", code, cwd=foreign).strip()).parent
    assert home.is_relative_to(clean.parent.parent)
    assert files_under(home) == files_under(ROOT / "n2d2py")


@pytest.mark.parametrize("name", SHARED)
def test_the_shared_folders_are_found_and_whole(clean: Path, foreign: Path, name: str):
    code = f"from n2d2py.resources import folder; print(folder({name!r}))"
    found = Path(run(clean, "-c", code, cwd=foreign).strip())
    assert found == clean.parent.parent / "share" / "n2d2py" / name
    assert files_under(found) == files_under(ROOT / name)
    for path in files_under(found):
        assert (found / path).read_bytes() == (ROOT / name / path).read_bytes()


def test_help_runs_and_writes_nothing(clean: Path, foreign: Path):
    before = files_under(clean.parent.parent)
    assert "-export" in run(clean, "-m", "n2d2py", "-h", cwd=foreign)
    assert "-export" in run(clean.parent / "n2d2py", "-h", cwd=foreign)
    assert files_under(clean.parent.parent) == before
    assert not list(foreign.iterdir())


def test_type_checkers_find_the_types(clean: Path, foreign: Path):
    code = "import n2d2py; from pathlib import Path; print(Path(n2d2py.__file__).with_name('py.typed').is_file())"
    assert run(clean, "-c", code, cwd=foreign).strip() == "True"


def test_a_shipped_model_loads(clean: Path, foreign: Path):
    code = "from n2d2py.resources import folder; print(folder('models'))"
    models = Path(run(clean, "-c", code, cwd=foreign).strip())
    command = (clean, "-m", "n2d2py", models / "LeNet.ini", "-describe", "json")
    described = json.loads(run(*command, cwd=foreign))
    dims = {layer["name"]: layer["output_dims"] for layer in described["layers"]}
    assert dims["conv1"] == [28, 28, 6] and dims["fc2"][-1] == 10
    assert not list(foreign.iterdir())


def test_an_export_needs_no_writable_installation(clean: Path, foreign: Path):
    """The whole way from another folder: calibrated, compiled and compared; the installation stays as it was."""
    need("g++", "make")
    code = "from n2d2py.resources import folder; print(folder('models'))"
    models = Path(run(clean, "-c", code, cwd=foreign).strip())
    home = clean.parent.parent
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    folders = [path for path in (home, *before) if path.is_dir() and not path.is_symlink()]
    try:
        for path in folders:
            path.chmod(0o555)
        run(
            clean,
            "-m",
            "n2d2py",
            models / "LeNet.ini",
            "-w",
            models / "LeNet.npz",
            *"-export CPP -calib 20 -db-export 10 -test -compare 2".split(),
            cwd=foreign,
        )
    finally:
        for path in folders:
            path.chmod(0o755)
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before
    summary = json.loads((foreign / "export_CPP_int8" / "statistics" / "summary.json").read_text())
    assert summary["scores"]["simulated"] > 95 and summary["scores"]["compiled"] is not None
    assert all(layer["identical"] for layer in summary["compare"].values())
    code = "import n2d2py, numpy; y = n2d2py.load_export('export_CPP_int8')(numpy.zeros((1, 1, 32, 32))); print(y.shape)"
    assert run(clean, "-c", code, cwd=foreign).strip() == "(1, 10)"


@pytest.mark.parametrize("target", sorted(EXTRAS))
def test_an_extra_target_is_refused_with_its_remedy_until_its_package_is_installed(
    clean: Path, foreign: Path, tmp_path: Path, target: str
):
    need(*["glslc"] * (target == "Vulkan"))
    extra = EXTRAS[target]
    source, site = tmp_path / extra, tmp_path / "site"
    shutil.copytree(ROOT / "plugins" / extra, source, ignore=UNWANTED)
    code = "from n2d2py.resources import folder; print(folder('models'))"
    models = Path(run(clean, "-c", code, cwd=foreign).strip())
    export = (clean, "-m", "n2d2py", models / "LeNet.ini", "-w", models / "LeNet.npz", "-export", target, "-calib", "2")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(list(map(str, export)), cwd=foreign, env=environment, text=True, capture_output=True)
    if "E721" in done.stderr:  # where the other packages of this environment do not bring it
        assert done.returncode == 1 and done.stderr.count("\n") == 1 and f'pip install "n2d2py[{extra}]"' in done.stderr
        assert not list(foreign.iterdir())
    options = ("--no-deps", "--no-build-isolation", "--use-pep517")
    run(sys.executable, "-m", "pip", "install", "-q", *options, "--target", site, source, cwd=tmp_path)
    package = f"n2d2py_{extra}"
    assert files_under(site / package) == files_under(source / package)
    assert (next(site.glob(f"{package}-*.dist-info")) / "licenses" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    with_it = f"import sys; sys.path.insert(0, {str(site)!r}); from n2d2py.cli import main; sys.exit(main(sys.argv[1:]))"
    run(clean, "-c", with_it, *export[3:], "-db-export", "2", cwd=foreign)
    assert (foreign / f"export_{target}_int8" / "manifest.json").is_file()


@pytest.fixture
def installed(clean: Path) -> dict[str, str]:
    """The environment of a user who has the wheel in an active environment, and nothing of the checkout."""
    need("g++", "make", "bash")
    left_out = ("PYTHONPATH", "PYTHONHOME", "N2D2PY_DATA", "N2D2_MODELS")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    path = os.pathsep.join([str(clean.parent), environment["PATH"]])
    return {**environment, "PATH": path, "OPT": environment.get("OPT", "-O1")}


def test_the_first_tutorial_runs_after_the_installation(installed: dict[str, str], foreign: Path):
    printed = run_page("tutorials/onnx_to_cpp.md", foreign, installed)
    assert "99.02%" in printed[1] and "Score: 100.00%" in printed[2]
    (foreign / "MobileNet.onnx").rename(foreign / "NET.onnx")
    (foreign / "digits").rename(foreign / "IMAGES")
    shutil.rmtree(foreign / "export_CPP_int8")
    _, block = commands("../README.md")
    install, export = block.splitlines()
    assert install == "pip install '.[onnx]'"
    assert "99.02%" in run_block(export, foreign, installed)
    (code,) = [text for language, _, text in blocks("../README.md") if language == "python"]
    (foreign / "first.py").write_text(code)
    assert "99.02%" in run_block("python first.py", foreign, installed)


def test_presets_and_the_commands_beside_it_are_installed(installed: dict[str, str], foreign: Path):
    (foreign / "sweep.ini").write_text(
        "[sweep]\nNetwork=models/LeNet.ini\nOptions=-seed 1 -calib 10 -db-export 2 -nb-test 20 -test\n"
        "Objectives=agreement arena\n[options]\nexport-parameters=low_memory lowmemory\n"
    )
    table = run_block(
        'cp -r "$(python -c \'from n2d2py.resources import folder; print(folder("models"))\')" models; n2d2py-sweep sweep.ini',
        foreign,
        installed,
    )
    first, second = (line.split() for line in table.splitlines()[2:4])
    assert (
        first[:3] == ["0000", "low_memory", "100.00"] and first[-1] == "*" and "did you mean 'low_memory'?" in " ".join(second)
    )
    assert "no_reuse" in run_block(
        "n2d2py models/LeNet.ini -export CPP -export-parameters nothing 2>&1 || true", foreign, installed
    )
