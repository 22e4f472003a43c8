"""200 damaged copies of the shipped INI files: each loads, or gives errors of the tool; quickly, within little memory.

Every file is described, and then loaded with its data and its weights, as an export would do first.
"""

from __future__ import annotations

import random
import re
import resource
import time
from pathlib import Path

import pytest
from support.model_run import MODELS

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.options import read_command
from n2d2py.pipeline import load_network

SEEDS, PER_SEED = 8, 25
SECONDS = 2.0
GIGABYTE = 1 << 30
SMALL = {
    "$SIZE=224": "$SIZE=64",
    "$SIZE=227": "$SIZE=67",
    "$HIDDEN=4096": "$HIDDEN=64",
    "$ALPHA=1.0": "$ALPHA=0.25",
    "$SIZE=128": "$SIZE=32",
}
VALUES = [
    "0",
    "-1",
    "1",
    "2",
    "3",
    "7",
    "4294967296",
    "999999999",
    "1e30",
    "0.5",
    "nan",
    "inf",
    "",
    "x",
    "1 2 3",
    "sp",
    "conv1",
    "${SIZE}",
    "${NOPE}",
    "$(1/0)",
    "$(2 ** 900)",
    "$(9 ** 9 ** 9)",
    "[sp]SizeX",
    "[conv1]NbOutputs",
    "[conv1]_OutputsWidth",
    "[[[[",
    "${${SIZE}}",
    "$SIZE",
    "../../../etc/passwd",
    "/dev/zero",
    '"',
    "\\",
]
NUMBERS = [0, 1, 2, 3, 5, 8, 13, 31, 64, 100, 257, 1000]
SNIPPETS = [
    "[",
    "]",
    "${",
    "}",
    "$(",
    ")",
    "\\\n",
    '"',
    ";",
    "=",
    "\n",
    "[sp]",
    "${SIZE}",
    "{{",
    "}}",
    "{%",
    "%}",
    "@MobileNet_v2_bottleneck.ini.tpl",
    "**9",
    "\u00e9",
    "$SIZE=${ALPHA}\n",
    "[conv1]NbOutputs",
    "[conv1] conv1\n",
    "Input=fc\n",
    "Type=Conv\n",
    "Type=Resize\n",
    "Type=Softmax\n",
    "Mapping.NbGroups=3\n",
    "Mapping.Size=1\n",
    "Mapping.NbIterations=999999999\n",
    "NbOutputs=99999999\n",
    "WeightsFiller=UniformFiller\n",
    "WeightsFiller.Min=5\n",
    "PoolDims=0 0\n",
    "KernelDims=99999 99999\n",
    "StrideDims=0 1\n",
]


def damaged(generator: random.Random, text: str) -> str:
    """The text after one to three changes: of characters, lines, or values."""
    for _ in range(generator.randint(1, 3)):
        lines = text.split("\n")
        at, row = generator.randrange(len(text) + 1), generator.randrange(len(lines))
        action = generator.randrange(8)
        if action == 0:
            text = text[:at] + text[at + generator.randint(1, 12) :]
        elif action == 1:
            text = text[:at] + generator.choice(SNIPPETS) + text[at:]
        elif action == 2:
            lines.insert(generator.randrange(len(lines)), lines.pop(row))
            text = "\n".join(lines)
        elif action == 3:
            del lines[row : row + generator.randint(1, 3)]
            text = "\n".join(lines)
        elif action == 4:
            lines.insert(row, generator.choice(SNIPPETS).rstrip("\n"))
            text = "\n".join(lines)
        else:
            rows = [k for k, line in enumerate(lines) if "=" in line and not line.startswith(("#", ";"))]
            row = generator.choice(rows)
            name, value = lines[row].split("=", 1)
            number = re.search(r"\d+", value)
            if number and action == 5:
                value = value[: number.start()] + str(generator.choice(NUMBERS)) + value[number.end() :]
            else:
                value = generator.choice(VALUES)
            lines[row] = f"{name}={value}"
            text = "\n".join(lines)
    return text


def sources() -> list[str]:
    texts = []
    for path in sorted(MODELS.glob("*.ini")):
        text = path.read_text()
        if "Type=ONNX" not in text:
            for large, small in SMALL.items():
                text = text.replace(large, small)
            texts.append(text.replace("data/digits", str(MODELS / "data" / "digits")))
    return texts


def outcome(*options: str) -> str:
    """ "loaded", or the first code of the refusal. Anything but an N2D2Error is a failure."""
    log.setup(quiet=True)
    start = time.process_time()
    try:
        load_network(*read_command(["net.ini", "-seed", "1", "-w", "/dev/null", *options]))
        result = "loaded"
    except N2D2Error as error:
        for one in error.errors:
            line = one.line()
            assert "\n" not in line and len(line) < 1200 and one.code != "E099", line
        result = error.code
    assert time.process_time() - start < SECONDS, Path("net.ini").read_text()
    return result


@pytest.fixture
def bounded_memory():
    """No more than a gigabyte above what is in use now can be allocated; beyond it is a MemoryError, a failure."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + GIGABYTE, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is measured by /proc")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_damaged_files_load_or_are_refused(seed, bounded_memory):
    generator, texts = random.Random(seed), sources()
    described, run = [], []
    for number in range(PER_SEED):
        Path("net.ini").write_text(damaged(generator, texts[number % len(texts)]))
        described.append(outcome("-describe"))
        run.append(outcome("-export", "CPP", "-nbbits", "-32"))
    assert 0 < described.count("loaded") < PER_SEED, described
    assert 0 < run.count("loaded") < PER_SEED, run


def test_undamaged_files_load():
    for text in sources():
        Path("net.ini").write_text(text)
        result = outcome("-describe")
        assert result in ("loaded", "E226"), text[:60]  # E226: a type of layer that does not exist (yet)
