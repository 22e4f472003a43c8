"""Files of one operator each, of integers (CASES) and of real numbers (REALS): (file being made, its output)."""

from collections.abc import Callable

import numpy as np

from support.tflite_files import IN, OUT, Small

RELU, RELU_N1, RELU6 = 1, 2, 3
SAME, VALID = 0, 1
CASES: dict[str, Callable[[], tuple[Small, int]]] = {}


def case(function):
    CASES[function.__name__] = function
    return function


def _conv(
    padding=SAME, stride=(1, 1), kernel=(3, 3), dilation=(1, 1), activation=0, axis: int | None = 0, dtype=np.int8, grids=(IN, OUT),
    depthwise=0, zero=0, bias=True, shape=(1, 8, 7, 4), groups=1,
):  # fmt: skip
    m = Small(shape, grids[0], dtype)
    channels = shape[3]
    outputs = depthwise * channels or 6
    form = (1, *kernel, outputs) if depthwise else (outputs, *kernel, channels // groups)
    w, scales = m.weights(form, outputs, axis if axis is None else (3 if depthwise else 0), dtype, zero)
    inputs = [m.x, w] + ([m.bias(scales, outputs, grids[0][0])] if bias else [])
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    sizes = [-(-n // s) if padding == SAME else (n - e) // s + 1 for n, s, e in zip(shape[1:3], stride, extents, strict=True)]
    fields = {
        "padding": padding, "strideH": stride[0], "strideW": stride[1], "dilationHFactor": dilation[0], "dilationWFactor": dilation[1],
        "fusedActivationFunction": activation,
    }  # fmt: skip
    kind = ("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions") if depthwise else ("CONV_2D", "Conv2DOptions")
    if depthwise:
        fields["depthMultiplier"] = depthwise
    return m, m.add(kind[0], inputs, (1, *sizes, outputs), grids[1], kind[1], dtype, **fields)


U8 = ((0.0211, 120), (0.0513, 101))
CASES |= {
    "conv_same": _conv,
    "conv_same_asymmetric": lambda: _conv(stride=(2, 2), shape=(1, 8, 8, 4)),
    "conv_valid_dilated": lambda: _conv(padding=VALID, dilation=(2, 1)),
    "conv_one_scale": lambda: _conv(axis=None),
    "conv_relu": lambda: _conv(activation=RELU, grids=(IN, (0.04, -128))),
    "conv_relu6": lambda: _conv(activation=RELU6, grids=(IN, (0.06, -20))),
    "conv_relu_n1": lambda: _conv(activation=RELU_N1, grids=(IN, (0.03, 5))),
    "conv_grouped": lambda: _conv(groups=2),
    "conv_uint8": lambda: _conv(axis=None, dtype=np.uint8, grids=U8, zero=117, stride=(2, 1)),
    "depthwise": lambda: _conv(depthwise=1),
    "depthwise_multiplier": lambda: _conv(depthwise=3, stride=(2, 2)),
    "depthwise_one_channel": lambda: _conv(depthwise=5, shape=(1, 9, 8, 1), stride=(2, 2), kernel=(4, 3)),
    "depthwise_uint8": lambda: _conv(depthwise=2, axis=None, dtype=np.uint8, grids=U8, zero=140, activation=RELU6),
}


def _dense(shape=(1, 24), declared=(1, 5), keep=False, axis: int | None = 0, dtype=np.int8, grids=(IN, OUT), zero=0, bias=True):
    m = Small(shape, grids[0], dtype)
    each = 24
    w, scales = m.weights((5, each), 5, axis, dtype, zero)
    inputs = [m.x, w, m.bias(scales, 5, grids[0][0])] if bias else [m.x, w, -1]
    return m, m.add("FULLY_CONNECTED", inputs, declared, grids[1], "FullyConnectedOptions", dtype, keepNumDims=keep)


CASES |= {
    "dense": _dense,
    "dense_one_scale": lambda: _dense(axis=None),
    "dense_no_bias": lambda: _dense(bias=False),
    "dense_of_image": lambda: _dense((1, 3, 2, 4)),
    "dense_kept_image": lambda: _dense((1, 3, 2, 24), (1, 3, 2, 5), keep=True),
    "dense_kept_rows": lambda: _dense((1, 3, 24), (1, 3, 5), keep=True),
    "dense_uint8": lambda: _dense(axis=None, dtype=np.uint8, grids=U8, zero=99),
}


def _pool(code: str, padding=SAME, kernel=(3, 3), stride=(2, 2), dtype=np.int8, grid=IN, activation=0, shape=(1, 8, 7, 4)):
    m = Small(shape, grid, dtype)
    sizes = [-(-n // s) if padding == SAME else (n - k) // s + 1 for n, s, k in zip(shape[1:3], stride, kernel, strict=True)]
    fields = {
        "padding": padding, "strideH": stride[0], "strideW": stride[1], "filterHeight": kernel[0], "filterWidth": kernel[1],
        "fusedActivationFunction": activation,
    }  # fmt: skip
    return m, m.add(code, [m.x], (1, *sizes, shape[3]), grid, "Pool2DOptions", dtype, **fields)


CASES |= {
    "max_pool": lambda: _pool("MAX_POOL_2D"),
    "max_pool_valid": lambda: _pool("MAX_POOL_2D", VALID, (2, 2)),
    "max_pool_uint8": lambda: _pool("MAX_POOL_2D", dtype=np.uint8, grid=U8[0]),
    "average_pool": lambda: _pool("AVERAGE_POOL_2D"),
    "average_pool_whole": lambda: _pool("AVERAGE_POOL_2D", VALID, (8, 7), (1, 1)),
    "average_pool_relu": lambda: _pool("AVERAGE_POOL_2D", activation=RELU),
}


def _two(
    code: str, options: str = "", grids=(IN, (0.0307, -20), OUT), activation=0, constant: tuple | None = None, dtype=np.int8
):
    """The input with another tensor that is made of it, or a constant."""
    m = Small((1, 8, 6, 4), grids[0], dtype)
    if constant is None:
        other = m.add("QUANTIZE", [m.x], (1, 8, 6, 4), grids[1], "QuantizeOptions", dtype)
    else:
        info = np.iinfo(dtype)
        other = m.tensor("c", constant, grids[1], dtype, m.rng.integers(info.min, info.max + 1, constant).astype(dtype))
    fields = {"fusedActivationFunction": activation} if options else {}
    return m, m.add(code, [m.x, other], (1, 8, 6, 4), grids[2], options, dtype, **fields)


CASES |= {
    "add": lambda: _two("ADD", "AddOptions"),
    "add_relu": lambda: _two("ADD", "AddOptions", activation=RELU),
    "add_channels": lambda: _two("ADD", "AddOptions", constant=(4,)),
    "sub": lambda: _two("SUB", "SubOptions"),
    "sub_channels": lambda: _two("SUB", "SubOptions", constant=(1, 1, 1, 4)),
    "mul": lambda: _two("MUL", "MulOptions"),
    "mul_channels": lambda: _two("MUL", "MulOptions", constant=(4,)),
    "mul_one": lambda: _two("MUL", "MulOptions", constant=(1,)),
    "add_uint8": lambda: _two("ADD", "AddOptions", grids=(U8[0], (0.0117, 77), U8[1]), dtype=np.uint8),
}


def _one(code: str, grid=OUT, options: str = "", shape=(1, 8, 6, 4), source=IN, made=None, dtype=np.int8, consts=(), **fields):
    m = Small(shape, source, dtype)
    inputs = [m.x, *(m.constant(f"c{i}", values) for i, values in enumerate(consts))]
    return m, m.add(code, inputs, made or shape, grid, options, dtype, **fields)


HALF, UNIT = (1 / 256, -128), (1 / 128, 0)
"""The grids that LOGISTIC and TANH demand."""


def _resize(height: int, width: int, **flags):
    made, options = (1, height, width, 4), "ResizeBilinearOptions"
    return _one("RESIZE_BILINEAR", grid=IN, made=made, consts=[[height, width]], options=options, **flags)


CASES |= {
    "relu": lambda: _one("RELU"),
    "relu6": lambda: _one("RELU6", grid=(0.03, -100)),
    "relu_n1_to_1": lambda: _one("RELU_N1_TO_1", grid=(0.01, 10)),
    "leaky_relu": lambda: _one("LEAKY_RELU", options="LeakyReluOptions", alpha=0.23),
    "logistic": lambda: _one("LOGISTIC", grid=HALF),
    "tanh": lambda: _one("TANH", grid=UNIT),
    "hard_swish": lambda: _one("HARD_SWISH", grid=(0.03, -110)),
    "quantize": lambda: _one("QUANTIZE", options="QuantizeOptions"),
    "reshape": lambda: _one("RESHAPE", grid=IN, made=(1, 192), consts=[[1, 192]]),
    "squeeze": lambda: _one("SQUEEZE", grid=IN, shape=(1, 1, 1, 12), made=(1, 12), options="SqueezeOptions"),
    "expand_dims": lambda: _one("EXPAND_DIMS", grid=IN, shape=(1, 6, 4), made=(1, 6, 1, 4), consts=[2]),
    "pad": lambda: _one("PAD", grid=IN, made=(1, 11, 7, 4), consts=[[[0, 0], [1, 2], [0, 1], [0, 0]]], options="PadOptions"),
    "pad_channels": lambda: _one("PAD", grid=IN, made=(1, 8, 6, 8), consts=[[[0, 0], [0, 0], [0, 0], [1, 3]]]),
    "mirror_pad": lambda: _one(
        "MIRROR_PAD", grid=IN, made=(1, 11, 8, 4), consts=[[[0, 0], [1, 2], [1, 1], [0, 0]]], options="MirrorPadOptions", mode=0
    ),
    "mean": lambda: _one("MEAN", made=(1, 4), consts=[[1, 2]], options="ReducerOptions", keepDims=False),
    "mean_kept": lambda: _one("MEAN", made=(1, 1, 1, 4), consts=[[1, 2]], options="ReducerOptions", keepDims=True),
    "resize_nearest": lambda: _one("RESIZE_NEAREST_NEIGHBOR", grid=IN, made=(1, 16, 12, 4), consts=[[16, 12]]),
    "resize_bilinear": lambda: _resize(16, 12, halfPixelCenters=True),
    "resize_bilinear_odd": lambda: _resize(13, 11, halfPixelCenters=True),
    "resize_bilinear_smaller": lambda: _resize(5, 4),
    "resize_bilinear_corners": lambda: _resize(11, 1, alignCorners=True),
    "transpose": lambda: _one("TRANSPOSE", grid=IN, made=(1, 6, 8, 4), consts=[[0, 2, 1, 3]]),
    "slice": lambda: _one("SLICE", grid=IN, made=(1, 5, 6, 2), consts=[[0, 2, 0, 1], [1, 5, -1, 2]]),
    "strided_slice": lambda: _one(
        "STRIDED_SLICE", grid=IN, made=(1, 4, 5, 4), consts=[[0, 0, 1, 0], [1, 8, 0, 4], [1, 2, 1, 1]],
        options="StridedSliceOptions", endMask=4,
    ),
    "strided_slice_shrinks": lambda: _one(
        "STRIDED_SLICE", grid=IN, made=(1, 6, 4), consts=[[0, 3, 0, 0], [1, 4, 6, 4], [1, 1, 1, 1]],
        options="StridedSliceOptions", shrinkAxisMask=2,
    ),
    "softmax_of_lines": lambda: _one("SOFTMAX", HALF, "SoftmaxOptions", (1, 40, 2), beta=1.0),
    "softmax_of_pixels": lambda: _one("SOFTMAX", HALF, "SoftmaxOptions", beta=1.0),
    "depth_to_space": lambda: _one("DEPTH_TO_SPACE", grid=IN, made=(1, 16, 12, 1), options="DepthToSpaceOptions", blockSize=2),
    "space_to_depth": lambda: _one("SPACE_TO_DEPTH", grid=IN, made=(1, 4, 3, 16), options="SpaceToDepthOptions", blockSize=2),
}  # fmt: skip


@case
def prelu():
    m = Small()
    slopes = m.tensor("a", (1, 1, 4), (0.01, 0), np.int8, np.array([[[20, -30, 0, 90]]], np.int8))
    return m, m.add("PRELU", [m.x, slopes], (1, 8, 6, 4))


@case
def padv2():
    m = Small()
    fill = m.tensor("v", (1,), IN, np.int8, np.array([-100], np.int8))
    amounts = m.constant("p", [[0, 0], [1, 2], [0, 1], [0, 0]])
    return m, m.add("PADV2", [m.x, amounts, fill], (1, 11, 7, 4), IN, "PadV2Options")


@case
def concatenation():
    m = Small()
    other = m.add("RELU", [m.x], (1, 8, 6, 4), IN)
    return m, m.add("CONCATENATION", [m.x, other], (1, 8, 6, 8), IN, "ConcatenationOptions", axis=3)


@case
def concatenation_of_lines():
    m = Small()
    other = m.add("RELU", [m.x], (1, 8, 6, 4), IN)
    return m, m.add("CONCATENATION", [m.x, other], (1, 16, 6, 4), IN, "ConcatenationOptions", axis=-3)


def _joined(code: str, made: tuple[int, ...], **fields) -> tuple[Small, int]:
    """The input next to itself."""
    m = Small((1, 6, 4))
    m.file.versions[code] = 2
    other = m.add("QUANTIZE", [m.x], (1, 6, 4), IN if code == "PACK" else (0.03, -20), "QuantizeOptions")
    options = {"PACK": "PackOptions", "BATCH_MATMUL": "BatchMatMulOptions"}[code]
    return m, m.add(code, [m.x, other], made, IN if code == "PACK" else (0.5, 3), options, **fields)


def _moved(code: str, options: str, made: tuple[int, ...], *consts, shape=(1, 8, 6, 4), grid=IN, **fields) -> tuple[Small, int]:
    m, output = _one(code, grid, options, shape=shape, made=made, consts=consts, **fields)
    m.file.versions[code] = 2
    return m, output


CASES |= {
    "pack": lambda: _joined("PACK", (1, 2, 6, 4), axis=1, valuesCount=2),
    "products": lambda: _joined("BATCH_MATMUL", (1, 6, 6), adjX=False, adjY=True),
    "tile": lambda: _moved("TILE", "TileOptions", (1, 8, 12, 4), [1, 1, 2, 1]),
    "gather": lambda: _moved("GATHER", "GatherOptions", (1, 8, 3, 4), [0, 5, 2], axis=2, batchDims=0),
    "reverse": lambda: _moved("REVERSE_V2", "ReverseV2Options", (1, 8, 6, 4), [1]),
    "broadcast": lambda: _moved("BROADCAST_TO", "BroadcastToOptions", (1, 8, 6, 4), [1, 8, 6, 4], shape=(1, 1, 6, 4)),
    "lp_normalize": lambda: _moved("L2_NORMALIZATION", "L2NormOptions", (1, 8, 6, 4), grid=(1 / 128, 0)),
}
S16, WIDE = np.int16, ((0.0003, 0), (0.0005, 0), (0.0004, 0))
"""Activations of 16 bits and their grids."""
CASES |= {
    "conv_16": lambda: _conv(dtype=S16, grids=WIDE),
    "conv_16_relu": lambda: _conv(dtype=S16, grids=WIDE, activation=RELU, stride=(2, 1)),
    "depthwise_16": lambda: _conv(depthwise=2, dtype=S16, grids=WIDE),
    "dense_16": lambda: _dense(dtype=S16, grids=WIDE),
    "add_16": lambda: _two("ADD", "AddOptions", grids=WIDE, dtype=S16),
    "mul_16": lambda: _two("MUL", "MulOptions", grids=WIDE, dtype=S16),
    "max_pool_16": lambda: _pool("MAX_POOL_2D", dtype=S16, grid=WIDE[0]),
    "average_pool_16": lambda: _pool("AVERAGE_POOL_2D", dtype=S16, grid=WIDE[0]),
    "mean_16": lambda: _one(
        "MEAN", WIDE[1], "ReducerOptions", source=WIDE[0], made=(1, 1, 1, 4), dtype=S16, consts=([1, 2],), keepDims=True
    ),
    "quantize_16": lambda: _one("QUANTIZE", WIDE[1], "QuantizeOptions", source=WIDE[0], dtype=S16),
    "logistic_16": lambda: _one("LOGISTIC", (1 / 2**15, 0), source=WIDE[0], dtype=S16),
    "reshape_16": lambda: _one(
        "RESHAPE", WIDE[0], "ReshapeOptions", source=WIDE[0], made=(1, 192), dtype=S16, consts=([1, 192],)
    ),
}


def _deconv(padding, stride, made, kernel=(3, 3)):
    m = Small((1, 5, 4, 4))
    w, scales = m.weights((6, *kernel, 4), 6, 0)
    inputs = [m.constant("shape", [1, *made, 6]), w, m.x, m.bias(scales, 6, IN[0])]
    fields = {"padding": padding, "strideH": stride, "strideW": stride}
    return m, m.add("TRANSPOSE_CONV", inputs, (1, *made, 6), OUT, "TransposeConvOptions", **fields)


CASES["transpose_conv_same"] = lambda: _deconv(SAME, 2, (10, 8))
CASES["transpose_conv_valid"] = lambda: _deconv(VALID, 2, (11, 9))
CASES["transpose_conv_beyond"] = lambda: _deconv(VALID, 3, (16, 12), (2, 2))
CASES["transpose_conv_odd"] = lambda: _deconv(SAME, 2, (9, 7))


@case
def reshape_before_dense():
    """The flattening of an image has the channels last in the file."""
    m = Small((1, 3, 2, 4))
    flat = m.add("RESHAPE", [m.x, m.constant("s", [1, 24])], (1, 24), IN)
    w, scales = m.weights((5, 24), 5, 0)
    return m, m.add("FULLY_CONNECTED", [flat, w, m.bias(scales, 5, IN[0])], (1, 5), OUT, "FullyConnectedOptions")


def _real(code: str, options: str, operands: tuple, made: tuple[int, ...], half: bool = False, **fields) -> tuple[Small, int]:
    """An operator on x (1, 8, 6, 4) and constants: integers (a list), or random floats of a shape, with `half` stored as float16."""
    m = Small((1, 8, 6, 4), None)
    inputs = [m.x]
    for index, operand in enumerate(operands):
        if isinstance(operand, list):
            inputs.append(m.constant(f"c{index}", operand))
            continue
        values = m.rng.normal(size=operand).astype(np.float16 if half else np.float32)
        inputs.append(m.tensor(f"w{index}", operand, None, values=values))
        if half:
            inputs[-1] = m.add("DEQUANTIZE", [inputs[-1]], operand, None, "DequantizeOptions")
    return m, m.add(code, inputs, made, None, options, **fields)


def _chosen():
    m = Small((1, 8, 6, 4), None)
    positive = m.file.tensor("positive", (1, 8, 6, 4), np.bool_, None, None)
    m.file.operator("GREATER", [m.x, m.tensor("zero", (1,), values=np.zeros(1, np.float32))], positive, "GreaterOptions")
    other = m.tensor("other", (4,), None, values=np.array([1.0, -2.0, 3.0, 0.5], np.float32))
    return m, m.add("SELECT_V2", [positive, m.x, other], (1, 8, 6, 4), None, "SelectV2Options")


def _stacked():
    m = Small((1, 8, 6, 4), None)
    begins, sizes = m.constant("b", [0, 0, 2, 0]), m.constant("s", [1, 8, 1, 4])
    part = m.add("SLICE", [m.x, begins, sizes], (1, 8, 1, 4), None, "SliceOptions")
    one = m.add("RESHAPE", [part, m.constant("f", [1, 8, 4])], (1, 8, 4), None)
    other = m.add("NEG", [one], (1, 8, 4), None, "NegOptions")
    return m, m.add("PACK", [one, other, one], (1, 8, 3, 4), None, "PackOptions", valuesCount=3, axis=2)


def _unstacked():
    m = Small((1, 8, 6, 4), None)
    parts = [m.tensor(f"part{index}", (1, 8, 6)) for index in range(4)]
    m.file.operator("UNPACK", [m.x], parts[0], "UnpackOptions", num=4, axis=3)
    m.file._operators[-1].outputs = np.array(parts, np.int32)
    return m, m.add("SUB", [parts[0], parts[2]], (1, 8, 6), None, "SubOptions")


IMAGE = (1, 8, 6, 4)
CONV = {"padding": SAME, "strideH": 2, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
WEIGHTS = ((6, 3, 3, 4), (6,))
REALS = {
    "conv": lambda: _real("CONV_2D", "Conv2DOptions", WEIGHTS, (1, 4, 6, 6), fusedActivationFunction=RELU6, **CONV),
    "conv_float16": lambda: _real("CONV_2D", "Conv2DOptions", WEIGHTS, (1, 4, 6, 6), True, **CONV),
    "depthwise": lambda: _real(
        "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", ((1, 3, 3, 8), (8,)), (1, 4, 6, 8), depthMultiplier=2, **CONV
    ),
    "dense": lambda: _real("FULLY_CONNECTED", "FullyConnectedOptions", ((5, 192), (5,)), (1, 5), fusedActivationFunction=RELU),
    "add": lambda: _real("ADD", "AddOptions", ((4,),), IMAGE),
    "prelu": lambda: _real("PRELU", "", ((1, 1, 4),), IMAGE),
    "softmax": lambda: _real("SOFTMAX", "SoftmaxOptions", (), IMAGE, beta=2.0),
    "gelu": lambda: _real("GELU", "GeluOptions", (), IMAGE, approximate=False),
    "padv2": lambda: _real("PADV2", "PadV2Options", ([[0, 0], [1, 2], [0, 1], [0, 0]], (1,)), (1, 11, 7, 4)),
    "sum": lambda: _real("SUM", "ReducerOptions", ([1, 3],), (1, 6), keepDims=False),
    "tile": lambda: _real("TILE", "TileOptions", ([1, 2, 1, 3],), (1, 16, 6, 12)),
    "gather": lambda: _real("GATHER", "GatherOptions", ([3, 0, 3],), (1, 8, 6, 3), axis=3),
    "running_sum": lambda: _real("CUMSUM", "CumsumOptions", ([2],), IMAGE, exclusive=True),
    "running_sum_back": lambda: _real("CUMSUM", "CumsumOptions", ([-1],), IMAGE, reverse=True),
    "batch_matmul": lambda: _real("BATCH_MATMUL", "BatchMatMulOptions", ((1, 8, 6, 5),), (1, 8, 4, 5), adjX=True, adjY=False),
    "greater": _chosen,
    "pack": _stacked,
    "unpack": _unstacked,
}
"""Files of real numbers for whole chains; test_elements_and_moves_as_litert.py and its neighbours have every form."""
