"""Streaming: memory stays bounded, whatever the number of images."""

import subprocess
import sys

import pytest

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
print(seen, provider.statistics["sp.StimuliData"].count, (after - before) // 1024, after // 1024)
"""


@pytest.mark.slow
def test_two_thousand_images_take_the_memory_of_a_few(tmp_path):
    pytest.importorskip("resource")
    result = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path), "2000"], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    seen, counted, grown, peak = map(int, result.stdout.split())
    assert seen == counted == 2000
    # As float32 the stimuli are 2000 * 3 * 160 * 160 * 4 bytes = 586 MiB.
    assert grown < 48 and peak < 300, f"grew by {grown} MiB to {peak} MiB"
