from backend.coordination.lease_expiry import DatabaseLiveness


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
