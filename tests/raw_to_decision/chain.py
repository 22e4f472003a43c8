"""Raw images and sounds through exports: input, outputs and detections of every build against Python's integers.

A program, probe.c, links an export, reads the cases from a file and writes what each stage makes of them.
"""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from PIL import Image
from support.audio_cases import sounds, write_model, write_wav
from support.board_export import core
from support.detection_cases import save_detector
from support.onnx_models import text_model

from n2d2py.arithmetic.frame import FILTERS, FrameSource
from n2d2py.arithmetic.pixel_formats import FORMATS
from n2d2py.cli import main
from n2d2py.exports.cpp.processors import TARGETS, cpu_info
from n2d2py.exports.mcu.boards import board
from n2d2py.graph.inputs import InputContract
from n2d2py.postprocessing import parse_post
from n2d2py.runtime import Network, load_simulator

WIDE = ("x86-64-v4",) if "avx512_vnni" in cpu_info("flags").split() else ()  # this machine can run it
HOSTS = ("x86-64", "x86-64-v2", "x86-64-v3", *WIDE, "wasm32", "wasm32-simd")
BOARDS = ("cortex-m4", "cortex-m55", "rv32imc")
EXACT = ["-act-rescaling-mode", "Fixed-point-p32", "-quality", "fast", "-quiet"]
PROBE = Path(__file__).with_name("probe.c")
AUDIO = (
    "mfcc:mels=20,coefficients=8,rate=8000,window=32ms,hop=16ms",
    "log_mel:preset=kaldi,mels=8,rate=16000",
    "pcen:mels=8,time_constant=0.1",
    "log_mel:preset=tflm,mels=8",
)


@dataclass(frozen=True)
class RawCases:
    """A network with its options, and the raw samples that it gets.

    Attributes:
        model: kind of the network: "image", "detector" or "sound".
        words: options of the export.
        raw: images (H, W, 3), bytes, or sounds (n,), int16.
        pieces: samples of a sound that the program passes at a time, or bytes after each line of an image.
    """

    model: str
    words: tuple[str, ...]
    raw: list[np.ndarray]
    pieces: list[int]


def picture(rng: np.random.Generator, least: int, most: int) -> np.ndarray:
    """A photograph-like image of random size and contrast."""
    wide, high = (int(side) for side in rng.integers(least, most, 2))
    low, top = sorted(rng.integers(0, 257, 2).tolist())
    coarse = rng.integers(low, max(top, low + 1), (int(rng.integers(1, 9)), int(rng.integers(1, 9)), 3), np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((wide, high), Image.Resampling.BICUBIC))


def draw(images: int, heard: int, detected: int, seed: int) -> Iterator[RawCases]:
    """`images` pictures over all formats and filters, `heard` sounds, and `detected` pictures for a detector."""
    rng = np.random.default_rng(seed)
    for number, form in enumerate(FORMATS):
        part = range(number * images // len(FORMATS), (number + 1) * images // len(FORMATS))
        if part:
            more = ((), ("-crop", "9x7"), ("-mean", "0.4", "-std", "0.3"), ("-bgr",))[number % 4]
            words = ("-input-format", f"{form}:{FILTERS[(number + seed) % len(FILTERS)]}", *more)
            yield RawCases("image", words, [picture(rng, 10, 90) for _ in part], rng.integers(0, 9, len(part)).tolist())
    for number, text in enumerate(AUDIO):
        part = range(number * heard // len(AUDIO), (number + 1) * heard // len(AUDIO))
        if part:
            raw = [samples[: int(rng.integers(1, 6000))] for _, samples in sounds(len(part), 6000, seed + number)]
            yield RawCases("sound", ("-audio", text), raw, rng.integers(1, 900, len(part)).tolist())
    if detected:
        words = ("-input-format", "yuyv", "-post", "yolov8:threshold=0.6,iou=0.3,units=relative")
        raw = [picture(rng, 20, 120) for _ in range(detected)]
        yield RawCases("detector", words, raw, rng.integers(0, 9, detected).tolist())


def export(cases: RawCases, target: str, home: Path) -> Path:
    """The folder of the export of `target`."""
    rng, model = np.random.default_rng(7), home / "net.onnx"
    if cases.model == "image":
        weights = {"w": rng.normal(0, 0.3, (5, 3, 3, 3)).astype(np.float32)}
        body = "c = Conv (x, w) p = GlobalAveragePool (c) y = Flatten (p)"
        onnx.save(text_model("float[1,3,10,14] x => float[1,5] y", body, weights), model)
    elif cases.model == "sound":
        write_model(str(model), (1, 1, 12, 8))
    else:
        save_detector(str(model))
    data = home / "data"
    data.mkdir(exist_ok=True)
    for index, raw in enumerate(cases.raw[:8]):
        if raw.ndim == 1:
            write_wav(data / f"{index}.wav", raw, 8000 if "rate=8000" in cases.words[1] else 16000)
        else:
            Image.fromarray(raw).save(data / f"{index}.png")
    assert main([str(model), "-export", target, "-calib-data", str(data), *cases.words, *EXACT, "-o", str(home)]) == 0
    return home / f"export_{target}_int8"


def simulator(folder: Path) -> Network:
    """The export in Python's integers, with its conversion and post-processing."""
    details, network = json.loads((folder / "manifest.json").read_text())["details"], load_simulator(folder)
    network.contract = InputContract.of(details["contract"])
    if "post" in details:
        network.post = parse_post(details["post"]).bind(network.info.inputs, network.info.outputs, ())
    return network


def wanted(network: Network, raw: np.ndarray) -> bytes:
    """Stages of a raw sample in Python: stored input, stored outputs, stored detections in the frame."""
    source, size = network.contract.source, raw.shape[1::-1]
    if isinstance(source, FrameSource):
        x = network.from_frame(source.layout.encode(raw), size[0])
    else:
        x = network.from_audio(raw)
    outputs = [network.run_raw(x)]
    found = b""
    if network.post is not None:
        objects = network.detect(x, (size[0], size[1]))[0]
        rows = [[one.label, round(one.score * 65536), *(round(16 * side) for side in one[3:])] for one in objects]
        found = np.array([len(rows), *np.ravel(rows)], "<i4").tobytes()
    parts = [np.moveaxis(np.asarray(one), 1, -1) for one in (x, *outputs)]
    return b"".join(np.ascontiguousarray(one).astype(one.dtype.newbyteorder("<")).tobytes() for one in parts) + found


def write_cases(cases: RawCases, network: Network, path: Path) -> None:
    """The file that the program reads."""
    source, parts = network.contract.source, [np.array([len(cases.raw)], "<i4").tobytes()]
    for raw, piece in zip(cases.raw, cases.pieces, strict=True):
        if isinstance(source, FrameSource):
            lines = np.pad(source.layout.encode(raw), ((0, 0), (0, piece)), constant_values=9)
            parts += [np.array([raw.shape[1], raw.shape[0], lines.shape[1], lines.size], "<i4").tobytes(), lines.tobytes()]
        else:
            parts += [np.array([len(raw), piece, 0, 0], "<i4").tobytes(), raw.astype("<i2").tobytes()]
    path.write_bytes(b"".join(parts))


def run(*words: str | Path, folder: Path) -> None:
    """A command, whose output is shown when it fails."""
    done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stdout[-3000:]}"


def run_host(folder: Path, name: str, defines: list[str]) -> bytes:
    """The results of the program, built for a processor of `exports.cpp.isa`."""
    target = next(one for one in TARGETS if one.name == name)
    wasm = name.startswith("wasm")
    compiler = "clang++-16" if wasm else "g++"
    run("make", "-s", f"TARGET={name}", f"CXX={compiler}", "OPENMP=0", "OPT=-O1", "clean", folder=folder)
    run("make", "-s", f"TARGET={name}", f"CXX={compiler}", "OPENMP=0", "OPT=-O1", "lib", folder=folder)
    program = "bin/probe.wasm" if wasm else "bin/probe"
    (library,) = (folder / "lib").glob("*.a")
    (folder / "bin").mkdir(exist_ok=True)
    words = [
        compiler,
        *target.flags,
        "-O1",
        *defines,
        "-Iinclude",
        "-x",
        "c",
        PROBE,
        "-x",
        "none",
        library,
        "-lm",
        "-o",
        program,
    ]
    run(*words if wasm else [*words, "-no-pie"], folder=folder)
    run(*(("node", "run/wasi.mjs", program) if wasm else (f"./{program}",)), folder=folder)
    return (folder / "results.bin").read_bytes()


def run_board(folder: Path, name: str, defines: list[str]) -> bytes:
    """The results of the program on a board in QEMU."""
    one, place, program = core(name), Path("boards") / core(name).board, f"build/probe_{name}.elf"
    run("make", "-s", f"TARGET={name}", "lib", folder=folder)
    (library,) = (folder / "lib" / name).glob("lib*.a")
    flags = ["-std=c99", "-O1", *one.flags, "-nostartfiles", "-Wl,--gc-sections", "-T", place / "board.ld", "-DON_BOARD"]
    words = [place / "startup.c", PROBE, library, *one.link, "-lm", "-o", program]
    run(f"{one.prefix}gcc", *flags, *defines, "-Iinclude", "-Iboards", *words, folder=folder)
    emulator = board(one.board).emulator.split()
    quiet = ["-nographic", "-monitor", "none", "-serial", "none", "-semihosting-config", "enable=on,target=native,arg=test"]
    run(*emulator, *quiet, "-kernel", program, folder=folder)
    return (folder / "results.bin").read_bytes()


def compare(cases: RawCases, home: Path, hosts: tuple[str, ...] = HOSTS, boards: tuple[str, ...] = BOARDS) -> list[str]:
    """The builds whose stages differ from Python's, with the number of cases that do."""
    wrong = []
    for target, names, runs in (("CPP", hosts, run_host), ("CPP_MCU", boards, run_board)):
        if not names:
            continue
        folder = export(cases, target, home)
        network = simulator(folder)
        write_cases(cases, network, folder / "cases.bin")
        expected = [wanted(network, raw) for raw in cases.raw]
        prefix = json.loads((folder / "manifest.json").read_text())["details"]["namespace"]
        defines = [f"-DNET={prefix}", f'-DHEADER="{prefix}.h"', f"-D{cases.model.upper()}"]
        for name in names:
            (folder / "results.bin").unlink(missing_ok=True)
            found = runs(folder, name, defines)
            if found != b"".join(expected):
                wrong.append(f"{' '.join(cases.words)}: {name}: {_differences(found, expected)} of {len(expected)} differ")
    return wrong


def _differences(found: bytes, expected: list[bytes]) -> int:
    count = at = 0
    for one in expected:
        count += found[at : at + len(one)] != one
        at += len(one)
    return count
