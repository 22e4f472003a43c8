"""Damaged models: the words of each refusal, and the layers of what is taken, change on purpose only.

Whoever changes that on purpose writes the records again and looks at the difference:

    PYTHONPATH=tests python tests/whole_chain/test_same_refusals.py [forms] [sections] [documents] [files]

Of more turns, in which models are changed in more ways, checksums are kept, which stand for the values of parameters too.
"""

from __future__ import annotations

import copy
import json
import os
import random
import re
import shutil
import sys
import tempfile
import zlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import onnx
import pytest
from support import chain_texts as texts
from support import onnx_array_forms as arrays
from support import onnx_image_forms as images
from support.chain_networks import bodies, section_text
from support.damages import damage_file, damage_model, damage_text
from support.ini_forms import LAYERS
from support.onnx_changes import change_model
from support.outcomes import differences, outcome, sums, write_sums
from support.tflite_changes import change_file

from n2d2py.frontend.ini.network import build_graph
from n2d2py.frontend.ini.weights import WeightStore
from n2d2py.frontend.models import load_model
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.ini import load_document
from n2d2py.options import read_command
from n2d2py.pipeline import load_network

FOLDER = Path(__file__).resolve().parent
CHANGES = 7
TURNS = range(1, 4)
"""More changes, in slow tests."""
MODELS = {
    **{f"image, {name}": (images.model, opset, body) for opset, name, body in bodies(images)},
    **{f"array, {name}": (arrays.model, opset, body) for opset, name, body in bodies(arrays)},
    **{name: (lambda _, name: texts.model(name), 17, name) for name in texts.TEXTS},
}
SECTIONS = {body.replace("\n", ", "): body for body in LAYERS}
KEYS = sorted({line for body in LAYERS for line in body.splitlines() if "=" in line and not line.startswith(("Type", "Input"))})


DOCUMENTS = {
    path.stem: path
    for folder, names in (
        (
            "models/styles",
            "mlp windows am_softmax gtsrb lenet_spike levels multi_task same_padding wav_1d yolo inception_v3 autoencoder_fc conditional "
            "segnet lenet_qat erfnet mobilenet_se hourglass shufflenet squeezenet_old",
        ),
        ("memory", "pooled skipped slices resampling strips packed"),
        ("export", "parameters partial"),
        ("e2e", "branches"),
        ("../models", "Add MaxPoolAdd Autoencoder LeNet LeNet_mapping DSCNN LeNet_QAT"),
    )
    for path in ((FOLDER.parent / folder / f"{name}.ini").resolve() for name in names.split())
}
"""Whole networks as INI."""
MORE_KEYS = sorted(
    {
        line.strip()
        for path in DOCUMENTS.values()
        for line in path.read_text(encoding="utf-8-sig").splitlines()
        if re.match(r"\w[\w.*]*=", line)
    }
    | set(KEYS)
)


def drawn(name: str, turn: int) -> random.Random:
    return random.Random(zlib.crc32(name.encode()) + turn)


def of_models(name: str, turn: int = 0) -> dict[str, str]:
    make, opset, body = MODELS[name]
    model, rng, found = make(opset, body), drawn(name, turn), {}
    for _ in range(CHANGES):
        changed = copy.deepcopy(model)
        told = (change_model if turn else damage_model)(changed, rng)
        onnx.save(changed, "net.onnx")
        found[told] = outcome(lambda: import_onnx(load_model(Path("net.onnx"))), bool(turn))
    return found


def of_sections(name: str, turn: int = 0) -> dict[str, str]:
    text, rng, found = section_text(SECTIONS[name]), drawn(name, turn), {}
    for _ in range(CHANGES):
        changed, told = damage_text(text, KEYS, rng)
        Path("net.ini").write_text(changed, encoding="utf-8")
        found[told] = outcome(
            lambda: build_graph(load_document(Path("net.ini")), (1, 4, 6, 8), WeightStore(None), 1), bool(turn)
        )
    return found


def of_documents(name: str, turn: int = 0) -> dict[str, str]:
    path = DOCUMENTS[name]
    for other in path.parent.iterdir():
        if other.suffix in (".tpl", ".txt", ".onnx") and other.stat().st_size < 1 << 16:
            shutil.copy(other, Path.cwd())
    text, rng, found = path.read_text(encoding="utf-8-sig"), drawn(name, turn), {}
    for _ in range(CHANGES if turn else 3 * CHANGES):
        changed, told = damage_text(text, MORE_KEYS, rng)
        Path("net.ini").write_text(changed, encoding="utf-8")
        found[told] = outcome(lambda: load_network(*read_command(["net.ini", "-describe"])).graph, bool(turn))
    return found


def of_files(name: str, turn: int = 0) -> dict[str, str]:
    from support.tflite_cases import CASES, REALS

    rng, found = drawn(name, turn), {}
    for _ in range(CHANGES if turn else 2 * CHANGES):
        made, output = {**CASES, **REALS}[name]()
        outputs = [output] if isinstance(output, int) else list(output)
        told = damage_file(made, rng) if not turn or rng.random() < 0.3 else ""
        told += f" {change_file(made, outputs, rng)}" if turn else ""
        path = made.write(Path.cwd(), outputs)
        found[told] = outcome(lambda path=path: import_onnx(load_model(Path(path.name))), bool(turn))
    return found


def _files() -> list[str]:
    if find_spec("ai_edge_litert") is None:
        return []
    from support.tflite_cases import CASES, REALS

    return [*CASES, *REALS]


SETS = {
    "forms": (of_models, list(MODELS)),
    "sections": (of_sections, list(SECTIONS)),
    "documents": (of_documents, list(DOCUMENTS)),
    "files": (of_files, _files()),
}


@cache
def kept(chosen: str) -> dict[str, dict[str, str]]:
    return json.loads((FOLDER / f"refused_{chosen}.json").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", SETS["forms"][1])
def test_forms(name):
    assert of_models(name) == kept("forms")[name]


@pytest.mark.parametrize("name", SETS["sections"][1])
def test_sections(name):
    assert of_sections(name) == kept("sections")[name]


@pytest.mark.parametrize("name", SETS["documents"][1])
def test_documents(name):
    assert of_documents(name) == kept("documents")[name]


@pytest.mark.parametrize("name", SETS["files"][1])
def test_files(name):
    assert of_files(name) == kept("files")[name]


MORE = [(chosen, name, turn) for chosen, (_, names) in SETS.items() for name in names for turn in TURNS]


@cache
def kept_sums(chosen: str) -> dict[str, str]:
    return json.loads((FOLDER / f"changed_{chosen}.json").read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize(("chosen", "name", "turn"), MORE)
def test_more(chosen, name, turn):
    assert differences(SETS[chosen][0](name, turn), kept_sums(chosen)[f"{name}, {turn}"]) == []


def main() -> None:
    """Writes what the tests compare with."""
    for chosen in sys.argv[1:] or SETS:
        find, names = SETS[chosen]
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            found = {name: find(name) for name in names}
            more = {f"{name}, {turn}": sums(find(name, turn)) for name in names for turn in TURNS}
            os.chdir(FOLDER)
        path = FOLDER / f"refused_{chosen}.json"
        path.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
        write_sums(FOLDER / f"changed_{chosen}.json", more)


if __name__ == "__main__":
    main()
