"""The table of options: every option is parsed anywhere on the line, converted, documented and kept."""

from __future__ import annotations

import re

import pytest

from n2d2py import __version__
from n2d2py.cli import main
from n2d2py.errors import N2D2Error
from n2d2py.options import OPTIONS, Option, help_text, options_page, parse_arguments

SAMPLES = {
    "int": ("12", 12),
    "float": ("0.25", 0.25),
    "text": ("word", "word"),
    "optional-int": ("7", 7),
    "optional-text": ("json", "json"),
    "flag": (None, True),
}


def sample(option: Option) -> tuple[list[str], object]:
    """Words that give the option a value other than its default, and that value."""
    if option.choices:
        text = next(choice for choice in option.choices if choice != option.default)
        return [f"-{option.name}", text], text
    text, value = SAMPLES[option.kind]
    value = (value,) if option.repeated else value
    return [f"-{option.name}"] + ([] if text is None else [text]), value


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_an_option_stands_before_or_after_the_network(option):
    words, value = sample(option)
    assert value != option.default
    for line in ([*words, "net.ini"], ["net.ini", *words], ["-seed", "3", "-nbbits", "16", "net.ini", *words]):
        arguments = parse_arguments(line)
        assert arguments.network == "net.ini"
        assert getattr(arguments, option.key) == value
        assert type(getattr(arguments, option.key)) is type(value)
        assert option.key in arguments.given


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_two_dashes_are_as_good_as_one(option):
    words, value = sample(option)
    assert getattr(parse_arguments([f"-{words[0]}", *words[1:], "net.ini"]), option.key) == value


def test_defaults():
    arguments = parse_arguments(["net.ini"])
    assert arguments.given == frozenset()
    values = {option.name: getattr(arguments, option.key) for option in OPTIONS}
    assert values == {option.name: option.default for option in OPTIONS}
    assert (
        values
        | {
            "seed": 1,
            "w": None,
            "w-ignore": False,
            "test": False,
            "nb-test": -1,
            "test-index": -1,
            "fuse": False,
            "compare": 0,
            "describe": None,
            "export": None,
            "nbbits": 8,
            "db-export": -1,
            "export-parameters": None,
            "calib": 0,
            "calib-reload": False,
            "calibOnly": False,
            "calib-data": None,
            "input-range": None,
            "act-clipping-mode": "MSE",
            "act-quantile-value": 0.9999,
            "wt-clipping-mode": "None",
            "act-rescaling-mode": "Floating-point",
            "act-rescale-per-output": 1,
            "no-unsigned": False,
            "no-cle": False,
            "o": ".",
            "log-outputs": 0,
            "strict": False,
            "quiet": False,
            "verbose": False,
            "h": False,
            "v": False,
        }
        == values
    )


def test_the_last_value_counts():
    assert parse_arguments(["-nbbits", "16", "net.ini", "-nbbits", "8"]).nbbits == 8


def test_negative_numbers_are_values():
    arguments = parse_arguments(["-calib", "-1", "-nbbits", "-32", "net.ini"])
    assert (arguments.calib, arguments.nbbits) == (-1, -32)


def test_the_optional_number_of_compare():
    assert parse_arguments(["net.ini", "-compare"]).compare == 10
    assert parse_arguments(["-compare", "net.ini"]).compare == 10
    assert parse_arguments(["net.ini", "-compare", "3", "-test"]).compare == 3


def test_options_of_n2d2_that_only_log_are_accepted():
    arguments = parse_arguments(["-log", "100", "net.ini", "-log-kernels", "-report", "5", "-test"])
    assert (arguments.network, arguments.test, arguments.given) == ("net.ini", True, frozenset({"test"}))


@pytest.mark.parametrize("name", ["learn-stdp", "ws", "pruning", "testAdv", "bench", "multidev"])
def test_options_of_training_are_refused(name):
    with pytest.raises(N2D2Error) as caught:
        parse_arguments(["net.ini", f"-{name}", "5"])
    assert caught.value.code == "E005" and f"-{name} " in caught.value.what


@pytest.mark.parametrize(
    "typed, meant",
    [
        ("-exprot", "-export"),
        ("-calib-onyl", "-calibOnly"),
        ("-desribe", "-describe"),
        ("--nb-bits", "-nbbits"),
        ("-Test", "-test"),
    ],
)
def test_an_unknown_option_names_the_nearest(typed, meant):
    with pytest.raises(N2D2Error) as caught:
        parse_arguments(["net.ini", typed])
    assert (caught.value.code, caught.value.remedy) == ("E002", f"did you mean {meant}?")


@pytest.mark.parametrize("option", [o for o in OPTIONS if o.minimum is not None], ids=lambda option: option.name)
def test_the_smallest_value_is_taken_and_the_one_below_refused(option):
    limit = int(option.minimum)
    if option.kind == "optional-int":
        with pytest.raises(N2D2Error, match="E003"):
            parse_arguments(["net.ini", f"-{option.name}", str(limit - 1)])
        return
    assert getattr(parse_arguments(["net.ini", f"-{option.name}", str(limit)]), option.key) == limit
    with pytest.raises(N2D2Error, match="E003"):
        parse_arguments(["net.ini", f"-{option.name}", str(limit - 1)])


@pytest.mark.parametrize(
    "option", [o for o in OPTIONS if o.kind not in ("flag", "optional-int", "optional-text")], ids=lambda option: option.name
)
def test_an_option_is_no_value(option):
    for line in (["net.ini", f"-{option.name}"], ["net.ini", f"-{option.name}", "-strict"]):
        with pytest.raises(N2D2Error, match="E003.* needs a value"):
            parse_arguments(line)


def test_help_has_every_option_with_its_default(capsys):
    assert main(["-h"]) == 0
    text = capsys.readouterr().out
    assert text == help_text() + "\n"
    for option in OPTIONS:
        entry = re.search(rf"^  -{re.escape(option.name)}(?: .*)?\n((?: {{8}}.*\n?)+)", text, re.MULTILINE)
        assert entry is not None, option.name
        words = " ".join(entry[1].split())
        assert words.startswith(option.doc.split(" stand for")[0][:60].strip()), option.name
        assert all(choice in words for choice in option.choices)
        if option.kind not in ("flag", "optional-int", "optional-text") and option.default not in (None, ()):
            assert words.endswith(f"[{option.default}]")
    assert all(len(line) <= 100 for line in text.splitlines())


def test_help_wins_over_the_rest(capsys):
    assert main(["-h", "net.ini", "-test"]) == 0
    assert "usage: n2d2py" in capsys.readouterr().out
    assert main(["--help"]) == 0


def test_version(capsys):
    assert main(["-v"]) == 0 == main(["--version"])
    assert capsys.readouterr().out == f"n2d2py {__version__}\n" * 2


def test_the_page_has_a_row_of_three_cells_for_each_option():
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in options_page().splitlines() if line.startswith("| `-")]
    assert [len(row) for row in rows] == [3] * len(OPTIONS)
    assert [row[0].strip(" `").split()[0] for row in rows] == [
        f"-{o.name}" for group in dict.fromkeys(o.group for o in OPTIONS) for o in OPTIONS if o.group == group
    ]
