"""Area averages against exact ones, in whole numbers."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from workers.engine.envs.images import Shrink


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


def rounded_averages(image: NDArray[np.uint8], m: int) -> NDArray[np.int64]:
    """In whole numbers throughout; halves to even."""
    height, width = image.shape
    down, along = (np.array([[int(s * n) for s in row] for row in shares(n, m)]) for n in image.shape)
    whole, rest = np.divmod(down @ image.astype(np.int64) @ along.T, height * width)
    up = (2 * rest > height * width) | ((2 * rest == height * width) & (whole % 2 == 1))
    rounded: NDArray[np.int64] = whole + up
    return rounded


SLOW = [(210, 84), (250, 42)]


@pytest.mark.parametrize(
    ("height", "side"),
    [
        pytest.param(height, side, marks=pytest.mark.long) if (height, side) in SLOW else (height, side)
        for side in (84, 80, 42)
        for height in (210, 250, 195)
    ],
)
def test_shrink_gives_the_exact_average_of_each_pixels_area(height: int, side: int) -> None:
    shrink = Shrink(height, 160, (side, side))
    rng = np.random.default_rng(0)
    for highest in (256, 256, 3):  # few colours: many averages lie half-way between two whole numbers
        image = rng.integers(0, highest, (height, 160), dtype=np.uint8)
        np.testing.assert_array_equal(shrink(image), rounded_averages(image, side))


def test_shrink_refuses_images_too_large_for_exact_sums() -> None:
    with pytest.raises(ValueError, match="1009x1013"):
        Shrink(1009, 1013, (84, 84))


def test_shrink_keeps_white_white() -> None:
    assert (Shrink(210, 160, (84, 84))(np.full((210, 160), 255, np.uint8)) == 255).all()
