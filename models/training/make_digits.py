"""Writes `models/data/digits/` in the IDX format of MNIST, from scikit-learn's handwritten digits.

1,797 gray images of 8x8 pixels. The counts 0..16 of the source become bytes round(v * 255 / 16).
The first 1,287 images are the training set, the last 510 the test set: the images come in blocks
of about 130, each opened by the digits 0 to 9 in order, and image 1,287 opens such a block. Blocks
are taken to be writers (the source does not name them), so no writer is in both sets.

Usage: python make_digits.py          (needs scikit-learn)
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

OUTPUT = Path(__file__).resolve().parent.parent / "data" / "digits"
NB_LEARN = 1287


def idx_bytes(values: np.ndarray) -> bytes:
    """An unsigned byte array of any rank as an IDX file: magic 00 00 08 rank, sizes, values."""
    header = struct.pack(f">4B{values.ndim}I", 0, 0, 8, values.ndim, *values.shape)
    return header + values.astype(np.uint8).tobytes()


def main() -> None:
    """Writes the four files."""
    from sklearn.datasets import load_digits

    source = load_digits()
    images = np.floor(source.images * 255 / 16 + 0.5).astype(np.uint8)
    labels = source.target.astype(np.uint8)
    if images.shape != (1797, 8, 8) or not (labels[NB_LEARN : NB_LEARN + 10] == np.arange(10)).all():
        raise SystemExit("this scikit-learn holds other digits than those that the split is for")
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for name, part in (("train", slice(None, NB_LEARN)), ("t10k", slice(NB_LEARN, None))):
        (OUTPUT / f"{name}-images-idx3-ubyte").write_bytes(idx_bytes(images[part]))
        (OUTPUT / f"{name}-labels-idx1-ubyte").write_bytes(idx_bytes(labels[part]))


if __name__ == "__main__":
    main()
