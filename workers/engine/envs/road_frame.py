"""Frames of a race: the track is drawn once per episode, and each frame is cut from that drawing."""

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from gymnasium.envs.box2d.car_racing import GRASS_DIM, PLAYFIELD
from numpy.typing import NDArray

PIXELS_PER_UNIT = 2.0
"""Resolution of the drawing of the whole track."""
VIEW_UNITS = 54.0
"""Side of a view in simulation units."""
CAR_HEIGHT = 0.75
"""Position of the car in a view, as a fraction from its top."""
STRIP = 1 / 8
"""Fraction of a view, at its bottom, that shows the instruments."""

_GRASS, _PATCH = (102, 204, 102), (102, 230, 102)
_SHIFT = 4
"""Fractional bits of OpenCV's polygon coordinates."""


def draw_track(tiles: list[tuple[Any, Any]]) -> NDArray[np.uint8]:
    """The whole track from above, north up, (side, side, 3) RGB.

    Args:
        tiles: quadrilaterals in simulation units, and their colours; later ones cover earlier ones.
    """
    side = round(2 * PLAYFIELD * PIXELS_PER_UNIT)
    drawing = np.full((side, side, 3), _GRASS, np.uint8)
    patch = round(GRASS_DIM * PIXELS_PER_UNIT)
    for y in range(0, side, 2 * patch):
        for x in range(0, side, 2 * patch):
            drawing[y : y + patch, x : x + patch] = _PATCH
    for corners, colour in tiles:
        points = np.asarray(corners, np.float64) * (1, -1) + PLAYFIELD
        fixed = np.round(points * PIXELS_PER_UNIT * (1 << _SHIFT)).astype(np.int32)
        cv2.fillConvexPoly(drawing, fixed, [int(c) for c in colour], cv2.LINE_AA, _SHIFT)
    return drawing


def draw_view(
    drawing: NDArray[np.uint8], car: Any, out: NDArray[np.uint8], others: Sequence[Any] = ()
) -> None:
    """Draw the car facing up, other cars, the surroundings, and the instruments: speed, steering, rotation.

    Args:
        drawing: drawing of the track, from `draw_track`.
        car: gymnasium's car.
        out: (side, side, 3), overwritten.
        others: bodies of other cars, of which those in view are drawn.
    """
    side = len(out)
    scale = side / VIEW_UNITS
    angle, (x, y) = car.hull.angle, car.hull.position
    right = np.array([np.cos(angle), np.sin(angle)])
    ahead = np.array([-np.sin(angle), np.cos(angle)])
    middle = np.array([side / 2, CAR_HEIGHT * side])
    # From a pixel of the view to one of the drawing, whose rows go south.
    k = PIXELS_PER_UNIT
    turn = np.array([[right[0], -ahead[0]], [-right[1], ahead[1]]]) * (k / scale)
    shift = np.array([x + PLAYFIELD, PLAYFIELD - y]) * k - turn @ middle
    cv2.warpAffine(
        drawing,
        np.column_stack([turn, shift]),
        (side, side),
        dst=out,
        flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_CONSTANT,
        borderValue=_GRASS,
    )
    to_view = np.column_stack([right, -ahead]) * scale
    in_view = [body for body in others if (body.position - car.hull.position).length < VIEW_UNITS]
    for body in (*in_view, *car.drawlist):
        colour = [int(255 * c) for c in body.color]
        for fixture in body.fixtures:
            corners = np.array([body.transform * v for v in fixture.shape.vertices]) - (x, y)
            points = corners @ to_view + middle
            fixed = np.round(points * (1 << _SHIFT)).astype(np.int32)
            cv2.fillConvexPoly(out, fixed, colour, cv2.LINE_8, _SHIFT)
    _instruments(car, out)


def _instruments(car: Any, out: NDArray[np.uint8]) -> None:
    side = len(out)
    top = side - round(STRIP * side)
    out[top:] = 0
    third = (side - top) // 3
    speed = min(np.hypot(*car.hull.linearVelocity) / 100, 1.0)
    out[top : top + third, : round(speed * side)] = 255
    for row, value, colour in (
        (1, -car.wheels[0].joint.angle / 0.4, (0, 255, 0)),
        (2, -car.hull.angularVelocity / 6, (255, 0, 0)),
    ):
        half = side // 2
        reach = round(float(np.clip(value, -1, 1)) * half)
        first, last = sorted((half, half + reach))
        out[top + row * third : top + (row + 1) * third, first:last] = colour
