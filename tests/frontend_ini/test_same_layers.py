"""The layers that sections become, with the fewest keys and with many: operators, attributes, activations, parameters; and errors.

Whoever changes a default or a layer on purpose writes the file again:

    PYTHONPATH=tests python tests/frontend_ini/test_same_layers.py FOLDER

They look at `n2d2py.frontend.ini.contract`, `n2d2py.frontend.ini.convolution`, `n2d2py.frontend.ini.fillers`,
`n2d2py.frontend.ini.inputs`, `n2d2py.frontend.ini.keys` and `n2d2py.frontend.ini.transformations`.
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from pathlib import Path

import pytest
from support.ini_forms import LAYERS

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.frontend.ini.network import build_graph
from n2d2py.frontend.ini.weights import WeightStore
from n2d2py.ini import load_document

KEPT = Path(__file__).resolve().parent / "same_layers.json"


def lines(body: str, folder: Path) -> list[str]:
    """One line for each layer: its operator, what it reads, activation and parameters; or the code and the words of the error."""
    log.setup(quiet=True)
    path = folder / "net.ini"
    given = "" if "Input=" in body else "Input=sp\n"
    head, _, rest = body.partition("ConfigSection=")
    path.write_text(f"[sp]\nSize=8 6 4\n\n[y]\n{given}{head}{'ConfigSection=' + rest if rest else ''}\n", encoding="utf-8")
    try:
        document = load_document(path)
        graph = build_graph(document, (1, 4, 6, 8), WeightStore(None), 1)
    except N2D2Error as error:
        first = error.errors[0]
        return [f"{first.code}: {first.what}"]
    found = []
    for node in graph.nodes:
        held = {role: f"{list(array.shape)} {array.mean():.2f} {array.std():.2f}" for role, array in node.params.items()}
        op = re.sub(r"np\.\w+\(([^()]*)\)", r"\1", f"{node.op} then {node.activation}")
        found.append(
            f"{node.name} = {op} ({', '.join(node.inputs)}) {held or ''} {graph.shape(node.output)[1:]}".replace("  ", " ")
        )
    return found + [str(warning).replace(str(folder), "") for warning in log.warnings_seen()]


@cache
def kept() -> dict[str, list[str]]:
    return json.loads(KEPT.read_text())


@pytest.mark.parametrize("body", LAYERS, ids=lambda body: body.replace("\n", ", "))
def test_layers_change_on_purpose_only(body, tmp_path):
    assert lines(body, tmp_path) == kept()[body]


def main(folder: Path) -> None:
    """Writes what the tests compare with."""
    KEPT.write_text(json.dumps({body: lines(body, folder) for body in LAYERS}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
