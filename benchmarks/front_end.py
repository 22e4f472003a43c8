"""The conversion of camera frames and sounds against those of Pillow, OpenCV, librosa, torchaudio and kaldi-native-fbank that are installed.

    python benchmarks/front_end.py [-images FOLDER] [-n 60]

Prints Markdown: the largest difference, and the share of values that differ. Images are noise, and those of the folder at random sizes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from common import header, row
from PIL import Image
from support.audio_cases import sounds

from n2d2py.arithmetic.audio import read_audio
from n2d2py.arithmetic.frame import FrameSource
from n2d2py.arithmetic.pixel_formats import FORMATS, luminance

Judge = Callable[[np.ndarray, int, int], np.ndarray]


def images(folder: Path | None, count: int) -> Iterator[tuple[np.ndarray, int, int]]:
    """Images of random size, half of them noise, and the width and height of an input."""
    rng, files = np.random.default_rng(1), sorted(folder.rglob("*.png")) if folder else []
    for number in range(count):
        wide, high, to_wide, to_high = (int(side) for side in rng.integers(8, 240, 4))
        image = rng.integers(0, 256, (high, wide, 3), np.uint8)
        if files and number % 2:
            image = np.asarray(Image.open(files[number % len(files)]).convert("RGB").resize((wide, high)))
        yield image, to_wide, to_high


def resized(image: np.ndarray, wide: int, high: int, filter: str) -> np.ndarray:
    return FrameSource("rgb", filter).convert(FORMATS["rgb"].encode(image), image.shape[1], (3, high, wide))


def resizes() -> list[tuple[str, str, Judge]]:
    """Filter, name of the referee, and its resize."""
    found: list[tuple[str, str, Judge]] = [
        (filter, f"Pillow {method.name}", lambda x, w, h, method=method: np.asarray(Image.fromarray(x).resize((w, h), method)))
        for filter, method in (("antialias", Image.Resampling.BILINEAR), ("nearest", Image.Resampling.NEAREST))
    ]
    if find_spec("cv2"):
        import cv2

        found += [
            ("bilinear", "OpenCV INTER_LINEAR", lambda x, w, h: cv2.resize(x, (w, h), interpolation=cv2.INTER_LINEAR)),
            ("area", "OpenCV INTER_AREA, to fewer pixels", lambda x, w, h: cv2.resize(x, (w, h), interpolation=cv2.INTER_AREA)),
            (
                "nearest",
                "OpenCV INTER_NEAREST_EXACT",
                lambda x, w, h: cv2.resize(x, (w, h), interpolation=cv2.INTER_NEAREST_EXACT),
            ),
        ]
    return found


def colors(image: np.ndarray) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Conversion, its values and OpenCV's."""
    import cv2

    even = image[:, : image.shape[1] // 2 * 2]
    yuyv = FORMATS["yuyv"].encode(even)
    yield "gray, COLOR_RGB2GRAY", luminance(image)[:, :, 0], cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    judged = cv2.cvtColor(yuyv.reshape(len(even), -1, 2), cv2.COLOR_YUV2RGB_YUYV)
    yield "yuyv, COLOR_YUV2RGB_YUYV", FORMATS["yuyv"].decode(yuyv, even.shape[1]), judged
    words = FORMATS["rgb565"].encode(image).view("<u2").view(np.uint8).reshape(*image.shape[:2], 2)
    high = FORMATS["rgb565"].decode(FORMATS["rgb565"].encode(image), image.shape[1]) & np.array([248, 252, 248], np.uint8)
    yield "rgb565, COLOR_BGR5652RGB, the bits of the word", high, cv2.cvtColor(words, cv2.COLOR_BGR5652RGB)


def features(samples: np.ndarray) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Features, their values and those of a library."""
    for kind in ("log_mel", "mfcc"):
        if find_spec("librosa"):
            import librosa

            source = read_audio(f"{kind}:mels=40,window=512")
            common = {"n_fft": 512, "hop_length": source.hop, "center": False, "n_mels": 40}
            mel = librosa.power_to_db(librosa.feature.melspectrogram(y=samples / 32768, sr=16000, **common), top_db=None)
            judged = (librosa.feature.mfcc(S=mel) if kind == "mfcc" else mel).T
            yield f"{kind}, librosa", source.real(source.convert(samples, len(judged))), judged
        if find_spec("torchaudio"):
            import torch
            from torchaudio.transforms import MFCC, AmplitudeToDB, MelSpectrogram

            source = read_audio(f"{kind}:preset=torchaudio,mels=40,window=512")
            mels = {"n_fft": 512, "hop_length": source.hop, "center": False, "n_mels": 40}
            decibels = torch.nn.Sequential(MelSpectrogram(16000, **mels), AmplitudeToDB("power"))
            transform = MFCC(16000, n_mfcc=40, melkwargs=mels) if kind == "mfcc" else decibels
            judged = transform(torch.from_numpy(samples / np.float32(32768))).numpy().T
            yield f"{kind}, torchaudio", source.real(source.convert(samples, len(judged))), judged
        if find_spec("kaldi_native_fbank"):
            import kaldi_native_fbank as kaldi

            source, options = (
                read_audio(f"{kind}:preset=kaldi"),
                kaldi.FbankOptions() if kind == "log_mel" else kaldi.MfccOptions(),
            )
            options.frame_opts.dither, options.use_energy = 0, False
            judge = (kaldi.OnlineFbank if kind == "log_mel" else kaldi.OnlineMfcc)(options)
            judge.accept_waveform(16000, samples.astype(float).tolist())
            judged = np.array([judge.get_frame(index) for index in range(judge.num_frames_ready)])
            yield f"{kind}, kaldi-native-fbank", source.real(source.convert(samples, len(judged))), judged


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("-images", type=Path)
    parser.add_argument("-n", type=int, default=60)
    arguments = parser.parse_args()
    header("Conversion", "Referee", "Largest difference", "Values that differ, %", texts=2)
    cases = list(images(arguments.images, arguments.n))
    for filter, name, judge in resizes():
        fewer = [one for one in cases if filter != "area" or (one[1] < one[0].shape[1] and one[2] < one[0].shape[0])]
        away = [abs(resized(x, w, h, filter).astype(int) - judge(x, w, h)).ravel() for x, w, h in fewer]
        _print_row(filter, name, np.concatenate(away))
    if find_spec("cv2"):
        rows = [list(colors(image)) for image, _, _ in cases]
        for parts in zip(*rows, strict=True):
            conversion, _, name = parts[0][0].partition(", ")
            _print_row(conversion, name, np.concatenate([abs(a.astype(int) - b).ravel() for _, a, b in parts]))
    print()
    header("Features", "Sounds", "Mean difference, % of the range", "Largest, %", texts=2)
    heard: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for kind, samples in sounds(60, 16000, seed=2):
        for name, ours, judged in features(samples) if kind in ("noise", "faint noise", "voice", "chirp", "tone") else ():
            away = 100 * abs(ours - judged) / np.ptp(judged)
            heard.setdefault((name, kind), []).append((float(away.mean()), float(away.max())))
    for (name, kind), found in sorted(heard.items()):
        row(name, kind, f"{np.mean([a for a, _ in found]):.3f}", f"{max(b for _, b in found):.3f}")


def _print_row(conversion: str, referee: str, away: np.ndarray) -> None:
    row(conversion, referee, f"{away.max()}", f"{100 * (away > 0).mean():.2f}")


if __name__ == "__main__":
    main()
