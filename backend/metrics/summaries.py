"""Mean, minimum and maximum of a series, kept up to date as points arrive."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from backend.metrics.chunks import Array


@dataclass(frozen=True)
class Summary:
    """Statistics of the finite values of a series; None if there are none."""

    n_finite: int = 0
    mean_value: float | None = None
    min_value: float | None = None
    max_value: float | None = None

    def joined(self, later: "Summary") -> "Summary":
        """Return the summary of these values and later ones."""
        if self.mean_value is None or self.min_value is None or self.max_value is None:
            return later
        if later.mean_value is None or later.min_value is None or later.max_value is None:
            return self
        n = self.n_finite + later.n_finite
        return Summary(
            n,
            # Neither a sum of many nor a difference of large values, which could overflow.
            self.mean_value * (self.n_finite / n) + later.mean_value * (later.n_finite / n),
            min(self.min_value, later.min_value),
            max(self.max_value, later.max_value),
        )

    def columns(self) -> dict[str, Any]:
        """As columns of a series' row."""
        return asdict(self)


def summary(values: Array) -> Summary:
    """The summary of some values."""
    finite = values[np.isfinite(values)]
    n = len(finite)
    if n == 0:
        return Summary()
    mean = float((finite / n).sum()) if n > 1 else float(finite[0])
    return Summary(n, mean, float(finite.min()), float(finite.max()))
