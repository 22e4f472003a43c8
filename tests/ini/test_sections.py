"""Sections: order, inheritance, duplicates, places, use, patterns."""

from __future__ import annotations

from support.error_cases import headline

from n2d2py import log


def test_order_places_and_names(load):
    document = load("DefaultModel=Frame\n[b]\nX=1\n\n[a] b\nY=2\n")
    assert [section.name for section in document.sections] == ["b", "a"]
    assert (document.globals.name, document.globals.text("DefaultModel")) == ("", "Frame")
    section = document.section("a")
    assert str(section.location) == "net.ini:5 [a]"
    assert str(section.where("Y")) == "net.ini:6 [a]"
    assert str(section.where("X")) == "net.ini:3 [a]"
    assert str(section.where("absent")) == "net.ini:5 [a]"
    assert section.bases == ("b",)
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
    import pytest

    from n2d2py.errors import N2D2Error

    section = load("[a]\nKernelSize=3\n").section("a")
    with pytest.raises(N2D2Error) as caught:
        section.text("KernelSzie")
    assert headline(str(caught.value)) == ("N2D2-E108: net.ini:1 [a]")


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
