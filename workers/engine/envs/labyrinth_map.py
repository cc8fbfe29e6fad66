"""The picture people see of a labyrinth: the player's view, and the maze from above beside it."""

import cv2
import numpy as np
from numpy.typing import NDArray

from workers.engine.envs.udmf import CELL

HEIGHT = 240
VIEW_WIDTH = 320

_FLOOR, _WALL = (225, 225, 220), (60, 62, 66)
_APPLE, _PORTAL, _PLAYER = (40, 150, 50), (220, 160, 20), (40, 80, 210)


def beside(
    view: NDArray[np.uint8],
    floor: NDArray[np.bool_],
    portal: tuple[int, int],
    apples: list[tuple[int, int]],
    place: tuple[float, float, float],
) -> NDArray[np.uint8]:
    """Draw.

    Args:
        view: what the player sees, (H, W, 3) RGB.
        floor: the maze, as `random_maze` gives it.
        portal: its cell.
        apples: cells of those that are left.
        place: where the player is: map units (x, y), and degrees counter-clockwise from east.

    Returns:
        (240, 560, 3) RGB.
    """
    cells = np.where(floor[..., None], _FLOOR, _WALL).astype(np.uint8)
    above = np.ascontiguousarray(cv2.resize(cells, (HEIGHT, HEIGHT), interpolation=cv2.INTER_NEAREST))
    scale = HEIGHT / len(floor)

    def dot(x: float, y: float, size: float, colour: tuple[int, int, int]) -> None:
        centre = (round(x * scale), round(y * scale))
        cv2.circle(above, centre, max(2, round(size * scale)), colour, cv2.FILLED, cv2.LINE_AA)

    for row, column in apples:
        dot(column + 0.5, row + 0.5, 0.2, _APPLE)
    dot(portal[1] + 0.5, portal[0] + 0.5, 0.35, _PORTAL)
    x, y, angle = place[0] / CELL, -place[1] / CELL, np.radians(place[2])
    dot(x, y, 0.25, _PLAYER)
    tip = (round((x + 0.7 * np.cos(angle)) * scale), round((y - 0.7 * np.sin(angle)) * scale))
    cv2.line(above, (round(x * scale), round(y * scale)), tip, _PLAYER, 2, cv2.LINE_AA)
    seen = cv2.resize(view, (VIEW_WIDTH, HEIGHT), interpolation=cv2.INTER_LINEAR)
    return np.asarray(np.concatenate([seen, above], axis=1), np.uint8)
