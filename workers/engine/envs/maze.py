"""Random mazes of rooms and corridors, on a grid of cells."""

import numpy as np
from numpy.typing import NDArray

ROOM_CELLS = 3
LOOPS = 0.08
"""Share of the inner walls between two corridors that are opened, so that there is more than one way."""


def random_maze(rng: np.random.Generator, cells: int, rooms: int) -> NDArray[np.bool_]:
    """Where one can walk: every floor cell can be reached from every other.

    A random spanning tree joins the cells with odd coordinates (depth first, so corridors are long); rooms
    are opened over it; a few walls more are opened.

    Args:
        rng: the only source of chance.
        cells: cells along each side, odd; the border is wall.
        rooms: squares of three by three cells, which may touch.

    Returns:
        (cells, cells), row by row.
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
    found = np.full(floor.shape, -1, np.int32)
    found[target] = 0
    wave = [target]
    while wave:
        wave = [
            cell
            for y, x in wave
            for cell in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1))
            if floor[cell] and found[cell] < 0 and not found.__setitem__(cell, found[y, x] + 1)
        ]
    return found
