"""How users of N2D2 write their files: -describe gives the dimensions whatever else the files ask for."""

from pathlib import Path

from support.errors import error_line
from support.model_run import description, dims, warnings, write
from support.tables import every

from n2d2py import log
from n2d2py.cli import run
from n2d2py.options import parse_arguments

SP = "[sp]\nSizeX=32\nSizeY=24\nNbChannels=3\n"


def refused(text: str, *options: str) -> str:
    """The first line of the error that running the file gives."""
    log.setup(quiet=True)
    return error_line(lambda: run(parse_arguments([str(write(text)), "-w", "/dev/null", "-seed", "1", *options])))


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


@every("model", ["Spike", "CSpike_BP", "RRAM", "Spike_Analog"])
def test_spiking_models_are_described_but_not_run(model):
    text = f"DefaultModel={model}\n{SP}[fc]\nInput=sp\nType=Fc\nNbOutputs=5\nIncomingDelay=1\n"
    assert dims(write(text)) == {"fc": [1, 1, 5]}
    assert any("W226" in line and f"spiking model {model} " in line for line in warnings())
    assert "E222" in refused(text, "-export", "CPP", "-nbbits", "-32", "-db-export", "0")
    own = f"{SP}[fc]\nInput=sp\nType=Fc\nModel={model}\nNbOutputs=5\n"
    assert dims(write(own)) == {"fc": [1, 1, 5]}
    assert "E222" in refused(own, "-export", "CPP", "-nbbits", "-32", "-db-export", "0")


def test_layers_that_feed_no_target_are_described():
    text = (
        f"{SP}[a]\nInput=sp\nType=Fc\nNbOutputs=5\n[b]\nInput=sp\nType=Fc\nNbOutputs=7\n[soft]\nInput=a\n"
        "Type=Softmax\nNbOutputs=5\nWithLoss=1\n[after]\nInput=soft,b\nType=Activation\nNbOutputs=12\n"
        "ActivationFunction=Linear\n[a.Target]\n"
    )
    layers = {layer["name"]: layer for layer in description(write(text))["layers"]}
    assert {name: layer["output_dims"][2] for name, layer in layers.items()} == {"a": 5, "b": 7, "soft": 5, "after": 12}
    assert layers["after"]["parents"] == ["soft", "b"] and layers["after"]["input_dims"] == [1, 1, 12]


DETECTION = (Path(__file__).parent / "styles" / "detection_heads.ini").read_text()


@every("layer", ["anchors", "rp", "roi", "fmp"])
def test_detection_heads_are_refused_where_they_would_run(layer):
    line = refused(f"{DETECTION}[{layer}.Target]\n", "-export", "CPP", "-nbbits", "-32", "-db-export", "0")
    assert line.startswith("N2D2-E231: net.ini:") and "is not computed" not in line and "E231" in line


def test_parameters_take_no_memory():
    text = "[sp]\nSize=512 512 64\n" + "".join(f"[fc{i}]\nInput=sp\nType=Fc\nNbOutputs=15\n" for i in range(50))
    found = description(write(text))
    assert found["params"] == 50 * 15 * (512 * 512 * 64 + 1)
