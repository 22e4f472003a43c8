"""Completion of command lines in bash and zsh, made from the table of options."""

from __future__ import annotations

import shlex

from n2d2py.options import OPTIONS, Option, option_values

_FILES = {"FILE": "-f", "PATH": "-f", "DIR": "-d"}
"""Bash completion of a value of that kind: `compgen -f` files and folders, `-d` folders."""


def completion(shell: str) -> str:
    """Return the text that a shell, "bash" or "zsh", evaluates. It lists the options, targets and presets of this installation."""
    return _bash() if shell == "bash" else _zsh()


def _words(option: Option) -> list[str]:
    """Return the values that the shell offers."""
    return list(option.choices) if option.metavar == "TOPIC" else option_values(option)


def _bash() -> str:
    cases = []
    for option in OPTIONS:
        if option.kind == "flag":
            continue
        words = " ".join(shlex.quote(word) for word in _words(option))
        files = _FILES.get(option.metavar, "")
        if not words and not files:
            cases.append(f"        -{option.name}) return ;;" if option.kind != "optional-int" else "")
            continue
        lines = [f'COMPREPLY=($(compgen -W "{words}" -- "$word"))'] if words else []
        lines += [f'COMPREPLY+=($(compgen {files} -- "$word"))'] if files else []
        cases.append(f"        -{option.name}) {'; '.join(lines)}; [ ${{#COMPREPLY[@]}} -eq 0 ] || return ;;")
    options = " ".join(f"-{option.name}" for option in OPTIONS)
    return f"""# n2d2py in bash: eval "$(n2d2py -completion bash)", or this text in ~/.local/share/bash-completion/completions/n2d2py
_n2d2py() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} file
    COMPREPLY=()
    [ "$before" != "=" ] || before=${{COMP_WORDS[COMP_CWORD-2]}}
    [ "$word" != "=" ] || {{ word=""; before=${{COMP_WORDS[COMP_CWORD-1]}}; }}
    before=${{before/#--/-}}
    case "$before" in
{chr(10).join(case for case in cases if case)}
    esac
    case "$word" in
        -*) COMPREPLY=($(compgen -W "{options}" -- "$word")) ;;
        *)
            while IFS= read -r file; do
                case "$file" in *.ini|*.onnx|*.tflite) COMPREPLY+=("$file") ;; *) [ ! -d "$file" ] || COMPREPLY+=("$file") ;; esac
            done < <(compgen -f -- "$word") ;;
    esac
}}
complete -o filenames -F _n2d2py n2d2py
"""


def _zsh() -> str:
    def text(words: str) -> str:
        """As _arguments reads it, within single quotes."""
        plain = words.translate(str.maketrans({"[": "(", "]": ")", ":": " ", "\\": " ", "'": "’"}))
        return plain if len(plain) <= 70 else plain[:70].rsplit(" ", 1)[0] + " ..."

    lines = []
    for option in OPTIONS:
        spec = f"{'*' if option.repeated else ''}-{option.name}[{text(option.summary)}]"
        if option.kind != "flag":
            several = ":" if option.kind.startswith("optional") else ""
            kind = {"FILE": "_files", "PATH": "_files", "DIR": "_files -/"}.get(option.metavar, " ")
            words = _words(option)
            action = f"({' '.join(words)})" if words and kind == " " else kind
            if words and kind != " ":
                action = f"{{compadd -- {' '.join(words)}; _files}}"
            spec += f":{several}{option.metavar or 'value'}:{action}"
        lines.append(f"    '{spec}' \\")
    return "\n".join(
        [
            "#compdef n2d2py",
            '# n2d2py in zsh, after compinit: eval "$(n2d2py -completion zsh)", or this text as _n2d2py in a folder of $fpath',
            "_n2d2py() {",
            "  _arguments \\",
            *lines,
            "    '*:network:_files -g \"*.(ini|onnx|tflite)\"'",
            "}",
            "compdef _n2d2py n2d2py",
            "",
        ]
    )
