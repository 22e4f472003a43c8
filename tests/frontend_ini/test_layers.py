"""Each type of layer section: its keys, its dimensions, its values against a computation in NumPy.

They look at `n2d2py.contracts.ini.layers` and `n2d2py.contracts.ini.keys`.
"""

import numpy as np
from support.numpy_layers import convolve, pool
from support.tables import every

CONV = "[conv]\nInput=sp\nType=Conv\nNbOutputs=4\n"
POOL = "[pool]\nInput=sp\nType=Pool\nNbOutputs=3\nMapping.Size=1\n"


@every(
    "keys,kernel,stride,pad,dilation",
    [
        ("KernelDims=3 2", (2, 3), (1, 1), (0, 0), (1, 1)),
        ("KernelSize=3", (3, 3), (1, 1), (0, 0), (1, 1)),
        ("KernelWidth=1\nKernelHeight=5", (5, 1), (1, 1), (0, 0), (1, 1)),
        ("KernelDims=3 3\nStrideDims=2 1", (3, 3), (1, 2), (0, 0), (1, 1)),
        ("KernelDims=3 3\nStride=2\nPadding=1", (3, 3), (2, 2), (1, 1), (1, 1)),
        ("KernelDims=3 3\nStrideX=3", (3, 3), (1, 3), (0, 0), (1, 1)),
        ("KernelDims=5 3\nPaddingDims=2 1\nStrideY=2", (3, 5), (2, 1), (1, 2), (1, 1)),
        ("KernelDims=3 3\nPaddingX=1", (3, 3), (1, 1), (0, 1), (1, 1)),
        ("KernelDims=3 3\nDilation=2\nPadding=2", (3, 3), (1, 1), (2, 2), (2, 2)),
        ("KernelDims=3 2\nDilationDims=3 2", (2, 3), (1, 1), (0, 0), (2, 3)),
    ],
)
def test_conv(keys, kernel, stride, pad, dilation, build, stimulus):
    net = build(CONV + keys)
    w, b = net.params("conv")["weights"], net.params("conv")["bias"]
    assert w.shape == (4, 3, *kernel) and b.shape == (4,) and w.std() > 0
    expected = convolve(stimulus, w, b, stride, pad, dilation)
    (found,) = net.run(stimulus, "conv")
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert net.dims("conv") == [expected.shape[3], expected.shape[2], 4]


def test_conv_without_bias_and_flipped(build, stimulus):
    plain = build(CONV + "KernelDims=3 2")
    other = build(CONV + "KernelDims=3 2\nConfigSection=c\n[c]\nNoBias=1\nWeightsExportFlip=1")
    w = plain.params("conv")["weights"]
    np.testing.assert_array_equal(other.params("conv")["weights"], w[:, :, ::-1, ::-1])
    assert not other.params("conv")["bias"].any() and plain.params("conv")["bias"].any()


@every(
    "keys,function",
    [
        ("", lambda x: x),
        ("=Linear", lambda x: x),
        ("=Linear\nActivationFunction.Clipping=0.25", lambda x: x.clip(-0.25, 0.25)),
        ("=Rectifier", lambda x: x.clip(0)),
        ("=Rectifier\nActivationFunction.Clipping=0.5", lambda x: x.clip(0, 0.5)),
        ("=Rectifier\nActivationFunction.LeakSlope=0.1", lambda x: np.where(x > 0, x, 0.1 * x)),
        ("=Saturation\nActivationFunction.Threshold=0.3", lambda x: x.clip(-0.3, 0.3)),
        ("=Saturation", lambda x: x.clip(-1, 1)),
        ("=Logistic", lambda x: 1 / (1 + np.exp(-x))),
        ("=LogisticWithLoss", lambda x: 1 / (1 + np.exp(-x))),
        ("=Softplus", lambda x: np.log1p(np.exp(x))),
        ("=Swish", lambda x: x / (1 + np.exp(-x))),
        ("=Tanh", np.tanh),
        ("=Tanh\nActivationFunction.Alpha=0.5", lambda x: np.tanh(0.5 * x)),
        ("=TanhLeCun", lambda x: np.tanh(1.7159 * 2 / 3 * x)),
    ],
)
def test_activations(keys, function, build, stimulus):
    text = f"ActivationFunction{keys}\n" if keys else ""
    net = build(f"[fc]\nInput=sp\nType=Fc\nNbOutputs=6\nWeightsFiller=HeFiller\n{text}")
    w, b = net.params("fc")["weights"], net.params("fc")["bias"]
    (found,) = net.run(stimulus, "fc")
    np.testing.assert_allclose(found, function(stimulus.reshape(2, -1) @ w.T + b), atol=1e-6)


@every("how", ["Max", "Average"])
@every(
    "keys,kernel,stride,pad",
    [
        ("PoolDims=2 2\nStride=2", (2, 2), (2, 2), (0, 0)),
        ("PoolSize=3\nPadding=1", (3, 3), (1, 1), (1, 1)),
        ("PoolWidth=3\nPoolHeight=2\nStrideDims=2 3", (2, 3), (3, 2), (0, 0)),
        ("PoolDims=3 5\nPaddingDims=1 2\nStrideX=2", (5, 3), (1, 2), (2, 1)),
        ("PoolDims=10 8", (8, 10), (1, 1), (0, 0)),
    ],
)
def test_pool_floors_and_counts_padding(keys, kernel, stride, pad, how, build, stimulus):
    net = build(f"{POOL}Pooling={how}\n{keys}")
    expected = pool(stimulus, kernel, stride, pad, how)
    (found,) = net.run(stimulus, "pool")
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert net.dims("pool") == [expected.shape[3], expected.shape[2], 3]


def test_a_pool_has_an_activation(build, stimulus):
    net = build(POOL + "Pooling=Average\nPoolDims=2 2\nActivationFunction=Rectifier")
    np.testing.assert_allclose(
        net.run(stimulus, "pool")[0], pool(stimulus, (2, 2), (1, 1), (0, 0), "Average").clip(0), atol=1e-9
    )


def test_fc_flattens_channels_first(build, stimulus):
    net = build("[fc]\nInput=sp\nType=Fc\nNbOutputs=5\n")
    w, b = net.params("fc")["weights"], net.params("fc")["bias"]
    assert w.shape == (5, 240)
    np.testing.assert_allclose(net.run(stimulus, "fc")[0], stimulus.reshape(2, 240) @ w.T + b, atol=1e-6)


def test_batch_norm(build, stimulus, tmp_path):
    values = {
        name: np.random.default_rng(i).uniform(0.5, 2, 3) for i, name in enumerate(("scales", "biases", "means", "variances"))
    }
    np.savez(tmp_path / "w.npz", **{f"bn_{name}": value for name, value in values.items()})
    text = "[bn]\nInput=sp\nType=BatchNorm\nNbOutputs=3\nConfigSection=c\nActivationFunction=Rectifier\n[c]\nEpsilon=0.1\n"
    net = build(text, weights=tmp_path / "w.npz")
    s, b, m, v = (values[name].reshape(3, 1, 1) for name in ("scales", "biases", "means", "variances"))
    np.testing.assert_allclose(net.run(stimulus, "bn")[0], ((stimulus - m) / np.sqrt(v + 0.1) * s + b).clip(0), atol=1e-5)


def test_batch_norm_without_weights_is_the_identity(build, stimulus):
    net = build("[bn]\nInput=sp\nType=BatchNorm\nNbOutputs=3\n")
    np.testing.assert_allclose(net.run(stimulus, "bn")[0], stimulus / np.sqrt(1 + 1e-5), rtol=1e-6)


TWO = (
    CONV + "KernelDims=1 1\n[other]\nInput=sp\nType=Conv\nNbOutputs=4\nKernelDims=1 1\n[e]\nInput=conv,other\n"
    "Type=ElemWise\nNbOutputs=4\n"
)


@every(
    "keys,function",
    [
        ("Operation=Sum", lambda a, b: a + b),
        ("Operation=Sum\nWeights=1.0 -1.0", lambda a, b: a - b),
        ("Operation=Sum\nWeights=0.5", lambda a, b: 0.5 * a + 0.5 * b),
        ("Operation=Sum\nWeights=2 3\nShifts=0.5 -1", lambda a, b: 2 * a + 0.5 + 3 * b - 1),
        ("Operation=AbsSum\nWeights=1 2", lambda a, b: abs(a) + 2 * abs(b)),
        ("Operation=EuclideanSum\nWeights=1 2", lambda a, b: np.sqrt(a**2 + (2 * b) ** 2)),
        ("Operation=Prod", lambda a, b: a * b),
        ("Operation=Max", np.maximum),
        ("Operation=Sum\nActivationFunction=Rectifier", lambda a, b: (a + b).clip(0)),
    ],
)
def test_elem_wise(keys, function, build, stimulus):
    net = build(TWO + keys)
    a, b, found = net.run(stimulus, "conv", "other", "e")
    np.testing.assert_allclose(found, function(a, b), atol=1e-7)


def test_activation_layer_is_tanh_by_default_and_concatenates(build, stimulus):
    net = build(
        CONV + "KernelDims=1 1\n[a]\nInput=conv, sp\nType=Activation\nNbOutputs=7\n"
        "[b]\nInput=a\nType=Activation\nActivationFunction=Linear\nNbOutputs=7\n"
    )
    conv, a, b = net.run(stimulus, "conv", "a", "b")
    np.testing.assert_allclose(a, np.tanh(np.concatenate([conv, stimulus], axis=1)), atol=1e-7)
    np.testing.assert_array_equal(b, a)


def test_softmax_and_its_groups(build, stimulus):
    net = build(
        "[fc]\nInput=sp\nType=Fc\nNbOutputs=6\n[s]\nInput=fc\nType=Softmax\nNbOutputs=6\nWithLoss=1\n"
        "[g]\nInput=fc\nType=Softmax\nNbOutputs=6\nGroupSize=3\n"
    )
    fc, s, g = net.run(stimulus, "fc", "s", "g")
    e = np.exp(fc)
    np.testing.assert_allclose(s, e / e.sum(axis=1, keepdims=True), rtol=1e-6)
    grouped = e.reshape(2, 2, 3)
    np.testing.assert_allclose(g, (grouped / grouped.sum(axis=2, keepdims=True)).reshape(2, 6), rtol=1e-6)


def test_dropout_changes_nothing(build, stimulus):
    net = build("[d]\nInput=sp\nType=Dropout\nNbOutputs=3\nConfigSection=c\n[c]\nDropout=0.9\n")
    np.testing.assert_array_equal(net.run(stimulus, "d")[0], stimulus)


def test_padding_adds_zeros_and_crops(build, stimulus):
    net = build("[p]\nInput=sp\nType=Padding\nNbOutputs=3\nTopPadding=1\nBottomPadding=-2\nLeftPadding=3\nRightPadding=0\n")
    expected = np.pad(stimulus[:, :, :-2], ((0, 0), (0, 0), (1, 0), (3, 0)))
    np.testing.assert_array_equal(net.run(stimulus, "p")[0], expected)
    assert net.dims("p") == [13, 7, 3]


def test_two_inputs_are_concatenated_in_their_order(build, stimulus):
    net = build(
        CONV + "KernelDims=1 1\n[two]\nInput=sp, conv\nType=Conv\nNbOutputs=2\nKernelDims=1 1\n"
        "[fc]\nInput=conv,two\nType=Fc\nNbOutputs=3\n"
    )
    conv, two, fc = net.run(stimulus, "conv", "two", "fc")
    p = net.params("two")
    np.testing.assert_allclose(two, convolve(np.concatenate([stimulus, conv], 1), p["weights"], p["bias"]), atol=1e-6)
    p = net.params("fc")
    flat = np.concatenate([conv.reshape(2, -1), two.reshape(2, -1)], axis=1)
    np.testing.assert_allclose(fc, flat @ p["weights"].T + p["bias"], atol=1e-6)


def test_fc_joins_inputs_of_different_sizes(build, stimulus):
    net = build(POOL + "PoolDims=2 2\nStride=2\nPooling=Max\n[fc]\nInput=pool,sp\nType=Fc\nNbOutputs=2\n")
    pooled, fc = net.run(stimulus, "pool", "fc")
    p = net.params("fc")
    flat = np.concatenate([pooled.reshape(2, -1), stimulus.reshape(2, -1)], axis=1)
    np.testing.assert_allclose(fc, flat @ p["weights"].T + p["bias"], atol=1e-6)


def test_automatic_properties_serve_later_sections(build):
    net = build(
        CONV + "KernelDims=3 3\nStride=2\n[pool]\nInput=conv\nType=Pool\nPooling=Average\n"
        "PoolDims=[conv]_OutputsWidth [conv]_OutputsHeight\nNbOutputs=[conv]_NbOutputs\nMapping.Size=1\n"
        "[fc]\nInput=pool\nType=Fc\nNbOutputs=$([conv]_NbChannels * 100 + [conv]_ChannelsWidth * 10 + "
        "[conv]_ChannelsHeight)\n"
    )
    assert net.dims("conv") == [4, 3, 4]
    assert net.dims("pool") == [1, 1, 4] and net.graph.node("pool").op.kernel == (3, 4)
    assert net.dims("fc") == [1, 1, 3 * 100 + 10 * 10 + 8]
