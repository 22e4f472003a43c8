"""From Python: the page of the API, and the notebook, run as they stand."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from support.e2e_run import needs_compiler
from support.pages import ROOT, blocks

DIGITS = ROOT / "models" / "data" / "digits"


@needs_compiler
def test_the_page_runs(tmp_path, monkeypatch, capsys):
    """The code blocks of docs/how-to/python.md, one after the other, on the digits of the repository."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "models" / "MobileNet.onnx", "MobileNet.onnx")
    pictures = np.fromfile(DIGITS / "t10k-images-idx3-ubyte", np.uint8)[16:].reshape(-1, 1, 8, 8)[:60]
    labels = np.fromfile(DIGITS / "t10k-labels-idx1-ubyte", np.uint8)[8:][:60]
    np.savez("digits.npz", x=pictures.repeat(4, axis=2).repeat(4, axis=3), y=labels)
    code = [text for language, _, text in blocks("how-to/python.md") if language == "python"]
    assert len(code) == 6
    names: dict[str, object] = {}
    for block in code:
        exec(block, names)
    assert "int8" in capsys.readouterr().out
    assert Path("steps/export_CPP_int8/manifest.json").is_file()
    for name in ("memory", "errors", "histograms", "confusion"):
        assert Path(f"{name}.svg").read_text().startswith("<svg ")
    assert names["scores"].simulated.top1 > 85


@needs_compiler
@pytest.mark.parametrize(
    "name, figures, tables",
    [pytest.param(*one, marks=pytest.mark.slow) for one in (("first_network", 4, 4), ("from_pytorch", 0, 4))],
)
def test_a_notebook_runs(name, figures, tables, tmp_path):
    """A notebook of docs/notebooks, cell by cell in a kernel, from another folder."""
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    if "torch" in name:
        pytest.importorskip("torch")
    notebook = nbformat.read(ROOT / "docs" / "notebooks" / f"{name}.ipynb", 4)
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in notebook.cells), (
        "outputs are stripped"
    )
    client.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    kinds = [set(output["data"]) for output in outputs if "data" in output]
    assert sum("image/svg+xml" in kind for kind in kinds) == figures
    assert sum("text/html" in kind for kind in kinds) >= tables
    assert "".join(output.get("text", "") for output in outputs).count("identical") == 1
    assert not any(output["output_type"] == "error" for output in outputs)
