"""Upper tails of Student's t and of Fisher's F distribution.

Both are tails of the beta distribution. With x = sin(a)^2, its integral has no singularity:

    I_x(p, q) = 2 / B(p, q) integral from 0 to arcsin(sqrt(x)) of sin(a)^(2 p - 1) cos(a)^(2 q - 1) da.

Hand-written, because SciPy would be a large dependency of every web host for these two functions alone; the
tests compare with it.
"""

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from backend.statistics.estimates import Scores

_NODES = 256


def student_upper_tail(t: Scores, degrees: Scores) -> Scores:
    """P(T > t) of Student's t distribution.

    Args:
        t: f8[...], at least 0; infinite values are allowed.
        degrees: f8[...] of the same shape: degrees of freedom, at least 1, not necessarily whole.
    """
    return _beta_tail(np.sqrt(degrees), t, degrees / 2, np.full_like(degrees, 0.5)) / 2


def f_upper_tail(f: float, above: int, below: int) -> float:
    """P(F > f) of Fisher's F distribution.

    Args:
        f: at least 0; may be infinite.
        above: degrees of freedom of the numerator.
        below: degrees of freedom of the denominator.
    """
    sides = np.array([math.sqrt(below)]), np.array([math.sqrt(above * f)])
    return float(_beta_tail(*sides, np.array([below / 2]), np.array([above / 2]))[0])


def _beta_tail(opposite: Scores, adjacent: Scores, p: Scores, q: Scores) -> Scores:
    """I_x(p, q), with arcsin(sqrt(x)) the angle of a right triangle with these sides."""
    nodes, weights = _quadrature()
    half = np.arctan2(opposite, adjacent) / 2
    angles = np.multiply.outer(half, nodes + 1)
    constant = np.vectorize(lambda p, q: math.lgamma(p + q) - math.lgamma(p) - math.lgamma(q), otypes=["f8"])
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithm = (2 * p - 1)[..., None] * np.log(np.sin(angles))
        logarithm += (2 * q - 1)[..., None] * np.log(np.cos(angles))
        density = np.nan_to_num(np.exp(logarithm + constant(p, q)[..., None]))
    tail: Scores = 2 * half * (density @ weights)
    return np.clip(tail, 0.0, 1.0)


@cache
def _quadrature() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Nodes and weights of Gauss and Legendre's rule on [-1, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, weights
