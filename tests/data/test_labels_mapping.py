"""The file of LabelsMapping."""

import numpy as np
import pytest
from support.errors import error_line, error_of
from support.tables import every

from n2d2py import log
from n2d2py.data import read_labels_mapping

NAMES = ("/cat", "/dog", "/big dog", "/bird")


@pytest.fixture
def mapping(tmp_path):
    def read(text):
        path = tmp_path / "labels.dat"
        path.write_text(text)
        return read_labels_mapping(path, NAMES)

    return read


def test_labels_blanks_quotes_and_comments(mapping):
    read = mapping('# classes\n/cat 1 # the cat\n"/big dog"   0\n/bird -1\n\n/dog 2\n')
    assert read.targets(np.array([0, 1, 2, 3])).tolist() == [1, 2, 0, -1]
    assert mapping("/big dog 7\ndefault 0\n").targets(np.array([2, 0])).tolist() == [7, 0]


def test_wildcards_default_and_no_label(mapping):
    read = mapping("/*dog 1\n/c?t 0\ndefault -1\n* 3\n")
    assert read.targets(np.array([0, 1, 2, 3, -1])).tolist() == [0, 1, 1, -1, 3]
    assert read.names(3) == ["/cat", "/dog +1", "2"]


def test_a_label_without_output_is_an_error_when_it_is_met(mapping, tmp_path):
    read = mapping("/cat 0\n")
    assert read.targets(np.array([0, 0])).tolist() == [0, 0]
    for label, called in ((1, "label '/dog'"), (-1, "a stimulus without label"), (9, "label 9")):
        assert error_line(read.targets, np.array([0, label])).startswith(f"N2D2-E413: {tmp_path}/labels.dat: {called} has no")


def test_a_label_that_the_database_does_not_have(mapping):
    mapping("/cats 0\n")
    (warning,) = log.warnings_seen()
    assert warning.code == "W405" and "did you mean '/cat'?" in warning.line()


@every(
    "text, message",
    [
        ("/cat\n", "1: "),
        ("/cat x\n", "1: "),
        ("\n/cat -2\n", "2: "),
        ("/cat 0\n/c* 1\n", "2: "),
        ("/cat 0\n/cat 0\n", "2: "),
        ("default 0\ndefault 1\n", "2: "),
        ('"/cat 0\n', "1: "),
    ],
)
def test_malformed_lines(mapping, text, message):
    line = error_line(mapping, text)
    assert "E412" in line and f"labels.dat:{message}" in line


def test_all_malformed_lines_together(mapping):
    assert len(error_of(mapping, "/cat\n/dog 0\n/dog x\n").errors) == 2


def test_a_missing_file(tmp_path):
    assert "E401" in error_line(read_labels_mapping, tmp_path / "gone", NAMES)
