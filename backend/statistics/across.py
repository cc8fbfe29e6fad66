"""Values of a study over its environments."""

from dataclasses import dataclass

import numpy as np

from backend.statistics.cells import Reduction, finite
from backend.statistics.estimates import interquartile_mean


@dataclass(frozen=True)
class AcrossEnvironments:
    """The mean, the median and the interquartile mean of an arm's values over environments."""

    arm: str
    mean: float | None
    median: float | None
    iqm: float | None
    environments: tuple[str, ...]
    """The environments for which every arm has a finite value; only these count."""
    caption: str


def across_environments(reduction: Reduction) -> tuple[AcrossEnvironments, ...]:
    """Each arm's values over the environments for which all arms have a finite one."""
    arms = list(dict.fromkeys(cell.arm for cell in reduction.cells))
    names = list(dict.fromkeys(cell.environment for cell in reduction.cells))
    values = {(cell.arm, cell.environment): finite(cell.value) for cell in reduction.cells}
    common = tuple(name for name in names if all(values.get((arm, name)) is not None for arm in arms))
    caption = f"over the same {len(common)} of {len(names)} environments; {reduction.caption}"
    summaries = []
    for arm in arms:
        row = np.array([value for name in common if (value := values[arm, name]) is not None])
        mean, middle, iqm = (
            (float(row.mean()), float(np.median(row)), interquartile_mean(row)) if len(row) else (None,) * 3
        )
        summaries.append(AcrossEnvironments(arm, mean, middle, iqm, common, caption))
    return tuple(summaries)
