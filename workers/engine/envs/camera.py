"""What someone who watches sees of a world."""

import time

import cv2
import numpy as np
from numpy.typing import NDArray

PICTURE_INTERVAL_S = 1 / 15
"""Least time between two pictures."""


class Camera:
    """Draws some of a world's pictures: no more a second than an eye needs."""

    def __init__(self) -> None:
        self._last_picture_s = 0.0

    def draw(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
        """The bytes of a picture (height, width, 3) as JPEG; None where the last is too recent."""
        now = time.monotonic()
        if now - self._last_picture_s < PICTURE_INTERVAL_S:
            return None
        self._last_picture_s = now
        _, jpeg = cv2.imencode(".jpg", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))
        return np.asarray(jpeg, np.uint8).reshape(-1)
