"""`python tests/conformance/folder.py FOLDER`: every .onnx and .tflite file below a folder, compared with ONNX Runtime or LiteRT.

Each file is run in a process of its own, so that nothing stops the others. Its inputs are, in this order:
`test_data_set_*/input_*.pb` next to it (with `output_*.pb` as expected outputs), NAME.npz (arrays by the names of inputs, and of
outputs), `eval.npz` (x; `calib.npy` calibrates), else noise.
Where an error message proposes options, the file is read again with them, and -size for each `?`.

Columns: result is right; wrong (float beyond 1e-4 of the peer, a quantized .tflite file more than one step from it, or C++ that differs
from Python); refused (an error with a code); failed (another error, or the time is over); no peer (the file is imported, and ONNX
Runtime or LiteRT does not take it). All but right give status 1. float is the largest error of any output divided by its largest value; int8 the ratio of signal to error, of the
output that is worst, in dB (inf: equal; not judged), with what onnxruntime.quantization reaches on the same samples (QDQ, MinMax, a weight scale a channel). A
quantized .tflite file is compared with LiteRT's reference kernels: the largest number of steps. With -cpp both exports are
built, and every layer of them is compared with Python's. MB and s: peak memory and time of a bare float and int8 quantization.
"""

import argparse
import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "benchmarks")]

import n2d2py  # noqa: E402
from n2d2py.graph.port import plain_port  # noqa: E402
from n2d2py.operators.quantize import is_quantized  # noqa: E402
from n2d2py.results import Model, QuantizedModel  # noqa: E402
from n2d2py.runtime.base import TensorInfo  # noqa: E402

__all__ = ["find_cases", "run_apart"]

SAMPLES, CALIBRATED = 4, 8
_ALIVE: list[Any] = []
_PROPOSED = re.compile(r"\b(input_shape|constants|outputs)='?([^')]*)'?")
TOLERANCE = 1e-4
COLUMNS = ("result", "float", "int8", "peer", "C++", "MB", "s", "remark")


@dataclass
class Case:
    """A model with samples: `x` and `calibration` hold one array for each input, a sample in front, `expected` one for each output.

    `x` None: noise.
    """

    model: Path
    x: list[np.ndarray] | None = None
    calibration: list[np.ndarray] | None = None
    expected: list[np.ndarray] | None = None


@dataclass
class Peer:
    """ONNX Runtime or LiteRT on a file: the names, shapes (None: open) and types of its inputs, the names of its outputs."""

    names: list[str]
    shapes: list[list[int | None]]
    types: list[np.dtype]
    outputs: list[str]
    run: Callable[[list[np.ndarray]], list[np.ndarray]]
    grids: list[tuple[float, int]] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    reset: Callable[[], None] = lambda: None


def find_cases(folder: Path) -> list[Path]:
    """The models below `folder`, in the order of their names."""
    return sorted(path for path in folder.rglob("*") if path.suffix in (".onnx", ".tflite") and path.is_file())


def open_onnx(path: Path, constants: Mapping[str, float]) -> Peer:
    """The file on ONNX Runtime; the inputs `constants` always have one value."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    ports = [port for port in session.get_inputs() if port.name not in constants]
    names = [port.name for port in ports]
    types = {"tensor(float)": "f4", "tensor(double)": "f8", "tensor(float16)": "f2", "tensor(bool)": "?"}

    def dtype_of(port: Any) -> np.dtype:
        return np.dtype(types.get(port.type) or port.type[7:-1])

    fixed = {p.name: np.full(p.shape, constants[p.name], dtype_of(p)) for p in session.get_inputs() if p.name in constants}
    return Peer(
        names,
        [[size if isinstance(size, int) and size > 0 else None for size in port.shape] for port in ports],
        [dtype_of(port) for port in ports],
        [port.name for port in session.get_outputs()],
        lambda arrays: [np.asarray(y) for y in session.run(None, {**fixed, **dict(zip(names, arrays, strict=True))})],
    )


def open_tflite(path: Path) -> Peer:
    """The file on LiteRT with its reference kernels, axes as the import has them (N, C, H, W)."""
    from support.litert import Reference, channels_first

    try:
        reference = Reference(path)
    except (RuntimeError, ValueError):  # operators without a reference kernel
        reference = Reference(path, "BUILTIN_WITHOUT_DEFAULT_DELEGATES")
    interpreter = reference.interpreter

    def run(arrays: list[np.ndarray]) -> list[np.ndarray]:
        for port, values in zip(reference.inputs, arrays, strict=True):
            scale, zero = port["quantization"]
            if scale and port["dtype"] != np.float32:
                info = np.iinfo(port["dtype"])
                values = np.clip(np.rint(values / np.float32(scale)) + zero, info.min, info.max)
            if values.ndim == 4:
                values = values.transpose(0, 2, 3, 1)
            interpreter.set_tensor(port["index"], values.reshape(port["shape"]).astype(port["dtype"]))
        interpreter.invoke()
        found = []
        for port in reference.outputs:
            values, (scale, zero) = interpreter.get_tensor(port["index"]), port["quantization"]
            if scale and values.dtype != np.float32:
                values = (values.astype(np.float64) - zero) * scale
            found.append(channels_first(values))
        return found

    return Peer(
        [port["name"] for port in reference.inputs],
        [list(channels_first(np.zeros(port["shape"], bool)).shape) for port in reference.inputs],
        [np.dtype(port["dtype"]) for port in reference.inputs],
        [port["name"] for port in reference.outputs],
        run,
        [port["quantization"] for port in reference.inputs],
        [port["quantization"][0] for port in reference.outputs],
        interpreter.reset_all_variables,
    )


def samples_of(path: Path, peer: Peer) -> Case:
    """The case of a model, with the data that lie next to it."""
    sets = sorted(path.parent.glob("test_data_set_*")) if len(find_cases(path.parent)) == 1 else []
    if sets:
        from onnx import TensorProto, numpy_helper

        def read(what: str) -> list[np.ndarray]:
            files = sorted(sets[0].glob(f"{what}_*.pb"), key=lambda file: int(file.stem.rsplit("_", 1)[1]))
            return [numpy_helper.to_array(TensorProto.FromString(file.read_bytes()))[None] for file in files]

        return Case(path, read("input"), None, read("output") or None)
    if path.with_suffix(".npz").is_file():
        arrays = np.load(path.with_suffix(".npz"))
        expected = [arrays[name][None] for name in peer.outputs if name in arrays]
        return Case(path, [arrays[name][None] for name in peer.names], None, expected or None)
    files = [path.parent / name for name in ("eval.npz", "calib.npy")]
    if len(peer.names) == 1 and all(file.is_file() for file in files):
        x, calibration = np.load(files[0])["x"][:SAMPLES, None], np.load(files[1])[:, None]
        return Case(path, [x], [calibration])
    return Case(path)


def noise(infos: list[TensorInfo], peer: Peer, count: int, seed: int) -> list[np.ndarray]:
    """`count` samples of each input: normal values; small integers, pixels and truth values; the whole grid of a quantized one."""
    random, made = np.random.default_rng(seed), []
    for number, info in enumerate(infos):
        at = peer.names.index(info.name) if info.name in peer.names else number
        shape, kind, (scale, zero) = info.shape, peer.types[at], peer.grids[at] if peer.grids else (0.0, 0)
        if kind.kind == "f":
            values = random.normal(size=(count, *shape))
        elif scale:
            info = np.iinfo(kind)
            made.append(((random.integers(info.min, info.max + 1, (count, *shape)) - zero) * np.float32(scale)).astype("f4"))
            continue
        else:
            values = random.integers(0, {"b": 2, "u": 256}.get(kind.kind, 8), (count, *shape))
        made.append(values.astype(kind))
    return made


class PeerRefuses(Exception):
    """ONNX Runtime or LiteRT does not take a file that is imported."""


class Examined:
    """A file that was imported, with its peer."""

    def __init__(self, path: Path, size: int):
        self.path = path
        self.model, self.option = load(path, size)
        chosen = re.search(r"-constants (\S+)", self.option)
        pairs = [pair.split(":") for pair in chosen[1].split(",")] if chosen else []
        self.constants = {name: float(value) for name, value in pairs}
        try:
            self.peer = open_onnx(path, self.constants) if path.suffix == ".onnx" else open_tflite(path)
        except Exception as error:  # neither has a class of its own for errors
            raise PeerRefuses(f"the peer refuses the file: {str(error)[:100]}") from error
        _ALIVE.append(self.peer)
        infos, graph, peer = self.model.info.inputs, self.model.graph, self.peer
        known = {*graph.state_outputs, *(info.name for info in self.model.info.outputs)}
        renamed = (at for at, name in enumerate(peer.outputs) if name not in known)  # copies in the file
        self.states = {
            state: peer.outputs.index(result) if result in peer.outputs else next(renamed)
            for state, result in zip(graph.state_inputs, graph.state_outputs, strict=True)
            if result in peer.outputs or peer.names.count(state)
        }
        self.is_stream = graph.states > 0
        fed = [name for name in peer.names if name not in self.states]
        named = {info.name: info for info in infos}
        self.infos = [named.get(name, info) for name, info in zip(fed, infos, strict=True)]  # names of translated files differ
        self.outputs = [at for at in range(len(peer.outputs)) if at not in self.states.values()]
        case = samples_of(path, peer)
        self.x = self._declared(case.x or noise(self.infos, peer, SAMPLES, 1))
        self.calibration = self._declared(case.calibration or noise(self.infos, peer, CALIBRATED, 2))
        self.wanted = case.expected or self.by(peer)

    def _declared(self, arrays: list[np.ndarray]) -> list[list[np.ndarray]]:
        """The samples, each with the axes that the file declares; a fixed first axis may hold several."""
        shaped = [array.reshape(-1, *info.shape) for array, info in zip(arrays, self.infos, strict=True)]
        return [list(sample) for sample in zip(*shaped, strict=True)]

    def by(self, peer: Peer) -> list[np.ndarray]:
        """Every output of the peer for the samples, which are the calls of a stream where the network has states."""
        results, states = [], self._first_states()
        for number, sample in enumerate(self.x):
            if number == 0 or not self.is_stream:
                peer.reset()
            given = map(np.asarray, sample)
            feeds = [states[name] if name in states else next(given) for name in peer.names]
            found = peer.run([_whole_batch(values, shape) for values, shape in zip(feeds, peer.shapes, strict=True)])
            states = {name: found[at] for name, at in self.states.items()}
            infos = self.model.info.outputs
            results.append([_filled(found[at], prod(info.shape)) for at, info in zip(self.outputs, infos, strict=True)])
        return [np.stack(each) for each in zip(*results, strict=True)]

    def _first_states(self) -> dict[str, np.ndarray]:
        ports = zip(self.peer.names, self.peer.shapes, self.peer.types, strict=True)
        return {name: np.zeros([size or 1 for size in shape], kind) for name, shape, kind in ports if name in self.states}

    def run(self, network: Model | QuantizedModel) -> list[np.ndarray]:
        """Every output of a network for the samples, (samples, elements)."""
        arrays = self._stacked(self.x)
        found = network(*(arrays[info.name] for info in network.info.inputs))
        results = found if isinstance(found, tuple) else (found,)
        axes = [info.port.axis or 0 if info.port else 0 for info in network.info.outputs]
        return [np.moveaxis(y, axis, 0).reshape(len(self.x), -1) for y, axis in zip(results, axes, strict=True)]

    def calibrated(self) -> QuantizedModel:
        """The integers."""
        return n2d2py.quantize(self.model, n2d2py.calibrate(self.model, self._stacked(self.calibration)), bits=8)

    def _stacked(self, samples: list[list[np.ndarray]]) -> dict[str, np.ndarray]:
        """Samples side by side in the axes of the file, by the names of inputs."""
        data = {}
        for at, info in enumerate(self.infos):
            port = info.port or plain_port(info.stored)
            parts = [port.samples(sample[at], info.stored) for sample in samples]
            data[info.name] = port.array(np.concatenate([part for part in parts if part is not None]), False)
        return data

    def steps(self, network: QuantizedModel) -> str:
        """The largest difference of an output, in steps of its grid; in dB where the peer gives real numbers."""
        if not self.peer.steps:
            return decibels(self.run(network), self.wanted)
        apart = zip(self.run(network), self.wanted, self.peer.steps, strict=True)
        return f"{max(float(np.abs(y.reshape(z.shape) - z).max() / step) for y, z, step in apart):.0f} steps"

    def peer_int8(self) -> str:
        """What ONNX Runtime's static quantization reaches, in dB."""
        from static_quantization import write_static  # pyright: ignore[reportMissingImports]  (benchmarks/)

        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "int8.onnx"
            states = self._first_states()
            names = [name for name in self.peer.names if name not in states]
            stimuli = [dict(zip(names, sample, strict=True)) | states for sample in self.calibration]
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    write_static(self.path, made, stimuli, activations="QInt8")
                return decibels(self.by(open_onnx(made, self.constants)), self.wanted)
            except Exception as error:  # its quantizer does not take every file
                return type(error).__name__


def _whole_batch(values: np.ndarray, shape: list[int | None]) -> np.ndarray:
    """A sample for each of the places of a fixed batch."""
    several = values.ndim == len(shape) > 0 and shape[0] and shape[0] % len(values) == 0
    return np.repeat(values, shape[0] // len(values), axis=0) if several else values


def _filled(values: np.ndarray, size: int) -> np.ndarray:
    """The first sample of a batch; of fewer lines than there may be, such as boxes of NonMaxSuppression, with NaN or -1 for the others."""
    missing = size - values.size
    if missing <= 0:
        return values if missing == 0 else values.reshape(-1)[:size]
    return np.concatenate([values.reshape(-1), np.full(missing, np.nan if values.dtype.kind == "f" else -1, values.dtype)])


def load(path: Path, size: int) -> tuple[Model, str]:
    """The import, and the options that the message of a first attempt proposes; `size` for each `?` of them."""
    try:
        return n2d2py.load(path), ""
    except n2d2py.N2D2Error as error:
        options = {name: value.replace("?", str(size)) for name, value in reversed(_PROPOSED.findall(str(error)))}
        if not options:
            raise
    words = (f"-{name.replace('_', '-')} {value}" for name, value in options.items())
    return n2d2py.load(path, options=n2d2py.LoadOptions(**options)), " ".join(words)


def largest_error(found: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """The largest error of an output, divided by its largest magnitude."""
    errors = [0.0]
    for y, z in zip(found, wanted, strict=True):
        y, z = (values.reshape(z.shape).astype(np.float64) for values in (y, z))
        y[np.isnan(z)], z[np.isnan(z)] = 0, 0  # lines that the peer does not have
        errors.append(float(np.abs(y - z).max(initial=0) / max(np.abs(z).max(initial=0), 1e-30)))
    return max(errors)


def decibels(found: list[np.ndarray], wanted: list[np.ndarray]) -> str:
    """The ratio of signal to error of the worst output."""
    ratios = []
    for y, z in zip(found, wanted, strict=True):
        error = np.nansum((y.reshape(z.shape).astype(np.float64) - z) ** 2)
        signal = np.nansum(z.astype(np.float64) ** 2)
        with np.errstate(divide="ignore"):
            ratios.append(10 * (np.log10(signal) - np.log10(error)) if error else np.inf)
    return f"{min(ratios):.1f} dB"


def examine(path: Path, size: int, with_cpp: bool, with_int8: bool) -> dict[str, str]:
    """The row of a file; what goes wrong is its remark."""
    row = {"result": "right"}
    try:
        one = Examined(path, size)
        row["remark"] = one.option
        integers = is_quantized(one.model.graph)
        if not integers:
            error = largest_error(one.run(one.model), one.wanted)
            row["float"] = f"{error:.1e}"
            if not error <= max(TOLERANCE, *(np.finfo(y.dtype).eps for y in one.wanted if y.dtype == np.float16), 0.0):
                row["result"] = "wrong"
        if with_int8 or integers:
            quantized = one.calibrated()
            in_steps = integers and one.peer.steps and all(one.peer.steps)
            row["int8"] = one.steps(quantized) if in_steps else decibels(one.run(quantized), one.wanted)
            if in_steps and float(row["int8"].split()[0]) > 1:
                row["result"] = "wrong"
            if path.suffix == ".onnx" and not integers:
                row["peer"] = one.peer_int8()
            if with_cpp:
                with tempfile.TemporaryDirectory() as folder:
                    same = n2d2py.compare(n2d2py.export(quantized, "CPP", folder=folder), 2).identical
                row |= {"C++": "same"} if same else {"C++": "DIFFERS", "result": "wrong"}
    except Exception as error:  # whatever goes wrong is a finding
        text = " ".join(str(error).split("\n")[:1])
        coded = text.startswith("N2D2-E") and not text.startswith("N2D2-E099")
        row["result"] = "no peer" if isinstance(error, PeerRefuses) else "refused" if coded else "failed"
        row["remark"] = text if coded or isinstance(error, PeerRefuses) else f"{type(error).__name__}: {text}"
    return row


def run_apart(path: Path, words: list[str], limit: float) -> dict[str, str]:
    """The row of a file, examined by this program in a process of its own, with its time and peak memory."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as printed, tempfile.NamedTemporaryFile() as made:
        command = [sys.executable, __file__, str(path), "-row", made.name, *words]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=printed, start_new_session=True)
        clock = threading.Timer(limit, os.killpg, (child.pid, signal.SIGKILL))  # with its compilers
        clock.start()
        try:
            _, status, usage = os.wait4(child.pid, 0)
        finally:
            clock.cancel()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        written = made.read()
        printed.seek(0)
        last = printed.read().decode(errors="replace").strip().splitlines()[-1:]
    seconds = time.perf_counter() - start
    if written:
        row = json.loads(written)
    else:
        code = os.waitstatus_to_exitcode(status)
        ended = (
            f"stopped after {limit:g} s (-limit)" if seconds >= limit else f"ended with status {code}: {''.join(last)[:200]}"
        )
        row = {"result": "failed", "remark": ended}
    return row | {"MB": f"{usage.ru_maxrss / 1024:.0f}", "s": f"{seconds:.1f}"}


def main() -> int:
    """Print the table; status 1 where a file is not right, 2 where there is none."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path, help="folders, or model files")
    parser.add_argument("-size", type=int, default=64, help="for each size that a file leaves open")
    parser.add_argument("-limit", type=float, default=600, help="seconds for one file")
    parser.add_argument("-float", action="store_true", help="no integers")
    parser.add_argument("-cpp", action="store_true", help="build the integer export and compare every layer")
    parser.add_argument("-row", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.row:
        given.row.write_text(json.dumps(examine(given.paths[0], given.size, given.cpp, not given.float)))
        os._exit(0)  # LiteRT crashes when it frees some files
    cases = [(top, path) for top in given.paths for path in (find_cases(top) if top.is_dir() else [top])]
    if not cases:
        parser.error("no .onnx or .tflite file below " + ", ".join(map(str, given.paths)))
    words = ["-size", str(given.size), *["-float"] * given.float, *["-cpp"] * given.cpp]
    print("| file | " + " | ".join(COLUMNS) + " |\n|" + "---|" * (1 + len(COLUMNS)))
    results = Counter()
    for top, path in cases:
        row = run_apart(path, words, given.limit)
        results[row["result"]] += 1
        cells = [str(row.get(name, "")).replace("|", "/") for name in COLUMNS]
        print(f"| {path.relative_to(top) if path != top else path.name} | " + " | ".join(cells) + " |", flush=True)
    print(f"\n{len(cases)} files: " + ", ".join(f"{count} {result}" for result, count in results.most_common()))
    return int(results["right"] < len(cases))


if __name__ == "__main__":
    raise SystemExit(main())
