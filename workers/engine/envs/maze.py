"""Random mazes of rooms and corridors on a grid of cells, and frames that show a map of them."""

import cv2
import numpy as np
from numpy.typing import NDArray

from workers.engine.envs.udmf import CELL

ROOM_CELLS = 3
LOOPS = 0.08
"""Fraction of the inner walls between two corridors that are opened, to create loops."""

HEIGHT = 240
VIEW_WIDTH = 320

_FLOOR, _WALL = (225, 225, 220), (60, 62, 66)
_APPLE, _PORTAL, _PLAYER = (40, 150, 50), (220, 160, 20), (40, 80, 210)


def random_maze(rng: np.random.Generator, cells: int, rooms: int) -> NDArray[np.bool_]:
    """Generate a maze in which every floor cell can be reached from every other.

    A random spanning tree joins the cells with odd coordinates (depth first, so corridors are long); then
    rooms and a few more walls are opened.

    Args:
        rng: the only source of randomness.
        cells: cells along each side, odd; the border is wall.
        rooms: number of squares of three by three cells; they may overlap.

    Returns:
        (cells, cells), True where one can walk.
    """
    floor = np.zeros((cells, cells), np.bool_)
    start = tuple(int(2 * k + 1) for k in rng.integers(cells // 2, size=2))
    floor[start] = True
    path = [start]
    while path:
        y, x = path[-1]
        ways = [
            (y + dy, x + dx)
            for dy, dx in ((-2, 0), (2, 0), (0, -2), (0, 2))
            if 0 < y + dy < cells - 1 and 0 < x + dx < cells - 1 and not floor[y + dy, x + dx]
        ]
        if not ways:
            path.pop()
            continue
        to = ways[int(rng.integers(len(ways)))]
        floor[(y + to[0]) // 2, (x + to[1]) // 2] = floor[to] = True
        path.append(to)
    for _ in range(rooms):
        y, x = (int(2 * k + 1) for k in rng.integers((cells - ROOM_CELLS) // 2, size=2))
        floor[y : y + ROOM_CELLS, x : x + ROOM_CELLS] = True
    between = ~floor
    between[[0, -1]] = between[:, [0, -1]] = False
    joins = np.zeros_like(floor)
    joins[1:-1, 1:-1] = (floor[:-2, 1:-1] & floor[2:, 1:-1]) | (floor[1:-1, :-2] & floor[1:-1, 2:])
    floor |= between & joins & (rng.random(floor.shape) < LOOPS)
    return floor


def distances(floor: NDArray[np.bool_], target: tuple[int, int]) -> NDArray[np.int32]:
    """Steps from each floor cell to the target, -1 on walls (breadth first)."""
    steps = np.full(floor.shape, -1, np.int32)
    steps[target] = 0
    wave = [target]
    while wave:
        wave = [
            cell
            for y, x in wave
            for cell in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1))
            if floor[cell] and steps[cell] < 0 and not steps.__setitem__(cell, steps[y, x] + 1)
        ]
    return steps


def view_with_map(
    view: NDArray[np.uint8],
    floor: NDArray[np.bool_],
    portal: tuple[int, int],
    apples: list[tuple[int, int]],
    pose: tuple[float, float, float],
) -> NDArray[np.uint8]:
    """Render the player's view with the map next to it.

    Args:
        view: the view from the player, (H, W, 3) RGB.
        floor: the maze, from `random_maze`.
        portal: cell of the portal.
        apples: cells of the apples left.
        pose: the player's position in map units (x, y), and heading in degrees counter-clockwise from east.

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
    x, y, angle = pose[0] / CELL, -pose[1] / CELL, np.radians(pose[2])
    dot(x, y, 0.25, _PLAYER)
    tip = (round((x + 0.7 * np.cos(angle)) * scale), round((y - 0.7 * np.sin(angle)) * scale))
    cv2.line(above, (round(x * scale), round(y * scale)), tip, _PLAYER, 2, cv2.LINE_AA)
    resized = cv2.resize(view, (VIEW_WIDTH, HEIGHT), interpolation=cv2.INTER_LINEAR)
    return np.asarray(np.concatenate([resized, above], axis=1), np.uint8)
