"""Output of `-describe`: a network as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from n2d2py.report.text import grouped
from n2d2py.targets import text_table


def describe_text(described: Mapping[str, Any], width: int | None = None) -> str:
    """The table of what `graph.describe` gives, without a last line break; names are shortened to a `width`.

    Dimensions are width x height x channels, as the header says.
    """

    def dims(values: list[int]) -> str:
        return "x".join(map(str, values))

    rows = [
        [
            layer["name"],
            layer["type"],
            dims(layer["input_dims"]),
            dims(layer["output_dims"]),
            grouped(layer["macs"]),
            grouped(layer["params"]),
        ]
        for layer in described["layers"]
    ]
    rows.append(["total", f"{len(rows)} layers", "", "", grouped(described["macs"]), grouped(described["params"])])
    inputs = ", ".join(f"{name} {dims(shape)}" for name, shape in described["inputs"].items())
    head = f"{described['name']}: inputs {inputs}; outputs {', '.join(described['outputs'])}"
    header = ["layer", "type", "input WxHxC", "output WxHxC", "MACs", "parameters"]
    return head + "\n" + text_table(header, rows, left=2, width=width).rstrip("\n")
