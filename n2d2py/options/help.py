"""The table of options as text: `-h`, and the documentation page."""

from __future__ import annotations

from n2d2py.options.table import FUSED, IGNORED, OPTIONS, REFUSED, Option
from n2d2py.version import __version__


def _signature(option: Option) -> str:
    value = {"flag": "", "optional-int": f" [{option.metavar}]", "optional-text": f" [{option.metavar}]"}.get(
        option.kind, f" {option.metavar}"
    )
    return f"-{option.name}{value}"


def _default(option: Option) -> str:
    return "" if option.kind in ("flag", "optional-int") or option.default in (None, ()) else f" [{option.default}]"


def help_text() -> str:
    """What `-h` prints."""
    import textwrap

    lines = [
        f"n2d2py {__version__}: from an INI, ONNX or TFLite network to a standalone integer C++ project",
        "",
        "usage: n2d2py [options] NET.ini|NET.onnx|NET.tflite",
    ]
    for group in dict.fromkeys(option.group for option in OPTIONS):
        lines += ["", f"{group}:"]
        for option in (o for o in OPTIONS if o.group == group):
            doc = option.doc + (f": {', '.join(option.choices)}" if option.choices else "") + _default(option)
            wrapped = textwrap.wrap(doc, 70)
            lines += [f"  {_signature(option)}"] + [f"        {line}" for line in wrapped]
    return "\n".join(lines)


def options_page() -> str:
    """The documentation page of all options, Markdown."""
    lines = [
        "# Command line",
        "",
        "`n2d2py [options] NET.ini|NET.onnx|NET.tflite`. Options may stand before or after the network.",
        "Generated from `n2d2py/options/table.py` by `python -m n2d2py.docs`.",
    ]
    for group in dict.fromkeys(option.group for option in OPTIONS):
        lines += ["", f"## {group}", "", "| Option | Default | Meaning |", "|---|---|---|"]
        for option in (o for o in OPTIONS if o.group == group):
            doc = option.doc + (f": {', '.join(option.choices)}" if option.choices else "")
            doc, default = doc.replace("|", "\\|"), _default(option).strip(" []")
            lines.append(f"| `{_signature(option)}` | {default} | {doc} |".replace("|  |", "| |"))
    lines += [
        "",
        "Other options of N2D2 ("
        + ", ".join(f"`-{name}`" for name in REFUSED)
        + ") are refused; "
        + ", ".join(f"`-{name}`" for name in FUSED)
        + ", for networks after quantization-aware training, change nothing, which a notice says; "
        + ", ".join(f"`-{name}`" for name in IGNORED)
        + " have no effect, which a warning says.",
    ]
    return "\n".join(lines) + "\n"
