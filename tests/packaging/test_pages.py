"""The pages of the documentation: how long they and their sentences are, how guides begin, and what leads to them."""

import re
from pathlib import Path

import pytest
from support.pages import ROOT

DOCS = ROOT / "docs"
GENERATED = {"errors.md", "export_parameters.md", "instruction_sets.md", "layer_types.md", "operators.md", "options.md"}
LONGEST = {"tutorials": 900, "how-to": 900, "explanation": 1500}
"""Words of a page, without code and tables, by its folder."""
LONGEST_SENTENCE = 40


def pages() -> list[Path]:
    """Return every page that is written by hand."""
    return sorted(path for path in DOCS.rglob("*.md") if path.parent != DOCS or path.name not in GENERATED)


def sentences(text: str) -> list[str]:
    """Return the sentences of a page, without headings, code and tables; links are their texts."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(\||#|    (?![-*\d])).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"`[^`]*`", "code", re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text))
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text)
    return [sentence for part in parts for sentence in re.split(r"(?<=[.!?])[*\"')]*\s+", part.strip()) if sentence]


def words(text: str) -> int:
    """Count words and numbers."""
    return len(re.findall(r"[A-Za-z0-9][\w'/.,-]*", text))


@pytest.mark.parametrize("page", pages(), ids=lambda path: path.relative_to(DOCS).as_posix())
def test_length(page):
    text = page.read_text(encoding="utf-8")
    found = sentences(text)
    assert [sentence for sentence in found if words(sentence) > LONGEST_SENTENCE] == []
    kind = page.relative_to(DOCS).parts[0]
    assert sum(map(words, found)) <= LONGEST.get(kind, 10**6)
    if kind in ("tutorials", "how-to"):
        lines = [line for line in text.splitlines() if line]
        assert lines[0].startswith("# ") and lines[1].startswith("- **Result:** ") and lines[2].startswith("- **For:** ")


def test_readme_and_contributor_guide():
    for name in ("README.md", "CONTRIBUTING.md"):
        found = sentences((ROOT / name).read_text(encoding="utf-8"))
        assert [sentence for sentence in found if words(sentence) > LONGEST_SENTENCE] == []


def test_links_of_the_root_and_of_code():
    """Pages that README, guide, changelog and sources name exist; bin/docs checks the links between pages."""
    named = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    named += [
        path for folder in ("n2d2py", "kernels", "benchmarks") for path in sorted((ROOT / folder).rglob("*")) if path.is_file()
    ]
    missing = []
    for path in named:
        if path.suffix in (".py", ".md", ".hpp"):
            for link in re.findall(r"(?<![\w/])docs/[a-z\d_/-]+\.(?:md|png|svg)", path.read_text(encoding="utf-8")):
                if not (ROOT / link).is_file():
                    missing.append(f"{path.relative_to(ROOT)}: {link}")
    assert missing == []


def test_navigation_of_the_site():
    """Every page has its place; bin/docs refuses a site with a page that the navigation leaves out."""
    navigation = set(re.findall(r"[\w/-]+\.md", (DOCS / "site" / "mkdocs.yml").read_text(encoding="utf-8")))
    written = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if path.parent != DOCS / "site"}
    assert sorted(page for page in written - navigation if not page.startswith("sections/")) == []
