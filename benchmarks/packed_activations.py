"""MobileNetV2 of models/ in 4 bits: its arena with and without PackActivations, against 8 bits; every layer compiled and compared.

Usage: benchmarks/packed_activations.py [-size 224] [-modes auto,Small] [-no-build]

Weights are random, and ranges such that no layer gives only zeros: it measures bytes and bits, no accuracy.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from common import ROOT, export_words, header, row

from n2d2py.cli import main

MODELS = ROOT / "models"
_QUANTIZED = """ActivationFunction=Linear
WeightsFiller=HeFiller
QWeight=SAT
QWeight.Range={steps}
QWeight.ApplyScaling=1
QAct=SAT
QAct.Range={steps}
QAct.Alpha=1.5
"""
_SUM = "Operation=Sum\nNbOutputs={{NB_OUTPUTS}}\n"


def replaced(text: str, old: str, new: str) -> str:
    """`text` with `new` for `old`, which must be there."""
    if old not in text:
        raise SystemExit(f"models/MobileNet_v2 has no {old!r} any more")
    return text.replace(old, new)


def write_network(folder: Path, steps: int, size: int) -> Path:
    """MobileNetV2 with weights and activations of `steps` steps, 255 in the first and the last layer."""
    text = (MODELS / "MobileNet_v2.ini").read_text()
    text = replaced(text, "$SIZE=224", f"$SIZE={size}")
    plain = "ActivationFunction=Rectifier\nActivationFunction.Clipping=6\nWeightsFiller=HeFiller\n"
    text = replaced(text, plain, _QUANTIZED.format(steps=steps))
    text = replaced(text, "Input=sp\n", "Input=sp\nQWeight.Range=255\n")
    text = replaced(text, "Input=conv8.1_1x1_linear\n", "Input=conv8.1_1x1_linear\nQAct.Range=255\n")
    last = "QWeight=SAT\nQWeight.Range=255\nQWeight.ApplyScaling=1\n"
    text = replaced(text, "WeightsFiller=XavierFiller\n", f"WeightsFiller=XavierFiller\n{last}")
    block = (MODELS / "MobileNet_v2_bottleneck.ini.tpl").read_text()
    block = replaced(block, "Padding=1\n", "Padding=1\nQWeight.ApplyScaling=0\n")
    block = replaced(block, "ActivationFunction.Clipping=0\n", "")
    block = replaced(block, _SUM, f"{_SUM}ActivationFunction=Linear\nQAct=SAT\nQAct.Range={steps}\nQAct.Alpha=2.0\n")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "MobileNet_v2_bottleneck.ini.tpl").write_text(block)
    path = folder / "MobileNet_v2.ini"
    path.write_text(text)
    return path


def arena(network: Path, mode: str, packs: bool, builds: bool) -> tuple[int, int]:
    """Bytes of the arena and packed tensors of an export; compiled, with every layer equal to Python's integers, where it `builds`.

    Raises:
        SystemExit: where the export fails or a layer differs.
    """
    out = network.parent / f"{mode}{int(packs)}"
    out.mkdir()
    (out / "params.ini").write_text(f"MemoryMode = {mode}\nPackActivations = {int(packs)}\n")
    options = f"-nbbits 8 -calib 8 -export-parameters {out / 'params.ini'}" + " -compare 4" * builds
    words = export_words(network, out, options)
    if main(words) != 0:
        raise SystemExit(f"the export failed: {' '.join(words)}")
    folder = out / "export_CPP_int8"
    compared = json.loads((folder / "statistics" / "summary.json").read_text()).get("compare", {})
    if builds and not (compared and all(layer["identical"] is True for layer in compared.values())):
        raise SystemExit(f"layers differ in {folder}")
    planned = json.loads((folder / "statistics" / "memory" / "memory_map.json").read_text())
    return planned["arena_size"], sum(name.endswith(".packed") for name in planned["tensors"])


def run() -> None:
    """Prints a line for each mode."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-size", type=int, default=224, help="side of the input")
    parser.add_argument("-modes", default="auto,Small", help="values of MemoryMode")
    parser.add_argument("-no-build", action="store_true", help="plan only")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        networks = {bits: write_network(Path(folder) / str(bits), 2**bits - 1, arguments.size) for bits in (8, 4)}
        header("MemoryMode", "8 bits", "4 bits", "4 bits packed", "packed / 8 bits", "packed tensors")
        for mode in arguments.modes.split(","):
            (wide, _), (loose, _) = (arena(networks[bits], mode, False, False) for bits in (8, 4))
            tight, count = arena(networks[4], mode, True, not arguments.no_build)
            row(mode, f"{wide:,}", f"{loose:,}", f"{tight:,}", f"{tight / wide:.3f}", f"{count}")


if __name__ == "__main__":
    run()
