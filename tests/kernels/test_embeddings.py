"""Embeddings: the definition against float64, the kernel against the definition, an export with known vectors."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from support.e2e_run import run
from support.embedding_cases import embedding_cases, program, wanted
from support.kernel_harness import each_compiler, printed_by
from support.onnx_models import text_model
from support.programs import need, run_command

from n2d2py import load_export
from n2d2py.arithmetic.embeddings import cosine, unit
from n2d2py.cli import main


def test_cosines_are_those_of_float64():
    """A vector within half a step of 1/32767, a cosine within 3e-4, for any length; zeros have none."""
    rng = np.random.default_rng(1)
    for size, length in ((2, 5), (64, 30), (512, 2**20), (512, 2**29)):
        values = np.rint(rng.uniform(-length, length, (40, size))).astype(np.int64)
        values[:, 0] += 1
        real = values / np.linalg.norm(values, axis=1, keepdims=True)
        vectors = unit(values)
        assert abs(vectors - 32767 * real).max() < 0.51
        assert abs(cosine(vectors[:, None], vectors[None]) / 65536 - real @ real.T).max() < 3e-4
    assert unit(np.array([[0, 0, 0], [3, 4, 0], [0, 0, -(2**30)]])).tolist() == [[0, 0, 0], [19660, 26214, 0], [0, 0, -32767]]


@each_compiler(24, 96)
def test_kernels_on_this_machine(compiler, count, tmp_path):
    cases = list(embedding_cases(count, seed=count))
    printed = printed_by(program(cases, "std::fputs(text, stdout)"), compiler, tmp_path)
    assert list(map(int, printed)) == wanted(cases)


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """A model of vectors of 16 values, samples, and the vectors of the first three as references."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    weights = rng.normal(0, 0.3, (8, 16)).astype(np.float32)
    samples = rng.normal(0, 1, (40, 8)).astype(np.float32)
    onnx.save(text_model("float[1,8] x => float[1,16] y", "y = MatMul(x, w)", {"w": weights}), "net.onnx")
    np.save("x.npy", samples)
    np.save("known.npy", samples[:3] @ weights)
    Path("names.txt").write_text("ann\nbob\neve\n")
    return tmp_path


def test_an_export_matches(home):
    need("g++", "make")
    post = "embedding:references=known.npy,threshold=0.9"
    words = ["-calib-data", "x.npy", "-quiet", "-class-names", "names.txt", "-post", post, "-app", "sensor"]
    export = load_export(run("net.onnx", "-export", "CPP", *words, out=home))
    x = np.load("x.npy")
    found = export.postprocess(x)
    assert [one.name for one in found[:3]] == ["ann", "bob", "eve"] and min(one.score for one in found[:3]) > 0.999
    known, real = np.load("known.npy"), export(x).reshape(40, 16)
    cosines = (real @ known.T) / np.linalg.norm(real, axis=1)[:, None] / np.linalg.norm(known, axis=1)
    for one, wanted_cosines in zip(found, cosines, strict=True):
        assert abs(one.score - wanted_cosines.max()) < 2e-4
        assert one.label == (wanted_cosines.argmax() if wanted_cosines.max() > 0.9 else -1)
    run_command("make", "-s", "app", cwd="export_CPP_int8")
    lines = "".join(",".join(map(str, row)) + "\n" for row in x.tolist())
    printed = run_command("bin/app", cwd="export_CPP_int8", input=lines)
    assert [line.split()[0] for line in printed.splitlines()] == [one.name or "none" for one in found]


@pytest.mark.parametrize(
    "change, text",
    [
        ({"references": "missing.npy"}, "cannot be read"),
        ({"references": "x.npy"}, "not vectors of 16 values"),
        ({"references": "zeros.npy"}, "has no direction"),
        ({"references": "two.npy"}, "3 class names do not fit 2 references"),
        ({"threshold": "2"}, "threshold=2 is above 1"),
    ],
)
def test_what_is_refused(home, change, text, capsys):
    np.save("zeros.npy", np.zeros((3, 16), np.float32))
    np.save("two.npy", np.ones((2, 16), np.float32))
    post = "embedding:" + ",".join(f"{key}={value}" for key, value in change.items())
    words = ["-calib-data", "x.npy", "-class-names", "names.txt", "-post", post]
    assert main(["net.onnx", "-export", "CPP", *words]) != 0
    assert text in capsys.readouterr().err
