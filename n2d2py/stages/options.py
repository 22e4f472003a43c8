"""The options of the stages, typed: a frozen object for each, and all of them together for a run.

A text such as `-nbbits` in a message is the name of the option on the command line; `n2d2py/options/table.py` says which field
it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from n2d2py.arithmetic.audio import read_audio
from n2d2py.arithmetic.frame import read_frame
from n2d2py.arithmetic.sensor import read_sensor
from n2d2py.contracts.quant.options import AskedIntegers, IntegerKinds, QuantOptions
from n2d2py.errors import N2D2Error

if TYPE_CHECKING:
    from n2d2py.exports import QuantDefaults

GIVEN_STIMULI = 128
"""Stimuli of given data that calibrate where their number is not said."""

SYNTHETIC_STIMULI = 32
"""Stimuli of noise that calibrate an ONNX file without data."""

Data = str | Path | np.ndarray | Mapping[str, np.ndarray]
"""A folder of images, an .npy or .npz file, an array (N, C, H, W), or arrays by name: x and y, or an input each."""

Labels = str | Path | np.ndarray
"""Label ids (N,), -1 for none, or a file: .npy or .npz of them, a list of lines `name label`, or boxes (data/labels.py)."""


@dataclass(frozen=True)
class LoadOptions:
    """Options for reading a network and its data.

    Attributes:
        seed: of initial weights, partitions and synthetic data; 0 or more.
        weights: folder or .npz of weights of an INI; /dev/null loads nothing; None: the folder weights_validation or weights
            where it is there.
        ignore_missing: layers whose weights are missing keep their initial values.
        data: what calibrates and, with labels, is scored, instead of the data of an INI.
        labels: the labels of `data`; None: those of an .npz file, or the sub-folders of a folder.
        input_range: real values that bytes 0 and 255 of `data` stand for; None is 0 and 1.
        scale, mean, std: of an ONNX file's data, instead of the range: (byte * scale - mean) / std; one value or one per
            channel.
        resize, crop: of images: (N,) is the shorter side and a square, else (width, height).
        input_format: of a camera, FORMAT or FORMAT:FILTER (arithmetic/frame.py); images are converted as its frames are.
        audio: features of sounds, KIND:KEY=VALUE,... (arithmetic/audio.py).
        sensor: windows of samples, window:KEY=VALUE,... (arithmetic/sensor.py).
        bgr: whether images become blue, green, red.
        layout: axes of arrays of images, "nchw" or "nhwc"; None for those of the file.
        class_names: names of the outputs, or the file of them, a line each.
        target: what will be exported; its export parameters and the limits of its integers hold.
        parameters: file of export parameters.
        plugins: folders of plug-ins.
        pre_samples: test stimulus whose images after each step of the pipeline are written; -1 for none.
        extent: "shapes" reads no data, "structure" no weights either.
        read_data: whether data are opened.
        synthetic: stimuli of noise where an ONNX file comes without data; 0: as many as a reloaded calibration had; None: none.
        encodings: AIMET's file that says how the tensors of an ONNX file are quantized.
        input_shape: sizes of the inputs of an ONNX file that leaves them open, as on the command line; of one input also as
            numbers.
        constants: inputs of an ONNX file with a fixed value, NAME:VALUE,...
        inputs, outputs: names of tensors of an ONNX or TFLite file that become the inputs and outputs of the network.
        drop_softmax: whether a Softmax at an output is left out, which then gives logits.
        training: "now" for the network in training: real weights, and how each layer learns; "done" for one whose keys of
            training had their effect.
        post: post-processing of the outputs, KIND or KIND:key=value,... (postprocessing/).
        run_time_scales: whether an ONNX file that computes scales at run time is read unchanged, not as the real numbers that
            its integers stand for.
    """

    seed: int = 1
    weights: str | Path | None = None
    ignore_missing: bool = False
    data: Data | None = None
    labels: Labels | None = None
    input_range: tuple[float, float] | None = None
    scale: float | None = None
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    resize: tuple[int, ...] | None = None
    crop: tuple[int, ...] | None = None
    input_format: str | None = None
    audio: str | None = None
    sensor: str | None = None
    bgr: bool = False
    layout: Literal["nchw", "nhwc"] | None = None
    class_names: tuple[str, ...] | str | Path | None = None
    target: str | None = None
    parameters: str | Path | None = None
    plugins: tuple[str, ...] = ()
    pre_samples: int = -1
    extent: Literal["all", "shapes", "structure"] = "all"
    read_data: bool = True
    synthetic: int | None = None
    encodings: str | Path | None = None
    input_shape: str | int | Sequence[int] | None = None
    constants: str = ""
    inputs: str | Sequence[str] | None = None
    outputs: str | Sequence[str] | None = None
    drop_softmax: bool = False
    training: Literal["", "now", "done"] = ""
    post: str | None = None
    run_time_scales: bool = False


@dataclass(frozen=True)
class TrainingOptions:
    """Options for training a network.

    Attributes:
        stimuli: number of learned ones, instead of `epochs`; 0: none.
        epochs: times that the Learn set is learned.
        patience: epochs without a better validation after which training ends; 0: it continues.
        device: number of the CUDA device; -1: the processor.
        resume: whether an interrupted training continues.
        workers: processes that read and transform stimuli; 0: threads of this one.
        metric: of the validation, one of `n2d2py.training.metrics.METRICS`.
        find_rate: stimuli over which learning rates are tried instead of a training; 0: none.
    """

    stimuli: int = 0
    epochs: int = 0
    patience: int = 0
    device: int = -1
    resume: bool = False
    workers: int = 0
    metric: str = "Sensitivity"
    find_rate: int = 0

    @property
    def wanted(self) -> bool:
        """True if the network is trained, or learning rates are tried."""
        return bool(self.stimuli or self.epochs or self.find_rate)


@dataclass(frozen=True)
class CalibrationOptions:
    """Options for preparing and observing a float network.

    Attributes:
        stimuli: how many calibrate, at even distances, or all where there are fewer; -1 for all.
        reload: file of the statistics of an earlier calibration, used instead of a new one.
        equalize: whether ranges of neighbouring layers are equalized.
        per_output: a weight scale for each output channel; False: one for each layer.
        quality: "fast", "default" or "best": corrections of the integers, and the stimuli for them.
        thorough: as many stimuli for the corrections as "best" takes: low-bit weights are worth it.
        float_inputs: whether an input stays in floating point where integers of one scale would cost more.
        withhold: some stimuli are kept from the corrections wherever there are enough, so that they can check the integers.
    """

    stimuli: int = GIVEN_STIMULI
    reload: str | Path | None = None
    equalize: bool = True
    per_output: bool = True
    quality: Literal["fast", "default", "best"] = "default"
    thorough: bool = False
    float_inputs: bool = True
    withhold: bool = False


@dataclass(frozen=True)
class QuantizationOptions(AskedIntegers):
    """Number types that a network gets.

    Attributes:
        weight_bits: width of weights, 2 to 8; 0: as `bits`.
        flash_budget: bytes that the constants of the export may have; bits of weights are chosen for it. 0: any.
        ram_budget: bytes that the arena may have; bits of activations and the plan are chosen for it. 0: any.
        rescaling: arithmetic that maps accumulators to outputs; None: that of the target, else Floating-point.
        rounding: "nearest" or "adaptive"; None: by the quality.
        mixed: whether single activations get 16 bits; None: by the quality.
    """

    weight_bits: int = 0
    flash_budget: int = 0
    ram_budget: int = 0
    _: KW_ONLY
    rescaling: (
        Literal[
            "Floating-point", "Fixed-point", "Fixed-point16", "Fixed-point32", "Fixed-point-p32", "Single-shift", "Double-shift"
        ]
        | None
    ) = None
    rounding: Literal["nearest", "adaptive"] | None = None
    mixed: bool | None = None

    @property
    def narrow(self) -> bool:
        """True if weights below 8 bits are asked for."""
        return 0 < self.weight_bits < 8 or self.flash_budget > 0

    @property
    def integer(self) -> bool:
        """True if the network computes in integers with scales."""
        return self.bits in (8, 16)


@dataclass(frozen=True)
class ScoreOptions:
    """Options for running and scoring.

    Attributes:
        test: whether an export is scored: float, simulated and compiled.
        stimuli: how many, at even distances; -1 for all.
        index: one stimulus only; -1 for all.
        compare: stimuli over which every layer is compared; 0 for none.
        sensitivity: stimuli over which layers are ranked by what their integers cost; 0 for none.
        latency: inferences over which the built export is timed; 0 for none.
        log_outputs: the stimulus, from 1, whose layer outputs are written; 0 for none.
        as_json: whether the results of every stimulus are written as JSON too.
        streams: folder of recordings whose words are scored; None for none.
    """

    test: bool = False
    stimuli: int = -1
    index: int = -1
    compare: int = 0
    sensitivity: int = 0
    latency: int = 0
    log_outputs: int = 0
    as_json: bool = False
    streams: str | None = None


@dataclass(frozen=True)
class ExportOptions:
    """Options for writing the export.

    Attributes:
        target: name of the export.
        force: replace an export of another network, or one with files that were edited.
        stimuli: test stimuli written into the export; 0 for none, -1 for all.
        tune: rounds over which tiles are timed; 0 for none.
        tune_command: what runs the timed program elsewhere.
        weights_text: whether the parameters are written as text too; auto: unless the network is a big one.
        app: the application around the network that the export contains; None: none.
    """

    target: str | None = None
    force: bool = False
    stimuli: int = -1
    tune: int = 0
    tune_command: str = ""
    weights_text: Literal["auto", "always", "never"] = "auto"
    app: Literal["camera", "microphone", "sensor"] | None = None


@dataclass(frozen=True)
class RunOptions:
    """All options of a run.

    Attributes:
        folder: in which results are written.
        fuse: whether a float test fuses layers too.
        calibrate_only: whether the run ends after the calibration.
        given: names on the command line of the options that were asked for.
        choices: those of them that choose the integers of a network.
        recorded: options by their name on the command line, for manifest and report.
        command: a command line that gives the same again, from the folder of the network; "" for a run of the Python interface
            whose data no command line can name.
    """

    load: LoadOptions = LoadOptions()
    training: TrainingOptions = TrainingOptions()
    calibration: CalibrationOptions = CalibrationOptions()
    quantization: QuantizationOptions = QuantizationOptions()
    score: ScoreOptions = ScoreOptions()
    export: ExportOptions = ExportOptions()
    folder: Path = Path()
    fuse: bool = False
    calibrate_only: bool = False
    given: frozenset[str] = frozenset()
    choices: frozenset[str] = frozenset()
    recorded: Mapping[str, object] = field(default_factory=dict)
    command: str = ""


def suit_calibration(calibration: CalibrationOptions, quantization: QuantizationOptions) -> CalibrationOptions:
    """Return the calibration options that suit the integers.

    Low-bit weights are worth more stimuli. Settings that must not be worse than the default are judged on separate stimuli.
    Channels of activations are not equalized for 16 bits: in front of a ReLU6 they
    would have no headroom (docs/lab/accuracy.md has the decibels of both).
    """
    return replace(
        calibration,
        thorough=calibration.thorough or quantization.narrow,
        withhold=calibration.withhold or calibration.quality == "best" or bool(quantization.mixed),
        equalize=calibration.equalize and not (quantization.bits == 16 and calibration.per_output),
        float_inputs=calibration.float_inputs and quantization.input_bits == 0,
    )


def check_options(options: RunOptions) -> None:
    """Refuse values that no option can have. Raise E506 for an unknown precision, E003 other values out of range, E007 two that
    exclude each other."""
    chosen, score = options.quantization, options.score
    if chosen.bits not in (8, 16, 32, -16, -32, -64):
        remedy = "use 8 or 16 for integers, -32 or -64 for floating point, or -16 for float16 weights"
        if chosen.bits in range(2, 8):
            remedy = f"for {chosen.bits}-bit weights use -nbbits 8 -wt-bits {chosen.bits}"
        raise N2D2Error("E506", f"-nbbits {chosen.bits} is not supported", remedy=remedy)
    if chosen.weight_bits not in (0, 2, 3, 4, 5, 6, 7, 8):
        raise N2D2Error("E003", f"-wt-bits {chosen.weight_bits} is not supported", remedy="give 2 to 8, or 0 to follow -nbbits")
    if chosen.weight_bits and chosen.flash_budget:
        raise N2D2Error("E007", "-wt-bits and -flash-budget exclude each other", remedy="remove one of them")
    if not 0 < chosen.quantile <= 1:
        what = f"-act-quantile-value {chosen.quantile} is not a fraction"
        raise N2D2Error("E003", what, remedy="give a number above 0 and at most 1")
    for name, bits in (("input-bits", chosen.input_bits), ("output-bits", chosen.output_bits)):
        if bits not in (0, 8, 16):
            raise N2D2Error("E003", f"-{name} {bits} is not supported", remedy="give 8 or 16, or 0 to let n2d2py choose")
    _check_data(options.load)
    if score.index >= 0 and score.stimuli >= 0:
        raise N2D2Error("E007", "-test-index and -nb-test exclude each other", remedy="remove one of them")


def _check_data(load: LoadOptions) -> None:
    """Refuse what no data can be read with: E003, E007."""
    formula = [name for name in ("scale", "mean", "std") if getattr(load, name) not in (None, ())]
    if formula and load.input_range is not None:
        raise N2D2Error("E007", f"-input-range and -{formula[0]} exclude each other", remedy="remove one of them")
    for name, divisors in (("scale", (load.scale,)), ("std", load.std)):
        if any(value is not None and not 0 < value < float("inf") for value in divisors):
            raise N2D2Error("E003", f"-{name} is not positive", remedy="give values above 0")
    if load.input_format is not None:
        read_frame(load.input_format)
    if load.audio is not None:
        read_audio(load.audio)
    if load.sensor is not None:
        read_sensor(load.sensor)
    if load.post is not None:
        from n2d2py.postprocessing import parse_post  # late: the help needs no graph

        parse_post(load.post)
    for name in ("resize", "crop"):
        size = getattr(load, name)
        if size is not None and (len(size) not in (1, 2) or min(size) < 1):
            raise N2D2Error("E003", f"-{name} is not a size", remedy="give N or WIDTHxHEIGHT in pixels")


def target_limits(target: str | None, parameters: Mapping[str, Any] = MappingProxyType({})) -> QuantDefaults:
    """Return the integers that a target, by name, has with these export parameters; None for no target in particular."""
    from n2d2py.exports import QuantDefaults, find_target  # late: the help needs no export

    return QuantDefaults() if target is None else find_target(target).quantization_with(parameters)


def quant_options(
    calibration: CalibrationOptions, chosen: QuantizationOptions, target: str | None, parameters: Mapping[str, Any]
) -> QuantOptions:
    """Return the options of the algorithms. The quality, the target and its `parameters` decide what the user leaves open."""
    wanted = target_limits(target, parameters)
    best, fast = calibration.quality == "best", calibration.quality == "fast"
    rounding = chosen.rounding or ("nearest" if fast else "adaptive")
    mixed = chosen.bits == 8 and (best if chosen.mixed is None else chosen.mixed) and wanted.mixed
    asked = {one.name: getattr(chosen, one.name) for one in fields(AskedIntegers)}
    kinds = {one.name: getattr(wanted, one.name) for one in fields(IntegerKinds)}
    decided: dict[str, Any] = {
        "rescaling": (None if wanted.own_rescaling else chosen.rescaling) or wanted.rescaling or "Floating-point",
        "per_output": calibration.per_output and target_limits(target).per_output,
        "unsigned": chosen.unsigned and wanted.unsigned,
        "equalize": calibration.equalize,
        "correct_bias": chosen.correct_bias and not fast,
        "adaptive_rounding": rounding == "adaptive",
        "input_bits": chosen.input_bits or wanted.input_bits or (16 if best else 0),
        "input_asked": chosen.input_bits == 16,
        "output_bits": chosen.output_bits or wanted.output_bits or (8 if fast else 16 if best else 0),
        "mixed": mixed,
        "wide_weights": mixed and best and not chosen.weight_bits and not chosen.flash_budget,
        "reduce_range": chosen.reduce_range or wanted.reduce_range,
    }
    return QuantOptions(**asked | kinds | decided)
