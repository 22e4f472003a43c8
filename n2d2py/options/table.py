"""The table of all options: it makes the parser, `-h`, the documentation page, and the typed options of the stages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from n2d2py.arithmetic import RESCALING_MODES
from n2d2py.quant.options import QUALITIES
from n2d2py.quant.thresholds import CLIPPING_MODES, WEIGHT_CLIPPING_MODES
from n2d2py.training.metrics import METRICS


@dataclass(frozen=True)
class Option:
    """One option: `kind` is flag, int, float, text, optional-int or optional-text (one of its choices, the first when omitted); `default` its value when absent.

    `field` is the field of RunOptions that it decides, "" for one that decides what the command does; `sets` is what a flag
    writes there. `omitted` is the value of an optional-int that is given without a number.
    """

    name: str
    kind: str
    default: Any
    doc: str
    group: str
    metavar: str = ""
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    repeated: bool = False
    field: str = ""
    sets: bool = True
    omitted: int = 10

    @property
    def key(self) -> str:
        """Attribute name in Arguments."""
        return self.name.replace("-", "_")


RUN, DATA, QUANT, EXPORT, OUT = _RUN, _DATA, _QUANT, _EXPORT, _OUT = (
    "Run",
    "Data of an ONNX file",
    "Quantization",
    "Export",
    "Output",
)
_LEARN = "Training"

OPTIONS: tuple[Option, ...] = (
    Option(
        "seed",
        "int",
        1,
        "seed of initial weights, partitions and synthetic data; 0: from the time",
        _RUN,
        "N",
        minimum=0,
        field="load.seed",
    ),
    Option(
        "w",
        "text",
        None,
        "folder or .npz of weights; /dev/null loads nothing; absent: weights_validation or weights when such a folder is there",
        _RUN,
        "PATH",
        field="load.weights",
    ),
    Option(
        "w-ignore",
        "flag",
        False,
        "layers whose weights are missing keep their initial values",
        _RUN,
        field="load.ignore_missing",
    ),
    Option(
        "learn-epoch",
        "int",
        0,
        "train the network of an INI: learn the Learn set N times, then go on with the best weights; needs PyTorch "
        "(pip install n2d2py[train])",
        _LEARN,
        "N",
        minimum=1,
        field="training.epochs",
    ),
    Option("learn", "int", 0, "train on N stimuli, in place of -learn-epoch", _LEARN, "N", minimum=1, field="training.stimuli"),
    Option(
        "stop-valid",
        "int",
        0,
        "end the training after N epochs without a better validation; 0: never",
        _LEARN,
        "N",
        minimum=0,
        field="training.patience",
    ),
    Option(
        "learn-resume",
        "flag",
        False,
        "go on with an interrupted training, from training/checkpoint.npz in the output folder",
        _LEARN,
        field="training.resume",
    ),
    Option(
        "dev",
        "int",
        -1,
        "number of the CUDA device that trains; -1: the processor",
        _LEARN,
        "N",
        minimum=-1,
        field="training.device",
    ),
    Option(
        "learn-workers",
        "int",
        0,
        "processes that read and transform the stimuli while the network learns; 0: threads of this one",
        _LEARN,
        "N",
        minimum=0,
        field="training.workers",
    ),
    Option(
        "valid-metric",
        "text",
        "Sensitivity",
        "metric of the validation, over all classes together as in N2D2; each orders the epochs as the share of right labels does",
        _LEARN,
        "NAME",
        tuple(METRICS),
        field="training.metric",
    ),
    Option(
        "find-lr",
        "int",
        0,
        "learn N stimuli at rates that rise from 1e-6 to 10, write the loss at each into training/find_lr.csv, and end",
        _LEARN,
        "N",
        minimum=1,
        field="training.find_rate",
    ),
    Option("test", "flag", False, "score the network on the test set: float, simulated and compiled", _RUN, field="score.test"),
    Option("nb-test", "int", -1, "number of test stimuli; -1 for all", _RUN, "N", minimum=-1, field="score.stimuli"),
    Option("test-index", "int", -1, "score one stimulus only, by its index", _RUN, "I", minimum=-1, field="score.index"),
    Option(
        "pre-samples",
        "int",
        -1,
        "write the pictures of test stimulus I after each pre-processing step, into pre_samples/",
        _OUT,
        "I",
        minimum=-1,
        field="load.pre_samples",
    ),
    Option("fuse", "flag", False, "fuse layers before a float test; an export always fuses", _RUN, field="fuse"),
    Option(
        "compare",
        "optional-int",
        0,
        "compare float, simulated and compiled values layer by layer over N stimuli (10 when N is left out)",
        _RUN,
        "N",
        minimum=1,
        field="score.compare",
    ),
    Option(
        "sensitivity",
        "optional-int",
        0,
        "rank the layers by what each costs in integers alone, over N stimuli (10 when N is left out)",
        _RUN,
        "N",
        minimum=1,
        field="score.sensitivity",
    ),
    Option(
        "latency",
        "optional-int",
        0,
        "time the compiled export over N inferences (100 when N is left out), each layer against what this machine could do, for "
        "the report; its figures then differ from run to run",
        _RUN,
        "N",
        minimum=1,
        field="score.latency",
        omitted=100,
    ),
    Option(
        "describe",
        "optional-text",
        None,
        "print the layers as a table, or as JSON, and stop; needs no data",
        _RUN,
        "FORM",
        ("table", "json"),
    ),
    Option(
        "memory-report",
        "flag",
        False,
        "print the static memory that each MemoryManagerStrategy needs and stop; needs no data",
        _RUN,
    ),
    Option(
        "plugin",
        "text",
        (),
        "load the operators of a plug-in from this folder; may be given several times",
        _RUN,
        "DIR",
        repeated=True,
        field="load.plugins",
    ),
    Option(
        "new-operator",
        "text",
        None,
        "write a plug-in with an operator of this name, and its test, into the folder "
        "that stands in place of the network, and stop",
        _OUT,
        "NAME",
    ),
    Option(
        "export",
        "text",
        None,
        "write a project of this type into export_TYPE_<int|float><bits>",
        _EXPORT,
        "TYPE",
        field="export.target",
    ),
    Option(
        "nbbits",
        "int",
        8,
        "precision: 8 or 16 for integers, -32 or -64 for floating point, -16 for weights stored in half precision, computed in "
        "float32; 32 for integers of 32 bits as they are, without scales (max pools, sums behind them)",
        _EXPORT,
        "N",
        field="quantization.bits",
    ),
    Option(
        "db-export",
        "int",
        -1,
        "test stimuli written into the export; 0 for none, -1 for all",
        _EXPORT,
        "N",
        minimum=-1,
        field="export.stimuli",
    ),
    Option(
        "export-parameters",
        "text",
        None,
        "file of export parameters, or the name of a preset such as low_memory; an unknown name lists them",
        _EXPORT,
        "FILE",
        field="load.parameters",
    ),
    Option(
        "weights-text",
        "text",
        "auto",
        "whether weights_export/ has the integers as text, as N2D2 writes them; auto: for networks of less than 1,048,576 constants",
        _EXPORT,
        "WHEN",
        ("auto", "always", "never"),
        field="export.weights_text",
    ),
    Option(
        "tune",
        "optional-int",
        0,
        "time the tiles of each convolution over N rounds (100 when N is left out) and export with the "
        "best; statistics/tuned.ini keeps them, for the file of export parameters",
        _EXPORT,
        "N",
        minimum=1,
        field="export.tune",
        omitted=100,
    ),
    Option(
        "tune-command",
        "text",
        "",
        "what runs the timed program elsewhere, such as an emulator or a script that copies it to a board; {binary} is "
        "the program, {folder} its export; make takes TARGET, ARCH and CXX from the environment",
        _EXPORT,
        "COMMAND",
        field="export.tune_command",
    ),
    Option(
        "calib",
        "int",
        0,
        "stimuli used for calibration; -1 for the whole set; networks that come quantized need none; with -calib-data 128 "
        "unless another number is given",
        _QUANT,
        "N",
        minimum=-1,
        field="calibration.stimuli",
    ),
    Option("calib-reload", "flag", False, "use the statistics of the previous calibration", _QUANT),
    Option("calibOnly", "flag", False, "calibrate into calib_<name>_int<bits> and stop", _QUANT, field="calibrate_only"),
    Option(
        "calib-data",
        "text",
        None,
        "calibrate (and, with labels, test) on a folder of images, a .npy or a .npz "
        "instead of a database; two or more sub-folders that hold all images are classes, in sorted order; for several inputs an "
        ".npz or a folder of .npy with an array for each",
        _QUANT,
        "PATH",
        field="load.data",
    ),
    Option(
        "encodings",
        "text",
        None,
        "AIMET's .encodings of an ONNX file: its tensors are quantized as the file says, without calibration",
        _QUANT,
        "FILE",
        field="load.encodings",
    ),
    Option(
        "input-shape",
        "text",
        None,
        "sizes of the inputs of an ONNX file that leaves them open, without the batch, or with a batch of 1: 3x224x224 or 1x3x224x224 for one input, NAME=3x224x224,OTHER=8 "
        "for several; arrays of -calib-data give that of one input [from the file]",
        _QUANT,
        "SHAPE",
        field="load.input_shape",
    ),
    Option(
        "input-range",
        "text",
        None,
        "real values that pixels 0 and 255 of -calib-data stand for [0:1]",
        _QUANT,
        "LOW:HIGH",
        field="load.input_range",
    ),
    Option(
        "labels",
        "text",
        None,
        "labels of -calib-data: a list of lines 'image label' (blanks, or CSV with or without header), or ids in an .npy or .npz",
        _DATA,
        "FILE",
        field="load.labels",
    ),
    Option(
        "class-names",
        "text",
        None,
        "names of the network's outputs, one per line; folders and labels of these names get their numbers",
        _DATA,
        "FILE",
        field="load.class_names",
    ),
    Option(
        "scale",
        "text",
        None,
        "pixels p of -calib-data become (p * scale - mean) / std, as in torchvision; 1/255 unless given",
        _DATA,
        "F",
        field="load.scale",
    ),
    Option(
        "mean",
        "text",
        None,
        "mean in that formula: one value, or one per channel with commas",
        _DATA,
        "F,F,F",
        field="load.mean",
    ),
    Option("std", "text", None, "divisor in that formula: one value, or one per channel", _DATA, "F,F,F", field="load.std"),
    Option(
        "resize",
        "text",
        None,
        "resize images first, bilinear with antialiasing: the shorter side to SIZE N (then the centre of the input's size is cropped "
        "unless -crop says another), or both to WxH",
        _DATA,
        "SIZE",
        field="load.resize",
    ),
    Option("crop", "text", None, "then cut the centre: a square of SIZE N, or WxH", _DATA, "SIZE", field="load.crop"),
    Option("bgr", "flag", False, "the network takes images as blue, green, red", _DATA, field="load.bgr"),
    Option(
        "layout",
        "text",
        None,
        "axes of arrays of images, if not those of the file",
        _DATA,
        "AXES",
        ("nchw", "nhwc"),
        field="load.layout",
    ),
    Option(
        "act-clipping-mode",
        "text",
        "MSE",
        "how activation ranges are chosen",
        _QUANT,
        "MODE",
        CLIPPING_MODES,
        field="quantization.act_clipping",
    ),
    Option(
        "act-quantile-value",
        "float",
        0.9999,
        "share of values kept by the mode Quantile",
        _QUANT,
        "F",
        minimum=0,
        field="quantization.quantile",
    ),
    Option(
        "wt-clipping-mode",
        "text",
        "None",
        "how weight ranges are chosen",
        _QUANT,
        "MODE",
        WEIGHT_CLIPPING_MODES,
        field="quantization.wt_clipping",
    ),
    Option(
        "act-rescaling-mode",
        "text",
        "Floating-point",
        "arithmetic that maps accumulators to outputs",
        _QUANT,
        "MODE",
        RESCALING_MODES,
        field="quantization.rescaling",
    ),
    Option(
        "act-rescale-per-output",
        "int",
        1,
        "1: a weight scale for each output channel; 0: one for each layer",
        _QUANT,
        "B",
        minimum=0,
        field="calibration.per_output",
    ),
    Option(
        "quality",
        "text",
        "default",
        "corrections of the integers: fast none; default adaptive rounding and bias "
        "correction; best also 16 bits for inputs, outputs and the activations and weights that need them, and more stimuli for the "
        "corrections",
        _QUANT,
        "LEVEL",
        QUALITIES,
        field="calibration.quality",
    ),
    Option(
        "wt-rounding",
        "text",
        None,
        "how weights are rounded, instead of what -quality says: each to the nearest "
        "integer, or for the least error of the layer's outputs",
        _QUANT,
        "MODE",
        ("nearest", "adaptive"),
        field="quantization.rounding",
    ),
    Option(
        "wt-bits",
        "int",
        0,
        "width of the weights of convolutions and fully connected layers, 2 to 8; 0: that of -nbbits, with -quality best 16 where 8 "
        "cost most; those of 4 and 2 bits share bytes with others (PackWeights)",
        _QUANT,
        "N",
        minimum=0,
        field="quantization.weight_bits",
    ),
    Option(
        "flash-budget",
        "int",
        0,
        "bytes that the weights, biases and tables of the export may take: each layer gets the bits of its weights, 2, 4 or 8, with "
        "the least error of the outputs; the choices are in statistics/bits",
        _QUANT,
        "BYTES",
        minimum=0,
        field="quantization.flash_budget",
    ),
    Option(
        "ram-budget",
        "int",
        0,
        "bytes that the activations may take: they get 16 bits where most is lost, as far as that fits, and the fastest mode of "
        "the memory that fits",
        _QUANT,
        "BYTES",
        minimum=0,
        field="quantization.ram_budget",
    ),
    Option(
        "wt-reduce-range",
        "flag",
        False,
        "weights of convolutions and fully connected layers at most a bit coarser, as far as products of "
        "bytes then fit 16 bits: faster, and as exact, on processors without a dot product of bytes",
        _QUANT,
        field="quantization.reduce_range",
    ),
    Option(
        "no-bias-correction",
        "flag",
        False,
        "biases do not make up for the mean error of their outputs",
        _QUANT,
        field="quantization.correct_bias",
        sets=False,
    ),
    Option(
        "input-bits",
        "int",
        0,
        "width of the network's inputs, 8 or 16; 0: 16 where 8 bits would spoil them",
        _QUANT,
        "N",
        minimum=0,
        field="quantization.input_bits",
    ),
    Option(
        "output-bits",
        "int",
        0,
        "width of the network's outputs, 8 or 16; 0: 8 with -quality fast, 16 with best, "
        "else 16 for vectors of weighted sums, such as the scores of classes",
        _QUANT,
        "N",
        minimum=0,
        field="quantization.output_bits",
    ),
    Option(
        "mixed-precision",
        "flag",
        False,
        "the activations whose rounding to 8 bits costs most are stored in 16 bits, as -quality best does, which may do it with "
        "weights too",
        _QUANT,
        field="quantization.mixed",
    ),
    Option(
        "no-mixed-precision",
        "flag",
        False,
        "all activations between layers, and all weights, have 8 bits, also with -quality best",
        _QUANT,
        field="quantization.mixed",
        sets=False,
    ),
    Option(
        "sequential-calibration",
        "flag",
        False,
        "ranges of activations are chosen again, layer by layer, on what the integers of the layers before give",
        _QUANT,
        field="quantization.sequential",
    ),
    Option("no-unsigned", "flag", False, "no unsigned activations", _QUANT, field="quantization.unsigned", sets=False),
    Option(
        "no-zero-points",
        "flag",
        False,
        "symmetric ranges for all activations with negative values",
        _QUANT,
        field="quantization.zero_points",
        sets=False,
    ),
    Option(
        "drop-softmax",
        "flag",
        False,
        "leave out a Softmax or LogSoftmax at an output: the output gives logits",
        _QUANT,
        field="load.drop_softmax",
    ),
    Option("no-cle", "flag", False, "no cross-layer equalization of weights", _QUANT, field="calibration.equalize", sets=False),
    Option("o", "text", ".", "folder in which results are written", _OUT, "DIR", field="folder"),
    Option(
        "force",
        "flag",
        False,
        "replace an export of another network, or one with files that were edited or added since it was written; what a build "
        "leaves there is replaced in any case",
        _OUT,
        field="export.force",
    ),
    Option(
        "log-outputs",
        "int",
        0,
        "write every layer output for the N-th test stimulus (from 1)",
        _OUT,
        "N",
        minimum=0,
        field="score.log_outputs",
    ),
    Option(
        "log-json",
        "flag",
        False,
        "write the results of every stimulus of -test as JSON too, <target>/<tag>/classif.json",
        _OUT,
        field="score.as_json",
    ),
    Option("strict", "flag", False, "warnings are errors", _OUT),
    Option("quiet", "flag", False, "print warnings, errors and results only", _OUT),
    Option("verbose", "flag", False, "say what each step did and did not do; tracebacks of internal errors", _OUT),
    Option(
        "completion",
        "text",
        None,
        'print what completes command lines in a shell, as in eval "$(n2d2py -completion bash)"',
        _OUT,
        "SHELL",
        ("bash", "zsh"),
    ),
    Option("h", "flag", False, "print this help; with -export TYPE also the export parameters of that type", _OUT),
    Option("v", "flag", False, "print the version", _OUT),
)

REFUSED = {
    **dict.fromkeys(
        """
        learn-stdp ws finetuning pruning pruning-threshold testAdv present-time ts l check
        multidev dynamic-allocation bench
        """.split(),
        (
            "belongs to N2D2's tools of training and benches that n2d2py does not have",
            "leave it out; -learn-epoch N trains a network",
        ),
    ),
    "test-id": (
        "takes an id of N2D2's database, which n2d2py does not have",
        "give -test-index I, the position in the test set",
    ),
    "cfg": ("writes the base configuration of N2D2, which n2d2py does not have", "leave it out; -describe shows the network"),
    "save-test-set": (
        "copies the test set, which n2d2py does not do",
        "leave it out; -db-export N sets how many stimuli an export holds",
    ),
}
"""Option of N2D2 that is refused -> (why, what to do), clauses for a message."""

IGNORED = {"log": True, "log-epoch": True, "report": True, "log-db-stats": False, "log-kernels": False}
"""Logging options of N2D2 without a meaning here -> whether they take a number; a warning says so."""


FUSED = {
    "qat-sat": ((), "an export fuses in any case"),
    "testQAT": ((), "-test runs the integers in any case"),
    **dict.fromkeys(
        ("c-round-mode", "b-round-mode", "wt-round-mode"),
        (("NONE", "RINTF"), "constants, biases and weights are rounded once, to integers"),
    ),
}
"""Options of N2D2 that fuse or test networks after quantization-aware training -> their values, why they change nothing here."""
