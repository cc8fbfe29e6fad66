"""Chaos in a minute: the same campaign as `make chaos`, with fewer faults. Seeds that found a bug stay."""

import pytest

from tests.chaos import campaign


@pytest.mark.service
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("database", "seed", "n_faults"),
    [("sqlite", 1, 12), ("postgresql", 1, 12), pytest.param("sqlite", 3, 20, marks=pytest.mark.long)],
)
def test_nothing_is_lost_or_doubled(database: str, seed: int, n_faults: int) -> None:
    report = campaign.run(database, seed, n_faults)
    assert not report.violations, "\n".join([str(report), *report.violations, *report.told])
    assert report.n_faults == n_faults
    assert report.n_rows > 0
