"""Scores against hand-computed ones."""

import numpy as np
import pytest
from support.errors import error_line, refused

from n2d2py.arithmetic import NumType
from n2d2py.targets import Scorer, ScoreRow, class_metrics, score_columns, score_lines
from n2d2py.targets.score import area_under_roc
from n2d2py.targets.target import ScoreTarget

OUTPUTS = np.array([[1, 5, 2], [7, 7, 3], [0, 1, 9], [4, 4, 4], [3, 8, 6]], np.int8)
LABELS = np.array([1, 1, 0, 2, -1])


def scored(outputs=OUTPUTS, labels=LABELS, *, top_n=1, names=(), **options):
    scorer = Scorer(ScoreTarget("fc.Target", "fc", top_n, binary_threshold=0.5), names, **options)
    scorer.add(outputs, labels)
    return scorer.result()


def test_first_largest_wins_and_ignored_labels_do_not_count():
    score = scored(top_n=2)
    assert score.estimated.tolist() == [1, 0, 2, 0, 1]
    assert score.ranks.tolist() == [0, 1, 2, 2, -1]
    assert (score.stimuli, score.count, score.correct) == (5, 4, 1)
    assert score.top1 == 25.0
    assert score.topn == 50.0
    assert scored().topn is None


def test_best_outputs_come_in_order_with_their_values():
    score = scored(top_n=3, type=NumType(8, True, scale=0.5))
    assert score.best[0].tolist() == [1, 2, 0]
    assert score.values[0].tolist() == [2.5, 1.0, 0.5]
    assert score.best[3].tolist() == [0, 1, 2]


def test_confusion_and_misclassified():
    score = scored(names=("cat", "dog", "cow"))
    assert score.confusion.tolist() == [[0, 0, 1], [1, 1, 0], [1, 0, 0]]
    assert [(m.index, m.name, m.label, m.estimated, m.value) for m in score.misclassified] == [
        (1, "1", 1, 0, 7.0),
        (2, "2", 0, 2, 9.0),
        (3, "3", 2, 0, 4.0),
    ]
    assert score.classes == ("cat", "dog", "cow")


def test_batches_add_up_to_the_whole():
    parts = Scorer(ScoreTarget("fc.Target", "fc", 2))
    for part in (slice(0, 2), slice(2, 5)):
        parts.add(OUTPUTS[part, :, None, None], LABELS[part])
    whole = scored(top_n=2)
    result = parts.result()
    assert result.indices.tolist() == [0, 1, 2, 3, 4]
    assert np.array_equal(result.best, whole.best)
    assert np.array_equal(result.ranks, whole.ranks)
    assert parts.rate == whole.top1


def test_without_labels_there_is_no_score():
    score = scored(labels=None)
    assert score.top1 is None and score.metrics is None
    assert score.estimated.tolist() == [1, 0, 2, 0, 1]
    assert score.misclassified == ()


def test_misses_of_all_classes_come_in_turns():
    scores = np.tile(np.array([[0, 0, 9]], np.int8), (7, 1))
    score = scored(scores, labels=np.array([1, 1, 1, 0, 2, 0, 1]), names=("a", "b", "c"))
    assert [(miss.label, miss.index) for miss in score.misses_by_class(4)] == [(0, 3), (1, 0), (0, 5), (1, 1)]
    assert len(score.misses_by_class(99)) == len(score.misclassified) == 6


def test_a_label_beyond_the_outputs_is_refused():
    line = error_line(scored, labels=np.array([0, 1, 2, 3, 0]))
    assert "E451" in line
    assert "'fc' has 3 classes" in line


def test_maps_and_nan_are_refused():
    assert refused("E452.*3x2x2", lambda: scored(np.zeros((5, 3, 2, 2))))
    assert "E453" in error_line(lambda: scored(np.full((5, 3), np.nan)))


def test_a_single_output_is_a_decision_by_its_real_value():
    score = scored(np.array([[3], [5], [6], [127]], np.int8), np.array([0, 0, 1, 1]), type=NumType(8, True, scale=0.1))
    assert score.estimated.tolist() == [0, 0, 1, 1]
    assert score.confusion.tolist() == [[2, 0], [0, 2]]
    assert score.top1 == 100.0


def test_the_threshold_itself_is_class_zero():
    assert scored(np.array([[0.5], [0.5000001]]), np.array([0, 1])).top1 == 100.0


def test_auto_encoders_have_an_error_and_a_detection():
    target = ScoreTarget("ae.Target", "ae", as_data=True)
    scorer = Scorer(target, type=NumType(8, True, scale=0.5))
    inputs = np.zeros((3, 4, 1, 1), np.float32)
    scorer.add(np.array([[0, 0, 0, 2], [2, 2, 2, 2], [4, 4, 4, 4]], np.int8), np.array([0, 1, 1]), inputs=inputs)
    score = scorer.result()
    assert score.errors.tolist() == [0.25, 1.0, 4.0]
    assert score.mse == pytest.approx(1.75)
    assert score.auc == 1.0
    assert score.top1 is None and score.confusion.size == 0


@pytest.mark.parametrize("outputs", [1, 2])
def test_two_classes_have_an_area_and_an_f1(outputs):
    """Against the definitions: pairs of a positive and a negative, ties half; 2 TP / (2 TP + FP + FN). Label -1 does not count."""
    rng = np.random.default_rng(outputs)
    values, labels = rng.integers(0, 9, (60, outputs)) / 8, rng.integers(-1, 2, 60)
    scorer = Scorer(ScoreTarget("t", "y"))
    for part in (slice(0, 25), slice(25, 60)):
        scorer.add(values[part], labels[part])
    score, margins = scorer.result(), values[:, -1] - (values[:, 0] if outputs == 2 else 0)
    positive, negative = margins[labels == 1], margins[labels == 0]
    pairs = [float(a > b) + 0.5 * float(a == b) for a in positive for b in negative]
    found = margins > (0.5 if outputs == 1 else 0)
    true = np.count_nonzero(found & (labels == 1))
    wrong = np.count_nonzero((found & (labels == 0)) | (~found & (labels == 1)))
    assert score.auc == pytest.approx(np.mean(pairs)) and score.f1 == pytest.approx(2 * true / (2 * true + wrong))
    assert score_columns([ScoreRow("float", score)])[0][-2:] == ["AUC", "F1"]
    (only,) = (one for one in score_lines(score) if "ROC" in one)
    assert f"{np.mean(pairs):.4f}" in only


def test_one_label_alone_has_no_area():
    scorer = Scorer(ScoreTarget("t", "y"))
    scorer.add(np.array([[0.2, 0.8], [0.9, 0.1]]), np.array([0, 0]))
    assert scorer.result().auc is None and scorer.result().f1 == 0
    many = Scorer(ScoreTarget("t", "y"))
    many.add(np.eye(3), np.array([0, 1, 1]))
    assert many.result().auc is None and many.result().f1 is None


def test_area_under_roc_counts_ties_half():
    values, positive = np.array([1.0, 2.0, 2.0, 3.0]), np.array([False, True, False, True])
    pairs = [(p, n) for p in values[positive] for n in values[~positive]]
    assert area_under_roc(values, positive) == np.mean([1.0 if p > n else 0.5 if p == n else 0.0 for p, n in pairs])
    assert area_under_roc(values, np.zeros(4, bool)) is None


def test_metrics_of_a_known_table():
    first, second = class_metrics(np.array([[8, 2], [1, 9]]))
    assert (first.sensitivity, first.specificity) == (0.8, 0.9)
    assert first.precision == pytest.approx(8 / 9)
    assert first.accuracy == second.accuracy == 0.85
    assert first.f1 == pytest.approx(16 / 19)
    assert second.informedness == pytest.approx(0.7)


def test_metrics_match_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    random = np.random.default_rng(0)
    score = scored(random.normal(size=(300, 6)), random.integers(0, 6, 300))
    mean = score.metrics
    assert mean.f1 == pytest.approx(metrics.f1_score(score.labels, score.estimated, average="macro"))
    assert mean.sensitivity == pytest.approx(metrics.recall_score(score.labels, score.estimated, average="macro"))
    assert mean.precision == pytest.approx(metrics.precision_score(score.labels, score.estimated, average="macro"))


def test_a_class_that_never_occurs_is_left_out_of_the_means():
    score = scored(np.array([[5, 0, 0], [0, 5, 0]]), np.array([0, 1]))
    assert score.metrics.sensitivity == 1.0
    assert score.metrics.specificity == 1.0
