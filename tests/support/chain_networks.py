"""Small networks for whole chains: files, the words of their command lines, and the parameters that their memory is planned with."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from support import chain_texts as texts
from support.ini_forms import LAYERS
from support.onnx_blocks import OPERATORS, TEXTS, Block, behind_convolution, node_block, text_block
from support.onnx_draws import DRAWS, draw
from support.onnx_models import runtime_outputs

IMAGE = (5, 6, 4)
"""Height, width and channels of the images of single nodes."""
WORDS = (
    (),
    ("-nbbits", "16"),
    ("-act-rescaling-mode", "Fixed-point32"),
    ("-act-rescaling-mode", "Single-shift", "-no-unsigned"),
    ("-wt-bits", "4", "-no-cle"),
    ("-nbbits", "-32"),
    ("-act-rescaling-mode", "Double-shift", "-act-clipping-mode", "None"),
    ("-input-bits", "16", "-act-rescale-per-output", "0"),
    ("-no-zero-points", "-no-mixed-precision", "-output-bits", "16"),
)
"""Options that cases have in turn."""
PLANS: tuple[dict[str, dict[str, Any]], ...] = (
    {"whole": {"MemoryMode": "Speed", "IncludeOutputInBuffer": "1"}},
    {"lines": {"MemoryMode": "Small", "IncludeOutputInBuffer": "0"}},
    {"stream": {"StreamInput": True, "SIMD": "none"}},
    {"least": {"MemoryMode": "Minimum", "MaxExtraMacs": 60.0}},
    {"apart": {"MemoryManagerStrategy": "None", "IncludeInputInBuffer": False, "MemoryAlignment": 4}},
    {"packed": {"PackActivations": True, "Winograd": False, "BufferAlignment": 1}},
    {"reordered": {"MemoryManagerStrategy": "OptimizeReorder", "FuseResidualAdd": False, "OptimizeNoBranchConcat": False}},
    {"N2D2": {"MemoryManagerStrategy": "OptimizeAuto", "OptimizeBufferMemory": False}},
)
"""Memory parameters that cases have in turn, beside the default."""


@dataclass(frozen=True)
class Case:
    """A network: `make` writes its file into a folder, with the stimuli that calibrate it, or returns None if it is not fit."""

    make: Callable[[Path], Path | None]
    words: tuple[str, ...]
    plans: dict[str, dict[str, Any]]


def case(make: Callable[[Path], Path | None], at: int, words: tuple[str, ...]) -> Case:
    """The case number `at`, with memory parameters in turn."""
    plans = {"memory": {}, **PLANS[at % len(PLANS)], **PLANS[(at + 3) % len(PLANS)]}
    return Case(make, ("-export", "CPP", "-seed", "1", *words), plans)


def save_stimuli(folder: Path, shape: tuple[int, ...]) -> None:
    """data.npz: stimuli of any last bits, so that few results lie in the middle of two integers."""
    np.savez(folder / "data.npz", x=np.random.default_rng(2).normal(0.3, 0.8, (8, *shape)).astype(np.float32))


def written(model: onnx.ModelProto, shape: tuple[int, ...]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        save_stimuli(folder, shape)
        onnx.save(model, folder / "net.onnx")
        return folder / "net.onnx"

    return make


def node_cases() -> Iterator[tuple[str, Case]]:
    """Nodes of images, after a convolution, and of arrays of any rank; without a file where a drawn node is not fit for a network."""
    at = itertools.count()
    for name, seed in itertools.product(OPERATORS, range(3)):
        yield f"image, {name} {seed}", _calibrated(partial(_write_block, partial(node_block, name, seed, IMAGE)), next(at))
    for text in TEXTS:
        yield f"image, {text}", _calibrated(partial(_write_block, partial(text_block, text, [IMAGE])), next(at))
    for name, seed in itertools.product(DRAWS, range(2)):
        yield f"array, {name} {seed}", _calibrated(partial(_write_drawn, name, seed), next(at))


def _write_block(draw_block: Callable[[], Block | None], folder: Path) -> Path | None:
    block = draw_block()
    return None if block is None else written(behind_convolution(block), (4, 5, 6))(folder)


def _write_drawn(name: str, seed: int, folder: Path) -> Path | None:
    model = draw(name, seed).model()
    if len(model.graph.input) > 1:
        return None
    shape = tuple(dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim[1:])
    x = np.random.default_rng(2).normal(0.3, 0.8, (1, *shape)).astype(np.float32)
    try:
        outputs = runtime_outputs(model, x)
    except Exception:  # ONNX Runtime has no common base class for its errors
        return None
    return written(model, shape)(folder) if all(np.isfinite(values).all() for values in outputs) else None


def _calibrated(make: Callable[[Path], Path | None], at: int) -> Case:
    return calibrated(make, at, WORDS[at % len(WORDS)])


def calibrated(make: Callable[[Path], Path | None], at: int, words: tuple[str, ...]) -> Case:
    """The case of a number with options; with those of integers it is calibrated."""
    real = {"-32", "-16"} & set(words)
    return case(make, at, words if real else (*words, "-calib", "8", "-calib-data", "data.npz"))


def ini_cases() -> Iterator[tuple[str, Case]]:
    """All types of sections behind a convolution."""
    for at, body in enumerate(LAYERS):
        made = _calibrated(_section(body), at)
        yield body.replace("\n", ", "), replace(made, words=(*made.words, "-w", "/dev/null"))


HEAD = """[sp]
Size=8 6 4

[before]
Input=sp
Type=Conv
KernelSize=1
NbOutputs=4
ActivationFunction=Rectifier
WeightsFiller=HeFiller
"""


def section_text(body: str) -> str:
    """The INI of a section behind a convolution."""
    head, _, rest = body.partition("ConfigSection=")
    given = "" if "Input=" in body else "Input=before\n"
    last = f"ConfigSection={rest}\n" if rest else ""
    return f"{HEAD}\n[y]\n{given}{head}{last}\n[y.Target]\n"


def _section(body: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        save_stimuli(folder, (4, 6, 8))
        path = folder / "net.ini"
        path.write_text(section_text(body), encoding="utf-8")
        return path

    return make


def text_cases() -> Iterator[tuple[str, Case]]:
    """Networks of several layers, each with two options and other memory parameters."""
    for at, name in enumerate(texts.TEXTS):
        for turn in range(2):
            number = at + 5 * turn
            made = written(texts.model(name), (4, 8, 8))
            if name not in texts.ROUNDED:
                yield f"{name}, {turn}", _calibrated(made, number)
            else:
                yield f"{name}, {turn}", case(made, number, ("-nbbits", "-32") if turn else ())


def real_cases() -> Iterator[tuple[str, Case]]:
    """Networks of several layers, exported in real numbers."""
    for at, name in enumerate(texts.REAL):
        yield f"{name}, real", case(written(texts.model(name), (4, 8, 8)), at, ("-nbbits", "-32"))


LINES = ("lines", "separable lines", "inverted residual", "padded")
"""Texts whose layers can run line by line and in strips."""
BUDGETS = {
    **{f"budget {bytes}": {"MemoryBudget": bytes} for bytes in (300, 450, 700)},
    **{
        f"strips {share}": {"MemoryMode": "Minimum", "MaxExtraMacs": share, "BufferAlignment": 1, "FuseResidualAdd": share > 5}
        for share in (5.0, 30.0, 100.0)
    },
}


def line_cases() -> Iterator[tuple[str, Case]]:
    """Networks whose memory is planned in all ways."""
    for at, name in enumerate(LINES):
        made = _calibrated(written(texts.model(name), (4, 8, 8)), (0, 4)[at % 2])
        plans = {key: value for each in PLANS for key, value in each.items()}
        yield f"{name}, all plans", replace(made, plans={"memory": {}, **plans, **BUDGETS})


def tflite_cases() -> Iterator[tuple[str, Case]]:
    """All operators of .tflite files, of integers and of real numbers; none without ai-edge-litert, which writes the files."""
    if find_spec("ai_edge_litert") is None:
        return
    from support.tflite_cases import CASES, REALS

    for at, (name, make) in enumerate(CASES.items()):
        yield f"integers, {name}", case(_packed(make), at, ("-nbbits", "-32") if at % 8 == 7 else ())
    for at, (name, make) in enumerate(REALS.items()):
        yield f"real, {name}", _calibrated(_packed(make), at)


def _packed(make: Callable[[], tuple[Any, int]]) -> Callable[[Path], Path]:
    def written(folder: Path) -> Path:
        save_stimuli(folder, (4, 8, 6))
        made, output = make()
        return made.write(folder, output, "net.tflite")

    return written
