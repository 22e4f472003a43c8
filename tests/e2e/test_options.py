"""The options that decide the integers and the memory: whatever is asked, compiled equals simulated."""

from pathlib import Path

import numpy as np
import pytest
from support import e2e_run
from support.e2e_run import ROOT, assert_compiled_is_simulated, command, export, needs_compiler, summary
from support.tables import few_fast

import n2d2py
from n2d2py.arithmetic import RESCALING_MODES
from n2d2py.arithmetic.histogram import CLIPPING_MODES, WEIGHT_CLIPPING_MODES
from n2d2py.cli import main
from n2d2py.exports.cpp.processors import lacks_byte_products
from n2d2py.memory.strategies import PLANNERS

pytestmark = needs_compiler

SHIPPED = sorted(path.name for path in (ROOT / "params").glob("*.ini"))

_NAMED = {
    *"OptimizeMaxLifetimeMinSizeFirst OptimizeMaxHoleMaxLifetimeFirst None OptimizeMaxLifetimeMaxSizeFirst".split(),
    *"align16.ini low_memory.ini no_reuse.ini default.ini".split(),
}

# Together they hold every rescaling mode, clipping mode, strategy and shipped parameter file.
COVERING = (
    ("Floating-point", "MSE", "None", "OptimizeMaxLifetimeMinSizeFirst", "-no-unsigned"),
    ("Fixed-point", "None", "MSE", "OptimizeMaxHoleMaxLifetimeFirst", "-no-cle -wt-reduce-range"),
    ("Fixed-point16", "KL-Divergence", "KL-Divergence", "None", "-act-rescale-per-output 0 -wt-reduce-range"),
    ("Fixed-point32", "Quantile", "None", "align16.ini", "-act-quantile-value 0.99"),
    ("Fixed-point-p32", "MSE", "None", "default.ini", ""),
    ("Single-shift", "MSE", "MSE", "low_memory.ini", "-act-rescale-per-output 0 -no-unsigned"),
    ("Double-shift", "None", "None", "no_reuse.ini", "-wt-reduce-range"),
    ("Floating-point", "Quantile", "None", "default.ini", "-act-rescale-per-output 0"),
    ("Fixed-point32", "KL-Divergence", "MSE", "OptimizeMaxLifetimeMaxSizeFirst", "-no-unsigned -no-cle"),
    *(("Floating-point", "MSE", "None", name, "") for name in sorted({*PLANNERS, *SHIPPED} - _NAMED)),
)


def parameters(folder: Path, name: str, **others: int) -> str:
    """A shipped file by its name, or a new one with this strategy."""
    if name == "OptimizeOptimal":
        pytest.importorskip("ortools", reason="the optimal planner needs ortools")
    if name.endswith(".ini"):
        return str(ROOT / "params" / name)
    path = folder / "params.ini"
    lines = [f"MemoryManagerStrategy = {name}", *(f"{key} = {value}" for key, value in others.items())]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def piecewise(tmp_path, monkeypatch):
    """Lets "branches" be the network without curved activations, which need a table beyond 8 bits."""
    text = (e2e_run.HERE / "branches.ini").read_text()
    for function, other in (("Tanh", "Rectifier"), ("Logistic", "Linear")):
        text = text.replace(f"ActivationFunction={function}\n", f"ActivationFunction={other}\n")
    path = tmp_path / "branches.ini"
    path.write_text(text.replace("ActivationFunction.LeakSlope=0.125\n", ""))
    monkeypatch.setitem(e2e_run.NETWORKS, "branches", path)


def test_the_cases_cover_everything():
    columns = [set(column) for column in zip(*COVERING, strict=True)]
    assert columns[0] == set(RESCALING_MODES)
    assert columns[1] == set(CLIPPING_MODES) and columns[2] == set(WEIGHT_CLIPPING_MODES)
    assert columns[3] == set(PLANNERS) | set(SHIPPED)


@pytest.mark.parametrize("rescaling, activations, weights, memory, others", few_fast(COVERING, 3))
def test_every_option(rescaling, activations, weights, memory, others, tmp_path):
    folder = export(
        "branches",
        tmp_path,
        *"-calib 16 -db-export 2 -act-rescaling-mode".split(),
        rescaling,
        "-act-clipping-mode",
        activations,
        "-wt-clipping-mode",
        weights,
        "-export-parameters",
        parameters(tmp_path, memory),
        *others.split(),
    )
    assert_compiled_is_simulated(folder)
    unsigned = [info.name for info in n2d2py.load_simulator(folder).info.layers if info.dtype.kind == "u"]
    assert bool(unsigned) == ("-no-unsigned" not in others)


@pytest.mark.slow
def test_a_reduced_range_makes_products_of_bytes_exact(tmp_path):
    """Every layer of byte products sums at least two of them in 16 bits, with the option only."""
    texts = []
    for name, options in (("free", []), ("reduced", ["-wt-reduce-range"])):
        folder = export("branches", tmp_path / name, "-calib", "16", "-db-export", "2", *options)
        texts.append((folder / "statistics" / "layers.txt").read_text())
    assert_compiled_is_simulated(folder)
    assert "sums of two products may exceed 16 bits" in texts[0] and "may exceed 16 bits" not in texts[1]
    assert "sums of four products fit 16 bits" in texts[1]


def test_processors_without_dot_products_of_bytes():
    found = [lacks_byte_products(flags) for flags in ("sse4_1 avx2", "sse4_1", "sse4_1 avx2 avx_vnni", "asimd")]
    assert found == [True, True, False, False]


@pytest.mark.parametrize(("options", "recommended"), [("", True), ("-wt-reduce-range", False), ("-nbbits 16", False)])
def test_a_reduced_range_is_recommended_where_bytes_have_no_dot_product(options, recommended, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("n2d2py.exports.cpp.target.cpu_info", lambda field: "sse4_1 avx2")
    words = command("branches", tmp_path, "-calib", "4", "-quality", "fast", *options.split())
    assert main([word for word in words if word != "-quiet"]) == 0
    assert ("times faster" in capsys.readouterr().err) == recommended


@pytest.mark.parametrize("network", ["LeNet", "branches"])
def test_sixteen_bits(network, piecewise, tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "no-compiler")  # the comparison is with float; compiled values are compared below
    folder = export(network, tmp_path, "-calib", "-1", "-nbbits", "16", "-db-export", "2", "-compare", "4")
    assert folder.name == "export_CPP_int16"
    assert_compiled_is_simulated(folder)
    assert {info.type.bits for info in n2d2py.load_simulator(folder).info.layers} == {16}
    assert min(layer["sqnr_db"] for layer in summary(folder)["compare"].values()) > 60.0


@pytest.mark.parametrize("bits", few_fast([-64, -32]))
def test_floating_point(bits, tmp_path):
    folder = export("branches", tmp_path, "-nbbits", str(bits), "-db-export", "2")
    assert folder.name == f"export_CPP_float{-bits}"
    assert_compiled_is_simulated(folder)
    x = np.random.default_rng(0).random((3, 3, 13, 17))
    y = e2e_run.compiled_at_once(folder)(x)
    assert y.dtype == np.dtype(f"float{-bits}")
    np.testing.assert_allclose(y.sum(axis=1), 1.0, rtol=1e-5)  # the Softmax is kept


def test_the_float_export_scores_as_the_float_network(tmp_path):
    scores = summary(export("LeNet", tmp_path, "-nbbits", "-32", "-test", "-db-export", "-1"))["scores"]
    assert scores["simulated"] == scores["float"] == scores["compiled"] > 98.0


@pytest.mark.slow
@pytest.mark.parametrize("rescaling", RESCALING_MODES)
def test_every_rescaling_mode_keeps_the_score(rescaling, tmp_path):
    scores = summary(
        export("MobileNet", tmp_path, "-calib", "-1", "-test", "-db-export", "20", "-act-rescaling-mode", rescaling)
    )["scores"]
    assert scores["simulated"] >= scores["float"] - (1.5 if rescaling == "Single-shift" else 0.5)
