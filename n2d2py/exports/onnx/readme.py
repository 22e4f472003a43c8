"""The README of an ONNX export."""

from __future__ import annotations

from typing import TYPE_CHECKING

from n2d2py.exports.base import ExportRequest
from n2d2py.graph import QuantGraph

if TYPE_CHECKING:
    from n2d2py.exports.onnx.model import QdqModel


def readme(request: ExportRequest, made: QdqModel, file: str) -> str:
    """Its text: what the model holds, how to run it, and where its results may differ."""
    graph = request.graph
    integer_io = bool(request.parameters.get("IntegerIO"))
    opset = next(entry.version for entry in made.model.opset_import if not entry.domain)
    lines = [f"# {graph.name}: ONNX model", "", f"`{file}`, ONNX operators {opset}."]
    if graph.bits > 0:
        lines[-1] += (
            f" {len(made.stored)} tensors and the weights of {made.weighted} layers are integers (QuantizeLinear, DequantizeLinear)."
        )
    lines += ["", "| | name | shape | numbers |", "|---|---|---|---|"]
    for kind, names in (("input", graph.inputs), ("output", graph.outputs)):
        for name in names:
            number = graph.type(name)
            text = "float32"
            if number.plain or number.is_float:
                text = number.name
            elif integer_io:
                text = f"{number.name}, real = {number.scale:.9g} (q - {number.zero_point})"
            lines.append(f"| {kind} | `{name}` | {('N', *graph.shape(name)[1:])} | {text} |")
    lines += [
        "",
        "```python",
        "import onnxruntime",
        "",
        "options = onnxruntime.SessionOptions()",
        'options.add_session_config_entry("session.x64quantprecision", "1")',
        f'session = onnxruntime.InferenceSession("{file}", options)',
        f'outputs = session.run(None, {{"{graph.inputs[0]}": x}})',
        "```",
    ]
    if graph.bits > 0:
        lines += [
            "",
            "`session.x64quantprecision`: without it ONNX Runtime saturates sums of two products on x86 machines without VNNI;",
            "or export with `-wt-reduce-range`, where no sum can saturate.",
            "",
            "Runtimes compute between the integers in float32: a result may be a step off where it is near the middle of two.",
            *_range_of(graph),
        ]
    return "\n".join(lines) + "\n"


def _range_of(graph: QuantGraph) -> list[str]:
    """The line on -128, where signed bytes have it."""
    kinds = (tensor.type for tensor in graph.tensors.values())
    if not any(kind.full and kind.bits == 8 for kind in kinds):
        return []
    return ["Tensors of signed bytes use -128 to 127, as QuantizeLinear does; with `ExactRange=1` -127 to 127."]
