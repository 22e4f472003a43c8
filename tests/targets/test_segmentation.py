"""Targets with a label for each pixel: counts, files, and labels of another size than the output."""

import json

import numpy as np
import pytest
from PIL import Image
from support.errors import error_line

from n2d2py.arithmetic import NumType
from n2d2py.cli import main
from n2d2py.targets import Scorer, ScoreRow, class_metrics, score_lines, score_table, write_target_files
from n2d2py.targets.pixels import count_pixels, fit_labels
from n2d2py.targets.target import ScoreTarget


def scored(outputs, labels, **options):
    scorer = Scorer(ScoreTarget("seg.Target", "seg", binary_threshold=0.5), ("sky", "road", "car"), **options)
    scorer.add(outputs, labels)
    return scorer.result()


@pytest.fixture
def example():
    """Two stimuli 4x6 of 3 classes: outputs int8, labels with -1."""
    rng = np.random.default_rng(0)
    return rng.integers(-128, 128, (2, 3, 4, 6)).astype(np.int8), rng.integers(-1, 3, (2, 4, 6))


def test_counts_by_hand(example):
    outputs, labels = example
    score = scored(outputs, labels, type=NumType(8, True, scale=0.5))
    matrix, hits, counted = np.zeros((3, 3), int), [0, 0], [0, 0]
    for n in range(2):
        for y in range(4):
            for x in range(6):
                label, best = labels[n, y, x], int(np.argmax(outputs[n, :, y, x]))
                if label >= 0:
                    matrix[label, best] += 1
                    hits[n] += label == best
                    counted[n] += 1
    assert score.confusion.tolist() == matrix.tolist()
    assert score.pixels.hits.tolist() == hits and score.pixels.counted.tolist() == counted
    assert score.top1 == pytest.approx(100 * sum(hits) / sum(counted)) and score.count == 2
    assert score.misclassified == () and score.topn is None
    union = [matrix[k, k] / (matrix[k].sum() + matrix[:, k].sum() - matrix[k, k]) for k in range(3)]
    assert [one.iu for one in class_metrics(score.confusion)] == pytest.approx(union)
    assert score.metrics.iu == pytest.approx(np.mean(union))
    assert f"IU: {100 * np.mean(union):.2f}%" in score_lines(score)[-1]


def test_batches_add_up_and_rows_compare(example):
    outputs, labels = example
    whole, parts = scored(outputs, labels), Scorer(ScoreTarget("seg.Target", "seg"), ("sky", "road", "car"))
    for n in range(2):
        parts.add(outputs[n : n + 1], labels[n : n + 1])
    assert (parts.result().confusion == whole.confusion).all() and parts.result().top1 == whole.top1
    table = score_table([ScoreRow("float", whole), ScoreRow("int8", scored(-outputs, labels))])
    assert f"{whole.top1:.2f}%" in table and "nan" not in table


def test_labels_of_a_smaller_output():
    """Each position takes the label of most of its pixels, -1 when none has one; a larger output the nearest."""
    labels = np.array([[[0, 0, 1, 1], [0, 1, 1, -1], [-1, -1, 2, 0], [-1, -1, 0, 2]]])
    assert fit_labels(labels, (2, 2), 3).tolist() == [[[0, 1], [-1, 0]]]
    assert fit_labels(labels, (4, 4), 3) is labels
    assert fit_labels(labels[:, :2, :2], (4, 4), 3)[0].tolist() == [[0, 0, 0, 0]] * 2 + [[0, 0, 1, 1]] * 2
    uneven = fit_labels(np.arange(5).reshape(1, 1, 5) % 2, (1, 2), 2)
    assert uneven.tolist() == [[[0, 0]]]  # pixels 0 1 and 2 3 4
    hits, counted, matrix = count_pixels(np.zeros((1, 2, 2), int), np.array([[[0, 1], [-1, 0]]]), 2)
    assert (hits.tolist(), counted.tolist(), matrix.tolist()) == ([2], [3], [[2, 0], [1, 0]])


def test_one_output_is_a_threshold():
    score = scored(np.array([[[[0.2, 0.9]]]]), np.array([[[0, 0]]]))
    assert score.confusion.tolist() == [[1, 1], [0, 0]]


def test_label_beyond_the_outputs():
    assert "E451" in error_line(lambda: scored(np.zeros((1, 3, 2, 2)), np.full((1, 2, 2), 3)))


def test_files(example, tmp_path):
    outputs, labels = example
    home = write_target_files(tmp_path, scored(outputs, labels), "test", hue=90)
    names = {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}
    assert names == {
        *"ConfusionMatrix_test.dat ConfusionMatrix_test.svg ConfusionMatrix_test_score.dat".split(),
        *"ConfusionMatrix_test_score.svg Success_test.dat Success_test.svg test/0_estimated.png".split(),
        *"test/0_label.png test/1_estimated.png test/1_label.png".split(),
    }
    estimated = np.asarray(Image.open(home / "test" / "0_estimated.png"))
    expected = np.asarray(Image.open(home / "test" / "0_label.png"))
    same = outputs[0].argmax(axis=0) == labels[0]
    assert (np.all(estimated == expected, axis=2) == same).all()
    assert (expected[labels[0] < 0] == 0).all()


def test_results_of_every_stimulus_as_json(example, tmp_path):
    outputs, labels = example
    score = scored(outputs, labels)
    home = write_target_files(tmp_path, score, "test", as_json=True)
    found = json.loads((home / "test" / "classif.json").read_text())
    assert [one["hits"] for one in found] == score.pixels.hits.tolist() and found[1]["stimulus"] == 1
    scorer = Scorer(ScoreTarget("fc.Target", "fc", 2))
    scorer.add(np.array([[1.0, 3.0, 2.0]]), np.array([2]), ["a.png"])
    home = write_target_files(tmp_path, scorer.result(), "export", as_json=True)
    assert json.loads((home / "export" / "classif.json").read_text()) == [
        {"stimulus": 0, "name": "a.png", "label": 2, "estimated": [1, 2], "values": [3.0, 2.0]}
    ]


NET = """[database]
Type=Numpy_Database
DataPath=d.npz
[sp]
Size=6 4 3
CompositeStimuli=1
[conv]
Input=sp
Type=Conv
KernelSize=1
NbOutputs=2
[soft]
Input=conv
Type=Softmax
NbOutputs=2
[soft.Target]
LabelsMapping=map.dat
TopN=2
LabelsHueOffset=90
"""


@pytest.mark.compiles
def test_the_command(tmp_path, monkeypatch, capsys):
    """-test on labels for each pixel, mapped to outputs: the printed rate is that of the pixels that count."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 3, (5, 4, 6))
    np.savez("d.npz", x=rng.integers(0, 256, (5, 3, 4, 6), dtype=np.uint8), y=labels, labels=["sky", "road", "car"])
    (tmp_path / "map.dat").write_text("car 0\nroad 0\nsky -1\n")
    (tmp_path / "net.ini").write_text(NET)
    assert main(["net.ini", "-w", "/dev/null", "-seed", "1", "-test", "-quiet", "-log-json"]) == 0
    printed = capsys.readouterr().out
    found = json.loads((tmp_path / "soft.Target/test/classif.json").read_text())
    assert sum(one["pixels"] for one in found) == np.count_nonzero(labels)
    rate = 100 * sum(one["hits"] for one in found) / np.count_nonzero(labels)
    assert f"Final recognition rate: {rate:.2f}%" in printed and "pixels" in printed and "top-2" not in printed
    assert '# class 0 "road +1"' in (tmp_path / "soft.Target/ConfusionMatrix_test.dat").read_text()
