"""What a user reads: lines that fit a terminal, colours there alone, progress elsewhere, completion, a line to paste."""

import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.errors import error_line, refused
from support.programs import needs

import n2d2py
from n2d2py import log
from n2d2py.cli import main
from n2d2py.completion import completion
from n2d2py.exports import find_target, target_names
from n2d2py.exports.registry import built_in_targets, preset_names
from n2d2py.options import parse_arguments, run_options

ROOT = Path(n2d2py.__file__).resolve().parents[1]
MODELS = ROOT / "models"
LENET = [str(MODELS / "LeNet.ini"), "-w", str(MODELS / "LeNet.npz")]


def on_terminal(words: list[str], folder: Path, columns: int = 80, **changes: str) -> str:
    """What n2d2py prints on a terminal of that many columns, stdout and stderr together."""
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "N2D2_DATA", "N2D2_MODELS", "COLUMNS", "LINES")}
    environment |= {"PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": str(columns), **changes}
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "n2d2py", *words], cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    text = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        text += part
    os.close(ours)
    process.wait(timeout=60)
    return text.decode().replace("\r\n", "\n")


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_messages_fit_the_terminal_and_keep_their_words(tmp_path):
    shown = on_terminal([LENET[0], "-describe", "-o", "x"], tmp_path)
    lines = [line for line in plain(shown).split("\n") if "\r" not in line]
    assert any(line.startswith("warning N2D2-W420") for line in lines) or "9 layers" in shown
    wrong = on_terminal(["a_folder/with_a_rather_long_name/" * 2 + "net.ini", "-test"], tmp_path)
    assert wrong.startswith("\x1b[1;31merror\x1b[0m N2D2-")
    text = plain(wrong).rstrip("\n").split("\n")
    assert len(text) > 1 and all(line.startswith("    ") for line in text[1:])
    assert all(len(line) <= 80 or " " not in line.strip() for line in text)
    piped = subprocess.run(
        [sys.executable, "-m", "n2d2py", "a_folder/with_a_rather_long_name/" * 2 + "net.ini", "-test"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ).stderr
    assert " ".join(line.strip() for line in text) == piped.rstrip("\n") and "\n" not in piped.rstrip("\n")


@pytest.mark.parametrize("changes", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_none_is_wanted(tmp_path, changes):
    assert on_terminal(["none.ini", "-test"], tmp_path, **changes).startswith("error N2D2-")


def test_a_whole_run_in_80_columns(tmp_path):
    words = [*LENET, "-export", "CPP", "-calib", "20", "-test", "-nb-test", "50", "-compare", "3"]
    shown = on_terminal(words, tmp_path)
    # bars are drawn over and over behind carriage returns; what stays of a line is behind the last one
    lines = [plain(line).split("\r")[-1] for line in shown.split("\n")]
    long = [line for line in lines if len(line) > 80 and " " in line.strip()]
    assert [line for line in long if "report.html" not in line] == []
    assert any(line.startswith("conv1 ") for line in lines) and any("recognition rate" in line for line in lines)
    if shutil.which("g++") and shutil.which("make"):
        assert re.search(r"^ROM \d.*, RAM \d.*\)$", "\n".join(lines), re.MULTILINE)


def test_progress_without_a_terminal_is_a_line_now_and_then(capsys, monkeypatch):
    log.setup()
    clock = iter(range(1000))
    monkeypatch.setattr("n2d2py.log.time.monotonic", lambda: float(next(clock)))
    assert list(log.progress(range(12), "testing", total=12, unit="batch")) == list(range(12))
    assert capsys.readouterr().err.splitlines() == [
        "testing: batch 4 of 12, about 10 s left",
        "testing: batch 9 of 12, about 3 s left",
    ]
    log.setup(quiet=True)
    assert list(log.progress(range(12), "testing", total=12)) == list(range(12))
    assert capsys.readouterr().err == ""


def test_describe_is_a_table_or_json(capsys):
    assert main([LENET[0], "-describe", "-quiet"]) == 0
    table = capsys.readouterr().out
    assert main([LENET[0], "-describe", "table", "-quiet"]) == 0 and capsys.readouterr().out == table
    assert main([LENET[0], "-describe=json", "-quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "input WxHxC" in table and all(len(line) <= 80 for line in table.splitlines())
    for layer in found["layers"]:
        (row,) = [line.split() for line in table.splitlines() if line.startswith(layer["name"] + " ")]
        assert row[1:4] == [layer["type"], *("x".join(map(str, layer[key])) for key in ("input_dims", "output_dims"))]
        assert row[4:] == [f"{layer[key]:,}" for key in ("macs", "params")]
    assert "E004" in error_line(parse_arguments, ["net.ini", "-describe=xml"])


def test_a_value_may_follow_an_equals_sign():
    a = parse_arguments(["-export=CPP", "net.ini", "--nbbits=-32", "-tune-command=run -x=1 {binary}", "-compare=4"])
    assert (a.export, a.nbbits, a.tune_command, a.compare, a.network) == ("CPP", -32, "run -x=1 {binary}", 4, "net.ini")
    assert refused(r"E003.*takes no value", parse_arguments, ["net.ini", "-test=1"])
    assert "E002" in error_line(parse_arguments, ["net.ini", "-exprot=CPP"])


def test_seed_0_is_drawn_and_recorded(capsys):
    log.setup()
    options = run_options(parse_arguments(["net.ini", "-seed", "0", "-test"]))
    assert options.load.seed > 0 and options.recorded["seed"] == options.load.seed
    assert f"-seed {options.load.seed} " in options.command + " " and str(options.load.seed) in capsys.readouterr().err


def test_options_of_n2d2_that_only_fuse_or_test_change_nothing(capsys):
    log.setup()
    words = ["net.ini", "-test", "-export", "CPP"]
    others = ["-qat-sat", "-testQAT", "-c-round-mode", "RINTF", "-b-round-mode=NONE", "-wt-round-mode", "NONE"]
    assert run_options(parse_arguments([*words, *others])) == run_options(parse_arguments(words))
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 5 and "-c-round-mode RINTF" in said
    assert refused(r"E004.*NONE, RINTF", parse_arguments, ["net.ini", "-c-round-mode", "ROUND"])
    assert refused(r"E007.*add -test", lambda: run_options(parse_arguments(["net.ini", "-export", "CPP", "-testQAT"])))


def test_an_export_of_n2d2_names_the_one_that_stands_in_for_it():
    stand_ins = {other: target.name for target in built_in_targets() for other in target.stands_in_for}
    assert stand_ins["CPP_TensorRT"] == "CPP" and not set(stand_ins) & set(target_names())
    for other, name in stand_ins.items():
        assert refused(rf"E700.*; use {name}$", find_target, other)


def test_an_export_by_the_name_that_n2d2_gives_it(tmp_path, capfd):
    found = {alias: find_target(alias).name for target in built_in_targets() for alias in target.aliases}
    assert found == {"C": "CPP", "CPP_STM32": "CPP_MCU"}
    assert main([*LENET, "-export", "C", "-calib", "4", "-db-export", "0", "-o", str(tmp_path)]) == 0
    assert capfd.readouterr().err.count("-export C ") == 1
    assert (tmp_path / "export_CPP_int8").is_dir()


def completed(line: str, folder: Path) -> list[str]:
    """What bash offers for the last word of a line, by its own completion of that line's command."""
    words = re.findall(r"=|[^ =]+", line) + [""] * line.endswith(" ")  # as bash splits them
    script = f"""{completion("bash")}
COMP_LINE={shlex.quote(line)}
COMP_POINT=${{#COMP_LINE}}
COMP_WORDS=({shlex.join(words)})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_n2d2py
[ ${{#COMPREPLY[@]}} -eq 0 ] || printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "--norc", "-c", script], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    return done.stdout.split("\n")[:-1]


def test_bash_completes_options_targets_presets_and_networks(tmp_path):
    for name in ("net.ini", "net.onnx", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "networks").mkdir()
    assert completed("n2d2py -calib-", tmp_path) == ["-calib-reload", "-calib-data"]
    assert completed("n2d2py net.ini -export ", tmp_path) == list(target_names())
    assert completed("n2d2py net.ini -export C", tmp_path) == [name for name in target_names() if name.startswith("C")]
    assert completed("n2d2py net.ini -export=C", tmp_path) == [name for name in target_names() if name.startswith("C")]
    assert completed("n2d2py net.ini --export=", tmp_path) == list(target_names())
    assert completed("n2d2py -act-clipping-mode K", tmp_path) == ["KL-Divergence"]
    assert set(completed("n2d2py n", tmp_path)) == {"net.ini", "net.onnx", "networks"}
    offered = completed("n2d2py net.ini -export-parameters ", tmp_path)
    assert set(preset_names()) <= set(offered) and preset_names() and "notes.txt" in offered
    assert completed("n2d2py -h ram", tmp_path) == ["ram-budget"]
    assert completed("n2d2py net.ini -calib ", tmp_path) == []


def test_bash_accepts_the_completion_and_binds_it():
    done = subprocess.run(
        ["bash", "--norc", "-c", 'eval "$1"; complete -p n2d2py', "bash", completion("bash")], capture_output=True, text=True
    )
    assert done.returncode == 0 and "-F _n2d2py n2d2py" in done.stdout


@needs("zsh")
def test_zsh_accepts_the_completion():
    done = subprocess.run(
        ["zsh", "-f", "-c", 'autoload -U compinit; compinit -D; eval "$1"; print $_comps[n2d2py]', "zsh", completion("zsh")],
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("_n2d2py\n", "")


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_command_of_the_manifest_gives_the_same_bytes(tmp_path):
    """Given from elsewhere, with paths, an equals sign and a blank in a name; pasted in the folder of the network."""
    home = tmp_path / "my networks"
    shutil.copytree(MODELS / "data", home / "data")
    (home / "sub folder").mkdir()
    shutil.copy(LENET[0], home)
    shutil.copy(LENET[2], home / "sub folder" / "weights.npz")
    names = tmp_path / "names.txt"
    names.write_text("\n".join(f"digit {k}" for k in range(10)))
    words = [str(home / "LeNet.ini"), "-w", str(home / "sub folder" / "weights.npz"), "-export=CPP", "-calib", "10"]
    more = ["-db-export", "3", "-class-names", str(names), "-no-cle", "-o", str(tmp_path / "first"), "-quiet"]
    assert main([*words, *more]) == 0
    first = tmp_path / "first" / "export_CPP_int8"
    command = json.loads((first / "manifest.json").read_text())["command"]
    report = (first / "statistics" / "report.html").read_text()
    assert command.replace("'", "&#39;") in report and "-quiet" not in command
    done = subprocess.run(
        command.replace("n2d2py", f"{shlex.quote(sys.executable)} -m n2d2py", 1),
        shell=True,
        cwd=home,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    again = tree(home / "export_CPP_int8")
    assert list(again) == list(tree(first))
    assert [name for name, data in tree(first).items() if again[name] != data] == []
