"""The texts next to a .tflite file: README, the file as an array of C, the operators for TFLite Micro."""

from __future__ import annotations

from collections.abc import Collection

from n2d2py.exports.base import ExportRequest
from n2d2py.exports.tflite.file import int8_grid
from n2d2py.exports.tflite.model import TfliteModel
from n2d2py.exports.tflite.writer import channels_last

_PER_LINE = 16
_RESOLVED = {
    "CONV_2D": "Conv2D",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2D",
    "MAX_POOL_2D": "MaxPool2D",
    "AVERAGE_POOL_2D": "AveragePool2D",
    "PADV2": "PadV2",
}
"""Operators whose function of MicroMutableOpResolver is not their name in other letters."""


def _function(code: str) -> str:
    return _RESOLVED.get(code) or "".join(part.capitalize() for part in code.split("_"))


def resolver(codes: Collection[str]) -> str:
    """A header that registers operators of these kinds with TFLite Micro."""
    lines = [
        "// The operators that the model uses, for TFLite Micro.",
        "#pragma once",
        "",
        '#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"',
        "",
        f"using ModelOpResolver = tflite::MicroMutableOpResolver<{len(codes)}>;",
        "",
        "inline TfLiteStatus register_operators(ModelOpResolver& resolver) {",
        *(f"  TF_LITE_ENSURE_STATUS(resolver.Add{_function(code)}());" for code in codes),
        "  return kTfLiteOk;",
        "}",
    ]
    return "\n".join(lines) + "\n"


def array_header() -> str:
    """The declaration of the array."""
    return (
        '// The .tflite file as an array.\n#pragma once\n\n#ifdef __cplusplus\nextern "C" {\n#endif\n'
        "extern const unsigned char model_data[];\nextern const unsigned int model_data_len;\n"
        "#ifdef __cplusplus\n}\n#endif\n"
    )


def array_rows(data: bytes) -> str:
    """The bytes as numbers of C, in lines."""
    rows = (data[start : start + _PER_LINE] for start in range(0, len(data), _PER_LINE))
    return ",\n".join("  " + ", ".join(f"0x{byte:02x}" for byte in row) for row in rows)


def array_source(data: bytes) -> str:
    """The array, aligned as TFLite Micro asks for."""
    return (
        '#include "model_data.h"\n\n#if defined(__GNUC__) || defined(__clang__)\n__attribute__((aligned(16)))\n#endif\n'
        "const unsigned char model_data[] = {\n"
        + array_rows(data)
        + f"\n}};\nconst unsigned int model_data_len = {len(data)};\n"
    )


def readme(request: ExportRequest, made: TfliteModel, file: str) -> str:
    """Its text: what the model holds, how to run it, where its results may differ."""
    graph, integer_io = request.graph, request.graph.bits > 0 and bool(request.parameters.get("IntegerIO"))
    kernels = request.parameters.get("Kernels", "XNNPACK")
    lines = [
        f"# {graph.name}: TFLite model",
        "",
        f"`{file}`: {len(made.data):,} bytes, {'int8' if graph.bits > 0 else 'float32'}, {len(made.codes)} kinds of operators: {', '.join(made.codes)}.",
        "",
        "| | name | shape | numbers |",
        "|---|---|---|---|",
    ]
    for kind, names in (("input", graph.inputs), ("output", graph.outputs)):
        for name in names:
            scale, zero = int8_grid(graph.type(name))
            text = f"int8, real = {scale:.9g} (q - {zero})" if integer_io else "float32"
            lines.append(f"| {kind} | `{name}` | {channels_last(graph.shape(name))} | {text} |")
    lines += [
        "",
        "```python",
        "from ai_edge_litert.interpreter import Interpreter",
        "",
        f'interpreter = Interpreter(model_path="{file}")',
        "interpreter.allocate_tensors()",
        'interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)',
        "interpreter.invoke()",
        'y = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])',
        "```",
        "",
        "Images have their channels last."
        + (
            f" The scores of n2d2py are those of LiteRT's kernels {kernels}; by others a result may be a step off."
            if graph.bits > 0
            else ""
        ),
    ]
    if request.parameters.get("ModelArray", True):
        lines += [
            "",
            "For TFLite Micro: `model_data.c` and `model_data.h` are the file as an array, `model_operators.h` registers its operators.",
        ]
    return "\n".join(lines) + "\n"
