"""MLPerfTiny=...: the host script runs the firmware over QEMU's serial line, and each result is that of Python's integers.

MLCommons' API is not in the repository: MLPERF_TINY names its folder benchmark/api; without it, a stand-in of the tests receives the commands.
"""

import csv
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.board_export import SHARED, compiled, export_for_boards, make
from support.tables import few_fast

from n2d2py.arithmetic import NumType
from n2d2py.exports.mcu.boards import board, core
from n2d2py.exports.mcu.mlperf import BENCHMARKS, BenchmarkView
from n2d2py.graph.inputs import InputContract, PixelMap
from n2d2py.quant.simulator import simulate
from n2d2py.runtime.graph_file import GRAPH_FILE, read_graph

HERE = Path(__file__).parent / "mlperf"
API = os.environ.get("MLPERF_TINY", str(HERE / "api"))
SHAPES = {"ic01": (32, 32, 3, 10), "vww01": (96, 96, 3, 2), "kws01": (49, 10, 1, 12), "ad01": (1, 1, 640, 640)}
"""Height, width, channels, outputs."""
NETWORKS = {"ic01": "resnet8", "vww01": "vww_96", "kws01": "kws_dscnn", "ad01": "ad_autoencoder"}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The exports of small networks with the shapes of the benchmarks, by name."""
    return cache(lambda benchmark: _small(benchmark, tmp_path_factory.mktemp(benchmark)))


def _small(benchmark: str, out: Path) -> Path:
    height, width, channels, outputs = SHAPES[benchmark]
    text = (HERE / "network.ini").read_text()
    names = {"HEIGHT": height, "WIDTH": width, "CHANNELS": channels, "OUTPUTS": outputs, "WINDOW": min(8, height)}
    for name, value in names.items():
        text = re.sub(rf"\b{name}\b", str(value), text)
    (out / "network.ini").write_text(text)
    return export_for_boards(out / "network.ini", out, parameters=f"MLPerfTiny={benchmark}\n")


def draw(benchmark: str, rng: np.random.Generator, count: int) -> np.ndarray:
    """Samples (count, H, W, C) as the runner has them: RGB bytes, quantized features, or log-mel values."""
    shape = (count, *SHAPES[benchmark][:3])
    if benchmark == "ad01":
        return rng.uniform(-81, 12, shape).astype("<f4")
    return rng.integers(0, 256, shape).astype(np.uint8).view(np.int8 if benchmark == "kws01" else np.uint8)


def real(benchmark: str, samples: np.ndarray, blue_first: bool) -> np.ndarray:
    """The real values (N, C, H, W) of samples; `blue_first`: those of an INI, which reads images as N2D2 does, from 0 to 1."""
    known = {"kws01": (0.5847029089927673, 83), "ad01": (1, 0), "vww01": (1 / 255, 0)}
    factor, zero = known.get(benchmark, (1 / 255 if blue_first else 1, 0))
    return np.moveaxis((samples[..., :: -1 if blue_first else 1].astype(np.float64) - zero) * factor, 3, 1)


def write_samples(folder: Path, benchmark: str, samples: np.ndarray) -> None:
    """A folder of the runner. A file of ad01 holds two windows, the second one 512 bytes after the first."""
    folder.mkdir()
    rows = []
    for index, sample in enumerate(samples):
        name = f"{index}.bin"
        data = sample.tobytes()
        (folder / name).write_bytes(data + data[:512] if benchmark == "ad01" else data)
        rows.append([name, "2", str(index % 2), *(["2560", "512"] if benchmark == "ad01" else [])])
    with (folder / "y_labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def expected(export: Path, benchmark: str, samples: np.ndarray, blue_first: bool) -> list[str]:
    """The results of Python's integers, as the firmware prints them."""
    graph = read_graph(export / GRAPH_FILE)
    inputs = real(benchmark, samples, blue_first)
    kind, outgoing = graph.type(graph.inputs[0]), graph.type(graph.outputs[0])
    stored = np.clip(np.rint(inputs / kind.scale) + kind.zero_point, kind.qmin, kind.qmax)
    (made,) = simulate(graph, [stored.reshape(len(samples), *graph.shape(graph.inputs[0])[1:])]).values()
    results = ((made.reshape(len(samples), -1).astype(float) - outgoing.zero_point) * outgoing.scale).astype(np.float32)
    if benchmark == "ad01":
        errors = (results.astype(float) - inputs.reshape(len(samples), -1)) ** 2
        results = errors.mean(axis=1, keepdims=True).astype(np.float32)
    return [",".join(f"{value:.3f}" for value in row) for row in results]


def host(export: Path, name: str, data: Path, *words: str, as_port: bool = False) -> subprocess.CompletedProcess[str]:
    """The host script with the firmware in QEMU, on pipes or behind a serial port."""
    emulator = board(core(name).board).emulator.split()
    command = [*emulator, "-nographic", "-monitor", "none", "-serial", "stdio", "-kernel", f"build/{name}/mlperf.elf"]
    script = [sys.executable, "mlperf/host.py", *words, str(data)]
    if not as_port:
        return subprocess.run([*script, "--", *command], cwd=export, capture_output=True, text=True)
    master, slave = os.openpty()
    with subprocess.Popen(command, cwd=export, stdin=master, stdout=master) as firmware:
        done = subprocess.run([*script, os.ttyname(slave)], cwd=export, capture_output=True, text=True)
        firmware.kill()
    os.close(master)
    os.close(slave)
    return done


def check(export: Path, benchmark: str, name: str, folder: Path, blue_first: bool, *defines: str, count: int = 4) -> list[str]:
    """The lines of the host script, whose results are checked."""
    samples = draw(benchmark, np.random.default_rng(3), count)
    if benchmark == "ad01":  # the second window begins 128 values later
        flat = samples.reshape(count, -1)
        windows = np.stack([flat, np.concatenate([flat[:, 128:], flat[:, :128]], axis=1)], axis=1)
        wanted = expected(export, benchmark, windows.reshape(2 * count, 1, 1, -1), blue_first)
    else:
        wanted = expected(export, benchmark, samples, blue_first)
    write_samples(folder / "data", benchmark, samples)
    make(export, name, "mlperf", f"MLPERF_TINY={API}", *defines)
    done = host(export, name, folder / "data", "-infer", "2", "-warmup", "1", as_port=benchmark == "ad01")
    assert done.returncode == 0, done.stderr
    first, *lines = done.stdout.splitlines()
    assert first == f"m-name-dut-[unspecified] m-model-[{benchmark}]"
    results = [line.split(" ") for line in lines if ".bin " in line]
    assert [text for _, _, text in results] == wanted
    return [line for line in lines if ".bin " not in line]


@pytest.mark.parametrize(
    "benchmark, name",
    few_fast(
        [
            ("ic01", "cortex-m4"),
            ("ad01", "rv32imc"),
            ("kws01", "rv32imc"),
            ("vww01", "cortex-m4"),
            *(("kws01", core) for core in ("cortex-m0", "cortex-m33", "cortex-m55")),
        ]
    ),
)
def test_results_over_the_serial_line(small, tmp_path, benchmark, name):
    rate, score = check(small(benchmark), benchmark, name, tmp_path, benchmark in ("ic01", "vww01"))
    assert re.fullmatch(r"median throughput [\d.]*[1-9][\d.]* inferences per second", rate)
    assert re.fullmatch(r"AUC [01]\.\d{3} of 4 files" if benchmark == "ad01" else r"top-1 \d of 4 samples", score)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cortex-m4", "rv32imc"])
@pytest.mark.parametrize("benchmark", NETWORKS)
def test_networks_of_the_benchmark(exported, tmp_path, benchmark, name):
    """Files of MLPerf Tiny's own networks, images with the normalization of their data."""
    if not (SHARED / "models" / f"{NETWORKS[benchmark]}.onnx").is_file():
        pytest.skip("the models of shared/data are absent")
    export = exported(NETWORKS[benchmark], f"MLPerfTiny={benchmark}\n")
    check(export, benchmark, name, tmp_path, False, count=2)


@pytest.mark.slow
def test_energy_mode(small, tmp_path):
    """The pin instead of the time: the same results, and no throughput."""
    define = "CXXFLAGS=-DEE_CFG_ENERGY_MODE=1"
    (score,) = check(small("kws01"), "kws01", "cortex-m4", tmp_path, False, define)
    assert score.startswith("top-1 ")


def test_what_is_refused(small, tmp_path, capsys):
    """A build without the API; samples of another size; a network of another benchmark."""
    done = compiled(small("ic01"), "cortex-m4", "mlperf", "MLPERF_TINY=")
    assert done.returncode and "error: pass MLPERF_TINY=FOLDER" in done.stdout
    make(small("ic01"), "cortex-m4", "mlperf", f"MLPERF_TINY={API}")
    write_samples(tmp_path / "data", "ic01", draw("ic01", np.random.default_rng(1), 1)[:, 1:])
    done = host(small("ic01"), "cortex-m4", tmp_path / "data")
    assert done.returncode == 1 and done.stderr == "error: infer 1 0: e-[2976 bytes were loaded, 3072 are expected]\n"
    capsys.readouterr()
    with pytest.raises(AssertionError):
        export_for_boards(small("ic01").parent / "network.ini", tmp_path, parameters="MLPerfTiny=ad01\n")
    said = "E705: MLPerfTiny=ad01 requires one input of 640 and one output of 640 values; the model has 3x32x32 and 10;"
    assert said in capsys.readouterr().err


PIXELS = PixelMap((0.5, 1.0, 2.0), (0.0, 0.0, -1.0), (2, 1, 0))


@pytest.mark.parametrize(
    "benchmark, scale, zero, pixels, tables, order",
    [
        ("ic01", 1.0, -128, None, [range(-128, 128)], (0, 1, 2)),
        ("vww01", 0.003921568859368563, -128, None, [range(-128, 128)], (0, 1, 2)),
        ("kws01", 0.5847029089927673, 83, PIXELS, [[*range(128), *range(-128, 0)]], (0,)),
        ("kws01", 3 * 0.5847029089927673, 0, None, [[round(((b ^ 128) - 128 - 83) / 3) for b in range(256)]], (0,)),
        (
            "ic01",
            2.0,
            0,
            PIXELS,
            [
                [round(b / 4) for b in range(256)],
                [min(127, round(b / 2)) for b in range(256)],
                [min(127, round(b - 0.5)) for b in range(256)],
            ],
            (2, 1, 0),
        ),
    ],
)
def test_stored_values_of_bytes(benchmark, scale, zero, pixels, tables, order):
    """The first three are the int8 files of MLPerf Tiny: the byte, or the byte - 128. Computed by hand, ties to even."""
    graph = SimpleNamespace(user_inputs=["x"], type=lambda name: NumType(8, scale=scale, zero_point=zero, full=True))
    request = SimpleNamespace(contract=InputContract(pixels=pixels), graph=graph)
    view = BenchmarkView(BENCHMARKS[benchmark], request)  # type: ignore[arg-type]
    assert view.tables == tuple(", ".join(map(str, table)) for table in tables) and view.order == order
