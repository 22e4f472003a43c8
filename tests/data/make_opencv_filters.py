"""Writes opencv_filters.npz: OpenCV's filters, morphology, spectra, colour spaces, equalization.

Not a test and not needed to run them: `python tests/data/make_opencv_filters.py`, with
opencv-python-headless installed. Made with OpenCV 4.14.0. The chains of calls are those that N2D2's
transformations make (its src/Transformation).
"""

from pathlib import Path

import cv2
import numpy as np

KERNEL = np.array([[0, -1, 2, 0.5], [-1, 4, -1, 0], [3, -1, 0, -0.25]])
SHAPES = {"Rectangular": cv2.MORPH_RECT, "Elliptic": cv2.MORPH_ELLIPSE, "Cross": cv2.MORPH_CROSS}
OPERATIONS = {
    "Opening": cv2.MORPH_OPEN,
    "Closing": cv2.MORPH_CLOSE,
    "Gradient": cv2.MORPH_GRADIENT,
    "TopHat": cv2.MORPH_TOPHAT,
    "BlackHat": cv2.MORPH_BLACKHAT,
}
SPACES = {"HSV": "HSV", "HLS": "HLS", "YCrCb": "YCrCb", "CIELab": "Lab", "CIELuv": "Luv"}


def gradient(name: str, image: np.ndarray, size: int) -> np.ndarray:
    if name == "Laplacian":
        return np.abs(cv2.Laplacian(image, cv2.CV_32F, ksize=size, scale=0.5, delta=0.1))
    if name == "Sobel":
        across, down = (cv2.Sobel(image, cv2.CV_32F, *order, ksize=size, scale=0.5, delta=0.1) for order in ((1, 0), (0, 1)))
    else:
        across, down = (cv2.Scharr(image, cv2.CV_32F, *order, scale=0.5, delta=0.1) for order in ((1, 0), (0, 1)))
    return cv2.addWeighted(np.abs(across), 0.5, np.abs(down), 0.5, 0)


def wallis(image: np.ndarray, size: int) -> np.ndarray:
    kernel = np.full((size, size), 1.0 / size**2, np.float32)
    mean = cv2.filter2D(image, -1, kernel, borderType=cv2.BORDER_REPLICATE)
    square = cv2.filter2D(image**2, -1, kernel, borderType=cv2.BORDER_REPLICATE)
    return (image - mean) / np.sqrt(np.maximum(square - mean * mean, 1e-6))


def main() -> None:
    random = np.random.RandomState(11)
    scene = cv2.GaussianBlur(random.randint(0, 256, (23, 29, 3)).astype(np.uint8), (0, 0), 1.5)
    scene = cv2.normalize(scene, None, 0, 255, cv2.NORM_MINMAX)
    plane = np.ascontiguousarray(scene[:, :, 1])
    real = (plane / 100).astype(np.float32)
    vectors = {
        "scene": scene,
        "real": real,
        "kernel": KERNEL,
        "filter_u8": cv2.filter2D(scene, -1, KERNEL),
        "filter_f32": cv2.filter2D(real, -1, KERNEL),
    }
    unit = (plane / 255).astype(np.float32)
    for name, sizes in (("Sobel", (1, 3, 5, 7)), ("Scharr", (3,)), ("Laplacian", (1, 3, 5))):
        for size in sizes:
            vectors[f"gradient_{name}_{size}"] = gradient(name, unit, size)
    for size in (3, 4):
        vectors[f"wallis_{size}"] = wallis(plane.astype(np.float32), size)
    for name, kind in SHAPES.items():
        for size in (1, 2, 3, 4, 5, 7, 10):
            vectors[f"element_{name}_{size}"] = cv2.getStructuringElement(kind, (size, size))
        for size, iterations in ((3, 1), (4, 1), (5, 2)):
            element = cv2.getStructuringElement(kind, (size, size))
            key = f"{name}_{size}_{iterations}"
            vectors[f"morphology_Erode_{key}"] = cv2.erode(plane, element, iterations=iterations)
            vectors[f"morphology_Dilate_{key}"] = cv2.dilate(plane, element, iterations=iterations)
            for operation, code in OPERATIONS.items():
                vectors[f"morphology_{operation}_{key}"] = cv2.morphologyEx(plane, code, element, iterations=iterations)
    padded = cv2.copyMakeBorder(real.astype(np.float64), 0, 1, 0, 1, cv2.BORDER_CONSTANT)
    both = np.stack([padded, np.zeros_like(padded)], axis=2)
    vectors["dft_2d"] = cv2.dft(both)
    vectors["dft_rows"] = cv2.dft(both, flags=cv2.DFT_ROWS)
    vectors["dct_2d"] = cv2.dct(padded)
    vectors["dct_rows"] = cv2.dct(padded, flags=cv2.DCT_ROWS)
    vectors["optimal"] = np.array([cv2.getOptimalDFTSize(size) for size in range(1, 1200)])
    colors = random.randint(0, 256, (40, 50, 3)).astype(np.uint8)
    colors[0, :16] = np.linspace(0, 255, 16)[:, None]
    colors[1, :8] = 255 * np.array(list(np.ndindex(2, 2, 2)))
    vectors["colors"] = colors
    for name, code in SPACES.items():
        there = cv2.cvtColor(colors, getattr(cv2, f"COLOR_BGR2{code}"))
        vectors[f"to_{name}"] = there
        vectors[f"from_{name}"] = cv2.cvtColor(there, getattr(cv2, f"COLOR_{code}2BGR"))
    large = cv2.GaussianBlur(random.randint(0, 256, (50, 67)).astype(np.uint8), (0, 0), 2)
    vectors["large"] = large
    vectors["equalized"] = cv2.equalizeHist(large)
    for clip, grid in ((40.0, 8), (2.0, 4), (0.0, 5), (1.5, 10)):
        vectors[f"clahe_{clip}_{grid}"] = cv2.createCLAHE(clip, (grid, grid)).apply(large)
    even = np.ascontiguousarray(large[:48, :64])
    vectors["clahe_even"] = cv2.createCLAHE(3.0, (8, 8)).apply(even)
    lightness = cv2.cvtColor(scene, cv2.COLOR_BGR2LAB)
    lightness[:, :, 0] = cv2.equalizeHist(np.ascontiguousarray(lightness[:, :, 0]))
    vectors["equalized_scene"] = cv2.cvtColor(lightness, cv2.COLOR_LAB2BGR)
    np.savez_compressed(Path(__file__).parent / "opencv_filters.npz", **vectors)


if __name__ == "__main__":
    main()
