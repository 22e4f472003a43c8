"""Files, details and errors that the targets share whose export is a model of another runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from n2d2py.errors import Location, N2D2Error
from n2d2py.exports.base import ExportRequest
from n2d2py.files import write_text
from n2d2py.files.names import file_names
from n2d2py.graph import QuantGraph
from n2d2py.resources import templates

_REPLACE = "use -export CPP, or replace the layer"
_PER_LINE = 16


class NoForm(Exception):
    """A layer that the runtime cannot express; the message is the reason."""

    def __init__(self, text: str, remedy: str = _REPLACE):
        super().__init__(text)
        self.remedy = remedy


def unsupported(what: str, runtime: str, where: Location | str, remedy: str = _REPLACE) -> N2D2Error:
    """Return E701 for what a runtime does not support."""
    return N2D2Error("E701", f"{what}, which {runtime} does not support", where=where, remedy=remedy)


def precision_problem(request: ExportRequest, supported: str, bits: Sequence[int], remedy: str) -> N2D2Error | None:
    """Return E705 for a network of another precision (-nbbits) than `bits`; `supported`: the export and what it supports."""
    if not request.graph.nodes or request.graph.bits in bits:
        return None
    return N2D2Error("E705", f"the export {supported}, not -nbbits {request.graph.bits}", remedy=remedy)


def computed_tensors(graph: QuantGraph) -> list[str]:
    """Return the tensors that layers compute, in order."""
    return [name for node in graph.nodes for name in node.outputs]


def type_fields(graph: QuantGraph) -> dict[str, Any]:
    """Return the fields of the number types of all inputs and computed tensors, for the manifest."""
    return {name: asdict(graph.type(name)) for name in [*graph.inputs, *computed_tensors(graph)]}


def model_file(network: str, ending: str) -> str:
    """Return the name of the file of a model."""
    name = network or "network"
    return f"{file_names([name])[name]}.{ending}"


def hex_rows(data: bytes, separator: str) -> list[str]:
    """Return the bytes as hexadecimal C constants, sixteen in a row."""
    starts = range(0, len(data), _PER_LINE)
    return [separator.join(f"0x{byte:02x}" for byte in data[start : start + _PER_LINE]) for start in starts]


def write_rendered(path: Path, template: str, **values: Any) -> None:
    """Write a template, named `folder/file` below `export_templates`, to a file."""
    folder, _, name = template.partition("/")
    write_text(path, templates(folder).get_template(f"{name}.j2").render(values))
