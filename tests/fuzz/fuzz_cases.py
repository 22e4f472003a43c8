"""The cases: from a seed and a number, a kind of file, a sound one of it, and the steps that damage it."""

import gzip
import io
import random
import shutil
import struct
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from fuzz_models import models, node_tests, tflite_models
from fuzz_mutators import NAMES, damage_bytes, damage_model, damage_text, damage_words

from n2d2py.entry_points import targets

__all__ = ["Case", "Stock", "draw", "shrunk"]

ROOT = Path(__file__).resolve().parents[2]
Mutator = Callable[[bytes, random.Random], bytes]

NETWORK = """[database]
Type=Random_Database

[sp]
SizeX=8
SizeY=8
NbChannels=3

[conv]
Input=sp
Type=Conv
KernelDims=3 3
NbOutputs=4
Stride=2
ActivationFunction=Rectifier

[pool]
Input=conv
Type=Pool
Pooling=Max
PoolDims=2 2
NbOutputs=4
Mapping.Size=1

[fc]
Input=pool
Type=Fc
NbOutputs=10
"""
IMPORTED = NETWORK.replace("Input=sp", "Input=onnx") + "\n[onnx]\nInput=sp\nType=ONNX\nFile=part.onnx\nIgnore=nothing\n"
DATABASES = {
    "folder": "[database]\nType=DIR_Database\nDataPath=.\nLearn=0.5\nDepth=-1\n",
    "idx": "[database]\nType=MNIST_IDX_Database\nDataPath=.\n",
    "cifar": "[database]\nType=CIFAR10_Database\nDataPath=.\n",
}
PARAMETERS = b"""MemoryManagerStrategy = OptimizeOverlap
MemoryAlignment = 16
IncludeInputInBuffer = 1
OutputDimensionsLast = 0
[conv]
NbBits = 16
Tile = 4 4
[fc]
Winograd = 0
"""
KINDS = {"ini": 26, "onnx": 42, "array": 12, "parameters": 5, "simulator": 8}
"""Weights of the kinds."""
if find_spec("ai_edge_litert"):  # its schema writes the sound files
    KINDS["tflite"] = 12
EXPORTS = ("CPP", "NVDLA") if "NVDLA" in targets() else ("CPP",)
if "NVDLA" in EXPORTS:
    KINDS["loadable"] = 7


@dataclass(frozen=True)
class Case:
    """One run: the sound files by name, the one that is damaged by `steps` (seeds of `mutator`), the command.

    `command` names the program first: "n2d2py", "n2d2py-nvdla" or "simulator", which loads and runs a folder.
    """

    name: str
    files: tuple[tuple[str, bytes], ...]
    damaged: str
    mutator: Mutator
    steps: tuple[str, ...]
    command: tuple[str, ...]

    def write(self, folder: Path) -> None:
        """Puts the files into `folder`, one of them damaged."""
        for name, data in self.files:
            for step in self.steps if name == self.damaged else ():
                data = self.mutator(data, random.Random(step))
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def run(self) -> int:
        """The command, in the current folder; the exit status."""
        program, *words = self.command
        if program == "simulator":
            return _simulate(words[0])
        if program == "n2d2py-nvdla":
            from n2d2py_nvdla.cli import main as nvdla

            return nvdla(words)
        from n2d2py.cli import main

        return main(words)


def _simulate(folder: str) -> int:
    """Loads the simulator of an export and runs it on zeros, as a script would."""
    from n2d2py import load_simulator, log
    from n2d2py.errors import N2D2Error

    log.setup()
    try:
        network = load_simulator(folder)
        network(*(np.zeros((2, *port.shape[1:]), np.float32) for port in network.info.inputs))
        return 0
    except N2D2Error as error:
        log.report_error(error)
        return 1


def shrunk(case: Case, fails: Callable[[Case], bool]) -> Case:
    """The same failure with as few steps of damage as possible."""
    for step in case.steps:
        less = replace(case, steps=tuple(other for other in case.steps if other != step))
        if fails(less):
            case = less
    return case


class Stock:
    """The sound files that cases start from, made once."""

    def __init__(self, with_node_tests: bool):
        self.models = models() + (node_tests() if with_node_tests else [])
        self.inis = [("network", NETWORK), ("imported", IMPORTED)]
        for path in sorted([*ROOT.glob("models/*.ini"), *ROOT.glob("tests/*/*.ini")]):
            self.inis.append((path.stem, path.read_text(encoding="utf-8")))
        self.templates = {path.name: path.read_bytes() for path in sorted(ROOT.glob("models/*.tpl"))}
        self.export, self.loadables = {}, {}
        with tempfile.TemporaryDirectory(prefix="n2d2py-fuzz-") as name:
            self._exports(Path(name))

    def _exports(self, folder: Path) -> None:
        """An export, and loadables of two configurations, of the small network."""
        from n2d2py import log
        from n2d2py.cli import main

        network = folder / "net.ini"
        network.write_text(NETWORK)
        for kind in EXPORTS:
            if main([str(network), "-seed", "1", "-export", kind, "-calib", "2", "-quiet", "-o", str(folder / kind)]):
                raise SystemExit(f"the sound network cannot be exported as {kind}")
        log.setup()
        self.export = _under(folder / "CPP")
        self.loadables = {name: data for name, data in _under(folder / "NVDLA").items() if name.endswith(".nvdla")}
        shutil.rmtree(folder / "CPP")

    def case(self, seed: int, number: int, kinds: Sequence[str] = tuple(KINDS)) -> Case:
        """Case `number` of `seed`."""
        choice = random.Random(f"{seed}:{number}")
        kind = choice.choices(list(kinds), [KINDS[kind] for kind in kinds])[0]
        steps = tuple(f"{seed}:{number}:{step}" for step in range(choice.choice((1, 1, 1, 2, 2, 3, 5))))
        name, files, damaged, mutator, command = getattr(self, f"_{kind}")(choice)
        return Case(f"{kind} {name}", tuple(sorted(files.items())), damaged, mutator, steps, tuple(command))

    def _ini(self, choice: random.Random) -> tuple:
        small = choice.randrange(3) == 0
        name, text = choice.choice(self.inis[:2] if small else self.inis)
        files = {"net.ini": text.encode(), "part.onnx": self.models[0][1]}
        files.update({key: data for key, data in self.templates.items() if key in text})
        if choice.randrange(10) == 0 and len(files) > 2:
            damaged = choice.choice(sorted(set(files) - {"net.ini", "part.onnx"}))
        else:
            damaged = "net.ini"
        command = ["n2d2py", "net.ini", "-seed", "1", *(_export(choice) if small else ["-describe"])]
        return name, files, damaged, damage_text, command

    def _onnx(self, choice: random.Random) -> tuple:
        name, data = choice.choice(self.models[: len(models())] if choice.randrange(2) else self.models)
        command = ["n2d2py", "m.onnx", *(["-describe"] if choice.randrange(3) == 0 else _export(choice))]
        return name, {"m.onnx": data, "data.bin": bytes(4096)}, "m.onnx", damage_model, command

    def _tflite(self, choice: random.Random) -> tuple:
        name, data = choice.choice(tflite_models())
        command = ["n2d2py", "m.tflite", *(["-describe"] if choice.randrange(3) == 0 else _export(choice))]
        return name, {"m.tflite": data}, "m.tflite", choice.choice([damage_bytes, damage_words]), command

    def _array(self, choice: random.Random) -> tuple:
        name = choice.choice(["npy", "npz", "weights", "weights.npy", "folder", "idx", "cifar", "statistics"])
        files, command = {"net.ini": NETWORK.encode()}, ["n2d2py", "net.ini", "-seed", "1", "-export", "CPP", "-o", "o"]
        generator = np.random.default_rng(1)
        data = generator.random((4, 3, 8, 8), np.float32)
        if name == "npy":
            files["d.npy"] = _npy(data)
            return name, files, "d.npy", damage_bytes, [*command, "-calib", "-1", "-calib-data", "d.npy"]
        if name == "npz":
            files["d.npz"] = _npz(choice, x=data, y=np.arange(4))
            return name, files, "d.npz", damage_bytes, [*command, "-calib", "-1", "-calib-data", "d.npz"]
        weights = {
            "conv_weights": generator.random((4, 3, 3, 3), np.float32),
            "conv_bias": np.zeros(4, np.float32),
            "fc_weights": generator.random((10, 4), np.float32),
        }
        if name == "weights":
            files["w.npz"] = _npz(choice, **weights)
            return name, files, "w.npz", damage_bytes, [*command, "-calib", "2", "-w", "w.npz"]
        if name == "weights.npy":
            files.update({f"w/{key}.npy": _npy(array) for key, array in weights.items()})
            return name, files, f"w/{choice.choice(sorted(weights))}.npy", damage_bytes, [*command, "-calib", "2", "-w", "w"]
        if name == "statistics":
            files.update({key: data for key, data in self.export.items() if "simulator" not in key})
            files = {f"o/{key}" if key != "net.ini" else key: data for key, data in files.items()}
            damaged = next(key for key in files if key.endswith("statistics/calibration/statistics.npz"))
            return name, files, damaged, damage_bytes, [*command, "-calib", "2", "-calib-reload"]
        files["net.ini"] = (DATABASES[name] + NETWORK[NETWORK.index("[sp]") :]).encode()
        damaged = self._database(name, files, choice)
        return name, files, damaged, damage_bytes, [*command, "-calib", "-1"]

    @staticmethod
    def _database(name: str, files: dict[str, bytes], choice: random.Random) -> str:
        """Adds the files of a database; the one to damage."""
        if name == "folder":
            extension = choice.choice(["png", "jpeg", "bmp", "gif", "tiff", "ppm", "webp", "npy", "wav"])
            files["net.ini"] = files["net.ini"].replace(b"DataPath=.", b"DataPath=pictures")
            for index in range(4):
                files[f"pictures/{index % 2}/{index}.{extension}"] = _picture(extension, index)
            return f"pictures/0/0.{extension}"
        if name == "idx":
            files["net.ini"] = files["net.ini"].replace(b"NbChannels=3", b"NbChannels=1")
            for part, count in (("train", 8), ("t10k", 4)):
                images = struct.pack(">IIII", 0x803, count, 8, 8) + bytes(range(64)) * count
                labels = struct.pack(">II", 0x801, count) + bytes(count)
                files[f"{part}-images-idx3-ubyte"], files[f"{part}-labels-idx1-ubyte"] = images, labels
            damaged = choice.choice([key for key in files if "ubyte" in key])
            if choice.randrange(3) == 0:
                files[f"{damaged}.gz"] = gzip.compress(files.pop(damaged), mtime=0)
                damaged += ".gz"
            return damaged
        record = bytes(3073)
        for index in range(1, 6):
            files[f"data_batch_{index}.bin"] = record * 2
        files["test_batch.bin"] = record * 2
        return "data_batch_1.bin"

    def _loadable(self, choice: random.Random) -> tuple:
        name, data = choice.choice(sorted(self.loadables.items()))
        command = choice.choice([["check", "f.nvdla"], ["dump", "f.nvdla"], ["dump", "f.nvdla", "--json"], ["run", "f.nvdla"]])
        return f"{command[0]} {Path(name).name}", {"f.nvdla": data}, "f.nvdla", damage_bytes, ["n2d2py-nvdla", *command]

    def _parameters(self, choice: random.Random) -> tuple:
        name, data = choice.choice(
            [("small", PARAMETERS), *((p.stem, p.read_bytes()) for p in sorted(ROOT.glob("params/*.ini")))]
        )
        files = {"net.ini": NETWORK.encode(), "p.ini": data}
        return name, files, "p.ini", damage_text, ["n2d2py", "net.ini", *_export(choice), "-export-parameters", "p.ini"]

    def _simulator(self, choice: random.Random) -> tuple:
        """A damaged folder of an export: its packed network in bytes, or in what the text within says."""
        files = {f"e/{Path(*Path(key).parts[1:])}": data for key, data in self.export.items() if "simulator/" in key}
        damaged = next(key for key in files if key.endswith("network.npz"))
        return "network", files, damaged, choice.choice([damage_bytes, _damage_packed, _damage_packed]), ["simulator", "e"]


def _export(choice: random.Random) -> list[str]:
    precision = choice.choice([[], [], ["-nbbits", "16"], ["-nbbits", "-32"], ["-nbbits", "-16"]])
    return ["-export", choice.choice([*["CPP"] * 4, *EXPORTS]), "-calib", "2", *precision, "-o", "o"]


def _under(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def _npz(choice: random.Random, **arrays: np.ndarray) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if choice.randrange(2) else np.savez)(stream, **arrays)
    return stream.getvalue()


def _picture(extension: str, number: int) -> bytes:
    if extension == "npy":
        return _npy(np.full((3, 8, 8), number, np.uint8))
    if extension == "wav":
        data = bytes(2 * 64)
        return (
            struct.pack(
                "<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16, b"data", 128
            )
            + data
        )
    from PIL import Image

    stream = io.BytesIO()
    pixels = np.arange(192, dtype=np.uint8).reshape(8, 8, 3) + np.uint8(number)
    Image.fromarray(pixels).save(stream, extension)
    return stream.getvalue()


def _damage_packed(data: bytes, choice: random.Random) -> bytes:
    """The text in a simulator's file with one number, word or bracket changed; or one of its arrays otherwise."""
    import re

    with np.load(io.BytesIO(data)) as stored:
        arrays = {name: stored[name] for name in stored.files}
    if choice.randrange(4) == 0:
        name = choice.choice([name for name in arrays if name != "graph"] or ["graph"])
        arrays[name] = choice.choice(
            [arrays[name].reshape(-1)[:-1], arrays[name].astype(np.float32) * np.nan, arrays[name][None], np.zeros(0, np.int8)]
        )
    else:
        text = arrays["graph"].tobytes().decode()
        tokens = list(re.finditer(r'-?\d+|"[^"]*"|null|true|false|[\[\]{}]', text))
        token = choice.choice(tokens)
        values = ["0", "-1", "7", "99999999999", "1e400", '"x"', '""', "null", "[]", "{}", "true", '[1, "a"]']
        others = [*values, *(f'"{name}"' for name in NAMES[:3]), choice.choice(tokens).group()]
        text = text[: token.start()] + choice.choice(others) + text[token.end() :]
        arrays["graph"] = np.frombuffer(text.encode(), np.uint8)
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def draw(stock: Stock, seed: int, count: int, kinds: Sequence[str]) -> list[Case]:
    """The first `count` cases of a seed."""
    return [stock.case(seed, number, kinds) for number in range(count)]
