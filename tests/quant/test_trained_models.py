"""N2D2's own networks trained with quantization (../shared/data/qat): scores of its integer export, compiled integers equal.

They look at `n2d2py.contracts.ini.quantizers` and `n2d2py.contracts.ini.trained`.
"""

from pathlib import Path

import pytest
from support.e2e_run import needs_compiler, run, summary

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
QAT = DATA / "qat"

pytestmark = [needs_compiler, pytest.mark.slow, pytest.mark.skipif(not QAT.is_dir(), reason="../shared/data/qat is not here")]

SCORES = {
    "lenet/LeNet_w1_a4": ("lenet/weights_LeNet_w1_a4", 98.76, 0.15),
    "lenet/LeNet_w4_a8": ("lenet/weights_LeNet_w4_a8", 99.32, 0.05),
    "lenet/LeNet_wMix_a4": ("lenet/weights_LeNet_wMix_a4", 99.16, 0.05),
    "lenet/LeNet_4b": ("lenet/weights_LeNet_4b", 99.20, 0.05),
    "mobilenet/MobileNet_v2_mini": ("mobilenet/mobilenet-v2-weights-8b", 98.67, 0.05),
}
"""Network -> weights, top-1 of N2D2's integer export on 10,000 images, how far from it ours may be."""


@pytest.mark.parametrize("network", sorted(SCORES))
def test_score_of_n2d2(network, tmp_path, monkeypatch):
    monkeypatch.setenv("N2D2_DATA", str(DATA))
    weights, score, apart = SCORES[network]
    options = ("-w", str(QAT / weights), "-export", "CPP", "-nbbits", "8", "-test", "-compare", "20")
    folder = run(str(QAT / f"{network}.ini"), "-seed", "1", *options, "-o", str(tmp_path), out=tmp_path)
    found = summary(folder)
    assert abs(found["scores"]["simulated"] - score) <= apart
    assert found["scores"]["compiled"] == found["scores"]["simulated"]
    assert len(found["compare"]) > 5, "-compare ends with an error where a compiled layer differs"
