from workers.host_agent import Contact


def test_grace_after_the_database_was_away() -> None:
    contact = Contact(lease_s=10)
    assert not contact.may_expire()
    for now, expected in (
        (0, False),
        (4, False),
        (8, False),
        (11, True),
        (15, True),
        (21, False),
        (26, False),
    ):
        contact.made(float(now))
        assert contact.may_expire() is expected, now
    contact.made(30.0)
    contact.made(31.0)
    assert contact.may_expire()
