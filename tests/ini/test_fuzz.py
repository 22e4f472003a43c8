"""Mutated INI files: each one loads and reads, or gives errors of the tool; nothing else."""

from __future__ import annotations

import random
import time
from pathlib import Path

from support.tables import every

from n2d2py.errors import N2D2Error
from n2d2py.ini import Key, Kind, Schema, load_document
from n2d2py.ini.ignored import COVERED

TEMPLATE = (
    "[{{SECTION_NAME}}_a] conv_def\nInput={{INPUT}}\n{% for i in range(N) %}\n"
    "[{{SECTION_NAME}}_{{i}}]\nX=$({{i}} * 2)\n{% endfor %}\n{% if N == 2 %}\n[two]\n"
    "{% endif %}\n{% block N %}\n[b{{#}}]\n{% endblock %}\n"
)
INCLUSION = "[blk@t.tpl]\nINPUT=conv1\nN=2\n"
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
    "\0",
    "[sp]",
    "${SIZE}",
    "{{",
    "}}",
    "{%",
    "%}",
    "@t.tpl",
    "**9",
    "\xff",
    "$SIZE=${ALPHA}\n",
    "[conv1]NbOutputs",
    "{% endif %}",
    "[conv1] conv1\n",
    "999999999",
    "-",
    "\r",
    " ",
]
READER = Schema(
    "Any",
    (
        Key("NbOutputs", Kind.UINT, 0),
        Key("KernelDims", Kind.UINTS, ()),
        Key("Input", Kind.NAMES, ()),
        Key("Padding", Kind.INT, 0),
    ),
    accepted=(COVERED,),
)


def mutated(generator: random.Random, text: str) -> str:
    for _ in range(generator.randint(1, 6)):
        at = generator.randrange(len(text) + 1)
        action = generator.randrange(4)
        if action == 0:
            text = text[:at] + text[at + generator.randint(1, 12) :]
        elif action == 1:
            text = text[:at] + generator.choice(SNIPPETS) + text[at:]
        elif action == 2:
            end = min(len(text), at + generator.randint(1, 60))
            into = generator.randrange(len(text) + 1)
            text = text[:into] + text[at:end] + text[into:]
        else:
            text = text[:at] + chr(generator.randrange(1, 0x250)) + text[at + 1 :]
    return text


def read_all() -> None:
    document = load_document(Path("net.ini"))
    for section in [document.globals, *document.sections]:
        try:
            READER.read(section)
        except N2D2Error as error:
            assert error.code.startswith("E1") and "\n" not in error.line()
        for key in section.keys():
            try:
                section.text(key)
            except N2D2Error as error:
                assert error.code.startswith("E1")
    document.notice_unused()


@every("seed", range(8))
def test_mutations_load_or_are_refused(seed, workdir):
    generator = random.Random(seed)
    source = Path(__file__).with_name("worked_example.ini").read_text() + INCLUSION
    outcomes = {"read": 0, "refused": 0}
    for _ in range(100):
        Path("net.ini").write_text(mutated(generator, source))
        Path("t.tpl").write_text(mutated(generator, TEMPLATE) if generator.random() < 0.3 else TEMPLATE)
        start = time.process_time()
        try:
            read_all()
            outcomes["read"] += 1
        except N2D2Error as error:
            assert error.code.startswith("E1")
            outcomes["refused"] += 1
        assert time.process_time() - start < 1
    assert min(outcomes.values()) > 10, outcomes
