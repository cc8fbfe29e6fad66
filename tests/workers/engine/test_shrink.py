"""Area averages against exact ones, in whole numbers."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from workers.engine.envs.shrink import Shrink


def shares(n: int, m: int) -> list[list[Fraction]]:
    """How much of each of n pixels is in each of m, of a side's length of 1 each."""
    return [
        [
            max(
                Fraction(0), min(Fraction(i + 1, n), Fraction(k + 1, m)) - max(Fraction(i, n), Fraction(k, m))
            )
            * m
            for i in range(n)
        ]
        for k in range(m)
    ]


def averages(picture: NDArray[np.uint8], m: int) -> NDArray[np.float64]:
    down, along = (np.array(shares(n, m), np.float64) for n in picture.shape)
    exact: NDArray[np.float64] = down @ picture @ along.T
    return exact


@pytest.mark.parametrize("height", [210, 250])
@pytest.mark.parametrize("side", [84, 42])
def test_every_pixel_is_the_average_of_its_area(height: int, side: int) -> None:
    shrink = Shrink(height, 160, (side, side))
    rng = np.random.default_rng(0)
    for _ in range(3):
        picture = rng.integers(0, 256, (height, 160), dtype=np.uint8)
        small = shrink(picture)
        np.testing.assert_array_equal(small, np.rint(small))
        np.testing.assert_allclose(small, averages(picture, side), rtol=0, atol=0.5001)


def test_white_stays_white() -> None:
    assert (Shrink(210, 160, (84, 84))(np.full((210, 160), 255, np.uint8)) == 255).all()
