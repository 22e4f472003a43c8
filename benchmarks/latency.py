"""Times exports against other runtimes on the same networks, interleaved, and prints a Markdown table.

    python benchmarks/latency.py [-threads 1 2] [-rounds N] [-peers PYTHON] [-plot FILE] [-instructions]
                                 [-float] [NET.ini[=QDQ.onnx] ...]

Without names: the networks of tests/networks that have a quantized twin in N2D2_MODELS; a folder is an export that is
built already. Each network is exported by the command `n2d2py`, built by `make`, and timed by `bin/run_export -bench`; the
peers run the twin (QDQ, int8, weights per channel), or, given a float ONNX file, what onnxruntime.quantization makes of it.
PYTHON is an interpreter that has the peers: onnxruntime, openvino, ai_edge_litert (with onnx; it takes the .tflite file beside
the twin, or one that benchmarks/litert_model.py makes of the twin), MNN (a .mnn file beside it), ncnn (.param and .bin, or with
pnnx what that makes of a float model), Aidge (one thread; its own int8 C++ export, which benchmarks/aidge_model.py makes of the
float model beside the twin). Those that it lacks are left out. onnxruntime-exact is ONNX Runtime with
session.x64quantprecision=1: without a dot product instruction its sums of products saturate otherwise. benchmarks/classifiers.py writes larger networks.

Every round times each runtime for a moment, one after the other, and takes its fastest inference. A ratio is the median
over the rounds of peer / export in the same round: a busy machine slows both. The milliseconds are medians of the rounds.
-float exports in float32 (-nbbits -32); the peers run the float model beside the twin (its name without _qdq).
-instructions counts those of one inference of the export with valgrind, which does not depend on other load (valgrind knows
no AVX-512). -plot draws the ratios.
"""

from __future__ import annotations

import argparse
import atexit
import importlib.util
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from common import MOMENT, ROOT, bench, build, export_words, in_turns, input_shapes, machine, ratio, row, run_tool, session
from static_quantization import write_static


# ---- peers: run in an interpreter of their own -------------------------------------------------
def _onnxruntime(model: str, threads: int, exact: bool = False):
    import numpy as np

    run = session(Path(model), True, threads, exact)
    feeds = {
        port.name: np.zeros(
            [size if isinstance(size, int) else 1 for size in port.shape],
            {"float": "float32"}.get(port.type[7:-1], port.type[7:-1]),
        )
        for port in run.get_inputs()
    }
    return lambda: run.run(None, feeds)


def _onnxruntime_exact(model: str, threads: int):
    if "qdq" not in Path(model).stem:
        raise ValueError("the mode is for integers")
    return _onnxruntime(model, threads, exact=True)


def _openvino(model: str, threads: int):
    import numpy as np
    import openvino

    core = openvino.Core()
    network = core.read_model(model)
    network.reshape(
        {port.any_name: [size.get_length() if size.is_static else 1 for size in port.partial_shape] for port in network.inputs}
    )
    compiled = core.compile_model(
        network, "CPU", {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
    )
    request = compiled.create_infer_request()
    for index, port in enumerate(compiled.inputs):
        request.set_input_tensor(index, openvino.Tensor(np.zeros(list(port.shape), port.element_type.to_dtype())))
    return request.infer


def _litert(model: str, threads: int):
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter
    from litert_model import write_litert

    path = Path(model).with_suffix(".tflite")
    if not path.is_file():
        folder = Path(tempfile.mkdtemp())
        atexit.register(shutil.rmtree, folder)
        path = write_litert(Path(model), folder / path.name)
    interpreter = Interpreter(model_path=str(path), num_threads=threads)
    interpreter.allocate_tensors()
    for port in interpreter.get_input_details():
        interpreter.set_tensor(port["index"], np.zeros(port["shape"], port["dtype"]))
    return interpreter.invoke


def _mnn(model: str, threads: int):
    import MNN.expr as expr
    import MNN.nn as nn
    import numpy as np

    manager = nn.create_runtime_manager(({"backend": "CPU", "numThread": threads},))
    network = nn.load_module_from_file(str(Path(model).with_suffix(".mnn")), [], [], runtime_manager=manager)
    feeds = [expr.const(np.zeros(port.shape, np.float32), port.shape, expr.NCHW) for port in network.get_info()["inputs"]]
    return lambda: [output.read() for output in network.forward(feeds)]


def _ncnn(model: str, threads: int):
    import ncnn
    import numpy as np

    path = Path(model)
    (shape,) = input_shapes(path).values()
    network = ncnn.Net()
    network.opt.num_threads = threads
    if path.with_suffix(".param").is_file():
        files = path.with_suffix(".param"), path.with_suffix(".bin")
    else:
        files = _to_ncnn(path, shape)
    if network.load_param(str(files[0])) or network.load_model(str(files[1])):
        raise FileNotFoundError(files[0])
    feed = ncnn.Mat(np.zeros(shape[1:], np.float32))

    def run():
        extractor = network.create_extractor()
        extractor.input(network.input_names()[0], feed)
        return extractor.extract(network.output_names()[0])

    return run


def _aidge(model: str, threads: int):
    import ctypes

    import numpy as np
    from aidge_model import write_aidge

    path = float_twin(Path(model))
    if path == Path(model) or threads > 1:  # its parallel regions, one for each loop, need idle cores to say anything
        raise ValueError("the export is in integers and timed on one thread")
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    forward = ctypes.CDLL(str(write_aidge(path, folder / "network.so"))).model_forward
    (shape,) = input_shapes(path).values()
    feed = np.zeros(shape, np.int8)
    arguments = ctypes.c_void_p(feed.ctypes.data), ctypes.byref(ctypes.c_void_p())
    return lambda: (feed, forward(*arguments))


def float_twin(model: Path) -> Path:
    """The float model beside a quantized one: its name without _qdq."""
    return model.with_name(re.sub(r"_qdq(_u8)?$", "", model.stem) + ".onnx")


def _to_ncnn(model: Path, shape: list[int]) -> tuple[Path, Path]:
    """The files that the program in the package pnnx makes of a float model. Raises ValueError without it, or for a QDQ model."""
    package = importlib.util.find_spec("pnnx")
    if package is None or "qdq" in model.stem:
        raise ValueError("pnnx is not installed, or the model is not a float one")
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    shutil.copy(model, folder / "model.onnx")
    program = Path(package.origin).with_name("pnnx")
    words = [program, "model.onnx", f"inputshape={shape}".replace(" ", ""), "fp16=0"]
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder / "model.ncnn.param", folder / "model.ncnn.bin"


PEERS = {
    "onnxruntime": _onnxruntime,
    "onnxruntime-exact": _onnxruntime_exact,
    "openvino": _openvino,
    "litert": _litert,
    "mnn": _mnn,
    "ncnn": _ncnn,
    "aidge": _aidge,
}


def fastest(run: Callable[[], object]) -> float:
    """Seconds of the fastest inference within MOMENT."""
    times, stop = [], time.perf_counter() + MOMENT
    while time.perf_counter() < stop:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def worker(peer: str, model: str, threads: int) -> None:
    """Answers every line of the standard input with the seconds of the fastest inference within MOMENT."""
    run = PEERS[peer](model, threads)
    for _ in range(5):
        run()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(fastest(run), flush=True)


class Peer:
    """A runtime in a process of its own; `name` is None when it does not run here.

    oneDNN (OpenVINO) may choose AMX where the system does not let it, hence the second try without.
    """

    def __init__(self, python: str, name: str, model: Path, threads: int):
        command = [python, __file__, "-worker", name, str(model), str(threads)]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        for limits in ({}, {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_VNNI"}):
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={**environment, **limits},
            )
            self.name = name if self._answer() == "ready" else None
            if self.name is not None:
                break

    def _answer(self) -> str:
        for line in self.process.stdout:
            return line.strip()
        return ""

    def seconds(self) -> float:
        """The fastest inference of one moment."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self._answer())

    def close(self) -> None:
        """Ends the process."""
        self.process.stdin.close()
        self.process.wait()


# ---- this project ------------------------------------------------------------------------------
def export(network: Path, folder: Path, real: bool) -> Path:
    """The built export of a network, in integers of 8 bits or in float32."""
    bits, name = ("-32", "float32") if real else ("8", "int8")
    run_tool(export_words(network, folder, f"-nbbits {bits} -calib 10 -db-export 4"))
    return build(folder / f"export_CPP_{name}")


def instructions(folder: Path) -> int | None:
    """Instructions of one inference of an export on one thread, the same in every run; None where valgrind does not run or find it.

    Those of two inferences less those of one, so that what happens once does not count; beside the network nothing is collected.
    """
    tool = (
        "valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=*_forward_raw bin/run_export -bench".split()
    )
    counts = []
    for repetitions in (1, 2):
        try:
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            done = subprocess.run([*tool, str(repetitions)], cwd=folder, env=environment, capture_output=True, text=True)
        except FileNotFoundError:
            return None
        found = re.search(r"Collected : (\d+)", done.stderr)
        if done.returncode or not found:
            return None
        counts.append(int(found[1]))
    return counts[1] - counts[0] or None


def plot(table: list[list[str]], path: Path, numbers: str) -> None:
    """The ratios as bars, one group for each network and number of threads."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    groups = list(dict.fromkeys((row[0], row[1]) for row in table))
    peers = list(dict.fromkeys(row[2] for row in table))
    ratios = {(row[0], row[1], row[2]): float(row[5]) for row in table}
    figure, axes = pyplot.subplots(figsize=(max(6.4, 1.5 + 1.1 * len(groups)), 4))
    width = 0.8 / len(peers)
    for i, peer in enumerate(peers):
        values = [ratios.get((*group, peer), 0.0) for group in groups]
        bars = axes.bar([g + i * width for g in range(len(groups))], values, width, label=peer)
        axes.bar_label(bars, [f"{value:.1f}" if value else "" for value in values], fontsize=7)
    axes.axhline(1, color="black", linewidth=0.8)
    names = [f"{name}\n{threads} thread{'s' if threads != '1' else ''}" for name, threads in groups]
    axes.set_xticks([g + width * (len(peers) - 1) / 2 for g in range(len(groups))], names, fontsize=7)
    axes.set_ylabel("time of the runtime / time of the export")
    axes.set_title(f"One inference, batch 1, {numbers} (above 1: the export is faster)", fontsize=9)
    axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def quantized(model: Path, folder: Path) -> Path:
    """The network quantized by onnxruntime.quantization: int8, per channel, random calibration data."""
    import numpy as np

    samples = [
        {name: np.random.default_rng(seed).random(shape, np.float32) for name, shape in input_shapes(model).items()}
        for seed in range(4)
    ]
    result = folder / f"{model.stem}_qdq.onnx"
    write_static(model, result, samples, activations="QInt8")
    return result


def rows(name: str, folder: Path, model: Path, python: str, threads: int, rounds: int) -> list[list[str]]:
    """One row per peer."""
    peers = [peer for peer in (Peer(python, peer, model, threads) for peer in PEERS) if peer.name]
    count = max(5, int(MOMENT / bench(folder, threads, 5)))
    works = {"": lambda: bench(folder, threads, count), **{peer.name: peer.seconds for peer in peers}}
    theirs = in_turns(works, rounds)
    ours = theirs.pop("")
    for peer in peers:
        peer.close()
    return [
        [
            name,
            str(threads),
            peer,
            f"{1e3 * statistics.median(times):.3f}",
            f"{1e3 * statistics.median(ours):.3f}",
            f"{ratio(times, ours):.2f}",
        ]
        for peer, times in theirs.items()
    ]


def _known() -> list[tuple[Path, Path]]:
    """The networks of the repository that have a quantized twin."""
    models = Path(os.environ.get("N2D2_MODELS", "."))
    twins = {
        path: next(iter(sorted(models.glob(f"{path.stem}*_qdq.onnx"))), None)
        for path in sorted((ROOT / "tests" / "networks").glob("*.ini"))
    }
    return [(path, twin) for path, twin in twins.items() if twin is not None]


def main() -> None:
    if sys.argv[1:2] == ["-worker"]:
        worker(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*")
    parser.add_argument("-threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("-rounds", type=int, default=15)
    parser.add_argument("-peers", default=sys.executable, metavar="PYTHON")
    parser.add_argument("-plot", type=Path)
    parser.add_argument("-float", action="store_true", dest="real")
    parser.add_argument("-instructions", action="store_true")
    arguments = parser.parse_args()
    given = [(Path(text.partition("=")[0]).resolve(), text.partition("=")[2]) for text in arguments.networks]
    print(f"Machine: {machine()}.\n")
    table = []
    print("| network | threads | peer | peer ms | export ms | peer / export |\n|---|---:|---|---:|---:|---:|")
    for network, model in given or _known():
        with tempfile.TemporaryDirectory() as name:
            built = network if network.is_dir() else export(network, Path(name), arguments.real)
            twin = Path(model)
            if arguments.real:
                twin = float_twin(twin)
            elif "qdq" not in twin.stem:
                twin = quantized(twin, Path(name))
            for threads in arguments.threads:
                title = network.name if network.is_dir() else network.stem
                for line in rows(title, built, twin, arguments.peers, threads, arguments.rounds):
                    table.append(line)
                    row(*line)
            if arguments.instructions:
                count = instructions(built)
                row(network.stem, "1", "instructions", "", "-" if count is None else f"{count:,}", "")
    if arguments.plot and table:
        plot(table, arguments.plot, "float32" if arguments.real else "int8")


if __name__ == "__main__":
    main()
