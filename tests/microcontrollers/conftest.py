"""Exports for all tests of boards."""

from pathlib import Path

import pytest
from support.board_export import ROOT, SHARED, export_for_boards

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def small(tmp_path_factory) -> Path:
    """A network of layers of several kinds: a sum, a concatenation, pools, a depthwise convolution."""
    return export_for_boards(HERE / "small.ini", tmp_path_factory.mktemp("boards"), "-db-export", "5")


@pytest.fixture(autouse=True, scope="module")
def own_optimization():
    """Stack and instructions are promised for -O2 and -Os, which the Makefile sets; tests of other folders set OPT for all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OPT", raising=False)
        yield


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """MLPerf Tiny's networks, by name and export parameters."""
    made: dict[str, Path] = {}

    def of(network: str, parameters: str = "") -> Path:
        if network + parameters not in made:
            out = tmp_path_factory.mktemp(network)
            text = (ROOT / "tests" / "networks" / f"{network}.ini").read_text()
            text = text.replace("${N2D2_DATA}", str(SHARED)).replace("${N2D2_MODELS}", str(SHARED / "models"))
            quantized = (SHARED / "models" / f"{network}_qdq.onnx").is_file()
            model = f"{network}_qdq.onnx" if quantized else f"{network}.onnx"
            (out / f"{network}.ini").write_text(text.replace(f"{network}.onnx", model))
            words = ("-db-export", "3", *(() if quantized else ("-calib", "4")))
            made[network + parameters] = export_for_boards(
                out / f"{network}.ini", out, *words, parameters=parameters, calibrate=False
            )
        return made[network + parameters]

    return of
