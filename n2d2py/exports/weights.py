"""Network parameters as text in N2D2's format: `weights_export/` of an export."""

from pathlib import Path

import numpy as np

from n2d2py.files import file_names
from n2d2py.graph import QuantGraph

WEIGHTS_FOLDER = "weights_export"
BIG = 1 << 20
"""Number of constants above which a network is big; its exports hold each constant once."""

_NAMES = {"weights": "weights", "bias": "biases", "scale": "scales", "mean": "means", "variance": "variances"}


def is_big(graph: QuantGraph) -> bool:
    """True if the export of a network holds its weights once, in kernel order, and not as text."""
    return sum(values.size for node in graph.nodes for values in node.params.values()) >= BIG


def write_weights(graph: QuantGraph, folder: Path) -> None:
    """Write <layer>_weights.syntxt and <layer>_biases.syntxt of every layer that has them into `folder`.

    Weights have a line for each output: input channels, rows, columns (OCHW, OC). Biases have one value on each line. Integer
    weights are in units of the output's scale, biases in units of the accumulator. Characters not allowed in file names become
    `_`; long or equal names get a digest.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stems = file_names(node.name for node in graph.nodes)
    for node in graph.nodes:
        for role, name in _NAMES.items():
            if role in node.params:
                text = _lines(node.params[role])
                (folder / f"{stems[node.name]}_{name}.syntxt").write_text(text, encoding="utf-8", newline="\n")


def _lines(values: np.ndarray) -> str:
    rows = values.reshape(len(values), -1)
    digits = "" if values.dtype.kind != "f" else ".9g" if values.dtype.itemsize == 4 else ".17g"
    return "".join(" ".join(format(value, digits) for value in row) + "\n" for row in rows.tolist())
