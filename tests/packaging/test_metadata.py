"""What the package index shows: links that lead somewhere, the versions that are supported."""

from __future__ import annotations

import configparser
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def setup_module():
    spec = importlib.util.spec_from_file_location("n2d2py_setup", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def links(text: str) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", text)


def test_links_of_the_readme_are_absolute_where_the_address_is_known(setup_module):
    text = setup_module.description("https://example.org/n2d2py", "1.2.3")
    found = links(text)
    assert len(found) == len(links((ROOT / "README.md").read_text())) > 5
    for link in found:
        assert link.startswith("https://")
        match = re.fullmatch(r"https://example\.org/n2d2py/(blob|raw)/v1\.2\.3/([^#]+)(#.*)?", link)
        if match:
            assert (ROOT / match[2]).exists(), link
            assert (match[1] == "raw") == (Path(match[2]).suffix in (".png", ".svg"))


def test_links_are_text_where_it_is_not(setup_module):
    text = setup_module.description("", "1.2.3")
    assert all(link.startswith("https://") for link in links(text))
    assert setup_module.addresses("") == {} and "# n2d2py" in text


def test_the_python_versions_are_those_of_the_classifiers():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    versions = re.findall(r"Python :: 3\.(\d+)", config["metadata"]["classifiers"])
    assert versions == ["10", "11", "12", "13"]
    assert config["options"]["python_requires"] == f">=3.{versions[0]}"
    assert f'target-version = "py3{versions[0]}"' in (ROOT / "ruff.toml").read_text()
