"""Reads the cases of cases/*.txt: what is run, on which files, and the code and place of each message.

A case::

    === its title
    $ net.ini -describe                     the command line; {export} stands for EXPORT
    make bad.onnx truncated_onnx            bad.onnx is made by error_files.truncated_onnx
    net.ini: NbOutputs=3 -> NbOutputs=0     the first occurrence of a text in a file is replaced; \\n is a line end
    file other.ini                          the lines up to `end` are a file
    ...
    end
    exit 1                                  the exit status, 1 by default
    error N2D2-E122: ...                    every error line of stderr, in order

The files of `error_files.write_workspace` are always there. Warnings are compared where a case lists any.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

from support import error_files

EXPORT = "-w weights.npz -export CPP -calib -1 -db-export 2"


@dataclass
class Case:
    """One command line with the files that it needs and what it must print."""

    title: str
    words: list[str] = field(default_factory=list)
    made: dict[str, str] = field(default_factory=dict)
    changes: list[tuple[str, str, str]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    status: int = 1
    lines: list[str] = field(default_factory=list)

    def prepare(self, folder: Path) -> None:
        """Writes the case's files into a workspace."""
        for name, maker in self.made.items():
            getattr(error_files, maker)(folder / name)
        for name, text in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        for name, old, new in self.changes:
            text = (folder / name).read_text()
            if old not in text:
                raise ValueError(f"{self.title}: '{old}' is not in {name}")
            (folder / name).write_text(text.replace(old, new, 1))


def read_cases(path: Path) -> list[Case]:
    """The cases of a file.

    Raises:
        ValueError: for a line that is none of a case.
    """
    cases: list[Case] = []
    lines = iter(path.read_text().splitlines())
    for line in lines:
        word, _, rest = line.partition(" ")
        if not line.strip() or line.startswith("#"):
            continue
        if word == "===":
            cases.append(Case(rest))
        elif word == "$":
            cases[-1].words = rest.replace("{export}", EXPORT).split()
        elif word == "make":
            name, maker = rest.split()
            cases[-1].made[name] = maker
        elif word == "file":
            body = []
            for inner in lines:
                if inner == "end":
                    break
                body.append(inner)
            cases[-1].files[rest] = "\n".join(body) + "\n"
        elif word == "exit":
            cases[-1].status = int(rest)
        elif word in ("error", "warning"):
            cases[-1].lines.append(line)
        elif word.endswith(":") and " -> " in rest:
            old, new = (part.replace("\\n", "\n") for part in rest.split(" -> "))
            cases[-1].changes.append((word[:-1], old, new))
        else:
            raise ValueError(f"{path.name}: '{line}'")
    return cases


def snapshot(folder: Path) -> dict[str, str]:
    """Every path under a folder with the digest of its bytes; hidden ones too."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in sorted(folder.rglob("*"))
    }


def messages(text: str, *kinds: str) -> list[str]:
    """Return the lines of stderr of some kinds ("error", "warning")."""
    return [line for line in text.splitlines() if line.startswith(tuple(f"{kind} " for kind in kinds))]


def headline(line: str) -> str:
    """Return the kind (if any), the code and the place (file:line [section]) of a message, without its sentence."""
    found = re.match(r"(?:\w+ )?N2D2-[EW]\d{3}(: [^\s:]+(:\d+)?( \[[^\]]*\])?(?=: ))?", line)
    return found[0] if found else line


def code_of(message: str) -> str:
    """The code of a message, "" for other text."""
    found = re.match(r"(?:error |warning )?N2D2-([EW]\d{3})", message)
    return found[1] if found else ""
