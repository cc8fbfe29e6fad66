"""The difference of two colours as people see it: slow transcriptions of the published formulas."""

from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt

import numpy as np

from backend.statistics.columns import Array

DEUTERANOPIA = np.array(
    [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ]
)
PROTANOPIA = np.array(
    [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ]
)
"""Machado, Oliveira and Fernandes 2009, severity 1.0; of linear RGB."""

_XYZ_OF_RGB = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
"""Of sRGB with the white point D65."""

Lab = tuple[float, float, float]


def linear(colour: str) -> Array:
    """Linear red, green and blue of `#rrggbb`, from 0 to 1."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return np.array([part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts])


def seen(rgb: Array, deficiency: Array | None) -> Array:
    """Linear RGB as people with a deficiency see it; None for none."""
    return rgb if deficiency is None else np.clip(deficiency @ rgb, 0.0, 1.0)


def lab(rgb: Array) -> Lab:
    """CIELAB of linear RGB."""
    relative = (_XYZ_OF_RGB @ rgb) / (_XYZ_OF_RGB @ np.ones(3))
    x, y, z = (t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in relative)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def contrast(a: str, b: str) -> float:
    """Contrast ratio of WCAG 2.2."""
    darker, lighter = sorted(float(_XYZ_OF_RGB[1] @ linear(colour)) for colour in (a, b))
    return (lighter + 0.05) / (darker + 0.05)


def ciede2000(first: Lab, second: Lab) -> float:
    """Sharma, Wu and Dalal 2005, equations 2 to 22, with k_L = k_C = k_H = 1."""
    (L1, a1, b1), (L2, a2, b2) = first, second
    C_mean = (hypot(a1, b1) + hypot(a2, b2)) / 2
    G = 0.5 * (1 - sqrt(C_mean**7 / (C_mean**7 + 25**7)))
    a1p, a2p = (1 + G) * a1, (1 + G) * a2
    C1p, C2p = hypot(a1p, b1), hypot(a2p, b2)
    h1p = 0.0 if a1p == b1 == 0 else degrees(atan2(b1, a1p)) % 360
    h2p = 0.0 if a2p == b2 == 0 else degrees(atan2(b2, a2p)) % 360

    dh = h2p - h1p
    if C1p * C2p == 0:
        dh = 0.0
    elif dh > 180:
        dh -= 360
    elif dh < -180:
        dh += 360
    dL, dC, dH = L2 - L1, C2p - C1p, 2 * sqrt(C1p * C2p) * sin(radians(dh / 2))

    L_mean, Cp_mean = (L1 + L2) / 2, (C1p + C2p) / 2
    if C1p * C2p == 0:
        h_mean = h1p + h2p
    elif abs(h1p - h2p) <= 180:
        h_mean = (h1p + h2p) / 2
    elif h1p + h2p < 360:
        h_mean = (h1p + h2p + 360) / 2
    else:
        h_mean = (h1p + h2p - 360) / 2
    T = (
        1
        - 0.17 * cos(radians(h_mean - 30))
        + 0.24 * cos(radians(2 * h_mean))
        + 0.32 * cos(radians(3 * h_mean + 6))
        - 0.20 * cos(radians(4 * h_mean - 63))
    )
    S_L = 1 + 0.015 * (L_mean - 50) ** 2 / sqrt(20 + (L_mean - 50) ** 2)
    S_C = 1 + 0.045 * Cp_mean
    S_H = 1 + 0.015 * Cp_mean * T
    d_theta = 30 * exp(-(((h_mean - 275) / 25) ** 2))
    R_T = -2 * sqrt(Cp_mean**7 / (Cp_mean**7 + 25**7)) * sin(radians(2 * d_theta))
    return sqrt((dL / S_L) ** 2 + (dC / S_C) ** 2 + (dH / S_H) ** 2 + R_T * (dC / S_C) * (dH / S_H))
