"""The campaign of `make chaos` with fewer faults; with the real engine in `make test-long`.

Seeds that once found a bug are kept.
"""

import pytest

from tests.campaigns.chaos import campaign, more_faults

pytestmark = [pytest.mark.service, pytest.mark.timeout(3_600)]  # minutes alone


@pytest.mark.long
@pytest.mark.parametrize(
    ("database", "seed", "n_faults", "fake_engine"),
    [
        ("sqlite", 1, 12, True),
        ("postgresql", 1, 12, True),
        ("postgresql", 1, 12, False),
        ("sqlite", 3, 20, False),
    ],
)
def test_campaign_of_faults_violates_no_invariant(
    database: str, seed: int, n_faults: int, fake_engine: bool
) -> None:
    report = campaign.run(database, seed, n_faults, fake_engine=fake_engine)
    assert not report.violations, "\n".join([str(report), *report.violations, *report.log])
    assert report.n_faults == n_faults
    assert report.n_rows > 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("database", "seed"), [("sqlite", 11), pytest.param("postgresql", 12, marks=pytest.mark.benchmark)]
)
def test_campaign_of_every_fault_violates_no_invariant(database: str, seed: int) -> None:
    report = campaign.run(database, seed, 25, fake_engine=True, mean_pause_s=2.0, kinds=more_faults.FAULTS)
    assert not report.violations, "\n".join([str(report), *report.violations, *report.log])
    assert report.n_faults == 25
    assert report.n_rows > 0
