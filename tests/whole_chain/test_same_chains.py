"""Small networks through the whole chain: what each stage makes of them, and what is said, changes on purpose only.

Forms of operators, sections of an INI, networks of several layers, .tflite files. Whoever changes that on purpose writes the records
again, all or those of one set, and looks at the difference:

    PYTHONPATH=tests python tests/whole_chain/test_same_chains.py [forms] [sections] [networks] [files]
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.chain_kept import KeptChains
from support.chain_networks import form_cases, ini_cases, line_cases, real_cases, text_cases, tflite_cases

FOLDER = Path(__file__).resolve().parent
FORMS = KeptChains(FOLDER / "same_forms.json", dict(form_cases()))
SECTIONS = KeptChains(FOLDER / "same_sections.json", dict(ini_cases()))
NETWORKS = KeptChains(FOLDER / "same_networks.json", {**dict(text_cases()), **dict(line_cases()), **dict(real_cases())})
FILES = KeptChains(FOLDER / "same_files.json", dict(tflite_cases()))


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", FORMS.cases)
def test_forms(name):
    assert FORMS.differences(name) == []


@pytest.mark.parametrize("name", SECTIONS.cases)
def test_sections(name):
    assert SECTIONS.differences(name) == []


@pytest.mark.parametrize("name", NETWORKS.cases)
def test_networks(name):
    assert NETWORKS.differences(name) == []


@pytest.mark.parametrize("name", FILES.cases)
def test_files(name):
    assert FILES.differences(name) == []


if __name__ == "__main__":
    sets = {"forms": FORMS, "sections": SECTIONS, "networks": NETWORKS, "files": FILES}
    for chosen in sys.argv[1:] or sets:
        sets[chosen].write()
