"""The solvers of layers: which keys reach them, in which order they count, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.frontend.ini.network import build_graph
from n2d2py.frontend.ini.recipes import SolverSettings, computed_keys
from n2d2py.frontend.ini.weights import WeightStore
from n2d2py.ini import load_document

SGD = SolverSettings("SGD", 0.01)
ADAM = SolverSettings("Adam", 0.001)


def recipe(tmp_path, keys: str, config: str = "", kind: str = "Conv"):
    """The recipe of a layer with these keys, its document, and the warnings; `config`: keys of its ConfigSection."""
    log.setup(quiet=True)
    layer = "Type=Conv\nKernelSize=3\nNbOutputs=4\nPadding=1" if kind == "Conv" else "Type=BatchNorm\nNbOutputs=2"
    text = f"DefaultModel=Frame\n[sp]\nSizeX=6\nSizeY=6\nNbChannels=2\n[y]\nInput=sp\n{layer}\nConfigSection=c\n{keys}\n[c]\n{config}\n[y.Target]\n"
    path = tmp_path / "net.ini"
    path.write_text(text)
    weights = WeightStore(None)
    weights.recipes = {}
    document = load_document(path)
    build_graph(document, (1, 2, 6, 6), weights, 1)
    return weights.recipes["y"], document, [warning.line() for warning in log.warnings_seen()]


def test_what_n2d2_takes_without_keys(tmp_path):
    """The defaults that N2D2 documents."""
    found, _, _ = recipe(tmp_path, "")
    assert found.rows and found.solvers == dict.fromkeys(("weights", "bias", "scale", "QWeight", "QAct"), SGD)
    assert (SGD.momentum, SGD.polyak_momentum, SGD.decay, SGD.min_decay, SGD.power) == (0, True, 0, 0, 0)
    assert (SGD.iteration_size, SGD.max_iterations, SGD.warm_up_duration, SGD.warm_up_lr_frac) == (1, 0, 0, 0.25)
    assert (SGD.learning_rate_policy, SGD.learning_rate_step_size, SGD.learning_rate_decay) == ("None", 1, 0.1)
    assert (ADAM.beta1, ADAM.beta2, ADAM.epsilon, ADAM.clamping) == (0.9, 0.999, 1e-8, None)


@pytest.mark.parametrize("type", ["Adam", "AdamSolver_Frame", "AdamSolver_Frame_CUDA", "AdamSolver"])
def test_the_type_of_a_solver(tmp_path, type):
    assert recipe(tmp_path, f"WeightsSolver={type}")[0].solvers["weights"] == ADAM


@pytest.mark.parametrize(
    ("keys", "config", "role", "wanted"),
    [
        ("Solvers.LearningRate=0.5", "", "bias", replace(SGD, learning_rate=0.5)),
        ("Solvers.LearningRate=0.5\nBiasSolver.LearningRate=0.25", "", "bias", replace(SGD, learning_rate=0.25)),
        ("BiasSolver.LearningRate=0.25\nSolvers.LearningRate=0.5", "", "bias", replace(SGD, learning_rate=0.25)),
        ("BiasSolver.LearningRate=0.25", "", "weights", SGD),
        ("", "WeightsSolver.Momentum=0.5", "weights", replace(SGD, momentum=0.5)),
        ("WeightsSolver.Momentum=0.75", "WeightsSolver.Momentum=0.5", "weights", replace(SGD, momentum=0.75)),
        ("Solvers.Momentum=0.75", "WeightsSolver.Momentum=0.5", "weights", replace(SGD, momentum=0.5)),
        ("WeightsSolver.PolyakMomentum=0", "", "weights", replace(SGD, polyak_momentum=False)),
        ("Solvers=Adam\nWeightsSolver=SGD", "", "weights", SGD),
        ("Solvers=Adam\nSolvers.Beta1=0.5\nSolvers.Beta2=0.75", "", "bias", replace(ADAM, beta1=0.5, beta2=0.75)),
        ("Solvers=Adam\nSolvers.Epsilon=0.5", "", "weights", replace(ADAM, epsilon=0.5)),
        ("Solvers.Clamping=-1.0:0.5", "", "weights", replace(SGD, clamping=(-1.0, 0.5))),
        ("Solvers.Clamping=", "", "weights", SGD),
        ("Solvers.LearningRatePolicy=CosineDecay", "", "weights", replace(SGD, learning_rate_policy="CosineDecay")),
        ("Solvers.LearningRateStepSize=7", "", "weights", replace(SGD, learning_rate_step_size=7)),
        ("Solvers.LearningRateDecay=0.5", "", "weights", replace(SGD, learning_rate_decay=0.5)),
        ("Solvers.WarmUpDuration=3\nSolvers.WarmUpLRFrac=1", "", "weights", replace(SGD, warm_up_duration=3, warm_up_lr_frac=1)),
        ("Solvers.MaxIterations=9\nSolvers.IterationSize=1", "", "weights", replace(SGD, max_iterations=9)),
        ("Solvers.Decay=0\nSolvers.MinDecay=0.5\nSolvers.Power=-2", "", "bias", replace(SGD, min_decay=0.5, power=-2)),
    ],
)  # fmt: skip
def test_the_keys_of_a_solver(tmp_path, keys, config, role, wanted):
    found, _, warnings = recipe(tmp_path, keys, config)
    assert found.solvers[role] == wanted and not [line for line in warnings if "W102" in line]


def test_the_scale_of_a_normalization(tmp_path):
    found, _, _ = recipe(tmp_path, "ScaleSolver.Momentum=1\nSolvers.LearningRate=0", kind="BatchNorm")
    assert found.solvers["scale"] == replace(SGD, momentum=1, learning_rate=0) and found.solvers["bias"].momentum == 0


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("Solvers.LearningRate=-0.1", "E122.*Solvers.LearningRate=-0.1 is below 0"),
        ("Solvers.Momentum=-0.1", "E122.*is below 0"),
        ("Solvers.Momentum=1.5", "E122.*is above 1"),
        ("Solvers.Decay=-1", "E122.*is below 0"),
        ("Solvers.MinDecay=-1", "E122.*is below 0"),
        ("Solvers.IterationSize=0", "E122.*is below 1"),
        ("Solvers.WarmUpLRFrac=1.5", "E122.*is above 1"),
        ("Solvers.WarmUpLRFrac=-0.5", "E122.*is below 0"),
        ("Solvers.LearningRateStepSize=0", "E122.*is below 1"),
        ("Solvers.LearningRateDecay=-1", "E122.*is below 0"),
        ("Solvers.LearningRatePolicy=Slow", "E122.*is not one of None, StepDecay, ExponentialDecay"),
        ("Solvers=Adam\nSolvers.LearningRate=-1", "E122.*is below 0"),
        ("Solvers=Adam\nSolvers.Beta1=1.5", "E122.*is above 1"),
        ("Solvers=Adam\nSolvers.Beta1=-1", "E122.*is below 0"),
        ("Solvers=Adam\nSolvers.Beta2=1.5", "E122.*is above 1"),
        ("Solvers=Adam\nSolvers.Beta2=-1", "E122.*is below 0"),
        ("Solvers=Adam\nSolvers.Epsilon=-1", "E122.*is below 0"),
        ("Solvers.Clamping=1", "E122.*Solvers.Clamping=1 is no range"),
        ("Solvers.Clamping=1:1", "E122.*is no range"),
        ("Solvers.Clamping=a:b", "E122.*is no range"),
        ("WeightsSolver=RMSProp", "E122.*WeightsSolver=RMSProp is no solver; give one of SGD, Adam"),
        ("QWeight=Prune", "E124.*QWeight=Prune is not supported: the result would differ"),
        ("QWeight=SAT\nQWeight.QuantMode=Asymmetric", "E124.*QWeight.QuantMode=Asymmetric is not supported"),
    ],
)
def test_refused_keys(tmp_path, keys, text):
    with pytest.raises(N2D2Error, match=text):
        recipe(tmp_path, keys)


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (
            "WeightsExportFormat=HWCO",
            "WeightsExportFormat=HWCO is not supported in training: weights are stored output by output",
        ),
        ("WeightsExportFlip=1", "WeightsExportFlip=True is not supported in training"),
        ("OutputsRemap=0:2,1:2", "OutputsRemap=0:2,1:2 is not supported in training"),
    ],
)
def test_other_orders_of_stored_weights(tmp_path, config, text):
    with pytest.raises(N2D2Error, match=f"E124.*{text}"):
        recipe(tmp_path, "", config)


@pytest.mark.parametrize("config", ["WeightsExportFormat=OCHW", "WeightsExportFlip=0"])
def test_the_order_of_training(tmp_path, config):
    assert recipe(tmp_path, "QWeight=SAT\nQWeight.QuantMode=Symmetric", config)[0].solvers["weights"] == SGD


def test_keys_of_another_solver_and_unknown_ones(tmp_path):
    _, document, warnings = recipe(tmp_path, "Solvers.Beta1=0.5\nWeightsSolver.Momentun=0.5")
    (line,) = [line for line in warnings if "W102" in line]
    assert "unknown key 'WeightsSolver.Momentun' for the solver SGD" in line and "did you mean 'Momentum'?" in line
    document.ignored.warn()
    assert any("Beta1" in line for line in log_lines())


def test_the_keys_that_training_computes(tmp_path):
    """Those of solvers are struck off the list of what has no effect; the others stay."""
    _, document, _ = recipe(tmp_path, "Solvers.LearningRate=0.5\nMomentumScheme=1\nQWeight.StepInitStepSize=1")
    computed_keys(document.ignored)
    document.ignored.warn()
    assert not any("LearningRate" in line for line in log_lines())


def log_lines() -> list[str]:
    return [warning.line() for warning in log.warnings_seen()]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("Solvers.Beta1=0.5", "Solvers.Beta1"),
        ("WeightsSolver.Epsilon=0.5", "WeightsSolver.Epsilon"),
        ("WeightsSolver=Adam\nWeightsSolver.Momentum=0.5", "WeightsSolver.Momentum"),
        ("Solvers=Adam\nSolvers.Decay=0.5", "Solvers.Decay"),
        ("WeightsSolver=Adam\nWeightsSolver.LearningRate=0.5", ""),
        ("WeightsSolver.LearningRate=0.5", ""),
    ],
)
def test_keys_of_another_solver_have_no_effect(tmp_path, keys, said):
    found, document, _ = recipe(tmp_path, keys)
    document.ignored.warn()
    lines = [line for line in log_lines() if "keys of another solver" in line]
    text = f"keys of another solver have no effect here: {said} in [y]; remove them, or name that solver"
    assert [line.partition("net.ini: ")[2] for line in lines] == ([text] if said else [])
    kind = "Adam" if "Adam" in keys else "SGD"
    assert found.solvers["weights"] == replace(
        ADAM if kind == "Adam" else SGD, learning_rate=0.5 if "LearningRate" in keys else {"Adam": 0.001, "SGD": 0.01}[kind]
    )


def test_an_unknown_key_is_said_once(tmp_path):
    """A key of all parameters is read for each of them; without a key like it there is no proposal."""
    _, _, warnings = recipe(tmp_path, "Solvers.Qqqqqqqq=0.5")
    (line,) = [line for line in warnings if "W102" in line]
    assert line.endswith("unknown key 'Solvers.Qqqqqqqq' for the solver SGD; it is ignored; remove it or check its spelling")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("-1:1", (-1.0, 1.0)), ("0:1e-3", (0.0, 0.001)), (" -2 : -1 ", (-2.0, -1.0)), ("-inf:0", (float("-inf"), 0.0))],
)
def test_ranges_of_a_parameter(tmp_path, text, wanted):
    assert recipe(tmp_path, f"BiasSolver.Clamping={text}")[0].solvers["bias"].clamping == wanted


@pytest.mark.parametrize("text", ["1:0", "0:0", ":", "1:", ":1", "0:nan", "nan:0", "0,1", "0:1:2"])
def test_ranges_that_are_none(tmp_path, text):
    with pytest.raises(N2D2Error, match=f"E122.*BiasSolver.Clamping={text} is no range; give LOW:HIGH, such as -1.0:1.0"):
        recipe(tmp_path, f"BiasSolver.Clamping={text}")
