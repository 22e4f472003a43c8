"""Lexical rules: BOM, CRLF, comments, quotes, continuation, malformed lines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.error_cases import headline
from support.tables import every

from n2d2py.errors import N2D2Error
from n2d2py.ini import load_document


def test_bom_and_crlf_are_dropped(load):
    document = load(b"\xef\xbb\xbf$A=1\r\n[s]\r\nX=${A}\r\n\xef\xbb\xbfY=2\r\n")
    section = document.section("s")
    assert (section.text("X"), section.text("Y")) == ("1", "2")
    assert document.globals.macros() == ["A"]


@every(
    "line, value",
    [
        ("K=1 ; note", "1"),
        ("K=1# note", "1"),
        ("  K = a b  ", "a b"),
        ('K="a;b#c"', "a;b#c"),
        ('K="a;b" tail # c', '"a;b" tail'),
        ('K=x "#" y;z', 'x "#" y'),
        ("K=a=b", "a=b"),
        ("K=", ""),
        ('K=""', ""),
        ('K="a" "b"', '"a" "b"'),
        ('K=1 ; an odd " in a comment', "1"),
        ('K="', None),
    ],
)
def test_comments_quotes_and_blanks(load, refusal, line, value):
    if value is None:
        assert refusal(f"[s]\n{line}\n") == ["N2D2-E103: net.ini:2 [s]"]
    else:
        assert load(f"[s]\n{line}\n").section("s").text("K") == value


def test_quotes_protect_a_header(load):
    assert [section.name for section in load('["a;b"]\nX=1').sections] == ['"a;b"']


def test_names_keep_special_characters(load):
    names = ["Mapping(conv1)", "Mapping.Size", "Anchor[0]", "ConfigSection(Frame)", "Kernel[0][3].Sigma"]
    text = "[onnx:Conv_def]\n" + "".join(f"{name}=1\n" for name in names) + "$LR=2\n"
    section = load(text + "[MobilenetV1/Predictions/Softmax:0.Target-Top5]\n").sections[0]
    assert section.keys() == names
    assert section.macros() == ["LR"]


def test_continuation_joins_lines_and_keeps_the_first_place(load, warned):
    section = load("[s]\nM=1 0 \\\n  0 1\\\n 1 1\nK=2\n").section("s")
    assert section.text("M").split() == ["1", "0", "0", "1", "1", "1"]
    assert section.text("M") == "1 0   0 1 1 1"
    assert (section.where("M").line, section.where("K").line) == (2, 5)
    assert warned() == []


def test_continuation_with_crlf(load):
    assert load(b"[s]\r\nM=1 \\\r\n2\r\n").section("s").text("M") == "1 2"


def test_comment_ending_in_backslash_swallows_the_next_line(load, warned):
    assert load("[s]\n; note \\\nA=1\nB=2\n").section("s").keys() == ["B"]
    assert warned() == ["N2D2-W106: net.ini:2"]


def test_blanks_after_backslash_do_not_continue(load, warned):
    section = load("[s]\nA=1 \\ \nB=2\n").section("s")
    assert (section.text("A"), section.text("B")) == ("1 \\", "2")
    assert warned() == ["N2D2-W104: net.ini:2"]


def test_continuation_at_the_end_keeps_the_text(load, warned):
    assert load("[s]\nA=1 2\\").section("s").text("A") == "1 2"
    assert warned() == ["N2D2-W105: net.ini:2"]


@every(
    "text, message",
    [
        ("[s]\nKernelSize\n", "N2D2-E104: net.ini:2 [s]"),
        ("Model\n", "N2D2-E104: net.ini:1"),
        ("[s]\n=3\n", "N2D2-E104: net.ini:2 [s]"),
        ("[s\nA=1", "N2D2-E105: net.ini:1"),
        ("[]\n", "N2D2-E105: net.ini:1"),
        ("[s@]\n", "N2D2-E105: net.ini:1"),
        (b"[s]\nA=\xe9\n", "N2D2-E102: net.ini:2"),
        (b"\x08\x00ONNX", "N2D2-E102: net.ini:1"),
    ],
)
def test_malformed_text(refusal, text, message):
    assert refusal(text) == [message]


def test_all_malformed_lines_are_listed_together(refusal):
    lines = refusal('[a]\nX\n[b\nX=1\nY=2\n[c]\nZ="\n[a]\n')
    assert [line.split(":")[0] for line in lines] == ["N2D2-E104", "N2D2-E105", "N2D2-E103", "N2D2-E106"]


def test_junk_gives_at_most_twenty_errors(refusal):
    assert len(refusal("junk\n" * 500)) == 20


def test_unreadable_files(workdir: Path):
    def message(path: str) -> str:
        with pytest.raises(N2D2Error) as caught:
            load_document(Path(path))
        return headline(str(caught.value))

    (workdir / "folder").mkdir()
    os.mkfifo("pipe")
    assert message("none.ini") == "N2D2-E101: none.ini"
    assert message("folder") == ("N2D2-E101: folder")
    assert message("pipe") == "N2D2-E101: pipe"
    assert message("/dev/zero") == "N2D2-E101: /dev/zero"
    assert message("a\0b").startswith("N2D2-E101: ")
    assert message("x" * 300) == f"N2D2-E101: {'x' * 300}"


def test_an_empty_file_is_an_empty_document(load):
    document = load("")
    assert (document.sections, document.globals.keys(), document.name) == ([], [], "net")
