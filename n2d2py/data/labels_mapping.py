"""Mapping from labels to outputs: the file of LabelsMapping.

Lines `label output`; `#` starts a comment; a label may be quoted or contain blanks; output -1 is ignored. The label `*` means
stimuli without label, `default` all labels without a line; in other names, `*` matches any run of characters and `?` any one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from n2d2py import log
from n2d2py.data.text import parse_lines
from n2d2py.errors import Location, N2D2Error, suggest
from n2d2py.ini import wildcard_match

IGNORED = -1
_UNMAPPED = -2


@dataclass(frozen=True)
class LabelsMapping:
    """Output of each label id.

    Attributes:
        outputs: output by label id, -1 ignored, -2 without mapping.
        unlabelled: output of stimuli without label, -2 without mapping.
    """

    outputs: tuple[int, ...]
    unlabelled: int
    label_names: tuple[str, ...]
    file: str | None = None

    def targets(self, labels: np.ndarray) -> np.ndarray:
        """Return the output of each label id of an array (-1: no label); -1 if ignored.

        Raises: E413 if a label in the array has no output.
        """
        labels = np.asarray(labels, np.int64)
        table = np.array([*self.outputs, self.unlabelled], np.int64)
        inside = (labels >= -1) & (labels < len(self.outputs))
        targets = np.where(inside, table[np.where(inside, labels, -1)], _UNMAPPED)
        if (targets == _UNMAPPED).any():
            label = int(labels[targets == _UNMAPPED].reshape(-1)[0])
            what = f"{self._called(label)} has no output in the LabelsMapping"
            raise N2D2Error("E413", what, where=self.file, remedy="add a line for it, or a line 'default -1'")
        return targets

    def names(self, count: int) -> list[str]:
        """Return a name for each of `count` outputs: its first label and the number of others, or its number."""
        names_by_output: list[list[str]] = [[] for _ in range(count)]
        for name, output in zip(self.label_names, self.outputs, strict=True):
            if 0 <= output < count:
                names_by_output[output].append(name)
        groups = (names or [str(output)] for output, names in enumerate(names_by_output))
        return [names[0] + (f" +{len(names) - 1}" if len(names) > 1 else "") for names in groups]

    def _called(self, label: int) -> str:
        if label < 0:
            return "a stimulus without label"
        known = label < len(self.label_names)
        return f"label '{self.label_names[label]}'" if known else f"label {label}"


def read_labels_mapping(path: Path, label_names: Sequence[str]) -> LabelsMapping:
    """Return the mapping of a file for the labels of a database (names by id).

    Raises: E401 unreadable, E412 a malformed line or a label mapped twice (an ErrorList for several).
    """
    outputs = [_UNMAPPED] * len(label_names)
    given: dict[str, int] = {}

    def parse(line: str, where: Location) -> None:
        label, output = _parse(line, where)
        _refuse_duplicate(label in given, label, where)
        given[label] = output
        if label in ("*", "default"):
            return
        matched = [id for id, name in enumerate(label_names) if name == label or wildcard_match(label, name)]
        if not matched:
            what = f"label '{label}' is not in the database"
            log.warning("W405", what, where=where, remedy=suggest(label, label_names, "remove the line"))
        for id in matched:
            _refuse_duplicate(outputs[id] != _UNMAPPED, label_names[id], where)
            outputs[id] = output

    parse_lines(path, parse, comment="#")
    default = given.get("default", _UNMAPPED)
    mapped = tuple(default if one == _UNMAPPED else one for one in outputs)
    return LabelsMapping(mapped, given.get("*", _UNMAPPED), tuple(label_names), str(path))


def _parse(line: str, where: Location) -> tuple[str, int]:
    parts = line.rsplit(None, 1)
    label = parts[0].strip() if len(parts) == 2 else ""
    if len(label) > 1 and label[0] == label[-1] == '"':
        label = label[1:-1]
    if not label or '"' in label:
        what = f"line '{line}' is not 'label output'"
        raise N2D2Error("E412", what, where=where, remedy="write a label, a blank and the index of an output")
    try:
        output = int(parts[1])
    except ValueError:
        output = _UNMAPPED
    if output < IGNORED:
        what = f"'{parts[1]}' is not the index of an output"
        raise N2D2Error("E412", what, where=where, remedy="give 0 or more, or -1 to ignore the label")
    return label, output


def _refuse_duplicate(is_mapped: bool, label: str, where: Location) -> None:
    if is_mapped:
        raise N2D2Error("E412", f"label '{label}' is mapped twice", where=where, remedy="remove one of the lines")
