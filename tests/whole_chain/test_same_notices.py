"""What a user is told on the way from a file to integers, with -verbose: notices and details change on purpose only.

Whoever changes them on purpose writes the record again and looks at the difference:

    PYTHONPATH=tests python tests/whole_chain/test_same_notices.py
"""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
from functools import cache
from pathlib import Path

import pytest
from support.chain_networks import Case, form_cases, ini_cases, text_cases, tflite_cases

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.options import read_command
from n2d2py.pipeline import load_network
from n2d2py.stages.calibrate import calibrate_stage
from n2d2py.stages.fuse import fuse_stage
from n2d2py.stages.quantize import quantize_stage

KEPT = Path(__file__).resolve().parent / "same_notices.json"
CASES: dict[str, Case] = {
    **{f"form, {name}": case for name, case in form_cases()},
    **{f"section, {name}": case for name, case in ini_cases()},
    **{f"network, {name}": case for name, case in text_cases()},
    **{f"file, {name}": case for name, case in tflite_cases()},
}
_REAL = re.compile(r"-?\d+\.\d+(e[-+]\d+)?|-?\d+e[-+]\d+")
"""Real numbers, whose last digits depend on the machine."""
_LEFT_OUT = ("fuse:", "Layer:", "bias correction", "biases corrected")
"""Beginnings of lines that other records have, or that the last digits of real numbers decide about."""


class _Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.levelno <= log.NOTICE and not text.startswith(_LEFT_OUT):
            self.lines.append(_REAL.sub("#", text).replace(f"{Path.cwd()}/", ""))


def told(case: Case) -> list[str]:
    """The lines for a case, in a working folder of its own."""
    heard, logger = _Heard(), logging.getLogger("n2d2py")
    file = case.make(Path.cwd())
    log.setup(verbose=True)
    logger.handlers[:] = [heard]
    try:
        path, options = read_command([str(file), *case.words, "-o", str(file.parent)])
        network = load_network(path, options)
        fuse_stage(network, integer=options.quantization.integer)
        if options.quantization.integer:
            quantize_stage(calibrate_stage(network, options.calibration), options.quantization)
    except N2D2Error as error:
        heard.lines.append(error.code)
    finally:
        log.setup(quiet=True)
    return heard.lines


@cache
def kept() -> dict[str, list[str]]:
    return json.loads(KEPT.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", CASES)
def test_a_user_is_told_the_same(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert told(CASES[name]) == kept()[name]


def main() -> None:
    """Writes what the tests compare with."""
    found = {}
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            found[name] = told(case)
            os.chdir(KEPT.parent)
    KEPT.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
