"""Chaos in a minute: the same campaign as `make chaos`, with fewer faults. Seeds that found a bug stay."""

import pytest

from tests.chaos import campaign

N_FAULTS = 12


@pytest.mark.service
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("database", "seed"), [("sqlite", 1), ("postgresql", 1)])
def test_nothing_is_lost_or_doubled(database: str, seed: int) -> None:
    report = campaign.run(database, seed, N_FAULTS)
    assert not report.violations, "\n".join([str(report), *report.violations, *report.told])
    assert report.n_faults == N_FAULTS
    assert report.n_rows > 0
