"""From -learn-epoch to the compiled export, rates of solvers, folders of weights, checkpoints, errors."""

import importlib.util
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.e2e_run import needs_compiler
from support.programs import run_command

from n2d2py import cli
from n2d2py.contracts.ini.recipes import SolverSettings
from n2d2py.stages.load import load_stage
from n2d2py.stages.options import LoadOptions
from n2d2py.training.checkpoint import write_weights
from n2d2py.training.rates import learning_rate

ROOT = Path(__file__).resolve().parents[2]
NETWORK = ROOT / "models" / "LeNet_QAT.ini"
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")

SMALL = """[database]
Type=MNIST_IDX_Database
DataPath={data}
Validation=0.2
[sp]
SizeX=8
SizeY=8
NbChannels=1
BatchSize=32
[conv1]
Input=sp
Type=Conv
KernelSize=3
NbOutputs=6
WeightsFiller=HeFiller
QWeight=LSQ
QWeight.Range=15
QAct=SAT
QAct.Range=15
QAct.Alpha=2.0
ConfigSection=common
[fc]
Input=conv1
Type=Fc
NbOutputs=10
QWeight=SAT
QWeight.Range=255
QWeight.ApplyScaling=1
ConfigSection=common
[softmax]
Input=fc
Type=Softmax
NbOutputs=10
WithLoss=1
[softmax.Target]
[common]
Solvers.LearningRate=0.1
Solvers.Momentum=0.9
Solvers.LearningRatePolicy=CosineDecay
QWeightSolver.LearningRate=0.01
QActSolver.LearningRate=0.01
{more}
"""


def small(folder: Path, more: str = "") -> Path:
    path = folder / "net.ini"
    path.write_text(SMALL.format(data=ROOT / "models" / "data" / "digits", more=more))
    return path


def run(capsys, *words: str | Path) -> tuple[int, str]:
    status = cli.main([str(word) for word in words])
    seen = capsys.readouterr()
    return status, seen.out + seen.err


@needs_torch
@needs_compiler
def test_digits_from_training_to_the_compiled_export(tmp_path, capsys):
    status, text = run(capsys, NETWORK, "-learn-epoch", "8", "-export", "CPP", "-nbbits", "8", "-test", "-o", tmp_path)
    assert status == 0, text
    scores = {row[0]: float(row[1]) for row in re.findall(r"^(float|simulated int8|compiled) +510 +([0-9.]+)%", text, re.M)}
    assert scores["compiled"] == scores["simulated int8"] >= 88
    assert abs(scores["float"] - scores["simulated int8"]) <= 0.4
    assert "W108" not in text, "solver keys have an effect here"


@needs_torch
def test_weights_are_the_same_twice_and_read_again(tmp_path, capsys):
    for name in ("a", "b"):
        status, text = run(capsys, small(tmp_path), "-learn-epoch", "2", "-test", "-o", tmp_path / name)
        assert status == 0, text
    files = sorted(path.name for path in (tmp_path / "a" / "weights").iterdir())
    assert {"conv1_weights.syntxt", "conv1_QWeight_LSQ_StepSize.syntxt", "conv1_QAct_SAT_Alpha.syntxt"} <= set(files)
    for path in (tmp_path / "a" / "weights_validation").glob("*.syntxt"):
        assert path.read_text() == (tmp_path / "b" / "weights_validation" / path.name).read_text()
    score = re.search(r"rate: ([0-9.]+)%", text)
    assert score is not None and float(score[1]) > 75
    status, again = run(capsys, small(tmp_path), "-w", tmp_path / "a" / "weights_validation", "-test", "-o", tmp_path / "c")
    assert status == 0 and f"rate: {score[1]}%" in again


@needs_torch
def test_an_interrupted_training_goes_on(tmp_path, capsys):
    """Two epochs at once, and one by one: a constant rate does not know how long the training is."""
    ini = small(tmp_path, "Solvers.LearningRatePolicy=None")
    assert run(capsys, ini, "-learn-epoch", "2", "-o", tmp_path / "whole")[0] == 0
    assert run(capsys, ini, "-learn-epoch", "1", "-o", tmp_path / "parts")[0] == 0
    assert run(capsys, ini, "-learn-epoch", "2", "-learn-resume", "-o", tmp_path / "parts")[0] == 0
    for path in (tmp_path / "whole" / "weights").glob("*.syntxt"):
        assert path.read_text() == (tmp_path / "parts" / "weights" / path.name).read_text(), path.name


LEARNED = """
[sp.Transformation-1]
Type=SliceExtractionTransformation
ApplyTo=LearnOnly
Width=8
Height=8
RandomOffsetX=1
RandomRotation=1
RandomRotationRange=-10 10
AllowPadding=1
[sp.Transformation-2]
Type=RandomAffineTransformation
ApplyTo=LearnOnly
GainRange=0.5 1.0
[sp.Transformation-3]
Type=RangeAffineTransformation
FirstOperator=Divides
FirstValue=255
ApplyTo=NoLearn
"""


def test_each_epoch_draws_anew_and_the_same_again(tmp_path):
    """What is drawn depends on the seed, the epoch and the stimulus: not on the batch, its order or threads."""
    network = load_network(small(tmp_path, LEARNED))
    learned, validation = network.data.learned, network.data.sets["Validation"]
    assert learned is not None and network.data.draws
    first = np.concatenate([x for x, _, _ in learned(1, 0).batches(64)])
    assert np.array_equal(first[17], learned(1, 0)[17])
    assert np.array_equal(first[5:9], next(learned(1, 0).take([5, 6, 7, 8]).batches(4))[0])
    assert not np.array_equal(first[17], learned(1, 1)[17]) and not np.array_equal(first[17], learned(2, 0)[17])
    assert first.max() <= 1 and abs(first - np.stack([network.data.sets["Learn"][i] for i in range(len(first))])).max() > 0.1
    assert np.array_equal(validation[3], load_network(small(tmp_path)).data.sets["Validation"][3])


def load_network(path):
    return load_stage(path, LoadOptions(weights="/dev/null", read_data=True, training="now"), path.parent / "loaded")


@needs_torch
def test_random_transformations_are_learned(tmp_path, capsys):
    """Other weights than without them, the same ones from threads and processes, and no warning; one that is not implemented has a warning."""
    left_out = "\n[sp.Transformation-4]\nType=LabelExtractionTransformation\nWidths=3\nApplyTo=LearnOnly\n"
    texts = {}
    for name, more in (("plain", ""), ("a", LEARNED), ("b", LEARNED), ("warned", LEARNED + left_out)):
        workers = ["-learn-workers", "2"] if name == "b" else []
        status, texts[name] = run(capsys, small(tmp_path, more), "-learn", "640", *workers, "-test", "-o", tmp_path / name)
        assert status == 0, texts[name]
    weights = {name: (tmp_path / name / "weights" / "conv1_weights.syntxt").read_text() for name in texts}
    assert weights["a"] == weights["b"] == weights["warned"] != weights["plain"]
    assert "W430" not in texts["a"] and texts["warned"].count("N2D2-W430") == 1


@needs_torch
@pytest.mark.parametrize(
    "more, words, code",
    [
        ("", ["-learn-resume"], "E433"),
        ("Solvers.LearningRate=1e38", [], "E432"),
        ("Solvers.LearningRatePolicy=Cosine", [], "E122"),
        ("Solvers=RMSprop", [], "E122"),
        ("Solvers.Clamping=1:0", [], "E122"),
        ("Solvers.LearningRat=1", ["-strict"], "W102"),
        ("Solvers.Beta1=0.5", ["-strict"], "W108"),
        ("Solvers.Power=1", ["-strict"], "W108"),
    ],
)
def test_what_cannot_be_trained(more, words, code, tmp_path, capsys):
    status, text = run(capsys, small(tmp_path, more), "-learn", "160", *words, "-o", tmp_path / "out")
    assert status == 1 and f"N2D2-{code}" in text and "Traceback" not in text, text


@needs_torch
def test_labels_beyond_the_outputs(tmp_path, capsys):
    path = small(tmp_path)
    path.write_text(path.read_text().replace("NbOutputs=10", "NbOutputs=6"))
    status, text = run(capsys, path, "-learn", "160", "-o", tmp_path / "out")
    assert status == 1 and text.count("error ") == 1 and "N2D2-E451" in text and "label 9" in text and "6 classes" in text
    assert not (tmp_path / "out").exists()


def test_without_pytorch(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("n2d2py.stages.train.find_spec", lambda name: None)
    status, text = run(capsys, small(tmp_path), "-learn-epoch", "1", "-o", tmp_path / "out")
    assert status == 1 and "N2D2-E430" in text and "pip install n2d2py[train]" in text
    assert not (tmp_path / "out").exists()


@needs_torch
def test_a_module_of_an_own_loop_and_back(tmp_path, capsys):
    """Any loop may train the module; its folder gives the outputs of the module in inference."""
    import torch

    from n2d2py.torch import from_ini, to_weights

    ini = small(tmp_path)
    module = from_ini(ini)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
    x, labels = torch.rand(64, 1, 8, 8), torch.arange(64) % 10
    losses = []
    for _ in range(30):
        loss = torch.nn.functional.nll_loss(module(x)["softmax"].clamp(min=1e-9).log(), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        module.clamp_parameters()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.8 * losses[0]
    again = from_ini(ini, to_weights(module, tmp_path / "weights"))
    with torch.no_grad():
        assert torch.equal(again.eval()(x)["softmax"], module.eval()(x)["softmax"])
    status, text = run(capsys, ini, "-w", tmp_path / "weights", "-test", "-o", tmp_path / "out")
    assert status == 0, text


@needs_torch
@pytest.mark.slow
def test_several_processes(tmp_path):
    """The loop under torchrun: two processes that share each batch; the first one writes and tests."""
    words = ["-m", "n2d2py", str(small(tmp_path)), "-learn-epoch", "2", "-test", "-o", str(tmp_path / "out")]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    done = run_command(*launcher, *words, cwd=ROOT, timeout=240)
    score = re.findall(r"Final recognition rate: ([0-9.]+)%", done)
    assert len(score) == 1 and float(score[0]) > 75


_EPOCH = 60_000
_STEPS = _EPOCH // 32


@pytest.mark.parametrize(
    "keys, expected",
    [
        ({"learning_rate_policy": "PolyDecay", "power": 1.0, "max_iterations": 10 * _STEPS}, [0.090, 0.070, 0.040, 0.010]),
        ({"learning_rate_policy": "InvDecay", "power": 0.75, "learning_rate_decay": 0.001}, [0.045, 0.024, 0.015, 0.012]),
        (
            {"learning_rate_policy": "CosineDecay", "min_decay": 0.1, "max_iterations": 10 * _EPOCH},
            [0.0978, 0.0815, 0.0411, 0.0122],
        ),
        (
            {"learning_rate_policy": "CosineDecay", "warm_up_duration": 2 * _EPOCH, "max_iterations": 10 * _EPOCH},
            [0.0625, 0.0962, 0.0500, 0.0038],
        ),
    ],
)
def test_rates_of_n2d2(keys, expected):
    """Rates of N2D2 after epoch 1, 3, 6 and 9 of 10 epochs of 60,000 samples in batches of 32."""
    solver = SolverSettings(learning_rate=0.1, **keys)
    digits = 4 if solver.learning_rate_policy == "CosineDecay" else 3
    rates = [learning_rate(solver, epoch * _STEPS, 32, 10 * _EPOCH) for epoch in (1, 3, 6, 9)]
    assert [round(rate, digits) for rate in rates] == expected


def test_rates_of_the_policies():
    base = SolverSettings(learning_rate=2.0, learning_rate_step_size=10, learning_rate_decay=0.5, power=2.0, min_decay=0.1)

    def rate(policy: str, seen: int, step: int = 1, **more) -> float:
        return learning_rate(replace(base, learning_rate_policy=policy, **more), seen // step, step, 100)

    assert [rate("StepDecay", n) for n in (0, 9, 10, 25)] == [2, 2, 1, 0.5]
    assert rate("ExponentialDecay", 20, 4) == pytest.approx(2 * np.exp(-1))
    assert rate("InvTDecay", 20, 4) == pytest.approx(1)
    assert rate("InvDecay", 8, 4) == pytest.approx(0.5)
    assert [rate("PolyDecay", n, 5) for n in (0, 50, 200)] == [2, 0.5, 0]
    assert [rate("CosineDecay", n, 5) for n in (0, 50, 100)] == [2, pytest.approx(1.1), pytest.approx(0.2)]
    assert rate("CosineDecay", 50, max_iterations=5) == pytest.approx(0.2)
    assert [rate("CosineDecay", n, warm_up_duration=2) for n in (0, 10, 20)] == [0.5, 1.25, 2]
    assert rate("None", 5, warm_up_duration=10) == rate("StepDecay", 5, warm_up_duration=10) == 2


POLYNOMIAL = """[database]
Type=MNIST_IDX_Database
DataPath={data}
Validation=0.2
[sp]
SizeX=8
SizeY=8
BatchSize=32
[fc]
Input=sp
Type=Fc
NbOutputs=10
ConfigSection=common
[softmax]
Input=fc
Type=Softmax
NbOutputs=10
WithLoss=1
[softmax.Target]
[common]
Solvers.LearningRate=0.1
Solvers.LearningRatePolicy=PolyDecay
Solvers.Power=1.0
Solvers.MaxIterations=$([sp]_EpochSize * 8 / 32)
"""


@needs_torch
def test_iterations_are_steps(tmp_path, capsys):
    """MaxIterations as N2D2's INIs compute it, with a fraction; counted in samples, the training would end in its first epoch."""
    path = tmp_path / "net.ini"
    path.write_text(POLYNOMIAL.format(data=ROOT / "models" / "data" / "digits"))
    status, text = run(capsys, path, "-learn-epoch", "8", "-strict", "-o", tmp_path / "out")
    scores = [float(each) for each in re.findall(r"validation ([0-9.]+)%", text)]
    assert status == 0 and len(scores) == 8 and scores[-1] >= 90 and scores[-1] > scores[0], text


@needs_torch
def test_each_solver_counts_its_own_iterations(tmp_path, capsys):
    """Equal samples x = 1 of label 0: y = w x + b learns (1, 0); gradients of squares by hand, w with every second batch.

    An epoch has three batches: the second step of w takes one of each epoch, also where the training is interrupted between them.
    The rate of b halves with every batch; the first step has the whole rate.
    """
    np.savez(tmp_path / "data.npz", x=np.ones((12, 1), np.float32), y=np.zeros(12, np.int64))
    (tmp_path / "net.ini").write_text(
        "[database]\nType=Numpy_Database\nDataPath=data.npz\nLearn=1\n[sp]\nSize=1\nBatchSize=4\n"
        "[fc]\nInput=sp\nType=Fc\nNbOutputs=2\nWeightsFiller=ConstantFiller\nWeightsFiller.Value=0.5\nConfigSection=own\n"
        "BiasFiller=ConstantFiller\nBiasFiller.Value=0\n[fc.Target]\n"
        "[own]\nWeightsSolver.LearningRate=0.1\nWeightsSolver.IterationSize=2\nBiasSolver.LearningRate=0.2\n"
        "BiasSolver.LearningRatePolicy=StepDecay\nBiasSolver.LearningRateStepSize=4\nBiasSolver.LearningRateDecay=0.5\n"
    )
    assert run(capsys, tmp_path / "net.ini", "-learn-epoch", "2", "-o", tmp_path / "out")[0] == 0
    assert run(capsys, tmp_path / "net.ini", "-learn-epoch", "1", "-o", tmp_path / "again")[0] == 0
    assert run(capsys, tmp_path / "net.ini", "-learn-epoch", "2", "-learn-resume", "-o", tmp_path / "again")[0] == 0
    w, b, held = np.full(2, 0.5), np.zeros(2), np.zeros(2)
    for batch in range(1, 7):
        gradient = w + b - np.array([1, 0])
        held += gradient / 2
        b = b - 0.2 * 0.5 ** (batch - 1) * gradient
        if batch % 2 == 0:
            w, held = w - 0.1 * held, np.zeros(2)
    for name in ("out", "again"):
        paths = (tmp_path / name / "weights").glob("*.syntxt")
        found = [float(word) for path in paths for word in path.read_text().split()]
        np.testing.assert_allclose(sorted(found), sorted([*w, *b]), rtol=1e-5)


def test_a_folder_of_weights_is_replaced_whole(tmp_path):
    values = np.random.default_rng(0).normal(size=(3, 2, 1, 1)).astype(np.float32)
    write_weights(tmp_path / "weights", {"old": {"weights": values}})
    write_weights(tmp_path / "weights", {"a/b": {"weights": values, "biases": values[:, 0, 0, 0]}})
    assert [path.name for path in tmp_path.iterdir()] == ["weights"]
    names = sorted(path.name for path in (tmp_path / "weights").iterdir())
    assert names == ["a_b_biases.syntxt", "a_b_weights.syntxt", "weights.npz"]
    text = (tmp_path / "weights" / "a_b_weights.syntxt").read_text().split()
    assert np.array_equal(np.array(text, np.float32), values.reshape(-1))
    shutil.rmtree(tmp_path / "weights")
