"""Builds a document from its lines: sections in order, inheritance, template inclusion.

A header with a template (`[name@file]`) opens an ordinary section; when the next header or the end
of the text is reached, the template is rendered with that section's properties and its lines are
built at this place.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from n2d2py.errors import ErrorList, Location, N2D2Error, nearest
from n2d2py.ini import lexer
from n2d2py.ini.document import Document
from n2d2py.ini.inclusion import Inclusions
from n2d2py.ini.section import Section

MAX_ERRORS = 20


def load_document(path: Path | str) -> Document:
    """Read an INI file with the templates that it includes.

    Raises:
        N2D2Error: E101 to E107, E116 to E118 and E120 with file and line; an ErrorList for several (20 at most);
            E123 at once.
    """
    document = Document(Path(path))
    document.files.append(document.path)
    builder = _Builder(document)
    builder.add_lines(lexer.read_lines(document.path), None)
    ErrorList.raise_if(builder.errors[:MAX_ERRORS])
    return document


class _Builder:
    """Adds lines to the document; collects errors so that one run shows them all."""

    def __init__(self, document: Document):
        self.errors: list[N2D2Error] = []
        self._document = document
        self._inclusions = Inclusions(document)

    def add_lines(self, lines: Sequence[lexer.SourceLine], includer: Section | None) -> None:
        """Build the sections of one text; those of a template know the section including it."""
        logical = list(lexer.join_lines(lines))
        section = self._document.globals
        header = None
        for index, line in enumerate(logical):
            try:
                item = lexer.parse_line(line, section.name or None)
                if isinstance(item, lexer.Assignment):
                    section.assign(item.name, item.value, item.where)
                elif item is not None:
                    self._include(section, header)
                    section, header = self._open(item, includer, logical, index), item
            except N2D2Error as error:
                if error.code == "E123":
                    raise
                self._keep(error)
                if line.text.lstrip().startswith("["):
                    section, header = self._detached(line), None
            if len(self.errors) >= MAX_ERRORS:
                return
        self._include(section, header)

    def _keep(self, error: N2D2Error) -> None:
        self.errors.extend(error.errors)

    def _detached(self, line: lexer.SourceLine) -> Section:
        """Take the properties below an unreadable header, so that they harm no other section."""
        return Section(self._document, "", Location(line.file, line.line))

    def _open(self, header: lexer.Header, includer: Section | None, lines: Sequence[lexer.SourceLine], index: int) -> Section:
        bases = []
        for name in header.bases:
            base = self._document.section(name)
            if base is None:
                self._keep(self._unknown_base(name, header, lines[index + 1 :]))
            else:
                bases.append(base)
        section = Section(self._document, header.name, header.where, tuple(bases), includer)
        self._document.add(section)
        if includer is not None:
            section.assign("$PARENT_SECTION_NAME", includer.name, header.where)
        return section

    def _unknown_base(self, name: str, header: lexer.Header, rest: Sequence[lexer.SourceLine]) -> N2D2Error:
        later = _line_of_header(name, rest)
        like = nearest(name, [section.name for section in self._document.sections])
        if name == header.name:
            remedy = "a section cannot be its own base"
        elif later is not None:
            remedy = f"[{name}] is declared later, at line {later}: move it up"
        else:
            remedy = f"did you mean '{like}'?" if like else f"declare [{name}] before this section"
        return N2D2Error("E107", f"base section '{name}' is not declared before this line", where=header.where, remedy=remedy)

    def _include(self, section: Section, header: lexer.Header | None) -> None:
        if header is None or header.template is None:
            return
        try:
            lines = self._inclusions.render(section, header)
        except N2D2Error as error:
            self._keep(error)
        else:
            self.add_lines(lines, section)


def _line_of_header(name: str, lines: Sequence[lexer.SourceLine]) -> int | None:
    for line in lines:
        if line.text.lstrip().startswith(f"[{name}"):
            try:
                item = lexer.parse_line(line, None)
            except N2D2Error:
                continue
            if isinstance(item, lexer.Header) and item.name == name:
                return line.line
    return None
