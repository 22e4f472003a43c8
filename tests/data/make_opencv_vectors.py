"""Writes opencv_vectors.npz: results of OpenCV that the transformations are compared with.

Not a test and not needed to run them: `python tests/data/make_opencv_vectors.py`, with
opencv-python-headless installed. Made with OpenCV 4.14.0; 5.0.0 gives the same bytes.
"""

from pathlib import Path

import cv2
import numpy as np

# Height, width, channels -> height, width.
RESIZES = [
    (8, 8, 1, 32, 32),
    (7, 5, 3, 13, 17),
    (40, 30, 3, 13, 11),
    (32, 32, 1, 16, 16),
    (24, 18, 3, 12, 9),
    (1, 1, 1, 5, 5),
    (2, 9, 3, 9, 2),
    (31, 30, 1, 37, 60),
    (97, 31, 3, 1, 1),
    (30, 30, 1, 10, 10),
    (33, 47, 3, 33, 20),
    (60, 45, 3, 32, 24),
]
BORDERS = {
    "ConstantBorder": cv2.BORDER_CONSTANT,
    "ReplicateBorder": cv2.BORDER_REPLICATE,
    "ReflectBorder": cv2.BORDER_REFLECT,
    "WrapBorder": cv2.BORDER_WRAP,
    "MinusOneReflectBorder": cv2.BORDER_REFLECT_101,
}


def main() -> None:
    random = np.random.RandomState(7)
    vectors = {"resizes": np.array(RESIZES)}
    for index, (height, width, channels, to_height, to_width) in enumerate(RESIZES):
        for name, top in (("u8", 256), ("u16", 65536), ("f32", None)):
            if name != "u8" and height * width > 500:
                continue
            shape = (height, width, channels)
            image = (
                random.rand(*shape).astype(np.float32)
                if top is None
                else random.randint(0, top, shape).astype(f"uint{name[1:]}")
            )
            result = cv2.resize(image, (to_width, to_height), interpolation=cv2.INTER_LINEAR)
            vectors[f"resize_{index}_{name}_in"] = image
            vectors[f"resize_{index}_{name}_out"] = result.reshape(to_height, to_width, channels)
    picture = random.randint(0, 256, (20, 24, 3)).astype(np.uint8)
    picture[0, :8] = [[0, 0, 0], [255, 255, 255], [255, 0, 0], [0, 255, 0], [0, 0, 255], [7, 7, 7], [1, 0, 0], [254, 255, 254]]
    vectors["picture"] = picture
    vectors["gray"] = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)
    vectors["gray_f32"] = cv2.cvtColor(picture.astype(np.float32) / 255, cv2.COLOR_BGR2GRAY)
    small = picture[:3, :4]
    for name, kind in BORDERS.items():
        vectors[f"border_{name}"] = cv2.copyMakeBorder(small, 2, 5, 7, 3, kind, value=(9, 8, 7))
    np.savez_compressed(Path(__file__).parent / "opencv_vectors.npz", **vectors)


if __name__ == "__main__":
    main()
