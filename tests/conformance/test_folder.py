"""folder.py: a row for each model, whatever becomes of the others; float, integers and expected outputs are judged."""

import sys

import folder
import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from support.onnx_models import text_model

WEIGHTS = np.array([[1, -2], [3, 4], [-5, 6]], np.float32)


def model(body: str, ports: str = "float[1,3] x => float[1,2] y") -> onnx.ModelProto:
    return text_model(ports, body, {"w": WEIGHTS})


def stored(path, values) -> None:
    path.write_bytes(numpy_helper.from_array(np.array(values, np.float32)).SerializeToString())


def table(monkeypatch, capsys, *words: str) -> tuple[int, dict[str, list[str]]]:
    """The status and the rows by file."""
    monkeypatch.setattr(sys, "argv", ["folder.py", *words])
    status = folder.main()
    lines = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    return status, {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in lines[1:]}


@pytest.fixture
def models(tmp_path):
    """Right and wrong expected outputs of x W for x = (1, 2, 3), an open size, an operator that is refused, a damaged file."""
    for name, second in (("right", 24.0), ("wrong", 25.0)):
        data = tmp_path / name / "test_data_set_0"
        data.mkdir(parents=True)
        onnx.save(model("y = MatMul(x, w)"), tmp_path / name / "model.onnx")
        stored(data / "input_0.pb", [[1, 2, 3]])
        stored(data / "output_0.pb", [[1 + 6 - 15, second]])
    onnx.save(model("y = MatMul(x, w)", "float[1,3,T,3] x => float[1,3,T,2] y"), tmp_path / "open.onnx")
    onnx.save(model("y = Multinomial(x)", "float[1,3] x => int32[1,1] y"), tmp_path / "refused.onnx")
    (tmp_path / "damaged.tflite").write_bytes(b"TFL3")
    return tmp_path


def test_every_model_has_a_row(models, monkeypatch, capsys):
    status, rows = table(monkeypatch, capsys, str(models), "-float")
    results = {name: cells[0] for name, cells in rows.items()}
    errors = {name: cells[1] for name, cells in rows.items()}
    assert status == 1 and results == {
        "damaged.tflite": "refused",
        "open.onnx": "right",
        "refused.onnx": "refused",
        "right/model.onnx": "right",
        "wrong/model.onnx": "wrong",
    }
    assert errors["right/model.onnx"] == "0.0e+00" and errors["wrong/model.onnx"] == "4.0e-02"
    assert float(errors["open.onnx"]) < 1e-6 and rows["open.onnx"][-1] == "-input-shape 3x64x3"
    assert not errors["refused.onnx"] and "Multinomial" in rows["refused.onnx"][-1] and "N2D2-E310" in rows["refused.onnx"][-1]
    assert not errors["damaged.tflite"] and rows["damaged.tflite"][-1].startswith("N2D2-E")


def test_integers_beside_the_peer(models, monkeypatch, capsys):
    """Samples of a normal distribution: 8 bits reach 25 dB and more, here and in ONNX Runtime."""
    status, rows = table(monkeypatch, capsys, str(models / "open.onnx"))
    mine, theirs = (float(rows["open.onnx"][at].removesuffix(" dB")) for at in (2, 3))
    assert status == 0 and mine > 25 and theirs > 25


def test_a_limit_stops_one_file(models, monkeypatch, capsys):
    status, rows = table(monkeypatch, capsys, str(models / "right"), "-limit", "0.05")
    assert status == 1 and rows["model.onnx"][0] == "failed" and "0.05 s" in rows["model.onnx"][-1]


def test_a_folder_without_models_is_an_error(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["folder.py", str(tmp_path)])
    with pytest.raises(SystemExit) as stopped:
        folder.main()
    assert stopped.value.code == 2 and str(tmp_path) in capsys.readouterr().err
