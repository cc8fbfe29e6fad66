import time

import pytest

from backend.coordination import lease_expiry
from backend.coordination.lease_expiry import DatabaseLiveness, since_boot_s


def test_may_expire_waits_one_lease_after_database_outage() -> None:
    liveness = DatabaseLiveness(lease_s=10)
    assert not liveness.may_expire()
    for now, expected in (
        (0, False),
        (4, False),
        (8, False),
        (11, True),
        (15, True),
        (21, False),
        (26, False),
    ):
        liveness.record_success(float(now))
        assert liveness.may_expire() is expected, now
    liveness.record_success(30.0)
    liveness.record_success(31.0)
    assert liveness.may_expire()


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="a clock of Linux")
def test_time_since_boot_includes_a_suspension(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks_s = {time.CLOCK_MONOTONIC: 60.0, time.CLOCK_BOOTTIME: 660.0}
    monkeypatch.setattr(lease_expiry, "clock_gettime", clocks_s.__getitem__)
    assert since_boot_s() == 660.0
