"""Lexical rules and sections: BOM, CRLF, comments, quotes, continuation; order, inheritance, duplicates, places, patterns."""

import os
from pathlib import Path

from support.error_cases import headline
from support.errors import error_line
from support.tables import every

from n2d2py import log
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


def test_all_malformed_lines_are_listed_together(refusal):
    lines = refusal('[a]\nX\n[b\nX=1\nY=2\n[c]\nZ="\n[a]\n')
    assert [line.split(":")[0] for line in lines] == ["N2D2-E104", "N2D2-E105", "N2D2-E103", "N2D2-E106"]


def test_junk_gives_at_most_twenty_errors(refusal):
    assert len(refusal("junk\n" * 500)) == 20


def test_unreadable_files(workdir: Path):
    def message(path: str) -> str:
        return headline(error_line(lambda: load_document(Path(path))))

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


def test_order_places_and_names(load):
    document = load("DefaultModel=Frame\n[b]\nX=1\n\n[a] b\nY=2\n")
    assert [section.name for section in document.sections] == ["b", "a"]
    assert (document.globals.name, document.globals.text("DefaultModel")) == ("", "Frame")
    section = document.section("a")
    assert str(section.location) == "net.ini:5 [a]"
    assert str(section.where("Y")) == "net.ini:6 [a]"
    assert str(section.where("X")) == "net.ini:3 [a]"
    assert str(section.where("absent")) == "net.ini:5 [a]"
    assert "a" in document and "c" not in document and document.section("c") is None


def test_first_listed_base_wins_and_own_properties_override(load, warned):
    document = load("[x]\nP=x\nQ=x\nR=x\n[y]\nP=y\nQ=y\nS=y\n[z] x y\nQ=z\n")
    section = document.section("z")
    assert {key: section.text(key) for key in section.keys()} == {"P": "x", "Q": "z", "R": "x", "S": "y"}
    assert warned() == []


def test_inheritance_is_transitive_and_needs_no_blank(load):
    document = load("[a]\nP=1\n[b]a\nQ=2\n[relu]b\n")
    assert document.section("relu").keys() == ["P", "Q"]


def test_base_with_config_section_is_inherited(load):
    document = load("[def]\nConfigSection=cfg\n[c] def\n[cfg]\nNoBias=1\n")
    assert document.section("c").text("ConfigSection") == "cfg"


def test_a_base_declared_later_or_not_at_all(refusal):
    assert refusal("[c] def\nX=1\n[def]\n") == ["N2D2-E107: net.ini:1 [c]"]
    assert refusal("[conv_def]\n[c] conv_deff\n") == ["N2D2-E107: net.ini:2 [c]"]
    assert refusal("[c] c\n") == ["N2D2-E107: net.ini:1 [c]"]


def test_a_section_declared_twice_names_both_lines(refusal):
    assert refusal("[a]\nX=1\n[b]\n[a]\nX=2\n") == ["N2D2-E106: net.ini:4 [a]"]


def test_a_key_given_twice_warns_and_the_last_value_is_used(load, warned):
    assert load("[a]\nX=1\nX=2\n").section("a").text("X") == "2"
    assert warned() == ["N2D2-W101: net.ini:3 [a]"]


def test_missing_property(load):

    section = load("[a]\nKernelSize=3\n").section("a")
    assert headline(error_line(section.text, "KernelSzie")) == ("N2D2-E108: net.ini:1 [a]")


def test_unused_sections_are_noticed(load, capsys):
    document = load("[def]\nA=1\n[used] def\n[lost]\nB=1\n[marked]\n[referred]\nW=3\n[r]\nX=[referred]W\n")
    document.section("used").text("A")
    document.section("marked").mark_used()
    document.section("r").text("X")
    document.notice_unused()
    assert capsys.readouterr().err == "net.ini:4 [lost]: this section is unused\n"


def test_patterns_find_sections_in_order(load):
    document = load("[sp.Transformation-2]\n[sp]\n[sp.Transformation-1]\n[a/b:0.Target-Top5]\n")
    assert [section.name for section in document.matching("sp.Transformation*")] == [
        "sp.Transformation-2",
        "sp.Transformation-1",
    ]
    assert [section.name for section in document.matching("a/b:0.Target*")] == ["a/b:0.Target-Top5"]
    assert document.matching("s?.*") == document.matching("sp.Transformation*")


def test_quiet_hides_the_notice(load, capsys):
    log.setup(quiet=True)
    load("[lost]\n").notice_unused()
    assert capsys.readouterr().err == ""
