"""The text of `-h`."""

import textwrap

from n2d2py.options.table import GROUPS, OPTIONS, Option
from n2d2py.version import __version__

USAGE = "n2d2py [options] NET.onnx|NET.tflite|NET.ini"
PURPOSE = "convert an ONNX, TFLite or N2D2 INI network into a standalone integer C++ project"

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
    from n2d2py.exports.registry import preset_names

    if option.name == "export":
        return list(target_names())
    if option.name == "export-parameters":
        try:
            return preset_names()
        except N2D2Error:  # an installation without presets
            return []
    return [] if option.metavar == "TOPIC" else list(option.choices)


def _indented(text: str) -> list[str]:
    return textwrap.wrap(text, 78, initial_indent=" " * 8, subsequent_indent=" " * 8, break_on_hyphens=False)


def _group(title: str) -> list[str]:
    lines = ["", f"{title}: {GROUPS[title][0]}"]
    for option in (option for option in OPTIONS if option.group == title):
        default = f" [{option.default_text}]" if option.default_text else ""
        lines += [f"  {option.signature}", *_indented(option.described(option_values(option)) + default)]
    return lines


def _single(option: Option) -> list[str]:
    facts = {
        "default": option.default_text,
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
    return [option.signature, *_indented(option.doc), "", *matches]


def help_text(topic: str = "common") -> str:
    """Return the text of `-h TOPIC`: the common options, "all", those of a group, or one option by its name."""
    table = {option.name: option for option in OPTIONS}
    if topic in table:
        return "\n".join(_single(table[topic]))
    titles = [title for title in GROUPS if topic in ("all", title.lower())]
    lines = [f"n2d2py {__version__}: {PURPOSE}", "", f"usage: {USAGE}"]
    if titles:
        return "\n".join([*(lines if topic == "all" else []), *(line for title in titles for line in _group(title))]).lstrip()
    lines += ["", "Common options:"]
    for name, example in COMMON.items():
        lines += [f"  {table[name].signature}", *_indented(table[name].summary), f"        {example}"]
    lines += [
        "",
        "More help:",
        "  -h all           every option",
        "  -h OPTION        one option, such as -h export, which lists the types",
    ]
    lines += ["  -h -export TYPE  the parameters of an export"]
    lines += [f"  -h {title.lower():13} {about}" for title, (about, _) in GROUPS.items()]
    return "\n".join(lines)
