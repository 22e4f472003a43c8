"""The page of the documentation about the zoo, from its findings."""

from __future__ import annotations

from measure import CALIBRATED, COMPARED, Row
from support.memory_networks import NETWORKS

__all__ = ["page"]

_TEXT = """# Networks of torchvision and timm

Written by `python benchmarks/zoo -page docs/lab/networks.md` (PyTorch {torch}, torchvision {torchvision}, timm {timm}, ONNX Runtime
{onnxruntime}; {machine}). {networks} networks with random weights, batch normalisations that have seen a batch of images, a small
input; *reduced* ones have fewer layers or channels of the same kind. Both exporters of PyTorch write them with their default
opset: {files} files, of which {loaded} are imported, {right} of them give ONNX Runtime's result within 1e-4 (or
within what ONNX Runtime itself differs by, see *ORT*).

- *float*: largest error of the outputs relative to their largest value, for the files of torch.onnx's dynamo exporter and of its
  TorchScript exporter, of the reference that calibrates (the layers, in ONNX Runtime); *NumPy*: of the layers in NumPy; *C++*: of the compiled
  `-nbbits -32` export
- *ORT*: the same of ONNX Runtime with and without its optimizations (the larger of the two files)
- *layers*: layers of the int8 network, and what of it computes in floating point between conversions
- *identical*: every layer of the compiled int8 export is Python's bit for bit, on 2 stimuli
- *int8*: correlation of the outputs with the float ones over {compared} stimuli, the mean over the stimuli subtracted (the worst
  output); default options, {calibrated} stimuli for calibration; *16 bits*: the same with `-nbbits 16`; *ORT int8*: ONNX Runtime's
  `quantize_static` (QDQ, int8, MinMax, weights per channel) on the same stimuli, before it loses anything to its own kernels

Networks with random weights are harder to quantize than trained ones: nothing holds their activations together. The figures
compare tools; they do not tell the accuracy of a trained network ([accuracy](accuracy.md) does). What was not run says -.

Where activations are SiLU or HardSwish, whose results reach far above 0 and hardly below, ONNX Runtime's zero points are worth
a bit that the symmetric types here do not use: with `ActivationSymmetric` its correlation falls from 0.92 to 0.53 on yolo, from 0.97
to 0.90 on mobilenet_v3_small. `-quality best` gives 16 bits to the activations that need them.

Two correlations are low for a reason that was looked for, layer by layer. In efficientnet_b0 nothing fails: it falls evenly from layer to layer,
because the outputs of the eight stimuli of the calibration reach from 4 to 460 and those of the compared ones lie at an eighth of what is
calibrated. ONNX Runtime reaches 0.75 there, 0.66 without zero points; this tool 0.22, 0.49 with `-act-clipping-mode None`, 0.47 with
`-no-bias-correction`, 0.54 with both. On such stimuli, clipping and bias correction by the mean of few stimuli do harm. In levit_128s a compared stimulus
drives the attention to one position (its softmax reaches 1, in the calibration 0.15 but for two stimuli), at three times the calibrated ranges.

{table}
{refused}"""

_HEADER = (
    "network",
    "from",
    "input",
    "float: dynamo",
    "TorchScript",
    "NumPy",
    "C++",
    "ORT",
    "layers",
    "in floating point",
    "identical",
    "int8",
    "16 bits",
    "ORT int8",
)


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
