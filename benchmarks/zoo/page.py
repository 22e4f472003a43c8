"""The page of the documentation about the zoo, from its findings."""

from __future__ import annotations

from measure import CALIBRATED, COMPARED, Row
from networks import NETWORKS

__all__ = ["page"]

_TEXT = """# Networks of torchvision and timm

{networks} networks with random weights and a small input, from both exporters of PyTorch.

## Import and int8

Written by `python benchmarks/zoo -page docs/lab/networks.md` (PyTorch {torch}, torchvision {torchvision}, timm {timm}, ONNX Runtime {onnxruntime}; {machine}).
Batch normalizations have seen a batch of images; *reduced* networks have fewer layers or channels of the same kind.
{files} files are exported with the default opset; {loaded} are imported, and {right} give ONNX Runtime's result within 1e-4, or within what ONNX Runtime itself differs by (*ORT*).

- *float*: largest error of the outputs relative to their largest value, for the dynamo and the TorchScript exporter, measured on the calibration reference
  (the layers, in ONNX Runtime). *NumPy*: the layers in NumPy. *C++*: the compiled `-nbbits -32` export.
- *ORT*: the same of ONNX Runtime with and without its optimizations (the larger of the two files).
- *layers*: layers of the int8 network, and what of it stays in floating point.
- *identical*: every layer of the compiled int8 export is Python's bit for bit, on 2 samples.
- *int8*: correlation of the outputs with the float ones over {compared} samples, mean subtracted, the worst output; default options, {calibrated} calibration samples.
  *16 bits*: the same with `-nbbits 16`. *ORT int8*: ONNX Runtime's `quantize_static` (QDQ, int8, MinMax, weights per channel).

Networks with random weights are harder to quantize than trained ones. The figures compare tools; they do not tell the [accuracy](accuracy.md) of a trained network.
Cells with - were not run.

{table}
{refused}"""

_TITLES = "network|from|input|float: dynamo|TorchScript|NumPy|C++|ORT|layers|in floating point|identical|int8|16 bits|ORT int8"
_HEADER = _TITLES.split("|")


def page(rows: list[Row], machine: str) -> str:
    """The page, as Markdown."""
    from importlib.metadata import version

    by_file = {(row.network, row.exporter): row for row in rows}
    names = [name for name in NETWORKS if any(network == name for network, _ in by_file)]
    lines = [_line(name, by_file.get((name, "dynamo")), by_file.get((name, "torchscript"))) for name in names]
    table = "\n".join(["| " + " | ".join(_HEADER) + " |", "|---" * len(_HEADER) + "|", *lines])
    refused = [
        f"- {row.network} ({row.exporter}): {line}" for row in rows for line in (*row.refused, *filter(None, [row.failure]))
    ]
    return _TEXT.format(
        **{name: version(name).split("+")[0] for name in ("torch", "torchvision", "timm", "onnxruntime")},
        machine=machine,
        networks=len(names),
        files=len(rows),
        loaded=sum(row.engine is not None for row in rows),
        right=sum(row.engine is not None and row.engine <= max(1e-4, row.spread or 0) for row in rows),
        compared=COMPARED,
        calibrated=CALIBRATED,
        table=table,
        refused="\nRefused or failed:\n\n" + "\n".join(refused) + "\n" if refused else "",
    )


def _line(name: str, dynamo: Row | None, script: Row | None) -> str:
    entry = NETWORKS[name]
    whole = max((row for row in (script, dynamo) if row is not None), key=lambda row: (row.identical is not None, row.layers))
    cells = [
        name,
        entry.origin + (", reduced" if entry.reduced else ""),
        f"{entry.size}x{entry.size}",
        *(_error(row.engine if row else None) for row in (dynamo, script)),
        _error(whole.python),
        _error(whole.compiled),
        _error(max((row.spread for row in (dynamo, script) if row and row.spread is not None), default=None)),
        str(whole.layers or "-"),
        ", ".join(sorted({label.split("(")[0].split()[-1].removeprefix("Array") for label in whole.islands}))
        or ("none" if whole.layers else "-"),
        {True: "yes", False: f"no: {whole.first_difference}", None: "-"}[whole.identical],
        *(f"{value:.3f}" if value is not None else "-" for value in (whole.correlation, whole.wide, whole.theirs)),
    ]
    return "| " + " | ".join(cells) + " |"


def _error(value: float | None) -> str:
    return "-" if value is None else f"{value:.0e}"
