"""Commands of docs/how-to/tasks.md and options of docs/options.md over the models: each ends with what it promises, or with one numbered error.

The slow part takes every model of models/ and of the shared data folder:

    pytest -m slow tests/cli/test_matrix.py -k every
"""

import os
import re
from pathlib import Path

import onnx
import pytest
from error_codes import CODES
from support.onnx_models import text_model
from support.tables import every

from n2d2py.cli import main
from n2d2py.exports import target_names
from n2d2py.exports.registry import installed_targets

MODELS = Path(__file__).parents[2] / "models"
SHARED = Path(os.environ.get("N2D2_MODELS", Path(__file__).parents[3] / "shared" / "data" / "models"))
CALIBRATED = ("-calib", "2", "-db-export", "1", "-quality", "fast")
CPP = ("-export", "CPP", *CALIBRATED)
COMMANDS = [
    "-describe",
    "-describe json",
    "-memory-report",
    "-memory-report -nbbits 16",
    "-export CPP",
    "-export CPP -nbbits -32",
    "-export CPP -nbbits -16",
    "-export CPP -nbbits 32",
    *(" ".join(("-export", name, *CALIBRATED)) for name in ("CPP", "ONNX", "NCNN", "NVDLA") if name in target_names()),
    "-calibOnly -calib 2",
    "-test -nb-test 2",
    "-log-outputs 1",
    *(
        " ".join((*CPP, option))
        for option in (
            "-nbbits 16",
            "-test -nb-test 1",
            "-compare 1",
            "-sensitivity 1",
            "-export-parameters min_ram",
            "-export-parameters low_memory",
            "-act-clipping-mode KL-Divergence",
            "-act-rescaling-mode Fixed-point32",
            "-act-rescaling-mode Single-shift -act-rescale-per-output 0",
            "-wt-clipping-mode MSE -wt-bits 4",
            "-flash-budget 1000000",
            "-ram-budget 100000",
            "-wt-reduce-range -no-cle",
            "-no-unsigned -no-zero-points",
            "-input-bits 16 -output-bits 16",
            "-mixed-precision",
            "-sequential-calibration -wt-rounding adaptive",
            "-post scores:average=2",
        )
    ),
]
KNOWN = {*CODES, *(code for target in installed_targets() for code in target.codes)} - {"E099"}
SOME = [command for command in COMMANDS if not re.search("-compare|-test|min_ram|adaptive", command)]


def ended(network: Path, command: str, folder: Path, capsys) -> None:
    """Run a command on a network; check its end."""
    options = ["-w", "/dev/null"] if network.suffix == ".ini" and not (network.with_suffix(".npz")).exists() else []
    status = main([str(network), *options, *command.split(), "-o", str(folder)])
    out, err = capsys.readouterr()
    codes = [line.split(":")[0].removeprefix("error N2D2-") for line in err.splitlines() if line.startswith("error ")]
    assert (status == 0) == (not codes) and set(codes) <= KNOWN, err
    assert status in (0, 1) and "Traceback" not in err and not re.search(r"\w+Warning:", err), err
    if status == 0 and ("-export" in command or "-calibOnly" in command):
        (made,) = folder.iterdir()
        assert (made / "statistics" / "report.html").stat().st_size
    elif status == 0 and ("-describe" in command or "-memory-report" in command):
        assert out.strip()


@pytest.fixture(scope="module")
def fully_connected(tmp_path_factory) -> Path:
    """A network of fully connected layers alone, without an image."""
    path, body = tmp_path_factory.mktemp("fc") / "fc.onnx", "h = MatMul (x, a) r = Relu (h) y = MatMul (r, b)"
    onnx.save(text_model("float[1,6] x => float[1,4] y", body, {"a": (6, 9), "b": (9, 4)}), path)
    return path


pytestmark = pytest.mark.filterwarnings("error")


@every("command", SOME)
def test_fully_connected(fully_connected, command, tmp_path, capsys):
    ended(fully_connected, command, tmp_path, capsys)


@every("command", SOME[::2])
@every("name", ["MaxPoolAdd.onnx", "../plugins/nvdla/models/Add.ini"])
def test_small_models(name, command, tmp_path, capsys):
    ended(MODELS / name, command, tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "path",
    [*sorted(MODELS.glob("*.ini")), *sorted(MODELS.glob("*.onnx")), *sorted(SHARED.glob("*.onnx"))],
    ids=lambda path: path.name,
)
def test_every_model(path, command, tmp_path, capsys):
    ended(path, command, tmp_path, capsys)
