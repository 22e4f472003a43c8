"""Random networks through the whole chain: what each stage makes of them changes on purpose only.

Whoever changes that on purpose writes same_random_chains.json again and looks at the difference:

    PYTHONPATH=tests:tests/random_networks python tests/random_networks/test_same_random_chains.py
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from network_generator import Spec, generate
from support.chain_kept import KeptChains
from support.chain_networks import Case, case

SEEDS = range(400, 445)


def _made(spec: Spec) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        for layer in spec.layers:
            if layer.model:
                onnx.save(onnx.parser.parse_model(layer.model), folder / f"{layer.name}.onnx")
        (folder / "params.ini").write_text(spec.parameter_text())
        (folder / "net.ini").write_text(spec.ini())
        return folder / "net.ini"

    return make


def _case(seed: int) -> Case:
    spec = generate(seed)
    words = ("-w", "/dev/null", "-calib", "8", *spec.options, "-export-parameters", "params.ini")
    return case(_made(spec), seed, words)


KEPT = KeptChains(Path(__file__).resolve().parent / "same_random_chains.json", {str(seed): _case(seed) for seed in SEEDS})


@pytest.mark.parametrize("seed", KEPT.cases)
def test_a_chain_changes_on_purpose_only(seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert KEPT.differences(seed) == []


if __name__ == "__main__":
    KEPT.write()
