"""The table of all options: source of the parser, `-h`, docs/options.md, the man page, completion, and the typed options of the stages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from n2d2py.arithmetic import RESCALING_MODES
from n2d2py.arithmetic.histogram import CLIPPING_MODES, WEIGHT_CLIPPING_MODES
from n2d2py.contracts.quant.options import QUALITIES
from n2d2py.training.metrics import METRICS


@dataclass(frozen=True)
class Option:
    """One option: `kind` is flag, int, float, text, optional-int or optional-text (one of its choices, the first when omitted); `default` its value when absent.

    `field` is the field of RunOptions that it sets, "" for an option of the command itself; `sets` is the value that a flag
    writes there. `omitted` is the value of an optional-int without a number. `doc` consists of sentences; the first one is the
    summary. `applies` names the runs or files that the option needs, "" for all. `page` is its page in docs/ without `.md`, ""
    for that of the group.
    """

    name: str
    kind: str
    default: Any
    group: str
    metavar: str = ""
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    repeated: bool = False
    field: str = ""
    sets: bool = True
    omitted: int = 10
    doc: str = ""
    applies: str = ""
    page: str = ""

    @property
    def key(self) -> str:
        """Attribute name in Arguments."""
        return self.name.replace("-", "_")

    @property
    def signature(self) -> str:
        """The option and its value, such as -calib N."""
        value = f"[{self.metavar}]" if self.kind.startswith("optional") else self.metavar
        return f"-{self.name} {value}".rstrip()

    @property
    def default_text(self) -> str:
        """The default as text; "" if there is none."""
        return "" if self.kind in ("flag", "optional-int") or self.default in (None, ()) else str(self.default)

    @property
    def summary(self) -> str:
        """The first sentence of `doc`."""
        return self.doc.partition(". ")[0].rstrip(".") + "."

    @property
    def documented(self) -> str:
        """The help text for every installation, whatever exports and presets it has."""
        text = self.described(() if self.metavar == "TOPIC" else self.choices)
        return text + (f" Applies to: {self.applies}." if self.applies else "")

    def described(self, values: Sequence[str]) -> str:
        """Return the help text and the values."""
        return self.doc + (f" {self.metavar}: {', '.join(values)}." if values else "")


RUN, LEARN, DATA, QUANT, EXPORT, OUT = "Run", "Training", "Data", "Quantization", "Project", "Output"

GROUPS = {
    RUN: ("load, describe and score a model", "how-to/tasks"),
    LEARN: ("train the network of an INI file", "how-to/train"),
    EXPORT: ("type, precision and parameters of the export", "export_parameters"),
    QUANT: ("calibration data, bit widths and rounding", "how-to/improve_accuracy"),
    DATA: ("labels and preprocessing of -calib-data", "how-to/prepare_data"),
    OUT: ("folders, messages and help", "how-to/tasks"),
}
"""Group of options -> what it is about, and its page in docs/ without `.md`."""

_TEXTS = """
seed: Seed of random weights, partitions and synthetic data. 0 draws a seed from the clock.
w: Load weights from this folder or .npz file. /dev/null loads none. Without -w, the folder weights_validation or weights is
    used if it exists. [INI files]
w-ignore: Keep the initial values of layers whose weights are missing. [INI files]
learn-epoch: Train for N epochs and continue with the best weights. Requires PyTorch (pip install n2d2py[train]). [INI files]
learn: Train on N stimuli instead of a number of epochs. [INI files]
stop-valid: Stop the training after N epochs without a better validation score. 0 disables early stopping. [training]
learn-resume: Resume an interrupted training from training/checkpoint.npz in the output folder. [training]
dev: Train on the CUDA device of this number. -1 selects the CPU. [training]
learn-workers: Number of processes that load and transform the stimuli. 0 uses threads of the main process. [training]
test: Score the model on the test set: in floating point, in simulated integers and compiled. <how-to/improve_accuracy>
nb-test: Number of test samples. -1 uses all of them. [runs with -test]
streams: Score the words that -post scores decides in the WAV files of this folder. Each has a .txt file of the words that are
    spoken in it, by their class names. [runs with -test, -audio and -post scores] <how-to/decisions>
test-index: Score the test sample of this index only. [runs with -test]
valid-metric: Metric of the validation, over all classes together as in N2D2. Each orders the epochs as the share of right
    labels does. [training]
find-lr: Train on N samples at rates that rise from 1e-6 to 10, write the loss at each rate to training/find_lr.csv, and stop.
pre-samples: Write the images of test stimulus I after each preprocessing step into pre_samples/. [INI files]
fuse: Fuse layers before a float test. An export always fuses them. [tests without -export]
compare: Compare float, simulated and compiled values layer by layer over N samples, 10 by default. [runs with -export]
sensitivity: Rank the layers by the error that each causes when only this layer is quantized. Uses N samples, 10 by default.
    [integer] <how-to/improve_accuracy>
latency: Time the compiled export over N inferences, 100 by default, and add a roofline of each layer to the report. Timings
    differ from run to run. [C++ exports]
describe: Print the layers as a table or as JSON and stop. Works without data.
memory-report: Print the static memory that each MemoryManagerStrategy needs and stop. Works without data. <how-to/fit_memory>
plugin: Load the operators of the plug-in in this folder. The option can be repeated. <how-to/own_operator>
new-operator: Write a plug-in with an operator of this name and its test into a new folder, and stop. The folder is given
    instead of the model. <how-to/own_operator>
export: Write a project of this type into export_TYPE_<int|float><bits>. <how-to/own_project>
nbbits: Precision of the export: 8 or 16 for integers, -32 or -64 for floating point. -16: weights stored as float16, computed
    in float32. 32: 32-bit integers without scales, for max pools and additions after them. <reference/arithmetic>
db-export: Number of test samples written into the export. 0 writes none, -1 all. [runs with -export]
export-parameters: Read export parameters from this file, or from a preset such as low_memory. An unknown name lists the
    presets. <export_parameters>
weights-text: Write the integer weights as text into weights_export/, in the format of N2D2. auto: for models with fewer than
    1,048,576 constants. [integer]
tune: Time the tile sizes of each convolution over N rounds, 100 by default, and export with the fastest. statistics/tuned.ini
    records them as export parameters. [C++ exports] <how-to/make_it_faster>
app: Write an application around the network into app/ of the export: camera (with -input-format), microphone (with -audio) or
    sensor (numbers, or -sensor). [C++ exports] <how-to/application>
tune-command: Run the timed program with this command, such as an emulator or a script that copies it to a board. {binary} is
    the program, {folder} the export. make reads TARGET, ARCH and CXX from the environment. [runs with -tune]
    <how-to/make_it_faster>
calib: Calibrate on N samples, 128 by default with -calib-data. -1 uses the whole set. Pre-quantized models need no calibration.
    [integer] <how-to/prepare_data>
calib-reload: Reuse the statistics of the previous calibration. [integer]
calibOnly: Calibrate into calib_<name>_int<bits> and stop. [integer]
calib-data: Calibrate on a folder of images, or a .npy, .npz or .csv file (a sample per line). With labels, also test on them. Two
    or more sub-folders that hold all images are classes in sorted order. For several inputs: a .npz or a folder of .npy files
    with one array for each input. <how-to/prepare_data>
encodings: Quantize the tensors as this AIMET .encodings file states, without calibration. [ONNX files]
    <how-to/quantized_models>
input-shape: Sizes of the inputs that the file leaves open. The batch axis is omitted or 1. One input: 3x224x224 or 1x3x224x224.
    Several: NAME=3x224x224,OTHER=8. By default, arrays of -calib-data give the sizes of a single input. [ONNX files]
constants: Give these inputs fixed values: NAME:VALUE,NAME:VALUE, such as sr:16000. [ONNX files] <how-to/streaming>
inputs: Start the model at these tensors, which become its inputs: NAME,NAME. An input of the model that is still needed
    remains. [ONNX and TFLite files] <how-to/cut_a_model>
outputs: End the model at these tensors, which become its outputs: NAME,NAME. Layers that no output needs are left out. [ONNX
    and TFLite files] <how-to/cut_a_model>
input-range: Real values that pixels 0 and 255 represent. Default: 0:1, or the metadata of the file. [bytes]
    <how-to/prepare_data>
labels: Read labels from this file: lines 'image label', CSV, label ids (.npy, .npz), or boxes (COCO's .json, a folder of YOLO's
    .txt). [data of -calib-data] <how-to/prepare_data>
class-names: Read the names of the model's outputs from this file, one per line. Folders and labels with these names get their
    numbers. <how-to/prepare_data>
scale: Scale of the preprocessing: a pixel p becomes (p * scale - mean) / std, as in torchvision. Default: 1/255. [bytes]
    <how-to/prepare_data>
mean: Mean in the formula of -scale: one value or one per channel, separated by commas. [bytes] <how-to/prepare_data>
std: Standard deviation in the formula of -scale: one value, or one per channel. [bytes] <how-to/prepare_data>
resize: Resize images (bilinear, antialiased). N: resize the shorter side, then crop the center unless -crop is given. WxH:
    resize both sides. [images] <how-to/prepare_data>
crop: Crop the center after resizing: a square of N pixels, or WxH. [images] <how-to/prepare_data>
input-format: Treat images as frames of a camera, FORMAT:FILTER,KEY=VALUE. FORMAT is rgb, bgr, rgba, gray, rgb565, rgb565be,
    yuyv, uyvy, nv12, nv21, rggb, grbg, gbrg or bggr. FILTER of the resize is nearest, bilinear, area or antialias. KEY is pad,
    round or flip. Images are converted in integers, and C++ exports contain this conversion: NAME_from_frame. [images in
    -calib-data or an INI] <how-to/camera>
audio: Convert sounds to features, KIND:KEY=VALUE,... KIND is log_mel, mfcc or pcen. Keys: preset (librosa, torchaudio, kaldi,
    tflm), rate, window, hop, fft, mels, low, high, coefficients, preemphasis, window_type, deltas, delta_window, input_rate, and
    gain, bias, power, time_constant, eps of pcen. Sounds are converted in integers, and C++ exports contain this conversion: NAME_audio_samples. [WAV files, .pcm files and int16 arrays in -calib-data]
    <how-to/microphone>
sensor: Convert samples of several axes to windows, window:axes=N,KEY=VALUE,... Keys: hop, unit, mean, std. Samples are 16-bit
    integers, and C++ exports contain this conversion: NAME_sensor_samples. [CSV files and int16 arrays in -calib-data]
    <how-to/sensor>
post: Process the outputs, KIND or KIND:KEY=VALUE,... KIND is scores, embedding, yolov5, yolov8, yolov10, yolox, ssd, centernet,
    keypoints or segmentation. C++ exports contain this step, in integers. <how-to/detections>
bgr: Feed the color channels in the order blue, green, red. [images] <how-to/prepare_data>
layout: Axis order of image arrays, if it differs from that of the file. [arrays in -calib-data] <how-to/prepare_data>
act-clipping-mode: Method that chooses the clipping thresholds of activations. [integer] <how-to/improve_accuracy>
act-quantile-value: Fraction of the values inside the clipping thresholds. [-act-clipping-mode Quantile]
    <how-to/improve_accuracy>
wt-clipping-mode: Method that chooses the clipping thresholds of weights. [integer] <how-to/improve_accuracy>
act-rescaling-mode: Arithmetic that rescales accumulators to outputs. [integer] <reference/arithmetic>
act-rescale-per-output: Granularity of the weight scales. 1: per output channel. 0: per layer. [integer] <reference/arithmetic>
quality: Effort spent on accuracy: fast, default or best. fast: round to nearest. default: add adaptive rounding and bias
    correction. best: add 16 bits for inputs, outputs and the most sensitive tensors, and use more samples for the corrections.
    [integer] <how-to/improve_accuracy>
wt-rounding: Rounding of weights. nearest: to the nearest integer. adaptive: minimize the error of the layer's outputs. The
    default follows -quality. [integer] <how-to/low_bits>
wt-bits: Bit width of the weights of convolutions and fully connected layers, 2 to 8. 0 follows -nbbits; with -quality best, the
    most sensitive layers get 16 bits. 4-bit and 2-bit weights are packed into bytes (PackWeights). [integer] <how-to/low_bits>
flash-budget: Limit the weights, biases and tables of the export. Each layer gets 2-, 4- or 8-bit weights so that the output
    error is smallest. statistics/bits lists the choices. [integer] <how-to/low_bits>
ram-budget: Limit the activation arena. Bit widths and the memory mode are chosen to fit. [integer] <how-to/fit_memory>
wt-reduce-range: Limit weights to 7 bits where two 8-bit products must fit 16 bits. Faster on CPUs without int8 dot products;
    results stay exact. [integer] <how-to/make_it_faster>
no-bias-correction: Turn off bias correction. [integer] <how-to/improve_accuracy>
input-bits: Bit width of the model's inputs, 8 or 16. 0 selects 16, or floating point, where 8 bits lose too much precision.
    [integer] <reference/arithmetic>
output-bits: Bit width of the model's outputs, 8 or 16. 0 selects 8 for -quality fast, 16 for best, else 16 for class scores
    and where 8 lose much. [integer] <reference/arithmetic>
mixed-precision: Store the activations that are most sensitive to 8-bit rounding in 16 bits. Part of -quality best. [integer]
    <how-to/improve_accuracy>
no-mixed-precision: Use 8 bits for all weights and all activations between layers, also with -quality best. [integer]
    <how-to/improve_accuracy>
sequential-calibration: Recalibrate the activation ranges layer by layer on the outputs of the quantized layers before.
    [integer] <how-to/improve_accuracy>
no-unsigned: Turn off unsigned activations. [integer] <reference/arithmetic>
no-zero-points: Use symmetric ranges for activations with negative values. [integer] <reference/arithmetic>
drop-softmax: Remove a Softmax or LogSoftmax at an output. The output then gives logits.
no-cle: Turn off cross-layer equalization of weights. [integer] <how-to/improve_accuracy>
o: Write the results into this folder.
force: Replace an export of another model, or one with edited or added files. Build products are always replaced. [runs with
    -export]
log-outputs: Write the outputs of every layer for the N-th test sample, counted from 1.
log-json: Write the result of every test sample as JSON into <target>/<tag>/classif.json. [runs with -test]
strict: Treat warnings as errors. <errors>
quiet: Print only warnings, errors and results.
verbose: Print what each step does, and tracebacks of internal errors.
completion: Print the completion script of a shell. Load it with eval "$(n2d2py -completion bash)".
h: Print help. TOPIC is an option, a group of options, or all. -h -export TYPE adds the export parameters of that type.
v: Print the version.
"""
"""By option: sentences, in brackets what it applies to, and in <> its page in docs/ without `.md`."""
_APPLIES = {
    "integer": "integer exports (-nbbits 8 or 16)",
    "training": "training (-learn-epoch or -learn)",
    "images": "images in -calib-data",
    "bytes": "images and arrays of bytes in -calib-data",
}
"""Long forms of words in these brackets."""

OPTIONS: tuple[Option, ...] = (
    Option("seed", "int", 1, RUN, "N", minimum=0, field="load.seed"),
    Option("w", "text", None, RUN, "PATH", field="load.weights"),
    Option("w-ignore", "flag", False, RUN, field="load.ignore_missing"),
    Option("learn-epoch", "int", 0, LEARN, "N", minimum=1, field="training.epochs"),
    Option("learn", "int", 0, LEARN, "N", minimum=1, field="training.stimuli"),
    Option("stop-valid", "int", 0, LEARN, "N", minimum=0, field="training.patience"),
    Option("learn-resume", "flag", False, LEARN, field="training.resume"),
    Option("dev", "int", -1, LEARN, "N", minimum=-1, field="training.device"),
    Option("learn-workers", "int", 0, LEARN, "N", minimum=0, field="training.workers"),
    Option("test", "flag", False, RUN, field="score.test"),
    Option("nb-test", "int", -1, RUN, "N", minimum=-1, field="score.stimuli"),
    Option("test-index", "int", -1, RUN, "I", minimum=-1, field="score.index"),
    Option("streams", "text", None, RUN, "DIR", field="score.streams"),
    Option("valid-metric", "text", "Sensitivity", LEARN, "NAME", tuple(METRICS), field="training.metric"),
    Option("find-lr", "int", 0, LEARN, "N", minimum=1, field="training.find_rate"),
    Option("pre-samples", "int", -1, OUT, "I", minimum=-1, field="load.pre_samples"),
    Option("fuse", "flag", False, RUN, field="fuse"),
    Option("compare", "optional-int", 0, RUN, "N", minimum=1, field="score.compare"),
    Option("sensitivity", "optional-int", 0, RUN, "N", minimum=1, field="score.sensitivity"),
    Option("latency", "optional-int", 0, RUN, "N", minimum=1, field="score.latency", omitted=100),
    Option("describe", "optional-text", None, RUN, "FORM", ("table", "json")),
    Option("memory-report", "flag", False, RUN),
    Option("plugin", "text", (), RUN, "DIR", repeated=True, field="load.plugins"),
    Option("new-operator", "text", None, OUT, "NAME"),
    Option("export", "text", None, EXPORT, "TYPE", field="export.target"),
    Option("nbbits", "int", 8, EXPORT, "N", field="quantization.bits"),
    Option("db-export", "int", -1, EXPORT, "N", minimum=-1, field="export.stimuli"),
    Option("export-parameters", "text", None, EXPORT, "FILE", field="load.parameters"),
    Option("weights-text", "text", "auto", EXPORT, "WHEN", ("auto", "always", "never"), field="export.weights_text"),
    Option("app", "text", None, EXPORT, "KIND", ("camera", "microphone", "sensor"), field="export.app"),
    Option("tune", "optional-int", 0, EXPORT, "N", minimum=1, field="export.tune", omitted=100),
    Option("tune-command", "text", "", EXPORT, "COMMAND", field="export.tune_command"),
    Option("calib", "int", 0, QUANT, "N", minimum=-1, field="calibration.stimuli"),
    Option("calib-reload", "flag", False, QUANT),
    Option("calibOnly", "flag", False, QUANT, field="calibrate_only"),
    Option("calib-data", "text", None, QUANT, "PATH", field="load.data"),
    Option("encodings", "text", None, QUANT, "FILE", field="load.encodings"),
    Option("input-shape", "text", None, QUANT, "SHAPE", field="load.input_shape"),
    Option("constants", "text", "", QUANT, "VALUES", field="load.constants"),
    Option("inputs", "text", None, QUANT, "NAMES", field="load.inputs"),
    Option("outputs", "text", None, QUANT, "NAMES", field="load.outputs"),
    Option("input-range", "text", None, QUANT, "LOW:HIGH", field="load.input_range"),
    Option("labels", "text", None, DATA, "FILE", field="load.labels"),
    Option("class-names", "text", None, DATA, "FILE", field="load.class_names"),
    Option("scale", "text", None, DATA, "F", field="load.scale"),
    Option("mean", "text", None, DATA, "F,F,F", field="load.mean"),
    Option("std", "text", None, DATA, "F,F,F", field="load.std"),
    Option("resize", "text", None, DATA, "SIZE", field="load.resize"),
    Option("crop", "text", None, DATA, "SIZE", field="load.crop"),
    Option("input-format", "text", None, DATA, "FORMAT", field="load.input_format"),
    Option("audio", "text", None, DATA, "FEATURES", field="load.audio"),
    Option("sensor", "text", None, DATA, "WINDOW", field="load.sensor"),
    Option("post", "text", None, DATA, "KIND", field="load.post"),
    Option("bgr", "flag", False, DATA, field="load.bgr"),
    Option("layout", "text", None, DATA, "AXES", ("nchw", "nhwc"), field="load.layout"),
    Option("act-clipping-mode", "text", "MSE", QUANT, "MODE", CLIPPING_MODES, field="quantization.act_clipping"),
    Option("act-quantile-value", "float", 0.9999, QUANT, "F", minimum=0, field="quantization.quantile"),
    Option("wt-clipping-mode", "text", "None", QUANT, "MODE", WEIGHT_CLIPPING_MODES, field="quantization.wt_clipping"),
    Option("act-rescaling-mode", "text", "Floating-point", QUANT, "MODE", RESCALING_MODES, field="quantization.rescaling"),
    Option("act-rescale-per-output", "int", 1, QUANT, "B", minimum=0, field="calibration.per_output"),
    Option("quality", "text", "default", QUANT, "LEVEL", QUALITIES, field="calibration.quality"),
    Option("wt-rounding", "text", None, QUANT, "MODE", ("nearest", "adaptive"), field="quantization.rounding"),
    Option("wt-bits", "int", 0, QUANT, "N", minimum=0, field="quantization.weight_bits"),
    Option("flash-budget", "int", 0, QUANT, "BYTES", minimum=0, field="quantization.flash_budget"),
    Option("ram-budget", "int", 0, QUANT, "BYTES", minimum=0, field="quantization.ram_budget"),
    Option("wt-reduce-range", "flag", False, QUANT, field="quantization.reduce_range"),
    Option("no-bias-correction", "flag", False, QUANT, field="quantization.correct_bias", sets=False),
    Option("input-bits", "int", 0, QUANT, "N", minimum=0, field="quantization.input_bits"),
    Option("output-bits", "int", 0, QUANT, "N", minimum=0, field="quantization.output_bits"),
    Option("mixed-precision", "flag", False, QUANT, field="quantization.mixed"),
    Option("no-mixed-precision", "flag", False, QUANT, field="quantization.mixed", sets=False),
    Option("sequential-calibration", "flag", False, QUANT, field="quantization.sequential"),
    Option("no-unsigned", "flag", False, QUANT, field="quantization.unsigned", sets=False),
    Option("no-zero-points", "flag", False, QUANT, field="quantization.zero_points", sets=False),
    Option("drop-softmax", "flag", False, QUANT, field="load.drop_softmax"),
    Option("no-cle", "flag", False, QUANT, field="calibration.equalize", sets=False),
    Option("o", "text", ".", OUT, "DIR", field="folder"),
    Option("force", "flag", False, OUT, field="export.force"),
    Option("log-outputs", "int", 0, OUT, "N", minimum=0, field="score.log_outputs"),
    Option("log-json", "flag", False, OUT, field="score.as_json"),
    Option("strict", "flag", False, OUT),
    Option("quiet", "flag", False, OUT),
    Option("verbose", "flag", False, OUT),
    Option("completion", "text", None, OUT, "SHELL", ("bash", "zsh")),
    Option("h", "optional-text", None, OUT, "TOPIC"),
    Option("v", "flag", False, OUT),
)

TOPICS = ("common", "all", *(group.lower() for group in GROUPS), *(option.name for option in OPTIONS))
"""Topics of `-h`."""
_TEXT = re.compile(r"^(\S+): (.*?)(?: \[([^]]*)\])?(?: <(\S+)>)?$", re.MULTILINE)
_FOUND = {name: texts for name, *texts in _TEXT.findall(_TEXTS.replace("\n    ", " "))}


def _with_texts(option: Option) -> Option:
    doc, applies, page = _FOUND[option.name]
    choices = TOPICS if option.name == "h" else option.choices
    return replace(option, doc=doc, applies=_APPLIES.get(applies, applies), page=page, choices=choices)


OPTIONS = tuple(map(_with_texts, OPTIONS))

_TRAINS = "is an option of N2D2's training and benchmarks that n2d2py does not support"
REFUSED = {
    **dict.fromkeys(
        """
        learn-stdp ws finetuning pruning pruning-threshold testAdv present-time ts l check
        multidev dynamic-allocation bench
        """.split(),
        (_TRAINS, "remove it; use -learn-epoch N to train a network"),
    ),
    "test-id": ("is an id of N2D2's database, which n2d2py does not have", "use -test-index I, the position in the test set"),
    "cfg": (
        "writes the base configuration of N2D2, which n2d2py does not have",
        "remove it; use -describe to show the network",
    ),
    "save-test-set": (
        "copies the test set, which n2d2py does not do",
        "remove it; -db-export N sets the number of samples in an export",
    ),
}
"""Option of N2D2 that is refused -> (why, what to do), clauses for a message."""

IGNORED = {"log": True, "log-epoch": True, "report": True, "log-db-stats": False, "log-kernels": False}
"""Logging options of N2D2 without effect (W011) -> True if they take a number."""


FUSED = {
    "qat-sat": ((), "an export always fuses layers"),
    "testQAT": ((), "-test always runs the integers"),
    **dict.fromkeys(
        ("c-round-mode", "b-round-mode", "wt-round-mode"),
        (("NONE", "RINTF"), "constants, biases and weights are rounded to integers once"),
    ),
}
"""Options of N2D2 for networks after quantization-aware training -> their values, and the reason why they have no effect."""
