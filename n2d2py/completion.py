"""Completion of command lines in bash and zsh, made from the table of options."""

import shlex

from n2d2py.options import OPTIONS, option_values
from n2d2py.resources import templates


def completion(shell: str) -> str:
    """Return the text that a shell, "bash" or "zsh", evaluates. It lists the options, targets and presets of this
    installation."""
    environment = templates("docs")
    environment.filters.update(shell=shlex.quote, described=_described)
    options = [(option, option.choices if option.metavar == "TOPIC" else option_values(option)) for option in OPTIONS]
    return environment.get_template(f"completion.{shell}.j2").render(options=options)


def _described(summary: str) -> str:
    """Return a summary as zsh's _arguments reads it, within single quotes."""
    plain = summary.translate(str.maketrans({"[": "(", "]": ")", ":": " ", "\\": " ", "'": "’"}))
    return plain if len(plain) <= 70 else plain[:70].rsplit(" ", 1)[0] + " ..."
