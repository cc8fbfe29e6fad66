"""How much a quantity changed between two stretches of training.

The modified z-score of Iglewicz and Hoaglin 1993, "How to Detect and Handle Outliers" (ASQC Basic References
in Quality Control 16), with the median of the stretch in the place of a single value:

    z = 0.6745 (median(inside) - median(before)) / MAD(before),    MAD(x) = median |x - median(x)|.

0.6745 is the third quartile of the standard normal distribution: for normal values z is in standard
deviations. Where more than half of the values before are equal the MAD is 0; the mean absolute deviation from
the median takes its place then, with 1 / sqrt(pi / 2) = 0.7979, for which the same holds. Both are 0 for a
constant.

A median and a MAD, because a few outliers before the stretch would hide a change of the mean.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MIN_VALUES = 3
"""Fewer values on either side are not compared."""

_NORMAL_QUARTILE = 0.6745
_NORMAL_MEAN_DEVIATION = float(np.sqrt(2.0 / np.pi))


@dataclass(frozen=True)
class Change:
    """What changed from one stretch to the next."""

    before: float
    """Median before."""
    inside: float
    """Median inside."""
    z: float | None
    """Modified z-score; None if the values before were constant, and those inside are not equal to them."""


def change(before: npt.NDArray[np.float64], inside: npt.NDArray[np.float64]) -> Change | None:
    """The change from the values before a stretch to those inside; None for too few finite values.

    Args:
        before: f8[n]. Values that are not finite are left out.
        inside: f8[m]. Likewise.
    """
    before, inside = before[np.isfinite(before)], inside[np.isfinite(inside)]
    if min(len(before), len(inside)) < MIN_VALUES:
        return None
    centre, now = float(np.median(before)), float(np.median(inside))
    deviations = np.abs(before - centre)
    spread = float(np.median(deviations)) / _NORMAL_QUARTILE
    if spread == 0.0:
        spread = float(deviations.mean()) / _NORMAL_MEAN_DEVIATION
    if spread == 0.0:
        return Change(centre, now, 0.0 if now == centre else None)
    return Change(centre, now, (now - centre) / spread)
