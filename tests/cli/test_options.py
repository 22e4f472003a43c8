"""The table of options: each is parsed, converted, documented and kept, is refused early, or says that it has no effect."""

import re
import subprocess

import numpy as np
import onnx
import pytest
from generate import options_page
from onnx import helper, numpy_helper
from support.errors import error_line, error_of, refused
from support.programs import needs
from support.quantized_models import Model
from support.tables import every

from n2d2py import __version__
from n2d2py.cli import main
from n2d2py.options import GROUPS, OPTIONS, Option, parse_arguments
from n2d2py.options.typed import CHOICES, read_command
from n2d2py.pipeline import load_network
from n2d2py.stages.calibrate import calibrate_stage
from n2d2py.stages.quantize import quantize_stage

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


@every("option", OPTIONS, ids=lambda option: option.name)
def test_an_option_stands_before_or_after_the_network(option):
    words, value = sample(option)
    assert value != option.default
    for line in ([*words, "net.ini"], ["net.ini", *words], ["-seed", "3", "-nbbits", "16", "net.ini", *words]):
        arguments = parse_arguments(line)
        assert arguments.network == "net.ini"
        assert getattr(arguments, option.key) == value
        assert type(getattr(arguments, option.key)) is type(value)
        assert option.key in arguments.given


@every("option", OPTIONS, ids=lambda option: option.name)
def test_two_dashes_are_as_good_as_one(option):
    words, value = sample(option)
    assert getattr(parse_arguments([f"-{words[0]}", *words[1:], "net.ini"]), option.key) == value


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


@every("name", ["learn-stdp", "ws", "pruning", "testAdv", "bench", "multidev"])
def test_options_of_training_are_refused(name):
    error = error_of(parse_arguments, ["net.ini", f"-{name}", "5"])
    assert error.code == "E005" and f"-{name} " in error.what


@every(
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
    error = error_of(parse_arguments, ["net.ini", typed])
    assert (error.code, error.remedy) == ("E002", f"did you mean {meant}?")


def test_a_form_that_there_is_not_is_no_model():
    assert refused(r"E004.*-describe xml", parse_arguments, ["-describe", "xml", "net.ini"])


@every("option", [o for o in OPTIONS if o.minimum is not None], ids=lambda option: option.name)
def test_the_smallest_value_is_taken_and_the_one_below_refused(option):
    limit = int(option.minimum)
    if option.kind == "optional-int":
        assert "E003" in error_line(lambda: parse_arguments(["net.ini", f"-{option.name}", str(limit - 1)]))
        return
    assert getattr(parse_arguments(["net.ini", f"-{option.name}", str(limit)]), option.key) == limit
    assert "E003" in error_line(lambda: parse_arguments(["net.ini", f"-{option.name}", str(limit - 1)]))


@every(
    "option", [o for o in OPTIONS if o.kind not in ("flag", "optional-int", "optional-text")], ids=lambda option: option.name
)
def test_an_option_is_no_value(option):
    for line in (["net.ini", f"-{option.name}", *rest] for rest in ([], ["-strict"], [""])):
        assert "E003" in error_line(parse_arguments, line)


def printed(capsys, *words: str) -> str:
    assert main([*words]) == 0
    return capsys.readouterr().out


def entries(text: str) -> dict[str, str]:
    """Option -> its help text on one line, of the help of several options."""
    found = re.findall(r"^  -(\S+)(?: .*)?\n((?: {8}.*\n?)+)", text, re.MULTILINE)
    return {name: " ".join(body.split()) for name, body in found}


def test_help_of_all_has_every_option_with_its_default(capsys):
    text = printed(capsys, "-h", "all")
    found = entries(text)
    assert list(found) == [option.name for group in GROUPS for option in OPTIONS if option.group == group]
    for option in OPTIONS:
        assert found[option.name].startswith(option.doc)
        assert option.name == "h" or all(choice in found[option.name] for choice in option.choices)
        if option.kind not in ("flag", "optional-int", "optional-text") and option.default not in (None, (), ""):
            assert found[option.name].endswith(f"[{option.default}]")
    assert all(len(line) <= 100 for line in text.splitlines())


@needs("groff")
def test_the_man_page_is_formatted_without_a_warning():
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=options_page("n2d2py.1"), capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    text = re.sub(r"\x1b\[\d*m|.\x08", "", done.stdout)
    assert all(re.search(rf"^ +-{re.escape(option.name)}\b", text, re.MULTILINE) for option in OPTIONS)


def test_version(capsys):
    assert main(["-v"]) == 0 == main(["--version"])
    assert capsys.readouterr().out == f"n2d2py {__version__}\n" * 2


@pytest.fixture
def fully_convolutional(tmp_path):
    """A network with an output for each position."""
    weights = numpy_helper.from_array(np.random.default_rng(1).standard_normal((3, 2, 3, 3)).astype(np.float32), "w")
    ends = [helper.make_tensor_value_info(n, 1, shape) for n, shape in (("x", [1, 2, 6, 6]), ("y", [1, 3, 4, 4]))]
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"])], "n", ends[:1], ends[1:], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "n.onnx")
    np.savez(tmp_path / "d.npz", images=np.zeros((4, 2, 6, 6), np.float32), labels=np.arange(4) % 3)
    np.save(tmp_path / "beyond.npy", np.array([0, 1, 2, 3]))
    return tmp_path


@every(
    ("options", "code"),
    [
        (("-export", "CPP"), "E507"),
        (("-export", "CPP", "-compare", "2"), "E507"),
        (("-export", "CPP", "-calib", "2", "-calib-data", "d.npz", "-test"), "E452"),
        (("-export", "CPP", "-calib", "2", "-calib-data", "d.npz", "-labels", "beyond.npy"), "E451"),
        (("-export", "CPP", "-calib", "2", "-calib-data", "d.npz", "-o", "/proc/none"), "E712"),
        (("-calibOnly", "-calib", "2", "-calib-data", "d.npz", "-o", "/proc/none"), "E712"),
        (("-test", "-calib-data", "d.npz"), "E452"),
    ],
)
def test_the_only_message(fully_convolutional, monkeypatch, capsys, options, code):
    def calibrating(*arguments):
        raise AssertionError("calibrates")

    monkeypatch.setattr("n2d2py.stages.calibrate.prepare", calibrating)
    monkeypatch.chdir(fully_convolutional)
    assert main(["n.onnx", *options, "-quiet"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error N2D2-{code}")


def test_a_single_output_has_two_classes(tmp_path, monkeypatch, capsys):
    """A logistic output is class 1 above 0.5; label 2 is none of its classes."""
    weights = numpy_helper.from_array(np.array([[1.0], [-2.0], [0.5]], np.float32), "w")
    ends = [helper.make_tensor_value_info(n, 1, ["N", size]) for n, size in (("x", 3), ("y", 1))]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Sigmoid", ["h"], ["y"])]
    graph = helper.make_graph(nodes, "n", ends[:1], ends[1:], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "n.onnx")
    x = np.random.default_rng(2).normal(size=(12, 3)).astype(np.float32)
    labels = (x @ [1.0, -2.0, 0.5] > 0).astype(np.int64)
    monkeypatch.chdir(tmp_path)
    for y, status in ((labels, 0), (labels + 1, 1)):
        np.savez(tmp_path / "d.npz", x=x, y=y)
        words = ["n.onnx", "-export", "TFLite", "-calib-data", "d.npz", "-quality", "fast", "-quiet", "-force"]
        assert main(words) == status
    assert "E451" in capsys.readouterr().err
    np.savez(tmp_path / "d.npz", x=x, y=labels)
    assert main(["n.onnx", "-test", "-calib-data", "d.npz", "-quiet"]) == 0
    assert "100.00%" in capsys.readouterr().out


def test_a_missing_compiler_is_said_first(fully_convolutional, monkeypatch, capsys):
    monkeypatch.chdir(fully_convolutional)
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert main(["n.onnx", "-export", "CPP", "-calib-data", "d.npz", "-compare", "1"]) == 0
    lines = capsys.readouterr().err.splitlines()
    (at,) = [k for k, line in enumerate(lines) if line.startswith("warning N2D2-W801")]
    assert at < next(k for k, line in enumerate(lines) if line.startswith("calibration"))


APART = ("flash-budget", "no-mixed-precision", "calib-reload")
"""Those that exclude others."""


@pytest.mark.parametrize("apart", [False, True])
def test_options_that_choose_integers_are_warned_of(apart, tmp_path, caplog):
    model = Model((4, 6, 6))
    model.outputs.append(model.rounded(model.add("Sigmoid", model.rounded("x", 0.03, 5)), 0.0079, -20))
    onnx.save(model.built(), tmp_path / "net.onnx")
    chosen = [option for option in OPTIONS if option.name in CHOICES and (option.name in APART) == apart]
    words = [str(tmp_path / "net.onnx"), "-export", "CPP", "-o", str(tmp_path)]
    for option in chosen:
        value = {
            "act-clipping-mode": "Quantile",
            "wt-rounding": "nearest",
            "input-bits": "8",
            "output-bits": "8",
            "wt-bits": "4",
        }
        words.append(f"-{option.name}")
        if option.kind != "flag":
            words.append(value.get(option.name) or str(option.choices[-1] if option.choices else option.default or 1))
    path, options = read_command(words)
    quantize_stage(calibrate_stage(load_network(path, options), options.calibration), options.quantization, options.choices)
    (line,) = (record.getMessage() for record in caplog.records if "W503" in record.getMessage())
    named = line.replace(",", " ").split()
    assert {option.name for option in chosen} - {"act-rescaling-mode"} <= {word[1:] for word in named if word.startswith("-")}
    assert "-act-rescaling-mode" not in named
