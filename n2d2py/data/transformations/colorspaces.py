"""Colour spaces of 8-bit images in OpenCV's scales: conversions from blue, green, red and back.

Hue is in [0, 180); other values are in [0, 255]: HLS and CIELab L scaled from [0, 1] and [0, 100], a and b shifted by 128, u
and v from [-134, 220] and [-140, 122]. The white point is D65, the colours are sRGB. Gray, YCrCb, HSV and the conversion to
CIELab have OpenCV's integers; the others are computed in floating point and rounded, within one unit of it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from n2d2py.data.transformations.base import Inapplicable, require_bytes

_TO_XYZ = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
_FROM_XYZ = np.array([[3.240479, -1.53715, -0.498535], [-0.969256, 1.875991, 0.041556], [0.055648, -0.204043, 1.057311]])
_WHITE = np.array([0.950456, 1.0, 1.088754])
_WHITE_SUM = _WHITE @ [1.0, 15.0, 3.0]
_WHITE_U, _WHITE_V = 4 * _WHITE[0] / _WHITE_SUM, 9 * _WHITE[1] / _WHITE_SUM
_LINEAR_BELOW = 216 / 24389
_KAPPA = 24389 / 27


def bgr(image: np.ndarray) -> np.ndarray:
    """Return a gray, BGR or BGRA image as BGR.

    Raises:
        Inapplicable: for another number of channels.
    """
    channels = image.shape[2]
    if channels == 1:
        return np.repeat(image, 3, axis=2)
    if channels not in (3, 4):
        raise Inapplicable(f"the image has {channels} channels, not 1, 3 or 4", "give gray or colour images")
    return image[:, :, :3]


def _first_channels(image: np.ndarray) -> np.ndarray:
    """Return the first three channels of bytes as int32."""
    require_bytes(image)
    return bgr(image).astype(np.int32)


def _round_bytes(values: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def ycrcb(image: np.ndarray) -> np.ndarray:
    """Return Y, Cr, Cb of an 8-bit colour image, with 14-bit coefficients."""
    blue, green, red = np.moveaxis(_first_channels(image), 2, 0)
    luma = (blue * 1868 + green * 9617 + red * 4899 + 8192) >> 14
    half = (128 << 14) + 8192
    planes = (luma, ((red - luma) * 11682 + half) >> 14, ((blue - luma) * 9241 + half) >> 14)
    return np.clip(np.stack(planes, axis=2), 0, 255).astype(np.uint8)


def ycrcb_to_bgr(image: np.ndarray) -> np.ndarray:
    """Return blue, green, red from bytes Y, Cr, Cb."""
    luma, to_red, to_blue = np.moveaxis(_first_channels(image), 2, 0)
    to_red, to_blue = to_red - 128, to_blue - 128
    planes = (
        luma + ((to_blue * 29049 + 8192) >> 14),
        luma + ((to_blue * -5636 + to_red * -11698 + 8192) >> 14),
        luma + ((to_red * 22987 + 8192) >> 14),
    )
    return np.clip(np.stack(planes, axis=2), 0, 255).astype(np.uint8)


def hsv(image: np.ndarray) -> np.ndarray:
    """Return hue, saturation, value of an 8-bit colour image, with 12-bit divisions."""
    blue, green, red = np.moveaxis(_first_channels(image), 2, 0)
    value = np.maximum(np.maximum(blue, green), red)
    chroma = value - np.minimum(np.minimum(blue, green), red)
    divisors = np.arange(1, 256)
    by_value = np.concatenate([[0], np.rint((255 << 12) / divisors)]).astype(np.int32)
    by_chroma = np.concatenate([[0], np.rint((180 << 12) / (6.0 * divisors))]).astype(np.int32)
    saturation = (chroma * by_value[value] + 2048) >> 12
    sector = np.where(value == red, green - blue, np.where(value == green, blue - red + 2 * chroma, red - green + 4 * chroma))
    hue = (sector * by_chroma[chroma] + 2048) >> 12
    hue = np.where(hue < 0, hue + 180, hue)
    return np.stack([hue, saturation, value], axis=2).astype(np.uint8)


def _from_sectors(hue: np.ndarray, high: np.ndarray, low: np.ndarray, falling: np.ndarray, rising: np.ndarray) -> np.ndarray:
    """Return blue, green, red by the sector of a hue (0 to 5, from red), which selects the level of each colour."""
    levels = np.stack([high, low, falling, rising])
    order = np.array([[1, 3, 0], [1, 0, 2], [3, 0, 1], [0, 2, 1], [0, 1, 3], [2, 1, 0]])
    chosen = order[hue.astype(np.int64) % 6]
    return _round_bytes(255 * np.take_along_axis(levels, np.moveaxis(chosen, 2, 0), axis=0).transpose(1, 2, 0))


def hsv_to_bgr(image: np.ndarray) -> np.ndarray:
    """Return blue, green, red from bytes H, S, V."""
    hue, saturation, value = np.moveaxis(_first_channels(image).astype(np.float64), 2, 0)
    hue, saturation, value = hue / 30, saturation / 255, value / 255
    part = hue - np.floor(hue)
    return _from_sectors(
        hue, value, value * (1 - saturation), value * (1 - saturation * part), value * (1 - saturation * (1 - part))
    )


def hls(image: np.ndarray) -> np.ndarray:
    """Return hue, lightness, saturation of an 8-bit colour image."""
    blue, green, red = np.moveaxis(_first_channels(image) / 255.0, 2, 0)
    high = np.maximum(np.maximum(blue, green), red)
    low = np.minimum(np.minimum(blue, green), red)
    chroma = high - low
    light = (high + low) / 2
    divisor = np.where(chroma > 0, np.where(light < 0.5, high + low, 2 - high - low), 1.0)
    sector = np.where(high == red, green - blue, np.where(high == green, blue - red + 2 * chroma, red - green + 4 * chroma))
    hue = 30 * sector / np.where(chroma > 0, chroma, 1.0)
    hue = np.rint(np.where(hue < 0, hue + 180, hue))
    return _round_bytes(np.stack([np.where(hue >= 180, hue - 180, hue), 255 * light, 255 * chroma / divisor], axis=2))


def hls_to_bgr(image: np.ndarray) -> np.ndarray:
    """Return blue, green, red from bytes H, L, S."""
    hue, light, saturation = np.moveaxis(_first_channels(image).astype(np.float64), 2, 0)
    hue, light, saturation = hue / 30, light / 255, saturation / 255
    part = hue - np.floor(hue)
    high = np.where(light <= 0.5, light * (1 + saturation), light + saturation - light * saturation)
    low = 2 * light - high
    return _from_sectors(hue, high, low, low + (high - low) * (1 - part), low + (high - low) * part)


def _to_linear(values: np.ndarray) -> np.ndarray:
    """Return sRGB in [0, 1] without its gamma."""
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def _apply_gamma(values: np.ndarray) -> np.ndarray:
    """Return linear colours, clipped to [0, 1], with the gamma of sRGB."""
    values = np.clip(values, 0, 1)
    return np.where(values <= 0.0031308, values * 12.92, 1.055 * values ** (1 / 2.4) - 0.055)


def _from_xyz(xyz: np.ndarray) -> np.ndarray:
    return _round_bytes(255 * _apply_gamma(xyz @ _FROM_XYZ.T))[:, :, ::-1]


@lru_cache(maxsize=1)
def _make_lab_tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return linear bytes times 8; cube roots of those over 2040, in 15 bits; 12-bit coefficients."""
    linear = np.rint(255 * 8 * _to_linear(np.arange(256) / 255)).astype(np.int64)
    steps = np.arange(256 * 3 // 2 * 8) / (255 * 8)
    roots = np.where(steps < _LINEAR_BELOW, steps * (841 / 108) + 16 / 116, np.cbrt(steps))
    coefficients = np.rint(4096 * _TO_XYZ / _WHITE[:, None]).astype(np.int64)
    return linear, np.rint(32768 * roots).astype(np.int64), coefficients


def lab(image: np.ndarray) -> np.ndarray:
    """Return CIELab L, a, b of an 8-bit colour image, in OpenCV's integers."""
    linear, roots, coefficients = _make_lab_tables()
    red_green_blue = linear[_first_channels(image)[:, :, ::-1]]
    x, y, z = np.moveaxis(roots[(red_green_blue @ coefficients.T + 2048) >> 12], 2, 0)
    half = 1 << 14
    scale, shift = (116 * 255 + 50) // 100, -((16 * 255 * (1 << 15) + 50) // 100)
    planes = (
        (scale * y + shift + half) >> 15,
        (500 * (x - y) + (128 << 15) + half) >> 15,
        (200 * (y - z) + (128 << 15) + half) >> 15,
    )
    return np.clip(np.stack(planes, axis=2), 0, 255).astype(np.uint8)


def lab_to_bgr(image: np.ndarray) -> np.ndarray:
    """Return blue, green, red from bytes L, a, b."""
    light, a, b = np.moveaxis(_first_channels(image).astype(np.float64), 2, 0)
    light = light * (100 / 255)
    root = (light + 16) / 116
    roots = np.stack([root + (a - 128) / 500, root, root - (b - 128) / 200], axis=2)
    xyz = np.where(roots > 6 / 29, roots**3, (roots - 16 / 116) * (108 / 841))
    xyz[:, :, 1] = np.where(light > 8, root**3, light / _KAPPA)
    return _from_xyz(xyz * _WHITE)


def luv(image: np.ndarray) -> np.ndarray:
    """Return CIELuv L, u, v of an 8-bit colour image."""
    xyz = _to_linear(_first_channels(image)[:, :, ::-1] / 255.0) @ _TO_XYZ.T
    x, y, _ = np.moveaxis(xyz, 2, 0)
    light = np.where(y > _LINEAR_BELOW, 116 * np.cbrt(y) - 16, _KAPPA * y)
    total = np.maximum(xyz @ [1.0, 15.0, 3.0], np.finfo(np.float32).eps)
    u = 13 * light * (4 * x / total - _WHITE_U)
    v = 13 * light * (9 * y / total - _WHITE_V)
    return _round_bytes(np.stack([light * 2.55, (u + 134) * (255 / 354), (v + 140) * (255 / 262)], axis=2))


def luv_to_bgr(image: np.ndarray) -> np.ndarray:
    """Return blue, green, red from bytes L, u, v."""
    light, u, v = np.moveaxis(_first_channels(image).astype(np.float64), 2, 0)
    light, u, v = light / 2.55, u * (354 / 255) - 134, v * (262 / 255) - 140
    y = np.where(light > 8, ((light + 16) / 116) ** 3, light / _KAPPA)
    divisor = 13 * np.where(light > 0, light, 1.0)
    across, down = u / divisor + _WHITE_U, v / divisor + _WHITE_V
    down = np.where(np.abs(down) < 1e-9, 1e-9, down)
    x = y * 9 * across / (4 * down)
    z = y * (12 - 3 * across - 20 * down) / (4 * down)
    return _from_xyz(np.where(light[:, :, None] > 0, np.stack([x, y, z], axis=2), 0.0))
