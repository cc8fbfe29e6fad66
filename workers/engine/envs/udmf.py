"""A maze as a Doom map in UDMF text, in a WAD of three lumps.

No node builder or script compiler is needed: the game builds its nodes. Format: the ZDoom project's
UDMF specification 1.1.
"""

import struct
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CELL = 128
"""Side of a cell in map units."""
SCALE = 1.5
"""Items are drawn this much larger than in Doom, to be visible at 84×84 pixels."""
TEXTMAP_BYTES = 1 << 18
"""Every map's text is padded to this length, so that one map can overwrite another in place."""

_WALLS = ("STONE2", "BRICK7", "STARTAN3", "MARBLE1", "METAL1", "BROWN1")
_EVERY_GAME = "".join(f"skill{k}=true;" for k in range(1, 6)) + "single=true;coop=true;dm=true;"


class Thing(NamedTuple):
    """An item or the player, in the middle of a cell."""

    kind: int
    """Doom's editor number."""
    cell: tuple[int, int]
    angle: int = 0
    """Degrees, counter-clockwise from east."""


def middle(cell: tuple[int, int]) -> tuple[float, float]:
    """Map units (x, y) of a cell's centre; rows go south."""
    y, x = cell
    return (x + 0.5) * CELL, -(y + 0.5) * CELL


def walls_text(floor: NDArray[np.bool_], rng: np.random.Generator) -> str:
    """UDMF text of a maze's vertices, lines, sides and single sector; wall textures are random."""
    corners: dict[tuple[int, int], int] = {}
    lines: list[tuple[int, int]] = []

    def corner(y: int, x: int) -> int:
        return corners.setdefault((y, x), len(corners))

    for y, x in np.argwhere(floor).tolist():
        # Clockwise round the cell: the front of a line is on its right.
        around = (
            ((y - 1, x), (y, x), (y, x + 1)),
            ((y, x + 1), (y, x + 1), (y + 1, x + 1)),
            ((y + 1, x), (y + 1, x + 1), (y + 1, x)),
            ((y, x - 1), (y + 1, x), (y, x)),
        )
        lines += [(corner(*start), corner(*two)) for beyond, start, two in around if not floor[beyond]]
    textures = rng.integers(len(_WALLS), size=len(lines)).tolist()
    return "\n".join(
        [
            *(f"vertex{{x={x * CELL};y={-y * CELL};}}" for y, x in corners),
            *(f"linedef{{v1={a};v2={b};sidefront={i};blocking=true;}}" for i, (a, b) in enumerate(lines)),
            *(f'sidedef{{sector=0;texturemiddle="{_WALLS[k]}";}}' for k in textures),
            'sector{heightfloor=0;heightceiling=128;texturefloor="FLOOR4_8";textureceiling="CEIL3_5";'
            "lightlevel=192;}",
        ]
    )


def things_text(things: Iterable[Thing]) -> str:
    """UDMF text of the things in the maze."""
    return "\n".join(
        f"thing{{x={x};y={y};type={thing.kind};angle={thing.angle};scale={SCALE};{_EVERY_GAME}}}"
        for thing in things
        for x, y in [middle(thing.cell)]
    )


def wad(walls: str, things: str) -> bytes:
    """A WAD file with the map MAP01; all maps have the same size and directory.

    Raises:
        ValueError: the map is too large.
    """
    text = f'namespace="zdoom";\n{things}\n{walls}\n'.encode()
    if len(text) > TEXTMAP_BYTES:
        raise ValueError(f"the map has {len(text)} bytes; the limit is {TEXTMAP_BYTES}: use a smaller maze")
    lumps = [(b"MAP01", b""), (b"TEXTMAP", text.ljust(TEXTMAP_BYTES)), (b"ENDMAP", b"")]
    body, directory = b"", b""
    header = struct.Struct("<4sii")
    for name, data in lumps:
        directory += struct.pack("<ii8s", header.size + len(body), len(data), name)
        body += data
    return header.pack(b"PWAD", len(lumps), header.size + len(body)) + body + directory
