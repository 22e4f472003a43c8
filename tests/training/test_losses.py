"""One step of each loss against its gradient in NumPy (float64); batches that cannot be learned."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from n2d2py import cli
from n2d2py.reference.engine import FloatEngine
from n2d2py.stages.load import load_stage
from n2d2py.stages.options import LoadOptions
from n2d2py.training.rates import find_steepest_rate

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")

SAMPLES, INPUTS, OUTPUTS = 24, 6, 4
NETWORK = f"""[database]
Type=Numpy_Database
DataPath=data.npz
Learn=1
EquivLabelPartitioning=0
[sp]
SizeX={INPUTS}
SizeY=1
BatchSize={SAMPLES}
[fc]
Input=sp
Type=Fc
NbOutputs={OUTPUTS}
Solvers.LearningRate=0.5
Solvers.LearningRatePolicy=None
{{more}}
"""
SOFTMAX = f"[soft]\nInput=fc\nType=Softmax\nNbOutputs={OUTPUTS}\n"


def softmax(z: np.ndarray) -> np.ndarray:
    found = np.exp(z - z.max(1, keepdims=True))
    return found / found.sum(1, keepdims=True)


def squares_of_softmax(z: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """d/dz of half the squared distance between softmax(z) and `wanted`."""
    s = softmax(z)
    error = s - wanted
    return s * (error - (s * error).sum(1, keepdims=True))


def squares_of_logistic(z: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    y = 1 / (1 + np.exp(-z))
    return (y - wanted) * y * (1 - y)


@pytest.mark.parametrize(
    "more, target, gradient",
    [
        (SOFTMAX + "WithLoss=1\n", "soft", lambda z, wanted: softmax(z) - wanted),
        (SOFTMAX, "soft", squares_of_softmax),
        (SOFTMAX + "WithLoss=0\n", "soft", squares_of_softmax),
        ("ActivationFunction=LogisticWithLoss\n", "fc", lambda z, wanted: 1 / (1 + np.exp(-z)) - wanted),
        ("ActivationFunction=Logistic\n", "fc", squares_of_logistic),
        ("ActivationFunction=Linear\n", "fc", lambda z, wanted: z - wanted),
    ],
)
def test_the_first_step(more, target, gradient, tmp_path):
    rng = np.random.default_rng(1)
    x, labels = rng.normal(size=(SAMPLES, 1, 1, INPUTS)).astype(np.float32), rng.integers(0, OUTPUTS, SAMPLES)
    weights, biases = rng.normal(size=(OUTPUTS, INPUTS)).astype(np.float32), rng.normal(size=OUTPUTS).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=x, y=labels)
    np.savez(tmp_path / "start.npz", fc_weights=weights, fc_biases=biases)
    (tmp_path / "net.ini").write_text(NETWORK.format(more=more + f"[{target}.Target]\n"))
    words = ["-w", tmp_path / "start.npz", "-learn", SAMPLES, "-o", tmp_path / "out"]
    assert cli.main([str(word) for word in (tmp_path / "net.ini", *words)]) == 0
    flat = x.reshape(SAMPLES, INPUTS).astype(np.float64)
    slope = gradient(flat @ weights.T.astype(np.float64) + biases, np.eye(OUTPUTS)[labels]) / SAMPLES
    with np.load(tmp_path / "out" / "weights" / "weights.npz") as found:
        assert np.allclose(found["fc_weights"].reshape(OUTPUTS, INPUTS), weights - 0.5 * slope.T @ flat, atol=1e-6)
        assert np.allclose(found["fc_biases"], biases - 0.5 * slope.sum(0), atol=1e-6)


@pytest.mark.parametrize(
    "more, size, outputs",
    [
        ("[soft]\nInput=conv\nType=Softmax\nNbOutputs=3\nWithLoss=1\n[soft.Target]\n", (4, 6), 3),
        ("ActivationFunction=LogisticWithLoss\n[conv.Target]\n", (4, 6), 1),
        ("Stride=2\n[conv.Target]\n", (2, 3), 3),
    ],
)
def test_the_first_step_of_labels_of_pixels(more, size, outputs, tmp_path):
    """As N2D2 has it, the pixels of a label in a sample weigh as much as one sample; pixels of -1 do not count."""
    rng = np.random.default_rng(1)
    x, labels = rng.normal(size=(SAMPLES, 2, 4, 6)).astype(np.float32), rng.integers(-1, max(outputs, 2), (SAMPLES, *size))
    labels[:, 0, 0], labels[0] = 0, -1
    weights = rng.normal(size=(outputs, 2)).astype(np.float32)
    step = 4 // size[0]
    np.savez(tmp_path / "data.npz", x=x, y=labels.repeat(step, 1).repeat(step, 2))
    np.savez(tmp_path / "start.npz", conv_weights=weights.reshape(outputs, 2, 1, 1), conv_biases=np.zeros(outputs, np.float32))
    head, _, _ = NETWORK.format(more="").partition("SizeX")
    (tmp_path / "net.ini").write_text(
        f"{head}Size=6 4 2\nBatchSize={SAMPLES}\n[conv]\nInput=sp\nType=Conv\nKernelSize=1\nNbOutputs={outputs}\n"
        f"Solvers.LearningRate=0.5\n{more}"
    )
    words = ["-w", tmp_path / "start.npz", "-learn", SAMPLES, "-o", tmp_path / "out"]
    assert cli.main([str(word) for word in (tmp_path / "net.ini", *words)]) == 0
    read = x[:, :, ::step, ::step].astype(np.float64)
    z = np.einsum("oc,nchw->nohw", weights.astype(np.float64), read)
    if outputs == 1:
        slope = 1 / (1 + np.exp(-z)) - (labels == 1)[:, None]
    else:
        wanted = np.stack([labels == label for label in range(3)], 1)
        slope = (softmax(z) if "Softmax" in more else z) - wanted
    counts = np.stack([[max(np.sum(one == label), 1) for label in range(3)] for one in labels])
    share = np.where(
        labels < 0, 0, 1 / np.take_along_axis(counts, labels.reshape(SAMPLES, -1).clip(0), 1).reshape(labels.shape)
    )
    gradient = np.einsum("nohw,nchw->oc", slope * share[:, None], read) / SAMPLES
    with np.load(tmp_path / "out" / "weights" / "weights.npz") as found:
        assert np.allclose(found["conv_weights"].reshape(outputs, 2), weights - 0.5 * gradient, atol=1e-6)


MARGIN = f"""ConfigSection=fc.config
[margin]
Input=fc
Type=TargetBias
NbOutputs={OUTPUTS}
Bias=-0.35
[margin.Target]
Type=Target
[scaled]
Input=margin
Type=ElemWise
NbOutputs={OUTPUTS}
Operation=Sum
Weights=30
[soft]
Input=scaled
Type=Softmax
NbOutputs={OUTPUTS}
WithLoss=1
[soft.Target]
[fc.config]
NoBias=1
Normalize=1
"""


def test_the_first_step_of_a_margin(tmp_path, capsys):
    """AM-Softmax: the margin is taken from right outputs above it; weights are normalized before the step, and again at inference."""
    rng = np.random.default_rng(1)
    x, labels = rng.normal(size=(SAMPLES, 1, 1, INPUTS)).astype(np.float32), rng.integers(0, OUTPUTS, SAMPLES)
    given = rng.normal(size=(OUTPUTS, INPUTS))
    np.savez(tmp_path / "data.npz", x=x, y=labels)
    np.savez(tmp_path / "start.npz", fc_weights=given.astype(np.float32))
    path = tmp_path / "net.ini"
    path.write_text(NETWORK.format(more=MARGIN))
    words = [str(path), "-w", str(tmp_path / "start.npz"), "-learn", str(SAMPLES), "-o", str(tmp_path / "out")]
    assert cli.main(words) == 0
    flat, right = x.reshape(SAMPLES, INPUTS).astype(np.float64), np.eye(OUTPUTS)[labels]
    weights = given / np.sqrt((given**2).sum(1, keepdims=True) + 1e-6)
    cosines = flat @ weights.T
    below = right * (cosines > 0.35)
    assert 0 < below.sum() < SAMPLES
    slope = 30 * (softmax(30 * (cosines - 0.35 * below)) - right) / SAMPLES
    learned = weights - 0.5 * slope.T @ flat
    with np.load(tmp_path / "out" / "weights" / "weights.npz") as found:
        assert np.allclose(found["fc_weights"].reshape(OUTPUTS, INPUTS), learned, atol=1e-5)
    engine = FloatEngine(load_stage(path, LoadOptions(weights=str(tmp_path / "out" / "weights")), tmp_path).graph, taps=["fc"])
    assert np.allclose(engine.run(x)["fc"], flat @ (learned / np.linalg.norm(learned, axis=1)[:, None]).T, atol=1e-4)
    path.write_text(path.read_text().replace("[margin.Target]\nType=Target\n", ""))
    capsys.readouterr()
    assert cli.main(words) == 1 and "N2D2-E431" in capsys.readouterr().err


@pytest.mark.parametrize("batch, size, status", [(1, 1, 1), (2, 1, 0), (1, 2, 0)])
def test_a_normalization_of_one_value_per_channel(batch, size, status, tmp_path: Path, capsys):
    """A variance of one value is 0: a batch of one sample is refused where the image has one pixel."""
    data = np.random.default_rng(0).normal(size=(8, 3, size, size)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=data, y=np.arange(8) % 3)
    path = tmp_path / "net.ini"
    path.write_text(
        f"[database]\nType=Numpy_Database\nDataPath=data.npz\nLearn=1\nEquivLabelPartitioning=0\n[sp]\nSizeX={size}\nSizeY={size}\nNbChannels=3\nBatchSize={batch}\n"
        "[bn]\nInput=sp\nType=BatchNorm\nNbOutputs=3\n[fc]\nInput=bn\nType=Fc\nNbOutputs=3\n[fc.Target]\n"
    )
    assert cli.main([str(path), "-learn-epoch", "1", "-o", str(tmp_path / "out")]) == status
    seen = capsys.readouterr()
    text = seen.out + seen.err
    assert ("N2D2-E431" in text and "'bn'" in text and "BatchSize" in text) == bool(status), text
    assert (tmp_path / "out").exists() != bool(status)


def test_rates_rise_from_a_millionth_to_ten(tmp_path: Path, capsys):
    """-find-lr: one step for each batch; nothing is trained, and the loss falls before it explodes."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(96, 1, 1, INPUTS)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=x, y=(x[:, 0, 0, 0] > 0).astype(int) + 2 * (x[:, 0, 0, 1] > 0))
    (tmp_path / "net.ini").write_text(NETWORK.format(more=SOFTMAX + "WithLoss=1\n[soft.Target]\n"))
    words = [str(tmp_path / "net.ini"), "-find-lr", str(100 * SAMPLES), "-o", str(tmp_path / "out")]
    assert cli.main(words) == 0 and "falls steepest" in capsys.readouterr().err
    table = np.loadtxt(tmp_path / "out" / "training" / "find_lr.csv", delimiter=",", skiprows=1)
    assert np.allclose(table[:, 0], 1e-6 * 1e7 ** (np.arange(100) / 99), rtol=1e-4)
    assert table[60:90, 1].mean() < 0.8 * table[:30, 1].mean()
    assert not (tmp_path / "out" / "weights").exists()
    assert cli.main([*words, "-learn-epoch", "1"]) == 2 and "N2D2-E007" in capsys.readouterr().err


def test_the_proposed_rate():
    """The middle of the fall; neither a steeper fall from an explosion, nor noise."""
    rates, noise = 1e-6 * 1e7 ** (np.arange(300) / 299), np.random.default_rng(1).normal(size=300) / 50
    fall = 2.3 - 2 / (1 + (1e-3 / rates) ** 2) + noise
    exploded = np.where(rates > 0.1, 40 * np.abs(np.sin(np.arange(300))), fall)
    for losses in (fall, exploded):
        found = find_steepest_rate(list(zip(rates, losses, strict=True)))
        assert found is not None and 5e-4 < found < 2e-3
    assert find_steepest_rate(list(zip(rates, 2.3 + noise, strict=True))) is None
    assert find_steepest_rate([(1e-6, 2.0)]) is None and find_steepest_rate([(1e-6, 2.0), (10.0, 1.0)]) is not None


@pytest.mark.parametrize("right, classes", [(0.75, 4), (0.5, 10), (1.0, 2)])
def test_metrics_count_all_classes_together(right, classes):
    """Against a confusion matrix: its TP, FN, FP, TN summed up over the classes."""
    from n2d2py.training.metrics import METRICS

    each = 20 * (classes - 1)
    matrix = np.full((classes, classes), each * (1 - right) / (classes - 1))
    np.fill_diagonal(matrix, each * right)
    tp = np.diag(matrix).sum()
    fn, fp = (matrix.sum(1) - np.diag(matrix)).sum(), (matrix.sum(0) - np.diag(matrix)).sum()
    tn = classes * matrix.sum() - tp - fn - fp
    expected = {
        "Sensitivity": tp / (tp + fn), "Specificity": tn / (tn + fp), "Precision": tp / (tp + fp), "NPV": tn / (tn + fn),
        "MissRate": fn / (fn + tp), "FallOut": fp / (fp + tn), "FDR": fp / (fp + tp), "FOR": fn / (fn + tn),
        "Accuracy": (tp + tn) / (tp + tn + fp + fn), "F1Score": 2 * tp / (2 * tp + fp + fn),
        "Informedness": tp / (tp + fn) + tn / (tn + fp) - 1, "Markedness": tp / (tp + fp) + tn / (tn + fn) - 1,
    }  # fmt: skip
    assert {name: metric(right, classes) for name, metric in METRICS.items()} == pytest.approx(expected)
