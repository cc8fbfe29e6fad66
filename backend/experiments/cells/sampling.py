"""The configurations of a sweep: every combination of its values, or random ones."""

import json
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from backend.experiments.specs.sweep import Dimension, SweepSpec

ConfigValues = dict[str, Any]
"""Values by field path."""

N_RANDOM = 10
"""Configurations drawn at random before scores choose."""
_DIGITS = 4
"""Significant digits of real values, so that they can be read and typed."""
_DRAWS = 20
"""Maximum number of draws for each random configuration: a draw may repeat an earlier one."""


def configurations(spec: SweepSpec) -> list[ConfigValues]:
    """All configurations that are known at the start, in an order that depends on the spec alone. None occurs
    twice.

    Fewer than `n_configurations` are drawn if the space has fewer, and with the sampler `tpe` at most
    `N_RANDOM`, after which scores choose.
    """
    if spec.sampler == "grid":
        return _distinct(_grid(spec.space))
    n = spec.n_configurations or 0
    return random_settings(spec.space, n if spec.sampler == "random" else min(n, N_RANDOM), spec.sampler_seed)


def _grid(space: Mapping[str, Dimension]) -> Iterator[ConfigValues]:
    for values in product(*(_grid_values(dimension) for dimension in space.values())):
        yield dict(zip(space, values, strict=True))


def random_settings(space: Mapping[str, Dimension], n: int, seed: int) -> list[ConfigValues]:
    """Up to `n` distinct settings drawn at random; fewer if `_DRAWS` times `n` draws give fewer. A larger `n`
    begins with the same settings."""
    rng = np.random.default_rng(seed)
    wanted = n
    by_key: dict[str, ConfigValues] = {}
    for _ in range(_DRAWS * wanted):
        drawn = {path: _draw(dimension, rng) for path, dimension in space.items()}
        by_key.setdefault(_key(drawn), drawn)
        if len(by_key) == wanted:
            break
    return [*by_key.values()]


def _grid_values(dimension: Dimension) -> list[Any]:
    """The values of a dimension in a grid, at equal distances on its own scale."""
    if dimension.values is not None:
        return list(dimension.values)
    return [_value(dimension, at) for at in np.linspace(0, 1, dimension.n or 0)]


def _draw(dimension: Dimension, rng: np.random.Generator) -> Any:
    if dimension.values is not None:
        return dimension.values[int(rng.integers(len(dimension.values)))]
    if dimension.distribution == "integer":
        return int(rng.integers(int(_number(dimension.low)), int(_number(dimension.high)), endpoint=True))
    return _value(dimension, float(rng.random()))


def _value(dimension: Dimension, at: float) -> float | int:
    """The value at a share of the range, from 0 to 1."""
    low, high = _number(dimension.low), _number(dimension.high)
    value = low * (high / low) ** at if dimension.distribution.startswith("log") else low + (high - low) * at
    return round(value) if dimension.distribution.endswith("integer") else rounded(dimension, value)


def rounded(dimension: Dimension, value: float) -> float:
    """A real value of a range with few digits. Rounding leaves the ends as they were given."""
    return min(_number(dimension.high), max(_number(dimension.low), float(f"{value:.{_DIGITS}g}")))


def _number(bound: float | None) -> float:
    assert bound is not None
    return bound


def _distinct(samples: Iterator[ConfigValues]) -> list[ConfigValues]:
    return [*{_key(settings): settings for settings in samples}.values()]


def _key(settings: ConfigValues) -> str:
    return json.dumps(settings, sort_keys=True)
