"""The table of options as text: `-h`, the documentation page and the man page."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from n2d2py.options.table import FUSED, GROUPS, IGNORED, OPTIONS, REFUSED, Option
from n2d2py.version import __version__

_USAGE = "n2d2py [options] NET.onnx|NET.tflite|NET.ini"
_PURPOSE = "convert an ONNX, TFLite or N2D2 INI network into a standalone integer C++ project"

COMMON = {
    "describe": "n2d2py net.onnx -describe",
    "export": "n2d2py net.onnx -export CPP -calib-data images/",
    "calib-data": "n2d2py net.onnx -export CPP -calib-data images/ -calib 200",
    "labels": "n2d2py net.onnx -export CPP -calib-data images/ -labels labels.csv -test",
    "mean": "n2d2py net.onnx -export CPP -calib-data images/ -mean 0.5,0.5,0.5 -std 0.5,0.5,0.5",
    "calib": "n2d2py net.ini -export CPP -calib 200",
    "nbbits": "n2d2py net.onnx -export CPP -nbbits -32",
    "test": "n2d2py net.onnx -export CPP -calib-data images/ -test",
    "quality": "n2d2py net.onnx -export CPP -calib-data images/ -quality best",
    "ram-budget": "n2d2py net.onnx -export CPP_MCU -calib-data images/ -ram-budget 65536",
    "export-parameters": "n2d2py net.onnx -export CPP -calib-data images/ -export-parameters low_memory",
    "o": "n2d2py net.onnx -export CPP -calib-data images/ -o build",
}
"""Options that `-h` shows, in this order -> an example."""


def option_values(option: Option) -> list[str]:
    """Return the values that an option accepts, [] if they cannot be listed."""
    from n2d2py.errors import N2D2Error
    from n2d2py.exports import target_names  # late: the parser works without exports
    from n2d2py.exports.parameters import preset_names

    if option.name == "export":
        return list(target_names())
    if option.name == "export-parameters":
        try:
            return preset_names()
        except N2D2Error:  # an installation without presets
            return []
    return [] if option.metavar == "TOPIC" else list(option.choices)


def _signature(option: Option) -> str:
    value = option.metavar and f" {option.metavar}"
    return f"-{option.name}" + (f" [{option.metavar}]" if option.kind.startswith("optional") else value)


def _default(option: Option) -> str:
    return "" if option.kind in ("flag", "optional-int") or option.default in (None, ()) else str(option.default)


def _bracketed(option: Option) -> str:
    return f" [{_default(option)}]" if _default(option) else ""


def _described(option: Option, values: Sequence[str]) -> str:
    """Return the help text and the values."""
    return option.doc + (f" {option.metavar}: {', '.join(values)}." if values else "")


def _documented(option: Option) -> str:
    """Return the help text for every installation, whatever exports and presets it has."""
    text = _described(option, () if option.metavar == "TOPIC" else option.choices)
    return text + (f" Applies to: {option.applies}." if option.applies else "")


def _indented(text: str) -> list[str]:
    return textwrap.wrap(text, 78, initial_indent=" " * 8, subsequent_indent=" " * 8, break_on_hyphens=False)


def _group(title: str) -> list[str]:
    lines = ["", f"{title}: {GROUPS[title][0]}"]
    for option in (option for option in OPTIONS if option.group == title):
        lines += [f"  {_signature(option)}", *_indented(_described(option, option_values(option)) + _bracketed(option))]
    return lines


def _single(option: Option) -> list[str]:
    facts = {
        "default": _default(option),
        "values": ", ".join(option_values(option)),
        "applies to": option.applies,
        "group": option.group.lower(),
        "page": f"docs/{option.page or GROUPS[option.group][1]}.md",
        "example": COMMON.get(option.name, ""),
    }
    width = max(map(len, facts))
    matches = [
        textwrap.fill(f"{name:{width}}  {text}", 78, subsequent_indent=" " * (width + 2), break_on_hyphens=False)
        for name, text in facts.items()
        if text
    ]
    return [_signature(option), *_indented(option.doc), "", *matches]


def help_text(topic: str = "common") -> str:
    """Return the text of `-h TOPIC`: the common options, "all", those of a group, or one option by its name."""
    table = {option.name: option for option in OPTIONS}
    if topic in table:
        return "\n".join(_single(table[topic]))
    titles = [title for title in GROUPS if topic in ("all", title.lower())]
    lines = [f"n2d2py {__version__}: {_PURPOSE}", "", f"usage: {_USAGE}"]
    if titles:
        return "\n".join([*(lines if topic == "all" else []), *(line for title in titles for line in _group(title))]).lstrip()
    lines += ["", "Common options:"]
    for name, example in COMMON.items():
        lines += [f"  {_signature(table[name])}", *_indented(table[name].summary), f"        {example}"]
    lines += [
        "",
        "More help:",
        "  -h all           every option",
        "  -h OPTION        one option, such as -h export, which lists the types",
    ]
    lines += ["  -h -export TYPE  the parameters of an export"]
    lines += [f"  -h {title.lower():13} {about}" for title, (about, _) in GROUPS.items()]
    return "\n".join(lines)


def options_page() -> str:
    """Return the documentation page of all options in Markdown."""
    lines = [
        "# Command line",
        "",
        f"`{_USAGE}`. Options may be given before or after the model. `n2d2py -h` prints the common ones, "
        "`n2d2py -h OPTION` explains one of them, `man n2d2py` shows this page in a terminal.",
        "Generated from `n2d2py/options/table.py` by `python -m n2d2py.docs`.",
        "",
        "## Common options",
        "",
        "| Option | Example |",
        "|---|---|",
        *(f"| [`-{name}`](#{name}) | `{example}` |" for name, example in COMMON.items()),
    ]
    for group, (about, page) in GROUPS.items():
        lines += ["", f"## {group}", "", f"{about[0].upper()}{about[1:]}. See [{page}.md]({page}.md).", ""]
        lines += ["| Option | Default | Meaning |", "|---|---|---|"]
        for option in (o for o in OPTIONS if o.group == group):
            doc = _documented(option) + (f" See [{option.page}.md]({option.page}.md)." if option.page else "")
            mark = f'<a id="{option.name}"></a>' if option.name in COMMON else ""
            cells = f"{mark}`{_signature(option)}`", _default(option), doc.replace("|", chr(92) + "|")
            lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |"))
    lines += ["", "## Options of N2D2", ""]
    for names, text in (
        (REFUSED, "These options of N2D2 are refused (E005)"),
        (FUSED, "These options have no effect, and a notice gives the reason"),
        (IGNORED, "These logging options have no effect, and a warning reports them (W011)"),
    ):
        lines.append(f"- {text}: {', '.join(f'`-{name}`' for name in names)}.")
    return "\n".join(lines) + "\n"


def man_page() -> str:
    """Return the manual page n2d2py(1) in the macros of man(7)."""

    def plain(text: str) -> str:
        escaped = text.replace("\\", "\\e").replace("-", "\\-")
        return "\\&" + escaped if escaped.startswith((".", "'")) else escaped

    lines = [
        f'.TH N2D2PY 1 "" "n2d2py {__version__}"',
        ".SH NAME",
        f"n2d2py \\- {plain(_PURPOSE)}",
        ".SH SYNOPSIS",
        ".B n2d2py",
        "[options] NET.onnx|NET.tflite|NET.ini",
        ".SH DESCRIPTION",
        plain("Options may be given before or after the model, with one dash or two. Values in brackets are defaults."),
    ]
    for group, (about, _) in GROUPS.items():
        lines += [f".SH {group.upper()} OPTIONS", plain(f"{about[0].upper()}{about[1:]}.")]
        for option in (o for o in OPTIONS if o.group == group):
            lines += [".TP", f".B {plain(_signature(option))}", plain(_documented(option) + _bracketed(option))]
    lines += [".SH EXAMPLES"]
    for example in COMMON.values():
        lines += [".PP", f".B {plain(example)}"]
    lines += [
        ".SH EXIT STATUS",
        plain(
            "0: success. 1: an error of the input or the environment. 2: a wrong command line. 3: a defect. 130: interrupted."
        ),
        ".SH SEE ALSO",
        plain("n2d2py -h, and the pages in docs/: options.md, errors.md, export_parameters.md."),
    ]
    return "\n".join(lines) + "\n"
