"""What becomes of a model that is read: the words of its refusal, or its layers as a checksum."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph


def refusal(error: N2D2Error) -> str:
    """The first line without the folder that is worked in, and how many there are."""
    line = re.sub(r"(as the operator is defined) \((?!its ).*?\);", r"\1 (in the words of onnx);", error.errors[0].line())
    line = line.replace(str(Path.cwd()), "")
    return f"{len(error.errors)}: {line}" if len(error.errors) > 1 else line


def layers(graph: Graph) -> list[str]:
    """A line for each layer, without the values of its parameters, and the outputs."""
    return [
        f"{node.op} {node.activation} {node.inputs} {[graph.shape(name) for name in node.outputs]} {graph.kind(node.outputs[0])} "
        f"{[(role, array.shape) for role, array in node.params.items()]} {node.rounding}"
        for node in graph.nodes
    ] + graph.outputs


def values(graph: Graph) -> list[str]:
    """What `layers` leaves out: parameters in few digits, which are the same on all machines, ends, names and precisions."""
    held = [f"{node.name} {node.unbiased} {[few(array) for array in node.params.values()]}" for node in graph.nodes]
    ends = [f"{name} {graph.shape(name)} {graph.kind(name)}" for name in graph.inputs]
    others = [f"{key} {value}" for table in (graph.aliases, graph.precisions) for key, value in sorted(table.items())]
    return [*held, *ends, *others, str(graph.states)]


def few(array: np.ndarray) -> str:
    """Type and size of an array, and two sums of its values, one of which depends on their order."""
    numbers = np.asarray(array, np.float64).reshape(-1)
    if not numbers.size:
        return f"{array.dtype} none"
    size, order = np.abs(numbers).mean(), numbers * np.cos(np.arange(numbers.size))
    share = order.mean() / size if size and np.isfinite(size) else 0.0
    return f"{array.dtype} {size:.4g} {share + 0.0:.3f}"


def checksum(lines: list[str]) -> str:
    """Of lines in which numbers of NumPy are written as those of Python, without the folder that is worked in."""
    text = re.sub(r"np\.\w+\(([^()]*)\)", r"\1", "\n".join(lines)).replace(str(Path.cwd()), "")
    return f"{zlib.crc32(text.encode()):08x}"


def outcome(read: Callable[[], Graph], whole: bool = False) -> str:
    """The words of the refusal, or the kinds of the layers and a checksum of what they are; `whole`: of their `values` too."""
    log.setup(quiet=True)
    try:
        graph = read()
    except N2D2Error as error:
        return refusal(error)
    lines = layers(graph) + [warning.line() for warning in log.warnings_seen()] + (values(graph) if whole else [])
    return f"{' '.join(dict.fromkeys(node.op.kind for node in graph.nodes))} {checksum(lines)}"


def sums(found: dict[str, str]) -> str:
    """The checksums of outcomes, in order."""
    return " ".join(f"{zlib.crc32(text.encode()):08x}" for text in found.values())


def differences(found: dict[str, str], kept: str) -> list[str]:
    """What was done and became of it, where that is not what was kept."""
    before = kept.split()
    if len(before) != len(found):
        return [f"{len(found)} outcomes, {len(before)} are kept"]
    return [f"{told}: {text}" for (told, text), one in zip(found.items(), before, strict=True) if sums({told: text}) != one]


def write_sums(path: Path, found: dict[str, str]) -> None:
    """Writes a file of checksums by name."""
    path.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


def write_lines(path: Path, found: dict[str, list[str]]) -> None:
    """Writes a file of lists of checksums by name, a line for each."""
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(sums)}" for name, sums in found.items())
    path.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
