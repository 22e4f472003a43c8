"""How users of N2D2 write their files: -describe gives the dimensions whatever else the files ask for."""

from __future__ import annotations

import pytest
from support.model_run import description, dims, warnings, write
from support.tables import every

from n2d2py import log
from n2d2py.cli import run
from n2d2py.errors import N2D2Error
from n2d2py.options import parse_arguments

SP = "[sp]\nSizeX=32\nSizeY=24\nNbChannels=3\n"

SOLVERS = """
WeightsSolver=SGD
WeightsSolver.LearningRate=${LR}
WeightsSolver.Momentum=0.9
WeightsSolver.Decay=${WD}
WeightsSolver.LearningRatePolicy=PolyDecay
WeightsSolver.MaxIterations=$([sp]_EpochSize * ${EPOCHS} / (${BATCH_SIZE} * ${ITER_SIZE}))
WeightsSolver.IterationSize=${ITER_SIZE}
BiasSolver.LearningRate=$(2.0 * ${LR})
Solvers.Clamping=-1.0:1.0
"""


def refused(text: str, *options: str) -> str:
    """The first line of the error that running the file gives."""
    log.setup(quiet=True)
    with pytest.raises(N2D2Error) as caught:
        run(parse_arguments([str(write(text)), "-w", "/dev/null", "-seed", "1", *options]))
    return caught.value.line()


def test_training_parameters_are_never_read():
    """Solver keys may refer to what a description does not know: the size of the database, undefined macros."""
    text = f"""
$LR=0.05
DefaultModel=Frame_CUDA
DefaultDataType=Float16
{SP}BatchSize=64
[conv]
Input=sp
Type=Conv
Model=Frame_EXT_CUDA
KernelDims=3 3
NbOutputs=8
WeightsFiller=XavierFiller
WeightsFiller.VarianceNorm=FanOut
WeightsFiller.Distribution=Normal
ConfigSection=common.config,conv.config
ConfigSection(Frame)=common.config
ConfigSection(Spike)=spike.config
QWeight=LSQ
QWeight.Range=15
QWeightSolver=SGD
QWeightSolver.LearningRate=0.01
QAct=SAT
QAct.Range=255
QActSolver=Adam
ActivationFunction=Rectifier
ActivationFunction.QuantizationLevels=255
ActivationFunction.QuantizationDelay=$(2 * [sp]_EpochSize)
ActivationFunction.MovingAverage=EMA
ActivationFunction.MA_Window=100
ActivationFunction.Log2RoundingRate=0.1
ActivationFunction.Log2RoundingPower=1.0
WeightsSharing=other
[common.config]
NoBias=1
BackPropagate=0
{SOLVERS}
[conv.config]
OutputsRemap=
[spike.config]
IncomingDelay=1 ps; 100 fs
Threshold=1.0
"""
    assert dims(write(text)) == {"conv": [30, 22, 8]}
    kinds = {line.split(": ")[2].split(" have no effect")[0] for line in warnings()}
    assert kinds == {"keys of training", "keys of training with quantization", "types of floating point", "shared parameters"}


@every(
    "database",
    [
        "Type=Cityscapes_Database\nIncTrainExtra=0\n",
        "Type=Caltech256_DIR_Database\nLearn=0.5\n",
        "Type=NoSuch_Database\nX=1\n",
        "Type=ILSVRC2012_Database\nLearn=1.0\nRandomPartitioning=0\n",
        "Learn=0.5\n",
        "Type=DIR_Database\nDataPath=${N2D2_DATA}/none\nLearn=0.4\nLoadMore=database.more\n",
    ],
)
def test_databases_are_not_opened(database):
    text = (
        f"[database]\n{database}[database.slicing]\nWidth=10\nHeight=10\nStrideX=5\nStrideY=5\n{SP}"
        "[fc]\nInput=sp\nType=Fc\nNbOutputs=5\n[fc.Target]\nLabelsMapping=${NOWHERE}/labels.dat\n"
    )
    assert dims(write(text)) == {"fc": [1, 1, 5]}
    assert warnings() == []


@every(
    "kind",
    [
        *"Transformation Transformation-1 OnTheFlyTransformation-a ChannelTransformation".split(),
        *"ChannelsOnTheFlyTransformation-x".split(),
    ],
)
@every(
    "body",
    [
        "Type=RescaleTransformation\nWidth=[sp]SizeX\nHeight=$(${SIZE} + ${MARGIN})\n",
        "Type=RandomAffineTransformation\nGainRange=0.8 1.2\nApplyTo=LearnOnly\n",
        "Type=LabelSliceExtractionTransformation\nWidth=8\nHeight=8\nKeepComposite=1\n",
        "Type=NotThere\nA=1\n",
        "Type=ROIExtractionTransformation\nWidth=4\n",
        "Type=RangeAffineTransformation\nFirstOperator=Minus\nFirstValue=[sp.StimuliData-raw]_GlobalValue.mean\n",
    ],
)
def test_transformations_are_not_read(kind, body):
    text = (
        f"{SP}CompositeStimuli=1\nCachePath=${{TMP}}/_cache\nConfigSection=sp.config\n[sp.config]\n"
        f"QuantizationLevels=256\n[sp.StimuliData-raw]\nMeanData=1\n[sp.Adversarial]\nAttack=PGD\n[sp.{kind}]\n"
        f"{body}[fc]\nInput=sp\nType=Fc\nNbOutputs=5\n"
    )
    assert dims(write(text)) == {"fc": [1, 1, 5]}


def test_env_section_with_spiking_parameters():
    text = (
        "DefaultModel=Transcode_CUDA\n[env]\nSizeX=24\nSizeY=24\nConfigSection=env.config\n"
        "StimulusType=SingleBurst\nPeriodMin=1\n[env.config]\nDataSignedMapping=1\n"
        "[env.Transformation]\nType=RescaleTransformation\nWidth=24\nHeight=24\n"
        "[conv1]\nInput=env\nType=Conv\nKernelWidth=4\nKernelHeight=4\nNbOutputs=16\nStride=2\n"
        "Mapping(env)=1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n[fc]\nInput=conv1\nType=Fc\nNbOutputs=10\n"
        "[fc.Target]\n"
    )
    found = description(write(text))
    assert found["inputs"] == {"env": [24, 24, 1]}
    assert [layer["output_dims"] for layer in found["layers"]] == [[11, 11, 16], [1, 1, 10]]


@every("model", ["Spike", "CSpike_BP", "RRAM", "Spike_Analog"])
def test_spiking_models_are_described_but_not_run(model):
    text = f"DefaultModel={model}\n{SP}[fc]\nInput=sp\nType=Fc\nNbOutputs=5\nIncomingDelay=1\n"
    assert dims(write(text)) == {"fc": [1, 1, 5]}
    assert any("W226" in line and f"spiking model {model} " in line for line in warnings())
    assert "E222" in refused(text, "-export", "CPP", "-nbbits", "-32", "-db-export", "0")
    own = f"{SP}[fc]\nInput=sp\nType=Fc\nModel={model}\nNbOutputs=5\n"
    assert dims(write(own)) == {"fc": [1, 1, 5]}
    assert "E222" in refused(own, "-export", "CPP", "-nbbits", "-32", "-db-export", "0")


def test_outputs_by_their_old_name():
    text = (
        f"{SP}[conv]\nInput=sp\nType=Conv\nKernelWidth=3\nKernelHeight=5\nNbChannels=16\nStrideX=2\n"
        "PaddingX=1\n[fc]\nInput=conv\nType=Fc\nNbOutputs=$([conv]NbChannels * 2)\n"
    )
    assert dims(write(text)) == {"conv": [16, 20, 16], "fc": [1, 1, 32]}


def test_layers_that_feed_no_target_are_described():
    text = (
        f"{SP}[a]\nInput=sp\nType=Fc\nNbOutputs=5\n[b]\nInput=sp\nType=Fc\nNbOutputs=7\n[soft]\nInput=a\n"
        "Type=Softmax\nNbOutputs=5\nWithLoss=1\n[after]\nInput=soft,b\nType=Activation\nNbOutputs=12\n"
        "ActivationFunction=Linear\n[a.Target]\n"
    )
    layers = {layer["name"]: layer for layer in description(write(text))["layers"]}
    assert {name: layer["output_dims"][2] for name, layer in layers.items()} == {"a": 5, "b": 7, "soft": 5, "after": 12}
    assert layers["after"]["parents"] == ["soft", "b"] and layers["after"]["input_dims"] == [1, 1, 12]


DETECTION = f"""
{SP}
[conv]
Input=sp
Type=Conv
KernelSize=1
NbOutputs=18
[anchors]
Input=conv
Type=Anchor
DetectorType=LOGITS
Anchor[0]=32 1.0
Anchor[1]=48 0.5
Anchor[2]=64 2.0
ScoresCls=1
ConfigSection=anchors.config
[det]
Input=anchors
Type=ObjectDet
NbAnchors=3
NbProposals=10
NbClass=2
NMS_Threshold=0.5
Score_Threshold=0.1 0.2
[rp]
Input=anchors
Type=RP
NbAnchors=3
NbProposals=50
[prop]
Input=rp
Type=Proposal
NbProposals=10
WithCls=1
[roi]
Input=rp,conv
Type=ROIPooling
NbOutputs=18
OutputsWidth=7
OutputsHeight=5
Pooling=Max
[fmp]
Input=conv
Type=FMP
NbOutputs=18
ScalingRatio=1.5
Mapping.Size=1
[fc]
Input=roi
Type=Fc
NbOutputs=12
[dist]
Input=fc
Type=Distance
NbOutputs=5
Margin=1
CenterCoef=0.1
[bias]
Input=conv
Type=TargetBias
NbOutputs=18
Bias=1.0
[anchors.config]
PositiveIoU=0.7
LossLambda=1
"""


def test_detection_heads_have_dimensions():
    assert dims(write(DETECTION)) == {
        "conv": [32, 24, 18],
        "anchors": [32, 24, 18],
        "det": [1, 1, 5],
        "rp": [1, 1, 4],
        "prop": [1, 1, 5],
        "roi": [7, 5, 18],
        "fmp": [21, 16, 18],
        "fc": [1, 1, 12],
        "dist": [1, 1, 5],
        "bias": [32, 24, 18],
    }
    assert [line.split(":")[0] for line in warnings()] == ["N2D2-W226"] * 7


@every("layer", ["anchors", "rp", "roi", "fmp"])
def test_detection_heads_are_refused_where_they_would_run(layer):
    line = refused(f"{DETECTION}[{layer}.Target]\n", "-export", "CPP", "-nbbits", "-32", "-db-export", "0")
    assert line.startswith("N2D2-E231: net.ini:") and "is not computed" not in line and "E231" in line


def test_parameters_take_no_memory():
    text = "[sp]\nSize=512 512 64\n" + "".join(f"[fc{i}]\nInput=sp\nType=Fc\nNbOutputs=15\n" for i in range(50))
    found = description(write(text))
    assert found["params"] == 50 * 15 * (512 * 512 * 64 + 1)
