"""The layers that each form of an operator becomes: names, kinds, what they read, and their attributes.

Results are compared with ONNX Runtime elsewhere; here a form that is computed by other layers than before is seen, which
users notice in speed and in names. Whoever changes that on purpose writes the file again:

    PYTHONPATH=tests python tests/frontend_onnx/test_same_layers.py
"""

from __future__ import annotations

import json
import re
import zlib
from functools import cache
from pathlib import Path

import pytest
from support import onnx_array_forms as arrays
from support import onnx_image_forms as images

from n2d2py.frontend.onnx.importer import import_onnx

KEPT = Path(__file__).resolve().parent / "same_layers.json"
CASES = {
    **{
        f"{what}, {case}": (forms, 17, body)
        for what, forms in (("image", images), ("array", arrays))
        for case, body in forms.BODIES.items()
    },
    **{
        f"{what}, {case}, set {opset}": (forms, opset, body)
        for what, forms in (("image", images), ("array", arrays))
        for (opset, case), body in forms.OTHER_SETS.items()
    },
}


def layers(case: str) -> list[str]:
    """One line for each layer; attributes of many numbers by a checksum."""
    forms, opset, body = CASES[case]
    found = []
    for node in import_onnx(forms.model(opset, body)).nodes:
        text = re.sub(r"np\.\w+\(([^()]*)\)", r"\1", str(node.op))
        text = text if len(text) < 100 else f"{node.op.kind} {zlib.crc32(text.encode())}"
        held = {role: list(array.shape) for role, array in node.params.items()}
        found.append(f"{node.name} = {text} ({', '.join(node.inputs)}) {held or ''}".strip())
    return found


@cache
def kept() -> dict[str, list[str]]:
    return json.loads(KEPT.read_text())


@pytest.mark.parametrize("case", CASES)
def test_layers_change_on_purpose_only(case):
    assert layers(case) == kept()[case]


def main() -> None:
    """Writes what the tests compare with."""
    KEPT.write_text(json.dumps({case: layers(case) for case in CASES}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
