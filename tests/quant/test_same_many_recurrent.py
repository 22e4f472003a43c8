"""Checksums of the types of drawn networks of LSTM and GRU, with all options.

Integers are left out: sigmoids and tanh of real numbers depend on the machine in their last bits. Reached are `n2d2py.quant.correct`,
`n2d2py.quant.layerwise`, `n2d2py.quant.moments`, `n2d2py.quant.narrow`, `n2d2py.quant.states`, `n2d2py.quant.types`, `n2d2py.quant.wide_weights`,
`n2d2py.quant.widths`. Whoever changes that on purpose writes the file again:

    PYTHONPATH=tests python tests/quant/test_same_many_recurrent.py
"""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from support.quant_draws import drawn_options
from support.quant_forms import recurrent_network

from n2d2py import log
from n2d2py.quant.calibration import observe, prepare, quantize_observed
from n2d2py.quant.narrow import narrowed, weight_counts

pytestmark = pytest.mark.slow
KEPT = Path(__file__).resolve().parent / "same_many_recurrent.json"
BLOCK, BLOCKS = 3, 24
"""Networks in a case, cases."""


def found(seed: int) -> list[str]:
    """Layers, types, clips and weights of few bits."""
    graph, x = recurrent_network(seed)
    options = replace(drawn_options(seed), act_clipping=("MSE", "None")[seed % 2])
    graph = prepare(narrowed(graph, 4) if seed % 5 == 0 else graph, options.per_output, options.equalize)
    seen = observe(graph, [x], [x[:3], x[3:]], {}, options.equalize and options.per_output, "")
    result, types = quantize_observed(seen, options)
    nodes = [
        f"{node.name} {node.op.kind} {node.inputs} {node.clamp} {sorted(node.params)} {type(node.rescale).__name__}"
        for node in result.nodes
    ]
    kinds = {name: result.type(name) for name in result.tensors}
    return [
        *nodes,
        *(
            f"{name} {kind.bits} {kind.signed} {kind.scale:.3g} {kind.zero_point} {name in types.thresholds}"
            for name, kind in kinds.items()
        ),
        f"{weight_counts(graph)} {types.coarse}",
    ]


def checksum(case: int) -> str:
    log.setup(quiet=True)
    lines = [line for seed in range(case * BLOCK, case * BLOCK + BLOCK) for line in found(seed)]
    return f"{zlib.crc32(chr(10).join(lines).encode()):08x}"


@pytest.mark.parametrize("case", range(BLOCKS))
def test_types_change_on_purpose_only(case):
    assert checksum(case) == json.loads(KEPT.read_text(encoding="utf-8"))[case]


def main() -> None:
    """Writes what the tests compare with."""
    KEPT.write_text(json.dumps([checksum(case) for case in range(BLOCKS)]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
