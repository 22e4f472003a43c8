"""Networks in ONNX sections learn: with the solvers and quantizers of [onnx:<Type>_def] and of sections named after layers."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.e2e_run import needs_compiler
from support.onnx_models import ModelBuilder, text_model

from n2d2py import cli
from n2d2py.stages.load import load_stage
from n2d2py.stages.options import LoadOptions

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")

NETWORK = """[database]
Type=Numpy_Database
DataPath=data.npz
Learn=0.5
Validation=0.25
[sp]
SizeX=8
SizeY=8
NbChannels=1
BatchSize=16
{sections}
[onnx]
Input=sp
Type=ONNX
File=net.onnx
[soft]
Input=onnx,logits
Type=Softmax
NbOutputs=3
WithLoss=1
[soft.Target]
[learn.config]
Solvers.LearningRate=0.1
Solvers.Momentum=0.9
QWeightSolver.LearningRate=0.01
QActSolver.LearningRate=0.01
"""
LEARNT = "[onnx:Conv_def]\nConfigSection=learn.config\n[onnx:BatchNorm_def]\nConfigSection=learn.config\n[onnx:Fc_def]\nConfigSection=learn.config\n"
QUANTIZED = """[onnx:Conv_def]
QWeight={kind}
QWeight.Range=15
WeightsFiller=XavierFiller
ConfigSection=learn.config
[onnx:BatchNorm_def]
ConfigSection=learn.config
[onnx:Fc_def]
QWeight={kind}
QWeight.Range=255
{scaling}
ConfigSection=learn.config
[relu_def]
ActivationFunction=Linear
QAct={kind}
QAct.Range=15
{alpha}
ConfigSection=learn.config
[relu1] relu_def
[relu2] relu_def
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Conv, BatchNormalization, Relu, Conv, Relu, mean, Gemm; pictures whose stripes are horizontal, vertical or none."""
    rng = np.random.default_rng(2)
    stripes = np.array([[0, 1] * 4] * 8)
    images = np.stack([np.stack([stripes, stripes.T, np.full((8, 8), 0.5)])[label] for label in np.arange(192) % 3])
    noise = rng.normal(0, 0.1, images.shape)
    np.savez(tmp_path / "data.npz", x=(255 * np.clip(images + noise, 0, 1)).astype(np.uint8)[:, None], y=np.arange(192) % 3)
    arrays = {
        "w1": rng.normal(0, 0.4, (6, 1, 3, 3)), "w2": rng.normal(0, 0.2, (8, 6, 3, 3)), "w3": rng.normal(0, 0.4, (3, 8)),
        "b3": np.zeros(3), "scale": np.ones(6), "shift": np.zeros(6), "mean": np.full(6, 0.1), "var": np.full(6, 0.5),
    }  # fmt: skip
    body = """conv1 = Conv <pads = [1, 1, 1, 1]> (x, w1) bn1 = BatchNormalization (conv1, scale, shift, mean, var)
        relu1 = Relu (bn1) conv2 = Conv (relu1, w2) relu2 = Relu (conv2)
        pool = GlobalAveragePool (relu2) flat = Flatten (pool) logits = Gemm <transB = 1> (flat, w3, b3)"""
    onnx.save(text_model("float[1,1,8,8] x => float[1,3] logits", body, arrays), tmp_path / "net.onnx")
    return tmp_path


def run(folder: Path, capsys, sections: str, *words: str) -> tuple[int, str]:
    (folder / "net.ini").write_text(NETWORK.format(sections=sections))
    status = cli.main([str(folder / "net.ini"), *words, "-o", str(folder / "out")])
    seen = capsys.readouterr()
    return status, seen.out + seen.err


def learned(folder: Path) -> dict[str, np.ndarray]:
    with np.load(folder / "out" / "weights" / "weights.npz") as stored:
        return {name: stored[name] for name in stored.files}


def test_layers_with_a_section_learn(folder, capsys):
    status, text = run(folder, capsys, LEARNT, "-learn-epoch", "12", "-test")
    score = re.search(r"rate: ([0-9.]+)%", text)
    assert status == 0 and score is not None and float(score[1]) >= 95, text


def test_the_others_keep_their_parameters(folder, capsys):
    """Their statistics too; BackPropagate=0 stops the gradient before a layer."""
    initial = {each.name: onnx.numpy_helper.to_array(each) for each in onnx.load(folder / "net.onnx").graph.initializer}
    status, text = run(folder, capsys, "[onnx:Fc_def]\nConfigSection=learn.config\n", "-learn-epoch", "1")
    found = learned(folder)
    assert status == 0, text
    assert np.array_equal(found["conv1_weights"], initial["w1"]) and np.array_equal(found["bn1_means"], initial["mean"])
    assert not np.array_equal(found["logits_weights"].reshape(3, 8), initial["w3"])
    stopped = LEARNT + "[conv2]\nConfigSection=learn.config,stop\n[stop]\nBackPropagate=0\n"
    status, text = run(folder, capsys, stopped, "-learn-epoch", "1")
    found = learned(folder)
    assert status == 0, text
    assert np.array_equal(found["conv1_weights"], initial["w1"]) and not np.array_equal(found["conv2_weights"], initial["w2"])


@needs_compiler
@pytest.mark.parametrize("kind, scaling, alpha", [("SAT", "QWeight.ApplyScaling=1", "QAct.Alpha=2.0"), ("LSQ", "", "")])
def test_with_quantizers_to_the_compiled_export(kind, scaling, alpha, folder, capsys):
    sections = QUANTIZED.format(kind=kind, scaling=scaling, alpha=alpha)
    status, text = run(folder, capsys, sections, "-learn-epoch", "12", "-export", "CPP", "-nbbits", "8", "-test")
    scores = {row[0]: float(row[1]) for row in re.findall(r"^(float|simulated int8|compiled) +48 +([0-9.]+)%", text, re.M)}
    assert status == 0 and scores["compiled"] == scores["simulated int8"] >= 90, text
    assert abs(scores["float"] - scores["compiled"]) <= 2.1
    names = {"SAT": "Alpha", "LSQ": "StepSize"}
    assert {f"relu{number}_QAct_{kind}_{names[kind]}" for number in (1, 2)} <= set(learned(folder))


def test_what_does_not_fit(folder, capsys):
    status, text = run(folder, capsys, "[pool]\nQWeight=SAT\n", "-learn-epoch", "1")
    assert status == 1 and "N2D2-E242" in text and "'pool'" in text
    status, text = run(folder, capsys, "", "-learn-epoch", "1")
    assert status == 1 and "N2D2-E431" in text and "no layer learns" in text


# ---- N2D2's example of QAT on a file: its sections, retyped as facts, and a ResNet-18 of its names
STEP = """{0}.LearningRatePolicy=CosineDecay
{0}.LearningRate=0.05
{0}.Momentum=0.9
{0}.Decay=0.00004
{0}.MaxIterations=1000
{0}.IterationSize=2
"""
WEIGHTS = """QWeight=SAT
QWeight.ApplyScaling={scaling}
QWeight.ApplyQuantization={quantized}
QWeight.Range=15
WeightsFiller=XavierFiller
WeightsFiller.VarianceNorm=FanOut
WeightsFiller.Scaling=1.0
"""
RELUS = [
    "relu0_fwd",
    *(f"stage{s}_{each}" for s in range(1, 5) for each in ("relu0_fwd", "activation0", "relu1_fwd", "activation1")),
]
ACTIVATIONS = f"""[ReluQ_def]
ActivationFunction=Linear
QAct=SAT
QAct.Range=15
QActSolver=SGD
{STEP.format("QActSolver")}{"".join(f"[resnetv15_{name}]ReluQ_def{chr(10)}" for name in RELUS)}[resnetv15_conv0_fwd]onnx:Conv_def
QWeight.Range=255
[resnetv15_dense0_fwd]onnx:Fc_def
QWeight.Range=255
"""


def resnet18(path: Path, widths: tuple[int, ...] = (3, 4, 4, 6)) -> None:
    """ResNet-18 with the names of N2D2's example and few channels."""
    build = ModelBuilder(3, opset=13)

    def drawn(at: int, shape: tuple[int, ...]) -> np.ndarray:
        if len(shape) > 1:
            return build.rng.normal(0, (2 / np.prod(shape[1:])) ** 0.5, shape)
        return np.full(shape, float(at in (0, 3)))

    def add(kind, name, inputs, shapes=(), **attributes):
        constants = [build.constant(drawn(at, shape), f"{name}_{at}") for at, shape in enumerate(shapes)]
        return build.add(kind, *inputs, *constants, name=name, **attributes)

    def conv(name, number, x, channels, outputs, size, stride=1):
        pads = [size // 2] * 4
        x = add("Conv", f"{name}conv{number}_fwd", [x], [(outputs, channels, size, size)], pads=pads, strides=[stride] * 2)
        return add("BatchNormalization", f"{name}batchnorm{number}_fwd", [x], [(outputs,)] * 4)

    x, channels, name = "data", 3, "resnetv15_"
    x = add("Relu", f"{name}relu0_fwd", [conv(name, 0, x, channels, widths[0], 7, 2)])
    x = add("MaxPool", f"{name}pool0_fwd", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = widths[0]
    for stage, outputs in enumerate(widths, 1):
        name, number = f"resnetv15_stage{stage}_", 0
        for block in range(2):
            stride = 2 if stage > 1 and block == 0 else 1
            y = add("Relu", f"{name}relu{block}_fwd", [conv(name, number, x, channels, outputs, 3, stride)])
            y = conv(name, number + 1, y, outputs, outputs, 3)
            number += 2
            if stride == 2:
                x, number = conv(name, number, x, channels, outputs, 1, 2), number + 1
            x = add("Relu", f"{name}activation{block}", [add("Add", f"{name}_plus{block}", [x, y])])
            channels = outputs
    x = add("Flatten", "flat", [add("GlobalAveragePool", "resnetv15_pool1_fwd", [x])])
    x = add("Gemm", "resnetv15_dense0_fwd", [x], [(3, channels), (3,)], transB=1)
    build.save(path, {"data": ["N", 3, "H", "W"]}, x)


def example(quantized: int) -> str:
    """The INI of the first step, clamped weights, or of the second one, 4-bit weights and activations."""
    head = NETWORK.partition("[sp]")[0] + "[sp]\nSize=32 32 3\nBatchSize=8\n"
    conv, fc = (WEIGHTS.format(scaling=scaling, quantized=quantized) for scaling in (0, 1))
    return f"""{head}[onnx:Conv_def]
{conv}ConfigSection=conv.config
[conv.config]
NoBias=1
{STEP.format("Solvers")}[onnx:Fc_def]
{fc}ConfigSection=fc.config
[fc.config]
NoBias=0
{STEP.format("Solvers")}[onnx:BatchNorm_def]
ConfigSection=bn_train.config
[bn_train.config]
{STEP.format("Solvers")}{ACTIVATIONS * quantized}[onnx]
Input=sp
Type=ONNX
File=resnet18v1.onnx
ONNX_init=0
[soft1]
Input=resnetv15_dense0_fwd
Type=Softmax
NbOutputs=3
WithLoss=1
[soft1.Target]
"""


def test_the_resnet_of_the_documentation(tmp_path, capsys):
    """Clamped weights, then 4 bits from them: a few steps on random data. Fillers give the first weights."""
    rng = np.random.default_rng(0)
    resnet18(tmp_path / "resnet18v1.onnx")
    np.savez(tmp_path / "data.npz", x=rng.integers(0, 256, (48, 3, 32, 32), np.uint8), y=np.arange(48) % 3)
    words = ["-learn-epoch", "1", "-valid-metric", "Precision"]
    for quantized, more in enumerate((["-o", "clamped"], ["-w", "clamped/weights", "-o", "out"])):
        (tmp_path / "net.ini").write_text(example(quantized))
        more = [str(tmp_path / word) if word in ("clamped", "clamped/weights", "out") else word for word in more]
        status = cli.main([str(tmp_path / "net.ini"), *words, *more])
        text = "".join(capsys.readouterr())
        assert status == 0 and "W108" not in text, text
    assert text.count("W431") == 2  # the warning, and their number
    steps = {name: values for name, values in learned(tmp_path).items() if "Alpha" in name}
    assert len(steps) == len(RELUS) and all(0 < float(value[0]) != 8 for value in steps.values())
    for filler in ("XavierFiller", "ConstantFiller"):
        (tmp_path / "net.ini").write_text(example(0).replace("XavierFiller", filler))
        network = load_stage(tmp_path / "net.ini", LoadOptions(weights="/dev/null", training="now"), tmp_path)
        weights = network.graph.node("resnetv15_conv0_fwd").params["weights"]
        assert bool(weights.any()) == (filler == "XavierFiller") and np.abs(weights).max() <= (3 / (3 * 49)) ** 0.5
