"""Real data: the embedded digits, and ../shared where it is present."""

import numpy as np
import pytest
from PIL import Image

from n2d2py.data import build_provider, open_source
from n2d2py.data.preprocessing import Preprocessing
from n2d2py.ini import load_document


def test_the_embedded_digits(request):
    document = load_document(request.config.rootpath / "models" / "LeNet.ini")
    provider = build_provider(document, seed=1)
    assert provider.shape == (1, 32, 32) and len(provider.labels) == 10
    sizes = provider.sizes()
    assert sizes["Validation"] == round(0.2 * (sizes["Learn"] + sizes["Validation"]))
    total = 0
    for x, labels, _ in provider.stimuli("Test").batches(provider.batch_size):
        assert x.min() >= 0 and x.max() <= 1 and set(labels) <= set(range(10))
        total += len(x)
    assert total == sizes["Test"] > 100


def test_mnist_gzipped(ini, shared):
    provider = build_provider(
        ini(f"[database]\nType=MNIST_IDX_Database\nValidation=0.1\nDataPath={shared / 'mnist'}\n[sp]\nSizeX=28\nSizeY=28\n")
    )
    assert provider.sizes() == {"Learn": 54000, "Validation": 6000, "Test": 10000}
    x, labels, _ = next(provider.stimuli("Test").batches(8))
    assert labels.tolist() == [7, 2, 1, 0, 4, 1, 4, 9]
    assert x.shape == (8, 1, 28, 28) and provider.value_range == (0.0, 1.0)


def test_cifar_folders_in_label_order(ini, shared):
    provider = build_provider(
        ini(f"[database]\nType=DIR_Database\nDataPath={shared / 'cifar10' / 'test'}\n[sp]\nSizeX=32\nSizeY=32\nNbChannels=3\n")
    )
    assert provider.labels[:3] == ("/airplane", "/automobile", "/bird")
    assert provider.sizes()["Test"] == 1000
    stimuli = provider.stimuli("Test")
    path = shared / "cifar10" / "test" / stimuli.names[5]
    assert path.parent.name == provider.labels[stimuli.labels[5]].strip("/")
    expected = np.asarray(Image.open(path).convert("RGB"))[:, :, ::-1].transpose(2, 0, 1)
    np.testing.assert_array_equal(stimuli[5], expected.astype(np.float32) / np.float32(255))


def test_the_statistics_of_mnist_are_those_that_n2d2_documents(ini, shared):
    # Mean 33.3184, deviation 78.5675; after normalization [-0.424074, 2.82154] (its data_analysis).
    provider = build_provider(
        ini(
            f"[database]\nType=MNIST_IDX_Database\nDataPath={shared / 'mnist'}\n"
            "[sp]\nSizeX=28\nSizeY=28\n[sp.StimuliData-raw]\nApplyTo=LearnOnly\n"
            "[sp.Transformation]\nType=RangeAffineTransformation\nFirstOperator=Minus\n"
            "FirstValue=[sp.StimuliData-raw]_GlobalValue.mean\nSecondOperator=Divides\n"
            "SecondValue=[sp.StimuliData-raw]_GlobalValue.stdDev\n"
        )
    )
    found = provider.statistics["sp.StimuliData-raw"]
    assert (found.count, f"{found.mean:g}", f"{found.deviation:g}") == (60000, "33.3184", "78.5675")
    assert tuple(f"{bound:g}" for bound in provider.value_range) == ("-0.424074", "2.82154")


def test_imagenet_lists(ini, shared):
    folder = shared / "imagenet"
    text = (
        f"[database]\nType=List_Database\nDataPath={folder}\nLabelPath={folder}/eval.txt\n"
        f"ValidationPath={folder}/calib.txt\nLabelNamesPath={folder}/synset_names.txt\n"
        "[sp]\nSizeX=160\nSizeY=160\nNbChannels=3\n"
        "[sp.Transformation-1]\nType=RescaleTransformation\nWidth=160\nHeight=160\n"
        "[sp.Transformation-2]\nType=ColorSpaceTransformation\nColorSpace=RGB\n"
        "[sp.Transformation-3]\nType=RangeAffineTransformation\nFirstOperator=Minus\n"
        "FirstValue=128\nSecondOperator=Divides\nSecondValue=128\n"
    )
    provider = build_provider(ini(text), seed=1)
    assert provider.sizes() == {"Learn": 0, "Validation": 100, "Test": 300}
    assert len(provider.labels) == 1000 and provider.value_range == (-1.0, 127 / 128)
    x, labels, names = next(provider.stimuli("Validation").batches(16))
    assert names[1] == "images/010_n01530575_brambling.png" and labels[1] == 10
    assert x.shape == (16, 3, 160, 160) and -1 <= x.min() < -0.9 and 0.9 < x.max() < 1


def test_keyword_spotting_arrays(ini, shared):
    path = shared / "kws" / "kws_mfcc.npz"
    provider = build_provider(
        ini(f"[database]\nType=Numpy_Database\nDataPath={path}\nRandomPartitioning=0\n[sp]\nSizeX=10\nSizeY=49\n")
    )
    stored = np.load(path)
    x, labels, _ = next(provider.stimuli("Test").batches(300))
    np.testing.assert_array_equal(x, stored["x"])
    np.testing.assert_array_equal(labels, stored["y"])
    assert provider.value_range is None
    np.testing.assert_array_equal(open_source(path, (1, 49, 10))[7], stored["x"][7])


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (0.0, 255.0)])
def test_folder_of_pictures(shared, bounds):
    stimuli = open_source(shared / "vww" / "images", (3, 96, 96), Preprocessing(bounds))
    assert len(stimuli) == 120
    expected = np.asarray(Image.open(shared / "vww" / "images" / stimuli.names[3]).convert("RGB"))
    np.testing.assert_allclose(stimuli[3], expected.transpose(2, 0, 1) / 255 * bounds[1], rtol=1e-6)
