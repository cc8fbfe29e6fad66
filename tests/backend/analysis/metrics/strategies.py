"""Hypothesis strategies of points: every kind of number that an engine may emit."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from backend.analysis.metrics.chunks import POINT_DTYPES
from backend.statistics.columns import Columns

any_float = st.floats(width=64)
values = st.one_of(
    any_float,
    st.floats(width=32),
    st.integers(-1000, 1000).map(float),
    st.sampled_from([np.nan, np.inf, -np.inf, -0.0, 0.0]),
    st.integers(0, 10**12).map(lambda n: n / 1e6),
)


@st.composite
def columns(draw: st.DrawFn, max_rows: int = 200) -> Columns:
    """Arbitrary columns: decreasing steps, overflowing differences, NaN with payloads."""
    n = draw(st.integers(0, max_rows))
    return {
        name: draw(hnp.arrays("<i8", n) if dtype == "<i8" else hnp.arrays("<f8", n, elements=values))
        for name, dtype in POINT_DTYPES.items()
    }


def points(n: int, seed: int = 0) -> Columns:
    """`n` rows as training emits them."""
    rng = np.random.default_rng(seed)
    steps = np.cumsum(rng.integers(1, 400, n))
    return {
        "agent_steps": steps,
        "frames": 4 * steps,
        "wall_time_s": np.cumsum(rng.gamma(4.0, 0.02, n)),
        "episodes": np.arange(n),
        "value": rng.normal(size=n),
        "revision": np.arange(n) // 5,
    }
