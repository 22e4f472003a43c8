"""Construction of a document from lines: sections in order, inheritance, template inclusion.

A header with a template (`[name@file]`) opens an ordinary section. At the next header or the end of the text, the template is
rendered with the properties of this section, and its lines are inserted there.
"""

import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from n2d2py import resources
from n2d2py.errors import ErrorList, Location, N2D2Error, suggest
from n2d2py.ini import lexer
from n2d2py.ini.document import Document, Section, expand_text, path_below_models
from n2d2py.ini.template import Parameter, Renderer

MAX_INCLUSIONS = 1000
MAX_NESTING = 16
_RESERVED = ("SECTION_NAME", "SECTION_FILE_NAME")


def _models_folders() -> Iterator[Path]:
    if os.environ.get("N2D2_MODELS"):
        yield Path(os.environ["N2D2_MODELS"])
    try:
        yield resources.folder("models")
    except N2D2Error:
        return


MAX_ERRORS = 20


def load_document(path: Path | str) -> Document:
    """Read an INI file with the templates that it includes.

    Raises E101 to E107, E116 to E118 and E120 with file and line; an ErrorList for several (at most 20); E123 at once.
    """
    document = Document(Path(path))
    document.files.append(document.path)
    builder = _Builder(document)
    builder.add_lines(lexer.read_lines(document.path), None)
    ErrorList.raise_if(builder.errors[:MAX_ERRORS])
    return document


class _Builder:
    """Builder of a document from lines, and renderer of its templates, with limits on their number and depth."""

    def __init__(self, document: Document):
        self.errors: list[N2D2Error] = []
        self._document = document
        self._renderer = Renderer(self._find)
        self._count = 0

    def add_lines(self, lines: Sequence[lexer.SourceLine], includer: Section | None) -> None:
        """Build the sections of a text; sections of a template refer to the including section."""
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
                self.errors += error.errors
                if line.text.lstrip().startswith("["):
                    # properties after an unreadable header stay out of other sections
                    section, header = Section(self._document, "", Location(line.file, line.line)), None
            if len(self.errors) >= MAX_ERRORS:
                return
        self._include(section, header)

    def _open(self, header: lexer.Header, includer: Section | None, lines: Sequence[lexer.SourceLine], index: int) -> Section:
        bases = []
        for name in header.bases:
            base = self._document.section(name)
            if base is None:
                self.errors += self._unknown_base(name, header, lines[index + 1 :]).errors
            else:
                bases.append(base)
        section = Section(self._document, header.name, header.where, tuple(bases), includer)
        self._document.add(section)
        if includer is not None:
            section.assign("$PARENT_SECTION_NAME", includer.name, header.where)
        return section

    def _unknown_base(self, name: str, header: lexer.Header, rest: Sequence[lexer.SourceLine]) -> N2D2Error:
        header_of = re.compile(rf"\s*\[\s*{re.escape(name)}\s*[]@]")
        later = next((line.line for line in rest if header_of.match(line.text)), None)
        if name == header.name:
            remedy = "a section cannot be its own base"
        elif later is not None:
            remedy = f"[{name}] is declared later, at line {later}: move it up"
        else:
            known = [section.name for section in self._document.sections]
            remedy = suggest(name, known, f"declare [{name}] before this section")
        return N2D2Error("E107", f"base section '{name}' is not declared before this line", where=header.where, remedy=remedy)

    def _include(self, section: Section, header: lexer.Header | None) -> None:
        if header is None or header.template is None:
            return
        try:
            lines = self._render(section, header)
        except N2D2Error as error:
            self.errors += error.errors
        else:
            self.add_lines(lines, section)

    def _render(self, section: Section, header: lexer.Header) -> list[lexer.SourceLine]:
        """Return the lines that replace the inclusion opened by `header`. Raises E116, E117, E118, E120."""
        self._count += 1
        many = self._count > MAX_INCLUSIONS
        if many or len(section.includers()) >= MAX_NESTING:
            limit = f"{MAX_INCLUSIONS} inclusions" if many else f"{MAX_NESTING} nested inclusions"
            what = f"template '{header.template}' is refused: more than {limit}"
            raise N2D2Error("E117", what, where=header.where, remedy="remove the recursion")
        for name in _RESERVED:
            if name in section.keys():
                what = f"template parameter '{name}' is reserved"
                raise N2D2Error("E120", what, where=section.where(name), remedy="rename the property")
        section.mark_used()
        name = expand_text(section, header.template or "", header.where)
        path = self._find(name, header.where)
        parameters: dict[str, Parameter] = {key: partial(section.text, key) for key in section.keys()}
        own = {"SECTION_NAME": section.name, "SECTION_FILE_NAME": str(path)}
        return self._renderer.render(path, {**parameters, **own}, section.name)

    def _find(self, name: str, where: Location) -> Path:
        including = Path(where.file or "").parent
        folders = list(dict.fromkeys([including, self._document.folder, *_models_folders()]))
        roots = [root.resolve() for root in (self._document.folder, *_models_folders())]
        candidates = [folder / each for each in (name, path_below_models(name)) if each for folder in folders]
        files = [candidate for candidate in candidates if os.path.isfile(candidate)]
        for file in files:
            if any(file.resolve().is_relative_to(root) for root in roots):
                if file not in self._document.files:
                    self._document.files.append(file)
                return file
        if files:
            what = f"template '{name}' is outside the folder of the network"
            raise N2D2Error("E117", what, where=where, remedy="move it there, or set N2D2_MODELS to its folder")
        what = f"template '{name}' does not exist"
        raise N2D2Error("E116", what, where=where, remedy="put it next to the INI file or in N2D2_MODELS")
