"""Sections of an INI whose keys and values are drawn by seed, behind several layers, with weights stored for them or not."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from n2d2py.graph import Graph

HEAD = """{globals}[sp]
Size=8 6 4

[before]
Input=sp
Type=Conv
KernelSize=1
NbOutputs=4
ActivationFunction=Rectifier

[narrow]
Input=before
Type=Conv
KernelSize=1
NbOutputs=2

[small]
Input=sp
Type=Pool
Pooling=Max
PoolSize=2
Stride=2
NbOutputs=4
Mapping.ChannelsPerGroup=1

[flat]
Input=narrow
Type=Fc
NbOutputs=4

"""
INPUTS = ("sp",) * 3 + ("before",) * 3 + ("narrow", "small", "flat", "sp,before", "sp,narrow", "narrow,before", "flat,flat")
INPUTS += ("before,small", "sp,before,narrow", "sp,sp", "narrow,sp", "before,narrow", "sp,before")

Keys = dict[str, str]
"""Keys and their values, separated by `|`."""

GROUPS: dict[str, Keys] = {
    "windows": {
        "KernelSize": "3|1|2|4|9",
        "KernelWidth": "1|3",
        "KernelHeight": "2|3",
        "KernelDims": "2 3|1 3|3|3 3 3",
        "Stride": "1|2|3|0",
        "StrideX": "2",
        "StrideY": "1|2",
        "StrideDims": "2 1|2",
        "Padding": "0|1|2|-1",
        "PaddingX": "1",
        "PaddingY": "0|2",
        "PaddingDims": "1 0|0 2",
        "Dilation": "1|2|3|0",
        "DilationDims": "1 2",
        "SubSample": "1|2",
    },
    "pools": {
        "Pooling": "Max|Average|Min",
        "PoolSize": "1|2|2|3|9",
        "PoolDims": "2 3|3 2|2",
        "PoolWidth": "2",
        "PoolHeight": "3",
        "Stride": "1|2|3|0",
        "StrideX": "2",
        "StrideDims": "2 1",
        "Padding": "0|1|2|-1",
        "PaddingDims": "1 0",
        "PaddingY": "1",
    },
    "mapping": {
        "Mapping.NbGroups": "2|1|4|2|1|3|0",
        "Mapping.ChannelsPerGroup": "1|2|4|3",
        "NbGroups": "2|4",
        "Mapping.Size": "0|1|2|3",
        "Mapping.SizeX": "1|2",
        "Mapping.SizeY": "1|3",
        "Mapping.Stride": "1|2|0",
        "Mapping.StrideX": "2|3",
        "Mapping.StrideY": "1|2",
        "Mapping.Offset": "0|1|5",
        "Mapping.OffsetX": "1",
        "Mapping.OffsetY": "1|2",
        "Mapping.NbIterations": "1|2|5|0",
        "Mapping(before).Size": "1|2|a",
        "Mapping(sp).SizeY": "2",
        "Mapping(sp).NbIterations": "3",
        "Mapping(narrow)": "1 0 1 0 0 1 0 1|1 1 1 1 1 1 1 1|1 0|1 x",
        "Mapping(sp)": "1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1|1 1 0 0 1 1 0 0 0 0 1 1 0 0 1 1",
    },
    "fillers": {
        "WeightsFiller": "HeFiller|XavierFiller|NormalFiller|UniformFiller|ConstantFiller|Nothing",
        "WeightsFiller.Mean": "0.5",
        "WeightsFiller.StdDev": "0.1|0|-1",
        "WeightsFiller.Min": "-0.5",
        "WeightsFiller.Max": "0.25",
        "WeightsFiller.Value": "0.125",
        "WeightsFiller.VarianceNorm": "FanIn|FanOut|Average|Other",
        "WeightsFiller.Scaling": "2.0",
        "WeightsFiller.MeanNorm": "0.5",
        "WeightsFiller.Distribution": "Normal|Uniform",
        "BiasFiller": "HeFiller|XavierFiller|NormalFiller|UniformFiller|ConstantFiller",
        "BiasFiller.Value": "-0.5",
        "BiasFiller.VarianceNorm": "FanOut|Average",
        "BiasFiller.Mean": "1",
    },
    "activation": {
        "ActivationFunction": "Linear|Rectifier|Tanh|Logistic|Saturation|Softplus|Swish|Mish|LogisticWithLoss|Nothing",
        "ActivationFunction.LeakSlope": "0.1|0|1|-0.5",
        "ActivationFunction.Clipping": "6|0|-1",
        "ActivationFunction.Threshold": "2.5|0",
        "ActivationFunction.Alpha": "0.5|2",
    },
    "trained outputs": {
        "QAct": "SAT|LSQ||Other",
        "QAct.Range": "15|255|3|1|7|16",
        "QAct.Alpha": "2.5|1|3|0|-1",
        "QAct.StepSize": "0.05|1|0.1|0",
    },
    "trained weights": {
        "QWeight": "SAT|LSQ||Prune",
        "QWeight.Range": "15|255|7|15|3|1|16",
        "QWeight.QuantMode": "Default|Integer|Symmetric|FullRange|Asymmetric",
        "QWeight.Mode": "Default|Integer",
        "QWeight.StepSize": "0.05|0.1|0.02|0",
        "QWeight.PerChannel": "0|1",
        "QWeight.ApplyQuantization": "1|0",
        "QWeight.ApplyScaling": "0|1",
    },
    "general": {
        "Model": "Frame|Frame_CUDA|Frame|Transcode|Spike",
        "DataType": "Float32|Float16",
        "QuantBits": "8|4|16|9|0|1",
        "QuantWeightBits": "8|2|0",
        "Quantize": "0|1",
        "NoSuchKey": "1",
        "Solvers.LearningRate": "0.1",
    },
    "crop": {"InputOffsetX": "1|2|8|0", "InputOffsetY": "0|1|6", "InputWidth": "3|8|99", "InputHeight": "2|6"},
}
CONFIGS: dict[str, Keys] = {
    "windows": {
        "NoBias": "1|0",
        "WeightsExportFormat": "OCHW|HWCO|OCHW|HWCO|Other",
        "WeightsExportFlip": "1|0",
        "OutputsRemap": "1:2,0:2|0:4|1:4,0:2|1:2|2:2,1:2,0:2",
    },
    "dense": {
        "NoBias": "1|0",
        "Normalize": "1|0",
        "DropConnect": "0.5",
        "OutputsRemap": "1:2,0:2",
        "WeightsExportFormat": "OC|CO",
    },
    "BatchNorm": {"Epsilon": "0.01|0|-1", "MovingAverageMomentum": "0.1"},
    "LRN": {"N": "3|5|0|4", "Alpha": "1", "Beta": "0.5", "K": "1|0"},
    "Threshold": {"Operation": "Binary|BinaryInverted|Truncate|ToZero|ToZeroInverted|Otsu", "MaxValue": "2|0"},
    "Resize": {"AlignCorners": "0|1"},
    "Dropout": {"Dropout": "0.3"},
}
TYPES: dict[str, tuple[str, Keys, str]] = {
    "Conv": ("windows mapping fillers activation general", {"KernelSize": "1|2|3|3"}, "windows"),
    "Conv, mapped": ("mapping windows", {"KernelSize": "1|3", "Padding": "0|1"}, "windows"),
    "Conv, trained": ("trained weights, trained outputs, activation", {"KernelSize": "1|3", "QWeight": "SAT|LSQ"}, "windows"),
    "Deconv": ("windows mapping fillers activation general", {"KernelSize": "1|2|3|3"}, "windows"),
    "Fc": ("fillers activation crop general", {}, "dense"),
    "Fc, trained": ("trained weights, trained outputs", {"QWeight": "SAT|LSQ"}, "dense"),
    "Pool": ("pools activation general", {"Pooling": "Max|Average", "PoolSize": "2|3"}, ""),
    "Pool, mapped": ("pools mapping", {"Pooling": "Max|Average", "PoolSize": "2|3"}, ""),
    "Unpool": ("pools mapping activation", {"Pooling": "Max|Average", "PoolSize": "2", "ArgMax": "small|before|none|"}, ""),
    "BatchNorm": ("activation, trained outputs, general", {}, "BatchNorm"),
    "ElemWise": ("activation crop trained outputs", {"Operation": "Sum|AbsSum|EuclideanSum|Prod|Max|Min"}, ""),
    "Activation": ("activation, trained outputs", {}, ""),
    "Softmax": ("crop general", {"WithLoss": "0|1", "GroupSize": "0|1|2|4|3"}, ""),
    "LRN": ("general", {}, "LRN"),
    "Normalize": ("general", {"Norm": "L1|L2|L1|L2|L3"}, ""),
    "Reshape": ("crop", {"Dims": "8 6 4|0 0 0|48 4|192|-1 4|5 5 4|0 -1 4|-1 -1 4|4 -1|1 1 -1|4 6 8"}, ""),
    "Transpose": ("crop", {"Perm": "0 1 2 3|1 0 2 3|0 2 1 3|2 1 0 3|0 1 2|0 1 3 2|0 0 1 3|2 0 1 3"}, ""),
    "Padding": ("general", {f"{side}Padding": "0|1|2|-1|-3|-9" for side in ("Top", "Left", "Bottom", "Right")}, ""),
    "Resize": ("general", {"OutputWidth": "1|4|8|12|0", "OutputHeight": "1|3|6|9", "Mode": "NearestNeighbor|Bilinear|BilinearTF|NearestNeighbor|Bilinear|Cubic"}, "Resize"),
    "Scaling": ("general", {"Factor": "2|0|-0.5|a"}, ""),
    "Threshold": ("crop", {"Threshold": "0.5|0|-1"}, "Threshold"),
    "Dropout": ("crop", {}, "Dropout"),
    "Transformation": (
        "crop",
        {
            "Transformation": "Rescale|Flip|RangeAffine|RangeClipping|PadCrop|Affine|ColorSpace|Reshape|Threshold|ChannelExtraction",
            "Width": "4|8|10",
            "Height": "3|6|4",
            "FirstOperator": "Multiplies|Plus|Minus|Divides",
            "FirstValue": "2|1 2 3 4|0|1 2",
            "SecondOperator": "Divides|Plus",
            "SecondValue": "2|0.5 1 2 4|0",
            "HorizontalFlip": "1|0",
            "VerticalFlip": "1|0",
            "RangeMin": "0|-1",
            "RangeMax": "1|-2|0",
            "ColorSpace": "BGR|RGB|HSV",
            "NbRows": "6|8|48",
            "NbCols": "8|6|1",
            "Threshold": "0.5",
            "Operation": "Binary|ToZero",
            "BorderType": "Constant|Replicate",
            "OffsetX": "1",
        },
        "",
    ),
}  # fmt: skip
SUMS: Keys = {"Weights": "0.5|1 2|0.5 -2|1 2 3|0 1", "Shifts": "1|1 -1|0 0|1 2 3", "CoeffMode": "PerLayer|PerInput|PerChannel"}
GLOBALS = ("",) * 15 + ("DefaultModel=Frame_CUDA\n\n", "InsertBatchNormAfterConv=1\n\n", "DefaultModel=Spike\n\n")


def _value(values: str, rng: random.Random) -> str:
    """One of the values, the first ones more often."""
    every = values.split("|")
    return every[int(len(every) * rng.random() ** 1.6)]


def draw_section(kind: str, rng: random.Random) -> str:
    """An INI with a section "y" of a type, and now and then a layer behind it."""
    groups, needed, config = TYPES[kind]
    every = {key: values for name, keys in GROUPS.items() if name in groups for key, values in keys.items()}
    every |= SUMS if kind == "ElemWise" else {}
    share = 0.3 if "," in kind else rng.choice([0.05, 0.1, 0.2])
    given = {key: values for key, values in every.items() if rng.random() < share}
    given |= {key: values for key, values in needed.items() if rng.random() < 0.97}
    source, name = rng.choice(INPUTS), kind.split(",")[0]
    lines = ["[y]", f"Input={source}", f"Type={name}"]
    channels = [2 if parent == "narrow" else 4 for parent in source.split(",")]
    outputs = max(channels) if name == "ElemWise" else sum(channels)
    if name in ("Conv", "Deconv", "Fc") or "mapped" in kind or rng.random() < 0.1:
        outputs = rng.choice([4, 4, 4, 2, 6, 8, 3, 1])
    if rng.random() < 0.97:
        lines.append(f"NbOutputs={outputs}")
    lines += [f"{key}={_value(values, rng)}" for key, values in given.items()]
    own = {key: values for key, values in CONFIGS.get(config, {}).items() if rng.random() < 0.35}
    if own:
        lines += ["ConfigSection=c", "", "[c]", *(f"{key}={_value(values, rng)}" for key, values in own.items())]
    behind = rng.choice(["", "", "", "[z]\nInput=y\nType=BatchNorm\nNbOutputs=4\n", "[z]\nInput=y,sp\nType=Fc\nNbOutputs=2\n"])
    return HEAD.format(globals=rng.choice(GLOBALS)) + "\n".join(lines) + f"\n\n{behind}\n[{'z' if behind else 'y'}.Target]\n"


ROLES = {"weights": "weights", "bias": "biases", "scale": "scales", "mean": "means", "variance": "variances"}
MORE = ("quant_weights", "quant_weights_quant", "QWeight_LSQ_StepSize", "QAct_SAT_Alpha", "QAct_LSQ_StepSize")


def store(graph: Graph, folder: Path, rng: random.Random) -> tuple[Path, str]:
    """Weights for the layers of a graph, most of them right: an .npz, or a folder; what was done."""
    values, told = np.random.default_rng(rng.randrange(1 << 30)), []
    arrays: dict[str, np.ndarray] = {}
    for node in graph.nodes:
        for role, array in node.params.items():
            if role in ROLES:
                arrays[f"{node.name}_{ROLES[role]}"] = values.uniform(0.05 if role == "variance" else -1, 1, array.shape)
        weights = node.params.get("weights")
        if weights is None or node.name != "y":
            continue
        for role in MORE:
            if rng.random() < 0.4:
                steps = rng.choice([15, 7, 255])
                odd = 2 * values.integers(0, steps + 1, weights.shape) - steps
                count = rng.choice([1, 1, len(weights)])
                arrays[f"y_{role}"] = odd / steps if "quant_" in role else np.full(count, rng.choice([0.05, 0.5, 0, -1]))
                told.append(f"{role} {steps} {count}")
    if rng.random() < 0.3 and arrays:
        name, way = rng.choice(sorted(arrays)), rng.choice(["none", "flat", "more", "nan", "turned", "whole"])
        told.append(f"{name} {way}")
        array = arrays.pop(name)
        if way != "none":
            changed = {
                "flat": array.reshape(-1),
                "more": np.append(array, 1),
                "nan": np.where(np.arange(array.size).reshape(array.shape) == 0, np.nan, array),
                "turned": array.T,
                "whole": np.rint(array).astype(np.int64),
            }
            arrays[name] = changed[way]
    arrays = {name: array.astype(np.float32) if array.dtype.kind == "f" else array for name, array in arrays.items()}
    if rng.random() < 0.6:
        np.savez(folder / "w.npz", **arrays)
        return folder / "w.npz", f"npz: {', '.join(told)}"
    (folder / "w").mkdir(exist_ok=True)
    for old in (folder / "w").iterdir():
        old.unlink()
    together = rng.random() < 0.3 and {"y_weights", "y_biases"} <= set(arrays)
    if together:
        weights, biases = arrays.pop("y_weights"), arrays.pop("y_biases")
        rows = (
            [weights.reshape(len(biases), -1), biases[:, None]]
            if weights.size % max(1, len(biases)) == 0 and biases.size
            else []
        )
        text = np.concatenate(rows, 1) if rows and rng.random() < 0.8 else weights
        (folder / "w" / "y.syntxt").write_text(" ".join(f"{x:.6g}" for x in text.reshape(-1)))
    for name, array in arrays.items():
        if rng.random() < 0.5:
            np.save(folder / "w" / f"{name}.npy", array)
        else:
            (folder / "w" / f"{name}.syntxt").write_text(" ".join(f"{x:.6g}" for x in array.reshape(-1)))
    return folder / "w", f"folder: {together} {', '.join(told)}"
