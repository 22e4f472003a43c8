"""Streaming: order, bounds of what is held, several threads, errors and early ends."""

import sys
import threading
import time

import numpy as np
import pytest
from support.programs import run_command
from support.tables import every

from n2d2py.concurrency import cores
from n2d2py.data.stimuli import Stimuli


def _stimuli(count, load=None):
    return Stimuli(
        [f"s{index}" for index in range(count)],
        np.arange(count) % 3,
        (1, 2),
        load or (lambda index: np.full((1, 2), index, np.float32)),
    )


@every("count, size", [(1, 1), (7, 3), (8, 8), (9, 8), (100, 13), (64, 64), (65, 200)])
def test_batches_are_in_order_and_complete(count, size):
    batches = list(_stimuli(count).batches(size))
    assert [len(x) for x, _, _ in batches[:-1]] == [size] * (len(batches) - 1)
    np.testing.assert_array_equal(np.concatenate([x[:, 0, 0] for x, _, _ in batches]), np.arange(count))
    np.testing.assert_array_equal(np.concatenate([labels for _, labels, _ in batches]), np.arange(count) % 3)
    assert [name for _, _, names in batches for name in names] == [f"s{i}" for i in range(count)]
    assert batches[0][0].dtype == np.float32


def test_order_holds_when_early_stimuli_are_slow():
    def load(index):
        time.sleep(0.02 if index < 8 else 0)
        return np.full((1, 2), index, np.float32)

    ((x, _, _),) = _stimuli(24, load).batches(24)
    np.testing.assert_array_equal(x[:, 0, 0], np.arange(24))


@pytest.mark.skipif(cores() < 2, reason="needs two cores")
def test_two_stimuli_are_loaded_at_once():
    meeting = threading.Barrier(2, timeout=5)

    def load(index):
        if index in (0, 8):  # the first of each of two chunks: passes only if both are running
            meeting.wait()
        return np.zeros((1, 2), np.float32)

    assert len(list(_stimuli(16, load).batches(16))) == 1


def test_what_is_read_ahead_is_bounded():
    loaded = []

    def load(index):
        loaded.append(index)
        return np.zeros((1, 2), np.float32)

    batches = _stimuli(10_000, load).batches(8)
    next(batches)
    time.sleep(0.1)
    limit = 8 * (cores() + 2)
    assert len(loaded) <= limit
    batches.close()
    count = len(loaded)
    time.sleep(0.1)
    assert len(loaded) == count <= limit


def test_an_error_comes_in_its_turn_and_ends_the_reading():
    loaded = []

    def load(index):
        loaded.append(index)
        if index == 20:
            raise ValueError("number 20")
        return np.zeros((1, 2), np.float32)

    batches = _stimuli(1000, load).batches(10)
    assert len(next(batches)[0]) == 10 and len(next(batches)[0]) == 10
    with pytest.raises(ValueError, match="number 20"):
        next(batches)
    count = len(loaded)
    time.sleep(0.1)
    assert len(loaded) == count <= 30 + 8 * (cores() + 2)


def test_take_and_single_stimuli():
    taken = _stimuli(10).take([7, 2]).take([1])
    assert taken.names == ["s2"] and taken.labels.tolist() == [2] and taken[0][0, 0] == 2
    with pytest.raises(IndexError):
        _stimuli(3)[3]
    with pytest.raises(IndexError):
        _stimuli(3).take([-1])


SCRIPT = """
import resource, sys
from pathlib import Path
import numpy as np
from PIL import Image
from n2d2py.data import build_provider
from n2d2py.ini import load_document

def peak():
    # KiB; ru_maxrss would hold what the process had before it became Python
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

folder, count = Path(sys.argv[1]), int(sys.argv[2])
(folder / "data/a").mkdir(parents=True)
pixels = np.random.RandomState(1).randint(0, 256, (64, 64, 3)).astype(np.uint8)
for index in range(count):
    pixels[0, 0] = index % 251
    Image.fromarray(pixels).save(folder / f"data/a/{index:04d}.bmp")
(folder / "net.ini").write_text('''
[database]
Type=DIR_Database
DataPath=data
RandomPartitioning=0
[sp]
SizeX=160
SizeY=160
NbChannels=3
[sp.StimuliData]
ApplyTo=TestOnly
MeanData=1
StdDevData=1
[sp.Transformation-1]
Type=RescaleTransformation
Width=160
Height=160
[sp.Transformation-2]
Type=RangeAffineTransformation
FirstOperator=Minus
FirstValue=[sp.StimuliData]_GlobalValue.mean
''')
provider = build_provider(load_document(folder / "net.ini"))
stimuli = provider.stimuli("Test")
next(stimuli.batches(16))
before = peak()
seen = 0
for x, labels, names in stimuli.batches(16):
    seen += len(x)
after = peak()
print(seen, provider.pipelines.statistics["sp.StimuliData"].count, (after - before) // 1024, after // 1024)
"""


@pytest.mark.slow
def test_two_thousand_images_take_the_memory_of_a_few(tmp_path):
    pytest.importorskip("resource")
    result = run_command(sys.executable, "-c", SCRIPT, str(tmp_path), "2000", timeout=300)
    seen, counted, grown, peak = map(int, result.split())
    assert seen == counted == 2000
    # As float32 the stimuli are 2000 * 3 * 160 * 160 * 4 bytes = 586 MiB.
    assert grown < 48 and peak < 300, f"grew by {grown} MiB to {peak} MiB"
